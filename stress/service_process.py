"""Service in its own process that tests can start, stop and kill."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from stress.postgres import free_port

REQUEST_TIMEOUT = 300.0  # seconds; an export of a large store takes long
START_TIMEOUT = 600.0  # seconds, including the compilation of kernels
COMMAND = (sys.executable, "-c", "from locb.cli import main; main()", "serve")


class Process(Protocol):
    """Process with the methods of ``subprocess.Popen`` that ``ServiceProcess`` needs."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit status, or None if the process is running."""

    def wait(self, timeout: float, /) -> int:
        """Wait for the end of the process, and return its exit status."""

    def send_signal(self, number: signal.Signals, /) -> None:
        """Send a signal to the process."""


class ServiceProcess:
    """Process of ``locb serve``. All starts use the same port.

    Parameters
    ----------
    folder : Path
        Data folder of the service. The output of the process is appended to the file FOLDER.log next to it.
    options : sequence of str, default ()
        Further options of ``locb serve``.
    store : str, optional
        Address of a PostgreSQL database. The default is a SQLite file in the data folder.
    before : callable, optional
        Function that the new process calls before it executes the service.
    command : sequence of str, optional
        Command that starts the service, instead of ``locb serve``; it has the options ``--data-dir`` and ``--port``.
    """

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = (),
        store: str | None = None,
        before: Callable[[], None] | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.folder = folder
        self.store = store
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.lines = folder.with_name(folder.name + ".log")
        self.headers: dict[str, str] = {}  # of each request, for example a token
        self._options = list(options)
        self._before = before
        self._command = command
        self._process: Process | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Id of the running process."""
        if self._process is None:
            raise ProcessLookupError("the service is not running; call start first")
        return self._process.pid

    def start(self) -> float:
        """Start the process, wait until the service is healthy, and return the time in seconds."""
        start = time.perf_counter()
        self.launch()
        self.wait_ready()
        return time.perf_counter() - start

    def launch(self) -> None:
        """Start the process without waiting for the service."""
        command = [*self._command, "--data-dir", str(self.folder), "--port", str(self.port), *self._options]
        # An environment variable passes the address, because it has a password and the process list shows options.
        environment = os.environ | ({} if self.store is None else {"LOCB_STORE": self.store})
        with self.lines.open("ab") as lines:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=lines, stderr=lines, env=environment, preexec_fn=self._before
            )

    def wait_ready(self, healthy: bool = True) -> None:
        """Wait until the service is healthy, or only until it responds if ``healthy`` is False.

        Raises
        ------
        ChildProcessError
            If the process ends, or the service is not ready after 10 minutes.
        """
        end = time.monotonic() + START_TIMEOUT
        while True:
            try:
                status, _ = self.get("/v1/health" if healthy else "/v1/ping")
            except OSError:
                status = 0
            if status in (200, 204):
                return
            if self._process is None or self._process.poll() is not None or time.monotonic() > end:
                raise ChildProcessError(f"the service is not ready; end of its output: {self.output()[-2000:]}")
            time.sleep(0.01)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Stop the process with SIGTERM, wait for its end, and return its exit status."""
        return self._end(signal.SIGTERM)

    def wait(self, timeout: float) -> int:
        """Wait for the end of a process that stops by itself, and return its exit status."""
        if self._process is None:
            raise ProcessLookupError("the service is not running; call start first")
        return self._process.wait(timeout)

    def _end(self, signal_number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(signal_number)
        return process.wait(60.0)

    def output(self) -> str:
        """Return the output of the service since the first start."""
        return self.lines.read_text(encoding="utf-8", errors="replace") if self.lines.exists() else ""

    def get(self, path: str) -> tuple[int, bytes]:
        """Send a GET request, and return the status and body of the response."""
        return self._request("GET", path, None)

    def delete(self, path: str) -> tuple[int, bytes]:
        """Send a DELETE request, and return the status and body of the response."""
        return self._request("DELETE", path, None)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Send a POST request with a JSON body, and return the status and decoded body of the response."""
        status, response = self._request("POST", path, json.dumps(body).encode())
        return status, json.loads(response)

    def _request(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=REQUEST_TIMEOUT)
        try:
            content = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, path, body, self.headers | content)
            response = connection.getresponse()
            return response.status, response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"the service sent no valid response to {method} {path}: {error!r}") from error
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """Return the value of a metric in /metrics. Raise a KeyError if the metric does not exist."""
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
        raise KeyError(f"/metrics has no metric {name!r}")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used so far, in seconds."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int) -> float:
    """Return the memory of a process in MB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(f"the process {pid} has no entry VmRSS")

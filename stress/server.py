"""A service in a process of its own, which can be killed."""

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
from typing import Any

from stress.postgres import free_port

START_SECONDS = 120.0  # compiling included, where nothing was compiled before
COMMAND = (sys.executable, "-c", "from locb.cli import main; main()", "serve")


class Server:
    """``locb serve`` on a port that it keeps over all its starts.

    Parameters
    ----------
    folder : Path
        Its data folder; what it says goes to a file beside it.
    options : sequence of str
        Further options of ``locb serve``.
    store : str, optional
        A database instead of the file in the folder.
    before : callable, optional
        Called in the new process before it becomes the service.
    """

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = (),
        store: str | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.folder = folder
        self.store = store
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.lines = folder.with_name(folder.name + ".log")
        self._options = list(options)
        self._before = before
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        if self._process is None:
            raise ProcessLookupError("the service does not run")
        return self._process.pid

    def start(self) -> float:
        """Start it and wait until it answers; how many seconds that took."""
        began = time.perf_counter()
        self.launch()
        self.wait_ready()
        return time.perf_counter() - began

    def launch(self) -> None:
        """Start it."""
        command = [*COMMAND, "--data-dir", str(self.folder), "--port", str(self.port), *self._options]
        # The address of a database holds a password, which a list of processes would show.
        environment = os.environ | ({} if self.store is None else {"LOCB_STORE": self.store})
        with self.lines.open("ab") as lines:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=lines, stderr=lines, env=environment, preexec_fn=self._before
            )

    def wait_ready(self, healthy: bool = True) -> None:
        """Wait until it answers at all, or that it is well."""
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                status, _ = self.get("/v1/health" if healthy else "/v1/ping")
            except OSError:
                status = 0
            if status in (200, 204):
                return
            if self._process is None or self._process.poll() is not None or time.monotonic() > end:
                raise ChildProcessError(f"the service did not start: {self.said()[-2000:]}")
            time.sleep(0.01)

    def kill(self) -> None:
        """End it as a power cut would, but for what the system still holds."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to stop, and wait; its exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(how)
        return process.wait(60.0)

    def said(self) -> str:
        """What it said so far, over all its starts."""
        return self.lines.read_text(encoding="utf-8", errors="replace") if self.lines.exists() else ""

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of an answer."""
        return self._request("GET", path, None)

    def delete(self, path: str) -> tuple[int, bytes]:
        """Status and body of an answer."""
        return self._request("DELETE", path, None)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and answer of a request in JSON."""
        status, answer = self._request("POST", path, json.dumps(body).encode())
        return status, json.loads(answer)

    def _request(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30.0)
        try:
            connection.request(method, path, body, {} if body is None else {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """A number from /metrics."""
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
        raise KeyError(name)

"""Services that start fast: one process imports the package and loads the kernels once, and forks for each start.

The forked process runs ``locb serve`` with its usual options. The test can change its system time, and its lease of the
database is shorter.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from stress.service_process import ServiceProcess

POLL_INTERVAL = 0.01  # seconds
LEASE_SECONDS, HEARTBEAT_INTERVAL = 3.0, 0.5  # shorter than those of a service, so that a history is short
_CLOCK_BYTES = 8  # a float64: seconds that are added to the system time


class Forks:
    """Process that forks services. It ends all of them when it is closed, or when this process ends."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "stress.histories.forks"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def start(self, **options: Any) -> ForkedProcess:
        """Fork a service; see ``_serve`` for the options."""
        return ForkedProcess(self, int(self.call(start=options)))

    def call(self, **command: Any) -> Any:
        """Send a command, and return the result."""
        if self._process.stdin is None or self._process.stdout is None:
            raise ValueError("the process that forks services has no pipes")
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


class ForkedProcess:
    """Forked service, with the methods of ``subprocess.Popen`` that ``ServiceProcess`` needs."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self.pid = pid
        self._forks = forks
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None if the process is running."""
        if self._status is None:
            self._status = self._forks.call(poll=self.pid)
        return self._status

    def wait(self, timeout: float) -> int:
        """Wait for the end of the process, and return its exit status."""
        end = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > end:
                raise TimeoutError(f"process {self.pid} did not end within {timeout:g} s")
            time.sleep(POLL_INTERVAL)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal if the process is running."""
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkedService(ServiceProcess):
    """Service that ``Forks`` starts.

    Parameters
    ----------
    forks : Forks
        Starts the process.
    name : str
        Name of the service. The name of each of its processes is this name, followed by the number of the start.
    folder, options, store
        As for ``ServiceProcess``.
    """

    def __init__(self, forks: Forks, name: str, folder: Path, options: list[str], store: str | None) -> None:
        super().__init__(folder, options, store)
        self._forks = forks
        self._name = name
        self._starts = 0
        self._clock = folder.with_name(f"{folder.name}.clock")
        self.set_clock(0.0)

    @property
    def writer(self) -> str:
        """Name of the current process."""
        return f"{self._name}{self._starts}"

    @property
    def exit_status(self) -> int | None:
        """Exit status of the process; None if it is running, or was stopped by the test."""
        return None if self._process is None else self._process.poll()

    def launch(self) -> None:
        """Start the process without waiting for the service."""
        self._starts += 1
        arguments = ["--data-dir", str(self.folder), "--port", str(self.port), *self._options]
        environment = {} if self.store is None else {"LOCB_STORE": self.store}
        self._process = self._forks.start(
            arguments=arguments, environment=environment, output=str(self.lines), clock=str(self._clock)
        )

    def set_clock(self, offset: float) -> None:
        """Set the difference between the system time of the service and the real time, in seconds."""
        if not self._clock.exists():
            self._clock.parent.mkdir(parents=True, exist_ok=True)
            self._clock.write_bytes(bytes(_CLOCK_BYTES))
        with self._clock.open("r+b") as file:  # the same file, because a running service has mapped it
            file.write(struct.pack("d", offset))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process if it is running."""
        if self._process is not None:
            self._process.send_signal(number)


def _serve(arguments: list[str], environment: dict[str, str], output: str, clock: str) -> None:
    """Run ``locb serve`` in the forked process, and end the process."""
    from locb.cli import main as locb
    from locb.service.store import locks

    lines = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, target in enumerate((nothing, lines, lines)):
        os.dup2(target, number)
    os.environ.update(environment)
    with Path(clock).open("rb") as file:
        offset = mmap.mmap(file.fileno(), _CLOCK_BYTES, access=mmap.ACCESS_READ)
    system_time = time.time
    time.time = lambda: system_time() + struct.unpack("d", offset)[0]
    locks.LEASE_SECONDS, locks.HEARTBEAT_INTERVAL = LEASE_SECONDS, HEARTBEAT_INTERVAL
    sys.argv = ["locb", "serve", *arguments]
    status = 1
    try:
        locb()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _load() -> None:
    """Import the package, and load the compiled kernels of LOCB."""
    import numpy as np

    import locb.cli.serve
    import locb.service.server  # noqa: F401
    from locb.policies import LOCB

    policy = LOCB(dim=3, n_users=2, n_seeds=1)
    contexts = np.eye(3)[:2]
    policy.update(0, contexts[policy.recommend(0, contexts)], 1.0)
    gc.freeze()


def main() -> None:
    """Start services and report their exit status, as commanded on standard input, until its end."""
    _load()
    running: set[int] = set()
    for line in sys.stdin:
        command = json.loads(line)
        if "start" in command:
            result: int | None = os.fork()
            if result == 0:
                _serve(**command["start"])
            running.add(result or 0)
        else:
            pid, status = os.waitpid(command["poll"], os.WNOHANG)
            result = os.waitstatus_to_exitcode(status) if pid else None
            running.discard(pid)
        print(json.dumps(result), flush=True)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()

"""List the source files through which one recommendation request passes: python -m tools.trace_request.

The service runs in this process with interpreted kernels, so that the files of the kernels appear too. It has no
tokens. The user is known, and the trace ends when the response is written to the connection. For each file, the output
has its callers and how often it is re-entered: how often a function in it is called after functions in other files,
where repeated calls of a function by the same file count once.
"""

from __future__ import annotations

import os

os.environ["NUMBA_DISABLE_JIT"] = "1"  # before the first import of Numba

import argparse
import inspect
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import uvicorn

import locb
from locb.service.api.app import make_app
from locb.service.api.auth import Tokens
from locb.service.config import ServiceConfig
from locb.service.core.background import store_watchdog, wal_checkpoints
from locb.service.core.service import Service
from locb.service.core.startup import snapshots
from locb.service.server import uvicorn_config

PACKAGE = f"{Path(locb.__file__).parent}{os.sep}"
RESUMABLE = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
WARM_UP_REQUESTS = 20  # of the same user, so that the traced request creates nothing
IDLE_SECONDS = 0.2  # until the work after the last response has ended
HOUR = 3600.0
ARMS = [{"id": "film 1", "features": {"genre": "drama"}}, {"id": "film 2", "features": {"genre": "crime"}}]


class Tracer:
    """Recorder of calls between source files of the package, in all threads (a function for ``sys.setprofile``)."""

    def __init__(self) -> None:
        self.active = False
        self.calls: list[tuple[str, str, str]] = []
        """Calling file, called file, called function."""
        self._resumable: set[FrameType] = set()

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record a call from another file."""
        if event != "call":
            return
        file = _source_file(frame)
        if file is None:
            return
        if frame.f_code.co_flags & RESUMABLE:
            if frame in self._resumable:  # resumed, perhaps after a call before the request
                return
            self._resumable.add(frame)
        if not self.active:
            return
        call = (_calling_file(frame), file, frame.f_code.co_qualname)
        if call[0] != file:
            self.calls.append(call)
        if call[2] == "_SingleWriteTransport.write_whole":
            self.active = False

    def distinct_calls(self) -> list[tuple[str, str, str]]:
        """Return the calls without repetitions, in the order of the first calls."""
        return list(dict.fromkeys(self.calls))

    def callers(self) -> dict[str, list[str]]:
        """Return the files that call each file, in the order of the first calls."""
        callers: dict[str, list[str]] = {}
        for caller, file, _ in self.calls:
            known = callers.setdefault(file, [])
            if caller not in known:
                known.append(caller)
        return callers

    def re_entries(self) -> Counter[str]:
        """Return how often each file is called after other files were called, not counting its first call."""
        entered = [file for file, _ in groupby(file for _, file, _ in self.distinct_calls())]
        return Counter(entered) - Counter(set(entered))


def _source_file(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    return name.removeprefix(PACKAGE) if name.startswith(PACKAGE) else None


def _calling_file(frame: FrameType) -> str:
    """Return the file of the package that called a function, or "" if another package did."""
    caller = frame.f_back
    while caller is not None:
        file = _source_file(caller)
        if file is not None:
            return file
        caller = caller.f_back
    return ""


@contextmanager
def running_service(folder: Path, policy: str) -> Iterator[httpx.Client]:
    """Provide a client of a service that runs in a thread of this process, without the calls of timers."""
    store_watchdog.WATCH_INTERVAL = wal_checkpoints.CHECKPOINT_INTERVAL = snapshots.RESERVE_INTERVAL = HOUR
    service = Service(ServiceConfig(folder, port=0, dim=16, policy=policy, read_timeout=HOUR))
    server = uvicorn.Server(uvicorn_config(make_app(service, Tokens()), service.config))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the service did not start; see the messages above")
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def trace_recommendation(policy: str) -> Tracer:
    """Return the trace of one recommendation request to a service with a policy, by its name in the registry."""
    tracer = Tracer()
    threading.setprofile(tracer)
    try:
        with tempfile.TemporaryDirectory() as folder, running_service(Path(folder), policy) as client:
            for number in range(WARM_UP_REQUESTS + 1):
                if number == WARM_UP_REQUESTS:
                    time.sleep(IDLE_SECONDS)
                    tracer.active = True
                response = client.post("/v1/recommend", json={"user": "ann", "arms": ARMS}).raise_for_status().json()
                if not tracer.active:
                    reward = {"decision_id": response["decision_id"], "reward": number % 2}
                    client.post("/v1/reward", json=reward).raise_for_status()
            tracer.active = False
    finally:
        threading.setprofile(None)
    return tracer


def main() -> None:
    """Print the files for each policy, in the order in which they are first called."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", default=["eloc", "locb"], help="names of policies (default: eloc locb)")
    parser.add_argument("--functions", action="store_true", help="also print the called functions, without repetitions")
    arguments = parser.parse_args()
    for policy in arguments.policies:
        tracer = trace_recommendation(policy)
        callers, re_entries = tracer.callers(), tracer.re_entries()
        print(f"{policy}: {len(callers)} files, {re_entries.total()} re-entries")
        for number, (file, names) in enumerate(callers.items(), 1):
            called_from = ", ".join(name or "the event loop" for name in names)
            print(f"  {number:2}  {file}, {re_entries[file]} re-entries, called from {called_from}")
        if arguments.functions:
            for caller, file, function in tracer.distinct_calls():
                print(f"  {caller or 'the event loop'} -> {file}: {function}")


if __name__ == "__main__":
    main()

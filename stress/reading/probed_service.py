"""A service whose event loop can be probed; started like ``locb serve`` with ``--data-dir`` and ``--port``.

``GET /probe/start`` starts the probe. ``GET /probe/stop`` stops it and returns two figures in milliseconds: the most
CPU time that the event loop used in one of its iterations, and the most time that elapsed in one. For so long, the loop
could serve no other request. The views of the dashboard are not cached, so that each request computes its response.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from locb.service import server
from locb.service.api.app import make_app
from locb.service.config import ServiceConfig
from locb.service.dashboard import certificate_cache, views

TTLS = ("STATUS_TTL", "HISTORY_TTL", "STATE_TTL", "FEATURE_NAMES_TTL", "STORE_SIZE_TTL", "TTL_PER_SECOND")


class LoopProbe:
    """Measures the iterations of the event loop with a callback that is scheduled again in each iteration.

    The CPU time is that of the thread of the event loop, so that it shows what the handlers compute. The elapsed time
    includes the time for which the loop waits: for the disk, or for another thread of the service that holds Python's
    global interpreter lock. It is without the time for which a thread of the service could run, but the operating
    system let other threads and processes run instead; this thread can also be one that holds the lock. These waits of
    threads add up, so on a busy machine the elapsed time is a lower bound.
    """

    def __init__(self) -> None:
        self._running = False
        self._waited: dict[int, float] = {}  # time in seconds for which each thread has waited for a CPU

    def start(self) -> None:
        """Start to measure; call this in the event loop."""
        self._running = True
        self._cpu = self._elapsed = 0.0
        self._add_waiting()
        self._last = time.thread_time(), time.perf_counter()
        asyncio.get_running_loop().call_soon(self._tick)

    def stop(self) -> tuple[float, float]:
        """Stop, and return the most CPU time and the most elapsed time of an iteration in milliseconds."""
        self._running = False
        return 1000.0 * self._cpu, 1000.0 * self._elapsed

    def _tick(self) -> None:
        cpu, elapsed = time.thread_time() - self._last[0], time.perf_counter() - self._last[1]
        self._cpu = max(self._cpu, cpu)
        self._elapsed = max(self._elapsed, cpu, elapsed - self._add_waiting())
        self._last = time.thread_time(), time.perf_counter()
        if self._running:
            asyncio.get_running_loop().call_soon(self._tick)

    def _add_waiting(self) -> float:
        """Return for how long threads that run Python code have waited for a CPU since the last call, in seconds."""
        waited = {thread.native_id: _waited(thread.native_id) for thread in threading.enumerate() if thread.native_id}
        added = sum(max(0.0, seconds - self._waited.get(thread, 0.0)) for thread, seconds in waited.items())
        self._waited = waited
        return added


def _waited(thread: int) -> float:
    """Return for how long a thread has waited for a CPU although it could run, in seconds."""
    try:
        statistics = Path(f"/proc/self/task/{thread}/schedstat").read_bytes()  # CPU and waiting time in ns, time slices
    except (FileNotFoundError, ProcessLookupError):  # the thread has ended
        return 0.0
    return 1e-9 * int(statistics.split()[1])


def add_probe(app: ASGIApp) -> ASGIApp:
    """Return an application with the two routes of the probe."""
    probe = LoopProbe()

    async def probed(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path")
        if path == "/probe/start":
            probe.start()
            await JSONResponse(None)(scope, receive, send)
        elif path == "/probe/stop":
            await JSONResponse(probe.stop())(scope, receive, send)
        else:
            await app(scope, receive, send)

    return probed


def main() -> None:
    """Run the service until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    for name in TTLS:
        setattr(views, name, 0.0)
    certificate_cache.MAX_AGE = 0.0

    def make_probed_app(*arguments: Any, **options: Any) -> ASGIApp:
        return add_probe(make_app(*arguments, **options))

    vars(server)["make_app"] = make_probed_app
    server.configure_logging("info")
    server.serve(ServiceConfig(options.data_dir, port=options.port, store=os.environ.get("LOCB_STORE")), print)


if __name__ == "__main__":
    main()

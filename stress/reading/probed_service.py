"""A service whose event loop can be probed; started like ``locb serve`` with ``--data-dir`` and ``--port``.

``GET /probe/start`` starts the probe. ``GET /probe/stop`` stops it and returns the duration of the longest iteration of
the event loop in milliseconds: for so long, the loop could serve no other request. The views of the dashboard are not
cached, so that each request computes its response.
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

    The duration of an iteration is the elapsed time, without the time for which the operating system let other threads
    and processes run instead of the loop; or, if that is less, the CPU time of all threads of the service that run
    Python code. It includes the time for which such a thread held Python's global interpreter lock.
    """

    def __init__(self) -> None:
        self._running = False
        self._statistics = -1

    def start(self) -> None:
        """Start to measure."""
        if self._statistics < 0:  # in the thread of the event loop: CPU time and waiting time in ns, time slices
            self._statistics = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._running = True
        self._longest = 0.0
        self._last = self._read_clocks()
        asyncio.get_running_loop().call_soon(self._tick)

    def stop(self) -> float:
        """Stop, and return the duration of the longest iteration in milliseconds."""
        self._running = False
        return 1000.0 * self._longest

    def _tick(self) -> None:
        clocks = self._read_clocks()
        self._longest = max(self._longest, min(now - last for now, last in zip(clocks, self._last, strict=True)))
        self._last = clocks
        if self._running:
            asyncio.get_running_loop().call_soon(self._tick)

    def _read_clocks(self) -> tuple[float, float]:
        waited = 1e-9 * int(os.pread(self._statistics, 100, 0).split()[1])
        threads = [thread.ident for thread in threading.enumerate() if thread.ident is not None]
        used = sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in threads)
        return time.perf_counter() - waited, used


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

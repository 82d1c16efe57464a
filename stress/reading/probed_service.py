"""A service whose event loop can be probed; started like ``locb serve`` with ``--data-dir`` and ``--port``.

``GET /probe/start`` starts the probe. ``GET /probe/stop`` stops it and returns two figures in milliseconds: the most
CPU time that the event loop used in one of its iterations, and the most time that elapsed in one. For so long, the loop
could serve no other request. The views of the dashboard are not cached, so that each request computes its response.
"""

from __future__ import annotations

import argparse
import asyncio
import os
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
    is without the time for which the operating system let other threads and processes run although the loop could run.
    It includes the time for which the loop waits: for the disk, or for another thread of the service that holds
    Python's global interpreter lock.
    """

    def __init__(self) -> None:
        self._running = False
        self._statistics = -1

    def start(self) -> None:
        """Start to measure; call this in the event loop."""
        if self._statistics < 0:  # of the thread of the event loop: CPU time and waiting time in ns, time slices
            self._statistics = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._running = True
        self._cpu = self._elapsed = 0.0
        self._last = self._read_clocks()
        asyncio.get_running_loop().call_soon(self._tick)

    def stop(self) -> tuple[float, float]:
        """Stop, and return the most CPU time and the most elapsed time of an iteration in milliseconds."""
        self._running = False
        return 1000.0 * self._cpu, 1000.0 * self._elapsed

    def _tick(self) -> None:
        cpu, elapsed = self._read_clocks()
        self._cpu, self._elapsed = max(self._cpu, cpu - self._last[0]), max(self._elapsed, elapsed - self._last[1])
        self._last = cpu, elapsed
        if self._running:
            asyncio.get_running_loop().call_soon(self._tick)

    def _read_clocks(self) -> tuple[float, float]:
        waited = 1e-9 * int(os.pread(self._statistics, 100, 0).split()[1])
        return time.thread_time(), time.perf_counter() - waited


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

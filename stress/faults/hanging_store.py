"""Test of a PostgreSQL server that hangs: health checks fail, liveness checks succeed, SIGTERM ends the service."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg

from locb import loadtest
from stress.checks import Acknowledged, check
from stress.clients.background_load import BackgroundLoad
from stress.histories.faults import stopped
from stress.service_process import ServiceProcess
from stress.stores import StoreLocation

SHUTDOWN_SECONDS = 5.0
RATE = 100.0  # decisions per second
OPTIONS = ["--dim", "10", "--shutdown-timeout", f"{SHUTDOWN_SECONDS:g}s"]
MAX_HANG = 60.0  # seconds after which the test stops waiting for /v1/health to have status 503


def hanging_store(location: StoreLocation, clients: int, seconds: float = 2.0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the figures of each way in which the server hangs, under load.

    The store hangs until the service reports it, and ``seconds`` longer. It hangs again while the service stops.
    """
    for name, hang in (("processes stopped", _stopped_server), ("table locked", _locked_table)):
        yield name, _hang(location, clients, seconds, hang)


def _hang(
    location: StoreLocation, clients: int, seconds: float, hang: Callable[[StoreLocation], AbstractContextManager[None]]
) -> dict[str, Any]:
    acknowledged = Acknowledged()
    with ServiceProcess(location.folder, OPTIONS, location.url) as server:
        server.start()
        load = _load(server, clients, seconds)
        with hang(location):
            unhealthy, slowest_live = _wait_until_unhealthy(server, time.perf_counter() + MAX_HANG)
            time.sleep(seconds)
        start = time.perf_counter()
        server.wait_ready()
        recovery = time.perf_counter() - start
        first = load.report()
        acknowledged.add(first)
        load = _load(server, clients, seconds)
        with hang(location):
            time.sleep(1.0)  # requests wait for the store
            start = time.perf_counter()
            server.stop()
            stopping = time.perf_counter() - start
        server.start()
        second = load.report()
        acknowledged.add(second)
        errors = Counter(first.errors) + Counter(second.errors)
        server.stop()
        counts = check(location.folder, location.url, acknowledged)
    return {
        "clients": clients,
        "responses with 503": errors["503"],
        "given up": errors["unanswered"] + errors["timeout"] + errors["invalid response"],
        "other errors": errors["500"],
        "until health has status 503, seconds": round(unhealthy, 2),
        "slowest response of live, seconds": round(slowest_live, 2),
        "slowest recovery, seconds": round(recovery, 2),
        "until the process ends after SIGTERM, seconds": round(stopping, 2),
        **counts,
    }


def _load(server: ServiceProcess, clients: int, seconds: float) -> BackgroundLoad:
    """Start clients that repeat refused requests until the service accepts them."""
    plan = loadtest.Plan(
        url=server.url, rate=RATE, connections=clients, users=100, seconds=3.0 * seconds, retry=True, record=True,
        timeout=120.0,
    )  # fmt: skip
    load = BackgroundLoad(plan)
    load.wait_started()
    return load


def _wait_until_unhealthy(server: ServiceProcess, end: float) -> tuple[float, float]:
    """Return the seconds until ``/v1/health`` has status 503, and those of the slowest response of ``/v1/live``."""
    start, slowest = time.perf_counter(), 0.0
    while True:
        asked = time.perf_counter()
        status = server.get("/v1/live")[0]
        if status != 200:
            found = f"GET /v1/live has status {status} instead of 200 while the store hangs"
            raise ChildProcessError(f"{found}; end of the output of the service: {server.output()[-500:]}")
        slowest = max(slowest, time.perf_counter() - asked)
        if server.get("/v1/health")[0] == 503 or time.perf_counter() > end:
            return time.perf_counter() - start, slowest
        time.sleep(0.05)


def _stopped_server(location: StoreLocation) -> AbstractContextManager[None]:
    if location.cluster is None:
        raise ValueError("hanging_store needs a store in PostgreSQL, not SQLite: use new_store('postgresql')")
    return stopped(location.cluster.processes())


@contextmanager
def _locked_table(location: StoreLocation) -> Iterator[None]:
    if location.url is None:
        raise ValueError("hanging_store needs a store in PostgreSQL, not SQLite: use new_store('postgresql')")
    with psycopg.connect(location.url) as other:
        other.execute("LOCK TABLE locb_decisions IN ACCESS EXCLUSIVE MODE")
        yield

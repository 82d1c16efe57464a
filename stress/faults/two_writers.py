"""Test of two services on one store: only one of them writes, and a service that has lost the store stops."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stress.checks import Acknowledged, check
from stress.histories.faults import second_service_store, stopped, terminate_connections
from stress.service_process import ServiceProcess
from stress.stores import StoreLocation

OPTIONS = ["--dim", "2", "--shutdown-timeout", "5s"]
ARMS = [{"id": "a", "features": [1.0, 0.0]}, {"id": "b", "features": [0.6, 0.8]}]
TAKEOVER_SECONDS = 60.0  # within this time, the second service must have taken the store
EXIT_SECONDS = 120.0  # within this time, a service that has lost the store must have stopped
WAITING_REQUESTS = 4  # requests that a service gets at once, when it continues after another one has taken the store


def two_writers(location: StoreLocation, repeats: int, events: int = 50) -> dict[str, Any]:
    """Start a second service on the store of a first one ``repeats`` times, and check the event log afterwards.

    The services have different data folders. On SQLite, the second service must not start until the first one has been
    killed. On PostgreSQL, the second service takes the store of the first one, which hangs and has lost its
    connections. The first one must then refuse all requests with 503, and exit with status 1. Each service gets
    ``events`` decisions and rewards while it has the store.
    """
    writers = _Writers(location, events)
    statuses, exits = Counter[int](), Counter[int]()
    with writers.new_service() as first:
        first.start()
        for _ in range(repeats):
            writers.write(first)
            second = writers.new_service()
            with second:
                if location.url is None:
                    second.launch()
                    exits[second.wait(EXIT_SECONDS)] += 1  # another process uses the database
                    writers.write(first)
                    first.kill()
                    second.start()
                else:
                    statuses += _take_over(first, second, location.url)
                    exits[first.wait(EXIT_SECONDS)] += 1
                writers.write(second)
                second.stop()
            first.start()
        writers.write(first)
        first.stop()
        counts = check(first.folder, first.store, writers.acknowledged)
    return {
        "takeovers": repeats,
        "requests to a service without the store that got 503": statuses[503],
        "requests that got another response": statuses.total() - statuses[503] - statuses[0],
        "processes that did not exit with status 1": exits.total() - exits[1],
        "refused decisions in the log": counts["decisions"] - counts["acknowledged decisions"],
        **counts,
    }


class _Writers:
    """Services with their own data folders on one store, and the decisions and rewards that they acknowledged."""

    def __init__(self, location: StoreLocation, events: int) -> None:
        self._location, self._events = location, events
        self._services = 0
        self._decisions = 0
        self.acknowledged = Acknowledged()

    def new_service(self) -> ServiceProcess:
        """Return a service that is not running. The first one has the data folder of the store."""
        folder = self._location.folder
        own = folder if self._services == 0 else folder.with_name(f"{folder.name}-{self._services}")
        store = self._location.url if self._services == 0 else second_service_store(self._location)
        self._services += 1
        return ServiceProcess(own, OPTIONS, store)

    def write(self, server: ServiceProcess) -> None:
        """Request decisions, and send their rewards."""
        for _ in range(self._events):
            self._decisions += 1
            name, reward = f"d{self._decisions}", self._decisions % 2
            request = {"user": f"user {self._decisions % 7}", "arms": ARMS, "decision_id": name}
            status, decision = server.post("/v1/recommend", request)
            if status == 200:
                self.acknowledged.arms[name] = decision["arm"]
            if server.post("/v1/reward", {"decision_id": name, "reward": reward})[0] == 200:
                self.acknowledged.rewards[name] = reward


def _take_over(first: ServiceProcess, second: ServiceProcess, url: str) -> Counter[int]:
    """Let the second service take the store of the first one, and return the statuses of requests to the first one.

    Status 0 is a request without a response, because the service has stopped.
    """
    with ThreadPoolExecutor(WAITING_REQUESTS) as threads:
        with stopped([first.pid]):
            terminate_connections(url)
            end = time.monotonic() + TAKEOVER_SECONDS
            while True:
                second.launch()
                try:
                    second.wait_ready()
                    break
                except ChildProcessError:  # the server has not noticed yet that the connections were terminated
                    if time.monotonic() > end:
                        raise
            waiting = [threads.submit(_request, first, number) for number in range(WAITING_REQUESTS)]
        statuses = Counter(future.result() for future in waiting)
    end = time.monotonic() + EXIT_SECONDS
    while statuses[0] == 0 and time.monotonic() < end:  # until the service has stopped
        statuses[_request(first, statuses.total())] += 1
        time.sleep(0.02)
    return statuses


def _request(server: ServiceProcess, number: int) -> int:
    """Request a decision, and return the status, or 0 without a response."""
    try:
        return server.post("/v1/recommend", {"user": "late", "arms": ARMS, "decision_id": f"late {number}"})[0]
    except OSError:
        return 0

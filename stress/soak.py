"""Sustained load on a service: latency, errors, memory and CPU time in each minute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, median
from typing import Any

from locb import loadtest
from locb.loadtest.report import summarize_latencies
from stress.service_process import ServiceProcess, cpu_seconds, resident_megabytes
from stress.stores import StoreLocation

POLICIES = ("locb", "eloc")
CONNECTIONS = 200
DIM, ARMS = 10, 10
USERS_PER_BATCH = 1000
_COLUMNS = ("minute", "decisions", "p50 ms", "p99 ms", "max ms", "errors", "memory MB", "CPU ms per decision")


@dataclass(frozen=True)
class Minute:
    """Figures of one minute. The latencies are those of decisions and rewards, in milliseconds."""

    minute: int
    decisions: int
    p50: float
    p99: float
    max: float
    errors: int
    memory_mb: float  # of the service, at the end of the minute
    cpu_ms: float  # CPU time of the service per decision and its reward, in milliseconds


def soak(
    location: StoreLocation,
    policy: str,
    minutes: int,
    rate: float,
    users: int,
    report: Callable[[str], None],
    seconds_per_minute: float = 60.0,
) -> dict[str, Any]:
    """Send decisions and their rewards at a constant rate, and return the figures of each minute and their trends.

    Parameters
    ----------
    location : StoreLocation
        Empty store.
    policy : str
        Name of the policy.
    minutes : int
        Duration of the load.
    rate : float
        Decisions per second; a reward follows each decision.
    users : int
        Number of users. All are created before the load starts, so that the memory does not grow with their number.
    report : callable
        Called with each line of a table, which has one row per minute.
    seconds_per_minute : float, default 60.0
        Duration of a minute, for short tests.
    """
    with ServiceProcess(location.folder, ["--dim", str(DIM), "--policy", policy], location.url) as server:
        server.start()
        _create_users(server, users)
        plan = loadtest.Plan(
            url=server.url,
            rate=rate,
            connections=CONNECTIONS,
            users=users,
            arms=ARMS,
            dim=DIM,
            count=1,
            seconds=minutes * seconds_per_minute,
        )
        recorder = _Recorder(server.pid, minutes, seconds_per_minute, report)
        result = loadtest.run(plan, recorder.add)
        rows = recorder.finish(result)
        server.stop()
    return {
        "minutes": minutes,
        "users": users,
        "planned decisions": round(rate * plan.seconds),
        "decisions": sum(row.decisions for row in rows),
        "errors": result.errors,
        "largest p99 of a minute, milliseconds": max(row.p99 for row in rows),
        "CPU per decision and reward, milliseconds": median(row.cpu_ms for row in rows),
        "growth of the memory, %": growth([row.memory_mb for row in rows]),
        "growth of the CPU per decision, %": growth([row.cpu_ms for row in rows]),
        "per minute": [asdict(row) for row in rows],
    }


def growth(figures: Sequence[float]) -> float | None:
    """Return by how many percent the mean of the last third is above that of the second third; None for fewer than 3.

    In the first third, caches are filled.
    """
    third = len(figures) // 3
    if not third:
        return None
    return round(100.0 * (mean(figures[-third:]) / mean(figures[-2 * third : -third]) - 1.0), 1)


def _create_users(server: ServiceProcess, users: int) -> None:
    """Request one decision for each user of the load test."""
    digits = len(str(users - 1))  # as in the requests of the load test
    arms = [{"id": "arm-0", "features": [1.0] + [0.0] * (DIM - 1)}]
    for start in range(0, users, USERS_PER_BATCH):
        names = [f"user-{user:0{digits}}" for user in range(start, min(start + USERS_PER_BATCH, users))]
        status, response = server.post(
            "/v1/recommend:batch", {"requests": [{"user": name, "arms": arms} for name in names]}
        )
        if status != 200 or not all("decision" in result for result in response["results"]):
            raise RuntimeError(f"POST /v1/recommend:batch has status {status}: {response!r:.300}")


class _Recorder:
    """Collects the progress of a load test into one row per minute."""

    def __init__(self, pid: int, minutes: int, seconds: float, report: Callable[[str], None]) -> None:
        self._pid, self._minutes, self._seconds, self._report = pid, minutes, seconds, report
        self._rows: list[Minute] = []
        self._latencies: list[float] = []
        self._decisions = self._errors = self._reported_errors = 0
        self._cpu = cpu_seconds(pid)
        report("  " + "  ".join(_COLUMNS))

    def add(self, progress: loadtest.Progress) -> None:
        """Add the responses since the last call. A minute that has ended becomes a row."""
        for kind in ("recommend", "reward"):
            self._latencies.extend(progress.latencies[kind])
        self._decisions += len(progress.latencies["recommend"])
        self._errors = progress.errors
        # The last row includes the responses that arrive after the end.
        if len(self._rows) + 1 < self._minutes and progress.elapsed >= self._seconds * (len(self._rows) + 1):
            self._end_minute()

    def finish(self, result: loadtest.Report) -> list[Minute]:
        """End the last minute, and return all rows."""
        self._errors = sum(result.errors.values())
        self._end_minute()
        return self._rows

    def _end_minute(self) -> None:
        latency, cpu = summarize_latencies(self._latencies), cpu_seconds(self._pid)
        row = Minute(
            len(self._rows) + 1,
            self._decisions,
            round(latency.p50, 1),
            round(latency.p99, 1),
            round(latency.max, 1),
            self._errors - self._reported_errors,
            round(resident_megabytes(self._pid), 1),
            round(1000.0 * (cpu - self._cpu) / max(self._decisions, 1), 3),
        )
        self._rows.append(row)
        self._latencies, self._decisions, self._reported_errors, self._cpu = [], 0, self._errors, cpu
        figures = zip(_COLUMNS, asdict(row).values(), strict=True)
        self._report("  " + "  ".join(f"{figure:>{len(name)}}" for name, figure in figures))

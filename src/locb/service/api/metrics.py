"""Counts and times, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

from locb.service.api.guard import RequestGuard
from locb.service.core.service import Service

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Metrics:
    """What is counted, and what is looked up when it is asked for."""

    def __init__(self, service: Service, guard: RequestGuard) -> None:
        self._service = service
        self._gate = guard
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "locb_request_seconds", "Time to answer.", ["route"], buckets=SECONDS, registry=self._registry
        )
        self._problems = Counter("locb_problems", "Problems told.", ["status"], registry=self._registry)
        self._registry.register(self)

    def clock(self, route: str) -> Callable[[float], None]:
        """What takes down how many seconds a request of this route took."""
        return self._seconds.labels(route).observe

    def told(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)

    def problem(self, status: int) -> None:
        """A problem was told."""
        self._problems.labels(str(status)).inc()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """What is looked up when asked for."""
        service = self._service
        for name, told, value in (
            ("locb_users", "Users known.", len(service.engine.user_index)),
            ("locb_log_position", "Place of the last event in the log.", service.engine.seq),
            ("locb_queued_requests", "Requests that wait for the disk.", service.committer.waiting),
            ("locb_requests_in_flight", "Requests under way.", self._gate.in_flight),
            ("locb_pending_rewards", "Recent decisions without a reward.", service.engine.waiting_rewards),
            ("locb_snapshot_position", "Place in the log of the newest snapshot.", service.snapshots.newest or 0),
            ("locb_snapshot_duration_seconds", "Time that the newest snapshot took.", service.snapshots.seconds),
            ("locb_snapshot_blocked_seconds", "Time of it in which requests waited.", service.snapshots.blocked),
            ("locb_store_unavailable", "1 while the store cannot be written.", service.committer.failure is not None),
        ):
            yield GaugeMetricFamily(name, told, value=float(value))

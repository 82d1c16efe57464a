"""Metrics in the text format of Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from locb.service.api.limits import Limits
from locb.service.core.service import Service

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)  # seconds


class Metrics:
    """Counters and histograms of requests, and gauges that are read from the service at each scrape."""

    def __init__(self, service: Service, limits: Limits) -> None:
        self._service = service
        self._limits = limits
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "locb_request_seconds",
            "Duration of requests in seconds, by route.",
            ["route"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._problems = Counter(
            "locb_problems", "Problem responses, by HTTP status.", ["status"], registry=self._registry
        )
        self._gauges: list[Metric] = []  # as of the last scrape
        self._registry.register(self)

    def request_timer(self, route: str) -> Callable[[float], None]:
        """Return a function that records the duration, in seconds, of a request to a route."""
        return self._seconds.labels(route).observe

    def count_problem(self, status: int) -> None:
        """Count a problem response."""
        self._problems.labels(str(status)).inc()

    async def render(self) -> bytes:
        """Return all metrics in the text format. A thread renders the text, because this takes some milliseconds."""
        self._gauges = list(self._read_gauges())
        return await asyncio.to_thread(generate_latest, self._registry)

    def collect(self) -> Iterable[Metric]:
        """Return the gauges that ``render`` has read or, before its first call, the current gauges.

        The registry calls this method, in the thread of ``render``.
        """
        return self._gauges or self._read_gauges()

    def _read_gauges(self) -> Iterator[Metric]:
        service = self._service
        snapshots, dropped_until = service.snapshots, service.retention.position
        for name, description, value in (
            ("locb_users", "Number of known users.", len(service.engine.users)),
            ("locb_log_position", "Sequence number of the last event in the log.", service.engine.seq),
            (
                "locb_queued_requests",
                "Decisions and rewards that wait to be written to the store.",
                service.committer.queue_length,
            ),
            (
                "locb_oldest_request_seconds",
                "Time for which the oldest decision or reward has waited to be written to the store, in seconds.",
                service.committer.oldest_wait,
            ),
            ("locb_requests_in_flight", "Requests in progress, whose body has arrived.", self._limits.in_flight),
            ("locb_requests_arriving", "Requests whose body has not arrived completely.", self._limits.arriving),
            (
                "locb_pending_rewards",
                "Decisions of the last 24 hours without a reward or default reward.",
                service.event_stats.pending_rewards(time.time()),
            ),
            (
                "locb_snapshot_position",
                "Sequence number of the last event in the newest snapshot; 0 if there is no snapshot.",
                snapshots.newest_seq or 0,
            ),
            (
                "locb_snapshot_duration_seconds",
                "Time to write the newest snapshot, in seconds.",
                snapshots.write_seconds,
            ),
            (
                "locb_snapshot_blocked_seconds",
                "Time for which decisions and rewards waited for the newest snapshot, in seconds.",
                snapshots.blocked_seconds,
            ),
            ("locb_retention_position", "Sequence number of the last event dropped by --retain, or 0.", dropped_until),
            (
                "locb_store_unavailable",
                "1 if the store cannot be written, otherwise 0.",
                service.committer.store_error is not None,
            ),
        ):
            yield GaugeMetricFamily(name, description, value=float(value))
        yield CounterMetricFamily(
            "locb_commits",
            "Commits of decisions and rewards to the store. Under load, many decisions and rewards share one commit.",
            value=service.committer.commit_count,
        )
        failures = CounterMetricFamily(
            "locb_background_failures", "Failures of background tasks, which start again, by task.", labels=["task"]
        )
        for task, count in service.background.failures.items():
            failures.add_metric([task], count)
        yield failures

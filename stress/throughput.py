"""Measurement of the throughput and latency of decisions and rewards, compared with pings.

Decisions and rewards are stored before the response. A ping is a request without any work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any

from locb import loadtest
from stress.service_process import ServiceProcess
from stress.stores import StoreLocation

REPEATS = 3


def throughput(
    new_location: Callable[[], StoreLocation],
    policies: Sequence[str],
    clients: int,
    seconds: float = 5.0,
    users: int = 1000,
) -> dict[str, dict[str, Any]]:
    """Return the figures of each policy: pings, decisions and rewards at full load, and at half of that load.

    Each kind of request is measured 3 times, for all policies in turn, and the figures are medians, so that other load
    on the machine affects all of them equally. Each policy has a service, which is idle while another one is measured.

    Parameters
    ----------
    new_location : callable
        Returns an empty store.
    policies : sequence of str
        Names of the policies.
    clients : int
        Number of concurrent connections.
    seconds : float, default 5.0
        Duration of each measurement.
    users : int, default 1000
        Number of users.
    """
    with ExitStack() as stack:
        measured = {}
        for policy in policies:
            location = new_location()
            options = ["--dim", "10", "--policy", policy]
            server = stack.enter_context(ServiceProcess(location.folder, options, location.url))
            measured[policy] = _Throughput(server, clients, users)
        for _ in range(REPEATS):
            for each in measured.values():
                each.measure(seconds)
        for each in measured.values():
            each.server.stop()
    figures = {policy: each.figures() for policy, each in measured.items()}
    if "eloc" in measured and "locb" in measured:
        rates = [[full.per_second for full in measured[policy].fulls] for policy in ("eloc", "locb")]
        figures["eloc"]["ratio to LOCB"] = round(median(eloc / locb for eloc, locb in zip(*rates, strict=True)), 3)
    return figures


class _Throughput:
    """Measurements of one service."""

    def __init__(self, server: ServiceProcess, clients: int, users: int) -> None:
        self.server, self.clients, self.users = server, clients, users
        self.pings: list[loadtest.Report] = []
        self.posts: list[loadtest.Report] = []
        self.fulls: list[loadtest.Report] = []
        self.halves: list[loadtest.Report] = []
        server.start()
        self._load(1.0, route="ping")
        self._load(3.0)  # creates all users before the measurements

    def _load(self, seconds: float, **options: Any) -> loadtest.Report:
        plan = loadtest.Plan(
            url=self.server.url, connections=self.clients, users=self.users, seconds=seconds, **options
        )
        return loadtest.run(plan)

    def measure(self, seconds: float) -> None:
        """Measure each kind of request once."""
        self.pings.append(self._load(seconds, route="ping"))
        self.posts.append(self._load(seconds, route="post"))
        self.fulls.append(self._load(seconds))
        # A rate counts decisions only. Each decision is followed by a reward, so a quarter is half of the requests.
        self.halves.append(self._load(seconds, rate=self.fulls[-1].per_second / 4.0))

    def figures(self) -> dict[str, Any]:
        """Return the medians of the measurements."""
        pings, posts, fulls, halves = self.pings, self.posts, self.fulls, self.halves
        ratio = median(full.per_second / ping.per_second for full, ping in zip(fulls, pings, strict=True))
        ratio_to_posts = median(full.per_second / post.per_second for full, post in zip(fulls, posts, strict=True))
        p50 = median(max(half.recommend.p50, half.reward.p50) for half in halves)
        p99 = median(max(half.recommend.p99, half.reward.p99) for half in halves)
        slowest = max(max(half.recommend.max, half.reward.max) for half in halves)
        return {
            "clients": self.clients,
            "users": self.users,
            "pings per second": round(median(ping.per_second for ping in pings)),
            "pings with the same bodies per second": round(median(post.per_second for post in posts)),
            "decisions and rewards per second": round(median(full.per_second for full in fulls)),
            "ratio": round(ratio, 3),
            "ratio to the same bodies": round(ratio_to_posts, 3),
            "p50 at full load, milliseconds": round(median(full.recommend.p50 for full in fulls), 1),
            "p99 at full load, milliseconds": round(median(full.recommend.p99 for full in fulls), 1),
            "requests per second at half load": round(median(half.per_second for half in halves)),
            "p50 at half load, milliseconds": round(p50, 1),
            "p99 at half load, milliseconds": round(p99, 1),
            "maximum at half load, milliseconds": round(slowest, 1),
            "errors": sum(sum(report.errors.values()) for report in (*pings, *posts, *fulls, *halves)),
        }

"""Measurement of the throughput and latency of decisions and rewards, compared with pings.

Decisions and rewards are stored before the response. A ping is a request without any work.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from locb import loadtest
from stress.service_process import ServiceProcess
from stress.stores import StoreLocation

REPEATS = 3


def throughput(location: StoreLocation, clients: int, seconds: float = 5.0, users: int = 1000) -> dict[str, Any]:
    """Measure pings without bodies, pings with bodies, decisions and rewards at full load, and at half of that load.

    Each kind is measured 3 times in turn and the medians are returned, so that other load on the machine affects all
    kinds equally.

    Parameters
    ----------
    location : StoreLocation
        Empty store.
    clients : int
        Number of concurrent connections.
    seconds : float, default 5.0
        Duration of each measurement.
    users : int, default 1000
        Number of users.
    """
    pings, posts, fulls, halves = [], [], [], []
    with ServiceProcess(location.folder, ["--dim", "10"], location.url) as server:
        server.start()

        def load(seconds: float, **options: Any) -> loadtest.Report:
            plan = loadtest.Plan(url=server.url, connections=clients, users=users, seconds=seconds, **options)
            return loadtest.run(plan)

        load(1.0, route="ping")
        load(3.0)  # creates all users before the measurements
        for _ in range(REPEATS):
            pings.append(load(seconds, route="ping"))
            posts.append(load(seconds, route="post"))
            fulls.append(load(seconds))
            # A rate counts decisions only. Each decision is followed by a reward, so a quarter is half of the requests.
            halves.append(load(seconds, rate=fulls[-1].per_second / 4.0))
        server.stop()
    ratio = median(full.per_second / ping.per_second for full, ping in zip(fulls, pings, strict=True))
    return {
        "clients": clients,
        "users": users,
        "pings per second": round(median(ping.per_second for ping in pings)),
        "pings with the same bodies per second": round(median(post.per_second for post in posts)),
        "decisions and rewards per second": round(median(full.per_second for full in fulls)),
        "ratio": round(ratio, 3),
        "ratio to the same bodies": round(
            median(full.per_second / post.per_second for full, post in zip(fulls, posts, strict=True)), 3
        ),
        "p50 at full load, milliseconds": round(median(full.recommend.p50 for full in fulls), 1),
        "p99 at full load, milliseconds": round(median(full.recommend.p99 for full in fulls), 1),
        "requests per second at half load": round(median(half.per_second for half in halves)),
        "p50 at half load, milliseconds": round(median(max(half.recommend.p50, half.reward.p50) for half in halves), 1),
        "p99 at half load, milliseconds": round(median(max(half.recommend.p99, half.reward.p99) for half in halves), 1),
        "maximum at half load, milliseconds": round(
            max(max(half.recommend.max, half.reward.max) for half in halves), 1
        ),
        "errors": sum(sum(report.errors.values()) for report in (*pings, *posts, *fulls, *halves)),
    }

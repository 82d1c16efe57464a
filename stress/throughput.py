"""How much of a server's own throughput is left when every request is brought to disk, and how long requests take."""

from __future__ import annotations

from statistics import median
from typing import Any

from locb import loadtest as traffic
from stress.server import Server
from stress.stores import Place

GOES = 3


def throughput(place: Place, clients: int, seconds: float = 5.0, users: int = 1000) -> dict[str, Any]:
    """Pings as fast as they go, without and with bodies, then decisions and rewards, then half as many at an even rate.

    All in turn, several times; medians of the goes, so that what else the machine does falls on all alike.
    """
    pings, posts, fulls, halves = [], [], [], []
    with Server(place.folder, ["--dim", "10"], place.url) as server:
        server.start()

        def load(seconds: float, **options: Any) -> traffic.Report:
            plan = traffic.Plan(url=server.url, connections=clients, users=users, seconds=seconds, **options)
            return traffic.run(plan)

        load(1.0, route="ping")
        load(3.0)  # everybody comes once before the clock starts
        for _ in range(GOES):
            pings.append(load(seconds, route="ping"))
            posts.append(load(seconds, route="post"))
            fulls.append(load(seconds))
            # A rate of decisions; each has its reward.
            halves.append(load(seconds, rate=fulls[-1].per_second / 4.0))
        server.stop()
    ratio = median(full.per_second / ping.per_second for full, ping in zip(fulls, pings, strict=True))
    return {
        "clients": clients,
        "users": users,
        "pings a second": round(median(ping.per_second for ping in pings)),
        "the same bodies to nothing, a second": round(median(post.per_second for post in posts)),
        "decisions and rewards a second": round(median(full.per_second for full in fulls)),
        "ratio": round(ratio, 3),
        "ratio to the same bodies": round(
            median(full.per_second / post.per_second for full, post in zip(fulls, posts, strict=True)), 3
        ),
        "p50 at full load, milliseconds": round(median(full.recommend.p50 for full in fulls), 1),
        "p99 at full load, milliseconds": round(median(full.recommend.p99 for full in fulls), 1),
        "requests a second at half": round(median(half.per_second for half in halves)),
        "p50 at half, milliseconds": round(median(max(half.recommend.p50, half.reward.p50) for half in halves), 1),
        "p99 at half, milliseconds": round(median(max(half.recommend.p99, half.reward.p99) for half in halves), 1),
        "largest at half, milliseconds": round(max(max(half.recommend.max, half.reward.max) for half in halves), 1),
        "errors": sum(sum(report.errors.values()) for report in (*pings, *posts, *fulls, *halves)),
    }

"""How much of a server's own throughput is left when every request is brought to disk, and how long requests take."""

from __future__ import annotations

from typing import Any

from locb import traffic
from stress.server import Server
from stress.stores import Place


def throughput(place: Place, clients: int, seconds: float = 10.0, users: int = 1000) -> dict[str, Any]:
    """Pings as fast as they go, then decisions and rewards, then half as many of those at an even rate."""
    with Server(place.folder, ["--dim", "10"], place.url) as server:
        server.start()

        def load(seconds: float, **options: Any) -> traffic.Report:
            plan = traffic.Plan(url=server.url, connections=clients, users=users, seconds=seconds, **options)
            return traffic.run(plan)

        load(2.0, route="ping")
        load(3.0)  # everybody comes once before the clock starts
        ping = load(seconds, route="ping")
        full = load(seconds)
        half = load(seconds, rate=full.per_second / 4.0)  # decisions a second; each has its reward
        server.stop()
    return {
        "clients": clients,
        "users": users,
        "pings a second": round(ping.per_second),
        "decisions and rewards a second": round(full.per_second),
        "ratio": round(full.per_second / ping.per_second, 3),
        "p50 at full load, milliseconds": round(full.recommend.p50, 1),
        "p99 at full load, milliseconds": round(full.recommend.p99, 1),
        "requests a second at half": round(half.per_second),
        "p50 at half, milliseconds": round(max(half.recommend.p50, half.reward.p50), 1),
        "p99 at half, milliseconds": round(max(half.recommend.p99, half.reward.p99), 1),
        "largest at half, milliseconds": round(max(half.recommend.max, half.reward.max), 1),
        "errors": ping.errors | full.errors | half.errors,
    }

"""PostgreSQL stopped as by a power cut, and started again, under load: 503 meanwhile, and back without help."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

from locb import loadtest as traffic
from stress.checks import Acknowledged, check
from stress.load import Load
from stress.server import Server
from stress.stores import Place


def outage(
    place: Place, times: int, clients: int, *, down: float = 1.0, up: float = 2.0, seed: int = 0
) -> dict[str, Any]:
    """Take the database away from a service, again and again, and look at what is left."""
    if place.cluster is None:
        raise ValueError("only a database of its own can be taken away")
    rng = random.Random(seed)
    acknowledged, errors = Acknowledged(), Counter[str]()
    told, back = Counter[int](), []
    with Server(place.folder, ["--dim", "10", "--snapshot-every", "2000"], place.url) as server:
        server.start()
        for number in range(times):
            plan = traffic.Plan(
                url=server.url, connections=clients, users=500, seconds=up + down, retry=True, record=True,
                timeout=60.0, seed=number,
            )  # fmt: skip
            load = Load(plan)
            load.wait_started()
            time.sleep(rng.uniform(0.0, up / 2))
            place.cluster.stop()
            end = time.monotonic() + down
            while time.monotonic() < end:
                told[server.get("/v1/health")[0]] += 1
                time.sleep(0.05)
            place.cluster.start()
            began = time.perf_counter()
            server.wait_ready()
            back.append(time.perf_counter() - began)
            report = load.report()
            acknowledged.add(report)
            errors.update(report.errors)
        starts = server.said().count("Starting at")
        server.stop()
        counts = check(place.folder, place.url, acknowledged)
    return {
        "outages": times,
        "clients": clients,
        "health told 503": told[503],
        "requests told 503": errors["503"],
        "given up": errors["unanswered"] + errors["timeout"] + errors["invalid response"],
        "other answers": errors.total() - sum(errors[kind] for kind in ("503", "unanswered", "timeout")),
        "starts of the service": starts,
        "back within seconds": round(max(back), 2),
        **counts,
    }

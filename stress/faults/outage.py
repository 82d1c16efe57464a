"""Test of outages of PostgreSQL under load: requests get status 503, and the service recovers automatically."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

from locb import loadtest
from stress.checks import Acknowledged, check
from stress.clients.background_load import UNTIL_FINISHED, BackgroundLoad
from stress.service_process import ServiceProcess
from stress.stores import StoreLocation


def outage(
    location: StoreLocation, repeats: int, clients: int, *, down: float = 1.0, up: float = 2.0, seed: int = 0
) -> dict[str, Any]:
    """Stop the database server ``repeats`` times for ``down`` seconds each, and check the event log afterwards.

    ``clients`` connections send requests before, during and after each outage, for ``up`` seconds while the server
    runs.
    """
    if location.cluster is None:
        raise ValueError("outage needs a store in PostgreSQL, not SQLite: use new_store('postgresql')")
    rng = random.Random(seed)
    acknowledged, errors = Acknowledged(), Counter[str]()
    health, recovery = Counter[int](), []
    with ServiceProcess(location.folder, ["--dim", "10", "--snapshot-every", "2000"], location.url) as server:
        server.start()
        for number in range(repeats):
            plan = loadtest.Plan(
                url=server.url, connections=clients, users=500, seconds=UNTIL_FINISHED, retry=True, record=True,
                timeout=60.0, seed=number,
            )  # fmt: skip
            load = BackgroundLoad(plan)
            load.wait_started()
            before = rng.uniform(0.0, up / 2)
            time.sleep(before)
            location.cluster.stop()
            end = time.monotonic() + down
            while time.monotonic() < end:
                health[server.get("/v1/health")[0]] += 1
                time.sleep(0.05)
            location.cluster.start()
            start = time.perf_counter()
            server.wait_ready()
            recovery.append(time.perf_counter() - start)
            time.sleep(up - before)
            load.finish()
            report = load.report()
            acknowledged.add(report)
            errors.update(report.errors)
        starts = server.output().count("Starting the service at")
        server.stop()
        counts = check(location.folder, location.url, acknowledged)
    return {
        "outages": repeats,
        "clients": clients,
        "health checks with 503": health[503],
        "responses with 503": errors["503"],
        "given up": errors["unanswered"] + errors["timeout"] + errors["invalid response"],
        "other errors": errors.total() - sum(errors[kind] for kind in ("503", "unanswered", "timeout")),
        "starts of the service": starts,
        "slowest recovery, seconds": round(max(recovery), 2),
        **counts,
    }

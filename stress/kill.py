"""SIGKILL at random moments while many clients ask and reward: nothing that was answered is lost or learned twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

from locb import traffic
from stress.checks import Acknowledged, check
from stress.load import Load
from stress.server import Server
from stress.stores import Place


def kill(
    place: Place, kills: int, clients: int, *, before: float = 2.0, after: float = 4.0, seed: int = 0
) -> dict[str, Any]:
    """Kill a service again and again on one store, start it again each time, and look at what is left.

    Each time it is killed within ``before`` seconds of load, and new decisions are asked for ``after`` seconds longer.
    Clients ask again, under the same names, for whatever was not acknowledged, until it is.
    """
    rng = random.Random(seed)
    acknowledged, errors, restarts = Acknowledged(), Counter[str](), []
    # Snapshots come often, so that kills fall into them as well, and starts begin from them.
    options = ["--dim", "10", "--snapshot-every", "2000"]
    with Server(place.folder, options, place.url) as server:
        server.start()
        for number in range(kills):
            plan = traffic.Plan(
                url=server.url, connections=clients, users=500 + 20 * number, seconds=before + after, retry=True,
                record=True, timeout=60.0, seed=number,
            )  # fmt: skip
            load = Load(plan)
            load.wait_started()
            time.sleep(rng.uniform(0.0, before))
            server.kill()
            restarts.append(server.start())
            report = load.report()
            acknowledged.add(report)
            errors.update(report.errors)
        server.stop()
        counts = check(place.folder, place.url, acknowledged)
    gave_up = errors["unanswered"] + errors["timeout"] + errors["wrong answer"]
    return {
        "kills": kills,
        "clients": clients,
        "attempts without an answer": errors.total(),
        "given up": gave_up,
        "slowest start, seconds": round(max(restarts), 2),
        **counts,
    }

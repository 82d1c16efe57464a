"""SIGKILL at random moments while many clients ask and reward: nothing that was answered is lost or learned twice."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

from locb import loadtest as traffic
from locb.service.store.log import EventLog
from stress.checks import Acknowledged, check
from stress.load import Load
from stress.server import Server
from stress.stores import Place

GUEST_EVERY = 3  # kills between those in which somebody is erased


def kill(
    place: Place, kills: int, clients: int, *, before: float = 2.0, after: float = 4.0, seed: int = 0
) -> dict[str, Any]:
    """Kill a service again and again on one store, start it again each time, and look at what is left.

    Each time it is killed within ``before`` seconds of load, and new decisions are asked for ``after`` seconds longer.
    Clients ask again, under the same names, for whatever was not acknowledged, until it is. Now and then somebody who
    was served is erased meanwhile; not in the second half, of which all decisions are made again in the end.
    """
    rng = random.Random(seed)
    acknowledged, errors, restarts = Acknowledged(), Counter[str](), []
    # Snapshots come often, so that kills fall into them as well, and starts begin from them.
    options = ["--dim", "10", "--snapshot-every", "500"]
    with Server(place.folder, options, place.url) as server:
        server.start()
        for number in range(kills):
            guest = Guest(server, f"guest {number}") if number % GUEST_EVERY == 0 and 2 * number < kills else None
            plan = traffic.Plan(
                url=server.url, connections=clients, users=500 + 20 * number, seconds=before + after, retry=True,
                record=True, timeout=60.0, seed=number,
            )  # fmt: skip
            load = Load(plan)
            load.wait_started()
            time.sleep(rng.uniform(0.0, before))
            if guest is not None:
                guest.start()
                time.sleep(rng.uniform(0.0, 0.1))
            server.kill()
            restarts.append(server.start())
            report = load.report()
            acknowledged.add(report)
            errors.update(report.errors)
            if guest is not None:
                guest.join()
        server.stop()
        counts = check(place.folder, place.url, acknowledged)
    return {
        "kills": kills,
        "clients": clients,
        "attempts without an answer": errors.total(),
        "given up": errors["unanswered"] + errors["timeout"] + errors["invalid response"],
        "not erased": _guests(place),
        "slowest start, seconds": round(max(restarts), 2),
        **counts,
    }


class Guest(threading.Thread):
    """Somebody who was served, and is erased once the thread starts."""

    def __init__(self, server: Server, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._server = server
        for number in range(5):
            arms = [{"id": "a", "features": [0.6, 0.8] + [0.0] * 8}, {"id": "b", "features": [1.0] + [0.0] * 9}]
            decision = f"{name}, {number}"
            server.post("/v1/recommend", {"user": name, "arms": arms, "decision_id": decision})
            server.post("/v1/reward", {"decision_id": decision, "reward": 1})

    def run(self) -> None:
        """Ask until they are gone: erased now, or by a request before whose answer was lost."""
        while True:
            try:
                if self._server.delete(f"/v1/users/{self.name.replace(' ', '%20')}")[0] in (200, 404):
                    return
            except OSError:
                pass
            time.sleep(0.01)


def _guests(place: Place) -> int:
    """How many names and decisions of guests are left."""
    log = EventLog(place.folder, place.url)
    try:
        names = [name or b"" for _, _, name in log.users()]
        names += [row.id for chunk in log.decisions() for row in chunk]
        return sum(name.startswith(b"guest") for name in names)
    finally:
        log.close()

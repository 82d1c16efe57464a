"""Test of SIGKILL at random times under load: no acknowledged decision or reward may be lost or learned twice."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

from locb import loadtest
from locb.service.store.log import EventLog
from stress.checks import Acknowledged, check
from stress.clients.background_load import UNTIL_FINISHED, BackgroundLoad
from stress.service_process import ServiceProcess
from stress.stores import StoreLocation

ERASURE_INTERVAL = 3  # a user is erased during every third kill of the first half


def kill(
    location: StoreLocation, kills: int, clients: int, *, before: float = 2.0, after: float = 2.0, seed: int = 0
) -> dict[str, Any]:
    """Kill a service ``kills`` times, restart it each time, and check the event log afterwards.

    ``clients`` connections send requests. The kill occurs after at most ``before`` seconds, and the requests end
    ``after`` seconds after the restart. Clients retry requests that were not acknowledged, with the same decision ids.
    In the first half of the kills, some users are erased. Erasures rebuild the policy, so the final check repeats only
    the decisions after the last erasure.
    """
    rng = random.Random(seed)
    acknowledged, errors, restarts = Acknowledged(), Counter[str](), []
    # Snapshots are frequent, so that some kills interrupt the writing of a snapshot, and each restart loads a snapshot.
    options = ["--dim", "10", "--snapshot-every", "500"]
    with ServiceProcess(location.folder, options, location.url) as server:
        server.start()
        for number in range(kills):
            guest = Guest(server, f"guest {number}") if number % ERASURE_INTERVAL == 0 and 2 * number < kills else None
            plan = loadtest.Plan(
                url=server.url, connections=clients, users=500 + 20 * number, seconds=UNTIL_FINISHED, retry=True,
                record=True, timeout=60.0, seed=number,
            )  # fmt: skip
            load = BackgroundLoad(plan)
            load.wait_started()
            time.sleep(rng.uniform(0.0, before))
            if guest is not None:
                guest.start()
                time.sleep(rng.uniform(0.0, 0.1))
            server.kill()
            restarts.append(server.start())
            time.sleep(after)
            load.finish()
            report = load.report()
            acknowledged.add(report)
            errors.update(report.errors)
            if guest is not None:
                guest.join()
        server.stop()
        counts = check(location.folder, location.url, acknowledged)
    return {
        "kills": kills,
        "clients": clients,
        "attempts without a response": errors.total(),
        "given up": errors["unanswered"] + errors["timeout"] + errors["invalid response"],
        "not erased": _remaining_guests(location),
        "slowest start, seconds": round(max(restarts), 2),
        **counts,
    }


class Guest(threading.Thread):
    """Thread that erases a user. The user gets five decisions and rewards when the object is created."""

    def __init__(self, server: ServiceProcess, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._server = server
        for number in range(5):
            arms = [{"id": "a", "features": [0.6, 0.8] + [0.0] * 8}, {"id": "b", "features": [1.0] + [0.0] * 9}]
            decision = f"{name}, {number}"
            server.post("/v1/recommend", {"user": name, "arms": arms, "decision_id": decision})
            server.post("/v1/reward", {"decision_id": decision, "reward": 1})

    def run(self) -> None:
        """Send erase requests until one succeeds.

        Status 404 is a success too: the user was erased, but the response to an earlier request was lost.
        """
        while True:
            try:
                if self._server.delete(f"/v1/users/{self.name.replace(' ', '%20')}")[0] in (200, 404):
                    return
            except OSError:
                pass
            time.sleep(0.01)


def _remaining_guests(location: StoreLocation) -> int:
    """Return how many names and decisions of erased users are still in the event log."""
    log = EventLog(location.folder, location.url)
    try:
        names = [name or b"" for _, _, name in log.users()]
        names += [row.id for chunk in log.decisions() for row in chunk]
        return sum(name.startswith(b"guest") for name in names)
    finally:
        log.close()

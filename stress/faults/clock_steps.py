"""Test of steps of the system time: default rewards are learned in time, once per decision."""

from __future__ import annotations

import random
import time
from typing import Any

from locb import loadtest
from stress.checks import Acknowledged, check
from stress.clients.background_load import BackgroundLoad
from stress.histories.faults import OFFSETS
from stress.histories.forks import ForkedService, Forks
from stress.histories.log_content import count_waiting
from stress.histories.run import wait_for_defaults
from stress.stores import StoreLocation

RATE = 100.0  # decisions per second
REWARD_WAIT = 0.5  # seconds until a default reward is learned
OPTIONS = ["--dim", "10", "--default-reward", "0.25", "--reward-wait", f"{REWARD_WAIT:g}s"]


def clock_steps(location: StoreLocation, steps: int, *, seconds: float = 0.5, seed: int = 0) -> dict[str, Any]:
    """Change the system time of a service ``steps`` times, by up to one hour, and check the event log afterwards.

    The rewards of most decisions arrive after the default rewards are due, and replace them. One decision per step gets
    no reward.
    """
    rng, acknowledged = random.Random(seed), Acknowledged()
    with Forks() as forks, ForkedService(forks, "A", location.folder, OPTIONS, location.url) as server:
        server.start()
        plan = loadtest.Plan(
            url=server.url, rate=RATE, connections=20, users=50, seconds=steps * seconds, delay=2.0 * REWARD_WAIT,
            retry=True, record=True, timeout=60.0, seed=seed,
        )  # fmt: skip
        load = BackgroundLoad(plan)
        load.wait_started()
        for number in range(steps):
            server.set_clock(rng.choice(OFFSETS))
            request = {"user": f"user {number}", "arms": [{"id": "a", "features": [1.0] + [0.0] * 9}]}
            status, decision = server.post("/v1/recommend", request)
            if status == 200:
                acknowledged.arms[decision["decision_id"]] = "a"
            time.sleep(seconds)
        report = load.report()
        acknowledged.add(report)
        start = time.perf_counter()
        wait_for_defaults(location)
        waited, missing = time.perf_counter() - start, count_waiting(location)
        server.stop()
        counts = check(location.folder, location.url, acknowledged)
    return {
        "steps": steps,
        "errors": dict(report.errors),
        "decisions without a default reward": missing,
        "wait for the last default reward, seconds": round(waited, 2),
        **counts,
    }

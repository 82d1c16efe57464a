"""Plan of a history: the settings of the service and of the clients, and the faults, all drawn with one random seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

FAULTS: dict[str, tuple[str, ...]] = {
    "sqlite": (
        "kill", "stop", "hang service", "hang store", "full disk", "clock step", "second service", "steal lock",
    ),
    "postgresql": (
        "kill", "stop", "hang service", "hang store", "full disk", "clock step", "second service",
        "terminate connections", "crash store", "take over", "expire lease", "lose responses",
    ),
}  # fmt: skip
LONG_WAIT = 3.0  # seconds until a default reward is due: longer than a restart takes
OUTAGES = {"sqlite": "full disk", "postgresql": "crash store"}  # faults during which all writes are refused


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault of a history.

    Attributes
    ----------
    name : str
        Element of ``FAULTS``.
    pause : float
        Seconds between the previous fault and this one.
    seconds : float
        Duration of the fault, if it has one.
    strength : float
        Random number from 0 to 1 that selects a variant of the fault.
    """

    name: str
    pause: float
    seconds: float
    strength: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings and faults of a history, which are the same for the same random seed; the timing of processes is not."""

    seed: int
    seconds: float  # see ``draw_plan``
    faults: tuple[Fault, ...]
    options: tuple[str, ...]  # of ``locb serve``
    default_reward: float | None
    reward_wait: float  # seconds until the default reward is due
    clients: int
    users: int
    timeout: float  # seconds after which a client closes its connection
    disconnects: float  # probability that a client closes its connection before the response
    deferred: float  # probability that a decision is deferred
    erasures: float  # probability that a client creates a user whom it erases later
    rewards: float = 0.5  # probability that a client sends a reward and does not request a decision
    give_up: float = 0.15  # probability that a client does not repeat a failed request
    postpone: float = 0.5  # probability that a client sends a refused reward again after the default reward was due


def draw_plan(kind: str, seed: int, seconds: float = 2.0) -> Plan:
    """Return the plan of a history on a store of the kind "sqlite" or "postgresql".

    ``seconds`` is the duration of the requests, without the time that starts and long faults take.
    """
    rng = random.Random(f"{kind} {seed}")
    default_reward = rng.choice([None, 0.0, 0.25])
    options = ["--dim", "3", "--n-seeds", str(rng.randint(1, 5)), "--policy", rng.choice(["locb", "locb", "eloc"])]
    options += ["--snapshot-every", str(rng.choice([10, 50, 100_000]))]
    options += ["--decision-cache", str(rng.choice([1, 5, 100_000])), "--shutdown-timeout", "5s"]
    reward_wait = 0.0
    if default_reward is not None:
        reward_wait = rng.choice([0.1, 0.5, 1.0])
        options += ["--default-reward", str(default_reward), "--reward-wait", f"{reward_wait}s"]
    names = rng.choices(FAULTS[kind], k=rng.randint(1, 3))
    pause = seconds / (len(names) + 1)
    faults = [
        Fault(name, rng.uniform(0.2, 1.0) * pause, rng.uniform(0.05, 0.5) * seconds, rng.random()) for name in names
    ]
    plan = Plan(
        seed=seed,
        seconds=seconds,
        faults=tuple(faults),
        options=tuple(options),
        default_reward=default_reward,
        reward_wait=reward_wait,
        clients=rng.randint(2, 6),
        users=rng.choice([3, 10, 40]),
        timeout=rng.choice([0.3, 1.0, 3.0]),
        disconnects=rng.choice([0.0, 0.0, 0.05, 0.2]),
        deferred=rng.choice([0.0, 0.5]),
        erasures=rng.choice([0.0, 0.0, 0.1]),
    )
    if default_reward is None or rng.random() < 0.5:
        return plan
    # A service reads decisions from the log after a restart. Their rewards are refused, then default rewards are due.
    restart = Fault(rng.choice(["kill", "stop"]), 0.6, 0.0, 0.0)
    outage = Fault(OUTAGES[kind], 0.0, 1.0, 0.0)
    options += ["--reward-wait", f"{LONG_WAIT}s", "--decision-cache", "100000"]  # the last value of an option counts
    plan = replace(plan, faults=(*faults, restart, outage), options=tuple(options), reward_wait=LONG_WAIT)
    return replace(plan, rewards=0.2, give_up=0.6)  # many decisions without a reward before the restart

"""One run of the matrix: a policy at its defaults, but for alpha, in one world."""

from __future__ import annotations

from typing import Any

from locb.experiments.compare import Task, run_task
from locb.experiments.custom_policy import register
from locb.policies import POLICIES


def in_world(
    *,
    world: dict[str, Any],
    seed: int,
    policy: str,
    rounds: int,
    parameters: dict[str, Any],
    judged_at: float,
    source: dict[str, str] | None,
) -> dict[str, Any]:
    """Regret after the last round, and how well the groups found match the true ones.

    ``source`` tells where a policy of one's own is: this may be another process than the one that knew its name.
    """
    if source is not None:
        register(source["reference"])
    task = Task(policy, POLICIES[policy], {**parameters, "seed": seed}, world, rounds, seed, judged_at)
    outcome = run_task(task)
    return {
        "regret": float(outcome.regret[-1]),
        "reward": outcome.reward,
        "groups": len(outcome.found),
        "f1": None if outcome.f1 != outcome.f1 else outcome.f1,
        "microseconds_per_round": outcome.microseconds_per_round,
    }

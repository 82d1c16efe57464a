"""Execution of the runs of one policy in one scenario of the scenario matrix."""

from __future__ import annotations

from typing import Any

from locb.experiments.comparison.comparison_run import SharedRounds, Task, run_task
from locb.experiments.comparison.environment_sources import settings_source
from locb.experiments.custom_policy import register_custom_policy
from locb.policies import POLICIES


def run_scenario(
    *,
    environment: dict[str, Any],
    seed: int,
    policy: str,
    rounds: int,
    parameters: list[dict[str, Any]],
    truth_gamma: float,
    source: dict[str, str] | None,
) -> dict[str, Any]:
    """Run one policy with several settings on the same rounds of the environment of one scenario.

    The rounds are generated once, because their generation can take longer than a run.

    Parameters
    ----------
    environment : dict
        Settings of :func:`~locb.experiments.environment_factory.make_environment`.
    seed : int
        Random seed of the environment, the rounds and the policy.
    policy : str
        Name of the policy.
    rounds : int
        Number of rounds.
    parameters : list of dict
        Parameters of the policy, one dictionary per run. Parameters that are not listed have their defaults.
    truth_gamma : float
        Limit of the distance between two users of a true cluster of a data set. Synthetic environments do not use it.
    source : dict or None
        File and digest of a custom policy, which is registered before the runs; None for a built-in policy.

    Returns
    -------
    dict
        ``runs``: for each run, the values after the last round. These are the cumulative regret, mean reward per round,
        number of distinct clusters, F1 of the clusters (None without clusters), and computation time per round in
        microseconds.
    """
    if source is not None:
        register_custom_policy(source["reference"])
    env = settings_source(environment)
    shared = SharedRounds.draw(env.make(seed), rounds, seed)
    found = []
    for setting in parameters:
        task = Task(policy, POLICIES[policy], {**setting, "seed": seed}, env, rounds, seed, truth_gamma)
        outcome = run_task(task, shared)
        found.append(
            {
                "regret": float(outcome.regret[-1]),
                "reward": outcome.reward,
                "clusters": len(outcome.found),
                "f1": None if outcome.f1 != outcome.f1 else outcome.f1,
                "microseconds_per_round": outcome.microseconds_per_round,
            }
        )
    return {"runs": found}

"""Execution of one run of the scenario matrix."""

from __future__ import annotations

from typing import Any

from locb.experiments.comparison.comparison_run import Task, run_task
from locb.experiments.comparison.environment_sources import settings_source
from locb.experiments.custom_policy import register_custom_policy
from locb.policies import POLICIES


def run_scenario(
    *,
    environment: dict[str, Any],
    seed: int,
    policy: str,
    rounds: int,
    parameters: dict[str, Any],
    truth_gamma: float,
    source: dict[str, str] | None,
) -> dict[str, Any]:
    """Run one policy in the environment of one scenario.

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
    parameters : dict
        Parameters of the policy. Parameters that are not listed have their defaults.
    truth_gamma : float
        Limit of the distance between two users of a true cluster of a data set. Synthetic environments do not use it.
    source : dict or None
        File and digest of a custom policy, which is registered before the run; None for a built-in policy.

    Returns
    -------
    dict
        Values after the last round: cumulative regret, mean reward per round, number of distinct clusters, F1 of the
        clusters (None without clusters), and computation time per round in microseconds.
    """
    if source is not None:
        register_custom_policy(source["reference"])
    env = settings_source(environment)
    task = Task(policy, POLICIES[policy], {**parameters, "seed": seed}, env, rounds, seed, truth_gamma)
    outcome = run_task(task)
    return {
        "regret": float(outcome.regret[-1]),
        "reward": outcome.reward,
        "clusters": len(outcome.found),
        "f1": None if outcome.f1 != outcome.f1 else outcome.f1,
        "microseconds_per_round": outcome.microseconds_per_round,
    }

"""One run of the scenario matrix."""

from __future__ import annotations

from typing import Any

from locb.experiments.comparison.comparison_run import Task, run_task
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
    """Run a policy in the environment of a scenario.

    Parameters
    ----------
    environment : dict
        Settings of the environment.
    seed : int
        Seed of the environment, the rounds and the policy.
    policy : str
        Name of the policy.
    rounds : int
        Number of rounds.
    parameters : dict
        Parameters of the policy that differ from its defaults.
    truth_gamma : float
        Gamma of the true clusters of real data.
    source : dict or None
        File and digest of a custom policy. A worker process registers the policy from it.

    Returns
    -------
    dict
        Final regret, mean reward, number of clusters, F1 against the true clusters, and time per round.
    """
    if source is not None:
        register_custom_policy(source["reference"])
    task = Task(policy, POLICIES[policy], {**parameters, "seed": seed}, environment, rounds, seed, truth_gamma)
    outcome = run_task(task)
    return {
        "regret": float(outcome.regret[-1]),
        "reward": outcome.reward,
        "clusters": len(outcome.found),
        "f1": None if outcome.f1 != outcome.f1 else outcome.f1,
        "microseconds_per_round": outcome.microseconds_per_round,
    }

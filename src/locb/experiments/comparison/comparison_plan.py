"""Plan of a comparison: the runs (policy, alpha and repeat), and the combination of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.validation import ParameterError
from locb.evaluation.results import ClusterHistory, Comparison, PolicyResult, UserMap
from locb.experiments.comparison.comparison_run import (
    Outcome,
    Task,
    accepted_parameters,
    cluster_checkpoints,
    regret_checkpoints,
)
from locb.experiments.custom_policy import policy_source
from locb.experiments.dataset_summary import features_note, likes_note
from locb.experiments.environment_factory import data_digest, ground_truth_note, make_environment, true_clusters
from locb.experiments.jobs import Ledger, code_digest, run_jobs, versions
from locb.experiments.parallel import Workers
from locb.policies import POLICIES, REGISTRY
from locb.policies.parameters import check_reward_range

DEFAULT_POLICIES = tuple(name for name, spec in REGISTRY.items() if spec.compare_by_default)


@dataclass(frozen=True)
class ComparisonPlan:
    """Plan of a comparison with validated settings."""

    settings: dict[str, Any]  # arguments of plan_comparison
    tasks: list[Task]  # ordered by policy, alpha, repeat
    n_users: int  # number of users of the environment
    dim: int  # number of features per arm
    notes: list[str]  # threshold and share of likes, and limitations of the data, for reports
    data: dict[str, str]  # digest of a data set, by its name; empty for a synthetic environment

    def prepare(self) -> None:
        """Compile the kernels of the policies, or load them from the cache.

        Call this before ``run``, so that the measured times do not include compilation.
        """
        for task in self.tasks[:: self.settings["repeats"]]:
            task.make_policy(n_users=self.n_users, dim=self.dim).prepare()

    def open_folder(self, folder: Path) -> Ledger:
        """Return the ledger of a folder, which contains the outcomes of finished runs.

        Raise a ValueError if the folder has runs of another version of the source code or with other data.
        """
        return Ledger(folder, {"kind": "compare", "code": code_digest(), "data": self.data})

    def run(
        self, ledger: Ledger | None, workers: Workers, progress: Callable[[float, float], None] | None = None
    ) -> Comparison:
        """Run the tasks whose outcomes are not in the ledger, and return the comparison.

        Parameters
        ----------
        ledger : Ledger or None
            Outcomes of finished runs. New outcomes are added. None runs all tasks and stores nothing.
        workers : Workers
            Processes that run the tasks.
        progress : callable, optional
            Called with (finished runs, total runs) after each run. Stored outcomes are not counted.
        """
        jobs = [task.to_job() for task in self.tasks]
        outcomes = [Outcome.from_json(fields) for fields in run_jobs(jobs, ledger, workers, progress)]
        repeats = self.settings["repeats"]
        return Comparison(
            settings=self.settings,
            checkpoints=regret_checkpoints(self.settings["rounds"]),
            results=[
                _policy_result(self.tasks[start], outcomes[start : start + repeats])
                for start in range(0, len(self.tasks), repeats)
            ],
            user_map=_user_map(self.tasks[::repeats], outcomes[::repeats]),
            seeds=[task.seed for task in self.tasks[:repeats]],
            versions=versions(),
            notes=self.notes + reward_scale_notes(outcomes),
            cluster_checkpoints=np.array(self.tasks[0].cluster_checkpoints),
        )


def check_settings(policies: Sequence[str], alphas: Sequence[float], rounds: int, repeats: int) -> None:
    """Raise a ValueError if a setting is invalid.

    ``rounds`` and ``repeats`` must be at least 1. ``policies`` and ``alphas`` must not be empty or have duplicates.
    """
    for name, value in (("rounds", rounds), ("repeats", repeats)):
        if value < 1:
            raise ParameterError(name, f" must be at least 1, not {value}")
    if isinstance(policies, str):
        raise ParameterError("policies", f" must be a list of names, not the string {policies!r}")
    if not policies or not alphas:
        raise ParameterError("policies" if not policies else "alphas", " must have at least one element, not 0")
    if len(set(policies)) < len(policies):
        raise ParameterError("policies", f" must be distinct names, not {', '.join(policies)}")
    if len(set(alphas)) < len(alphas):
        raise ParameterError("alphas", f" must be distinct, not {', '.join(map(str, alphas))}")


def plan_comparison(
    policies: Sequence[str] = DEFAULT_POLICIES,
    *,
    alphas: Sequence[float] = (1.0,),
    rounds: int = 50_000,
    repeats: int = 5,
    environment: dict[str, Any] | None = None,
    n_seeds: int | None = None,
    gamma: float = 0.2,
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
    custom: Mapping[str, str] | None = None,
) -> ComparisonPlan:
    """Check the settings of a comparison and return its plan.

    The parameters are those of :func:`compare`, and ``custom``: files of custom policies, name → ``file.py:Class``.
    """
    environment = dict(environment or {})
    check_settings(policies, alphas, rounds, repeats)
    env = make_environment(environment, seed)
    common: dict[str, Any] = {"gamma": gamma, "n_seeds": n_seeds}
    if reward_range is not None:
        common["reward_range"] = check_reward_range(reward_range)
    recorded = cluster_checkpoints(rounds, env.n_users)
    sources = {name: policy_source(reference) for name, reference in (custom or {}).items()}
    tasks = [
        Task(
            name,
            POLICIES[name],
            {**parameters, "seed": seed + repeat},
            environment,
            rounds,
            seed + repeat,
            gamma,
            cluster_checkpoints=recorded,
            keep_clusters=repeat == 0,
            source=sources.get(name),
        )
        for name in policies
        for parameters in parameter_sets(name, alphas, common)
        for repeat in range(repeats)
    ]
    for task in tasks[::repeats]:
        if reward_range is not None and "reward_range" not in accepted_parameters(task.factory, task.parameters):
            raise ParameterError(
                "reward_range",
                f" cannot be set: the policy {task.policy!r} does not have this parameter; omit one of the two",
            )
        task.make_policy(n_users=env.n_users, dim=env.dim)
    settings = {"policies": list(policies), "alphas": [float(a) for a in alphas], "rounds": rounds, "repeats": repeats}
    settings |= {"n_seeds": n_seeds, "gamma": gamma, "seed": seed, "environment": environment}
    settings |= {"reward_range": None if reward_range is None else list(common["reward_range"])}
    notes = [note for note in (likes_note(env), features_note(env), ground_truth_note(env, gamma)) if note]
    data = {environment["data"]: data_digest(env)} if "data" in environment else {}
    return ComparisonPlan(settings, tasks, env.n_users, env.dim, notes, data)


def reward_scale_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """Return one note on the first run whose policy reports rewards that are not of about 0 to 1; empty without one."""
    problems = [outcome.reward_scale_problem for outcome in outcomes if outcome.reward_scale_problem is not None]
    if not problems:
        return []
    remedy = "Set reward_range (--reward-range low,high) to the lowest and the highest reward."
    return [
        (
            f"At least one policy assumes rewards of about 0 to 1, but {problems[0]}: its choices and clusters may be "
            f"poor. {remedy}"
        )
    ]


def parameter_sets(name: str, alphas: Sequence[float], common: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the sets of parameters with which a policy runs.

    Parameters
    ----------
    name : str
        Name of the policy.
    alphas : sequence of float
        Values of alpha, the weight of the exploration bonus. A policy that has this parameter gets one set per value.
        Any other policy gets one set.
    common : dict
        Other parameters, which are part of every set.
    """
    if name not in POLICIES:
        raise ParameterError("policies", f": unknown policy {name!r}; choose from {', '.join(POLICIES)}")
    if accepted_parameters(POLICIES[name], {"alpha": 1.0}):
        return [{**common, "alpha": float(alpha)} for alpha in alphas]
    return [common]


def _policy_result(task: Task, outcomes: list[Outcome]) -> PolicyResult:
    return PolicyResult(
        policy=task.policy,
        alpha=task.parameters.get("alpha"),
        regret=np.array([outcome.regret for outcome in outcomes]),
        reward=np.array([outcome.reward for outcome in outcomes]),
        n_clusters=np.array([len(outcome.found) for outcome in outcomes]),
        f1=np.array([outcome.f1 for outcome in outcomes]),
        microseconds_per_round=np.array([outcome.microseconds_per_round for outcome in outcomes]),
        cumulative_reward=np.array([outcome.cumulative_reward for outcome in outcomes]),
        cluster_history=_cluster_history(outcomes),
    )


def _cluster_history(outcomes: list[Outcome]) -> ClusterHistory | None:
    counts = np.array([outcome.counts for outcome in outcomes])
    if not counts.any():
        return None
    return ClusterHistory(counts, np.array([outcome.f1s for outcome in outcomes]), outcomes[0].clusters)


def _user_map(tasks: list[Task], outcomes: list[Outcome]) -> UserMap | None:
    """Return the users and clusters of the first policy that finds clusters in repeat 0; None if no policy does."""
    for task, outcome in zip(tasks, outcomes, strict=True):
        if outcome.found:
            env: Any = make_environment(task.environment, task.seed, warn=False)
            groups = [cluster.tolist() for cluster in true_clusters(env, task.gamma)]
            return UserMap(task.policy, env.theta, groups, outcome.found)
    return None

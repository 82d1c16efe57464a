"""Plan of a comparison: the runs (environment, policy, parameters and repeat), and the combination of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.validation import ParameterError, ParameterName
from locb.evaluation.results import ClusterHistory, Comparison, PolicyResult, UserMap, combine_environments
from locb.evaluation.run_folder import code_digest
from locb.experiments.comparison.candidates import (
    Candidate,
    Grid,
    accepted_parameters,
    check_grid,
    edge_notes,
    make_candidates,
)
from locb.experiments.comparison.comparison_run import Outcome, Task
from locb.experiments.comparison.curve_points import cluster_checkpoints, regret_checkpoints
from locb.experiments.comparison.environment_sources import EnvironmentSource, make_sources
from locb.experiments.dataset_summary import features_note, likes_note, offer_note
from locb.experiments.environment_factory import data_digest, fixed_rounds_note, ground_truth_note, true_clusters
from locb.experiments.jobs import Ledger, run_jobs, versions
from locb.parallel.workers import Workers
from locb.policies import REGISTRY
from locb.policies.parameters import check_reward_range

DEFAULT_POLICIES = tuple(name for name, spec in REGISTRY.items() if spec.compare_by_default)
SCALE_REMEDY = "Set reward_range (--reward-range low,high) to the lowest and the highest reward."
DEFAULT_ROUNDS = 50_000
DEFAULT_ALPHAS = (1.0,)  # values of alpha of a policy that is given as a name or a class


@dataclass(frozen=True)
class EnvironmentPlan:
    """The runs of a comparison in one environment."""

    source: EnvironmentSource
    settings: dict[str, Any]  # of the comparison, with the settings of this environment
    tasks: list[Task]  # ordered by policy, parameters, repeat
    n_users: int  # users of the environment
    dim: int  # features of the environment
    notes: list[str]  # likes and limitations of the data, to be shown in reports

    def combine(self, outcomes: list[Outcome]) -> Comparison:
        """Return the comparison, from the outcomes of the tasks."""
        repeats = self.settings["repeats"]
        results = [
            _policy_result(self.tasks[start], outcomes[start : start + repeats])
            for start in range(0, len(self.tasks), repeats)
        ]
        return Comparison(
            settings=self.settings,
            checkpoints=regret_checkpoints(self.settings["rounds"]),
            results=results,
            user_map=_user_map(self.tasks[::repeats], outcomes[::repeats]),
            seeds=[task.seed for task in self.tasks[:repeats]],
            versions=versions(),
            notes=self.notes + missing_rewards_notes(outcomes) + reward_scale_notes(outcomes) + edge_notes(results),
            cluster_checkpoints=np.array(self.tasks[0].cluster_checkpoints),
        )


@dataclass(frozen=True)
class ComparisonPlan:
    """Plan of a comparison with validated settings."""

    parts: list[EnvironmentPlan]  # one per environment
    data: dict[str, str]  # digest of a data set, by its name; empty for other environments

    @property
    def tasks(self) -> list[Task]:
        """The runs in all environments."""
        return [task for part in self.parts for task in part.tasks]

    @property
    def notes(self) -> list[str]:
        """Notes on the data of all environments."""
        return [note for part in self.parts for note in part.notes]

    def prepare(self, progress: Callable[[float, float], None] | None = None) -> None:
        """Compile the kernels of the policies, or load them from the cache.

        Call this before ``run``, so that the measured times do not include compilation.

        Parameters
        ----------
        progress : callable, optional
            Called with (prepared policies, total policies) after each policy.
        """
        steps = [(part, task) for part in self.parts for task in part.tasks[:: part.settings["repeats"]]]
        for done, (part, task) in enumerate(steps, start=1):
            task.make_policy(n_users=part.n_users, dim=part.dim).prepare()
            if progress is not None:
                progress(done, len(steps))

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
        parts = {}
        for part in self.parts:
            parts[part.source.name], outcomes = part.combine(outcomes[: len(part.tasks)]), outcomes[len(part.tasks) :]
        return next(iter(parts.values())) if len(parts) == 1 else combine_environments(parts)


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
    policies: Any = DEFAULT_POLICIES,
    *,
    environments: Any = None,
    grid: Mapping[str, Any] | None = None,
    alphas: Sequence[float] | None = None,
    rounds: int | None = None,
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
    candidates = make_candidates(policies, custom)
    names = [candidate.name for candidate in candidates]
    sources = make_sources(environments, environment, seed)
    if rounds is None:
        limits = (source.make(seed).max_rounds for source in sources)
        rounds = min(limit or DEFAULT_ROUNDS for limit in (DEFAULT_ROUNDS, *limits))
    check_settings(names, DEFAULT_ALPHAS if alphas is None else alphas, rounds, repeats)
    if alphas is not None and "alpha" in (grid or {}):
        raise ParameterError("alphas", " is an alternative to alpha in the grid; give only one of them")
    shared, own = check_grid(grid, candidates)
    if alphas is not None:
        shared = {"alpha": tuple(map(float, alphas)), **shared}
    common: dict[str, Any] = {"gamma": gamma, "n_seeds": n_seeds}
    if reward_range is not None:
        common["reward_range"] = check_reward_range(reward_range)
    settings: dict[str, Any] = {"policies": names, "alphas": [*shared.get("alpha", DEFAULT_ALPHAS)]}
    settings |= {"rounds": rounds, "repeats": repeats, "n_seeds": n_seeds, "gamma": gamma, "seed": seed}
    settings |= {"reward_range": None if reward_range is None else list(common["reward_range"])}
    if grid:
        settings["grid"] = {name: list(values) for name, values in shared.items()}
        settings["grid"] |= {
            name: {key: list(values) for key, values in grid_of.items()} for name, grid_of in own.items()
        }
    sets = {candidate.name: _parameter_sets(candidate, shared, own, common) for candidate in candidates}
    parts = [_plan_environment(source, candidates, sets, settings) for source in sources]
    data = {part.source.data: data_digest(part.source.make(seed)) for part in parts if "data" in part.source.settings}
    return ComparisonPlan(parts, data)


def _parameter_sets(
    candidate: Candidate, shared: Grid, own: Mapping[str, Grid], common: dict[str, Any]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the sets of parameters of a policy: those that distinguish its results, and all that the runs set."""
    grid = shared | own.get(candidate.name, {})
    if candidate.configured is None:
        grid = {"alpha": DEFAULT_ALPHAS} | grid
        return [(varied, common | varied) for varied in candidate.parameter_sets(grid)]
    kept = {name: common[name] for name in ("reward_range",) if name in common}
    alpha = {name: candidate.configured[name] for name in ("alpha",) if name in candidate.configured}
    return [(alpha | varied, kept | varied) for varied in candidate.parameter_sets(grid)]


def _plan_environment(
    source: EnvironmentSource,
    candidates: Sequence[Candidate],
    sets: Mapping[str, list[tuple[dict[str, Any], dict[str, Any]]]],
    settings: dict[str, Any],
) -> EnvironmentPlan:
    """Return the plan for one environment, after the construction of every policy with every set of parameters."""
    seed, rounds, repeats, gamma = (settings[name] for name in ("seed", "rounds", "repeats", "gamma"))
    env = source.make(seed, warn=True)
    fixed = fixed_rounds_note(env, repeats)
    if fixed is not None:
        repeats = 1
    if env.max_rounds is not None and rounds > env.max_rounds:
        limit = f"{env.max_rounds}, the number of rounds of environment {source.name}"
        raise ParameterError("rounds", f" must be at most {limit}, not {rounds}")
    recorded = cluster_checkpoints(rounds, env.n_users)
    tasks = [
        Task(
            candidate.name,
            candidate.factory,
            {**parameters, "seed": seed + repeat},
            source,
            rounds,
            seed + repeat,
            gamma,
            cluster_checkpoints=recorded,
            keep_clusters=repeat == 0,
            source=candidate.identity,
            varied=varied,
        )
        for candidate in candidates
        for varied, parameters in sets[candidate.name]
        for repeat in range(repeats)
    ]
    for candidate in candidates:
        if candidate.sizes not in (None, (env.n_users, env.dim)):
            found = f"n_users and dim of {candidate.name} are {candidate.sizes}"
            advice = "give the class, or a functools.partial of the class"
            raise ParameterError(
                "policies", f": {found}, but those of environment {source.name} are {(env.n_users, env.dim)}; {advice}"
            )
    for task in tasks[::repeats]:
        if settings["reward_range"] is not None and not accepted_parameters(task.factory, {"reward_range": None}):
            raise ParameterError(
                "reward_range",
                f" cannot be set, because the policy {task.policy!r} does not have this parameter; omit ",
                ParameterName("reward_range"),
                " or the policy",
            )
        task.make_policy(n_users=env.n_users, dim=env.dim)
    known = (likes_note(env), offer_note(env), features_note(env), ground_truth_note(env, gamma), fixed)
    notes = [note for note in known if note]
    settings = settings | {"environment": source.settings, "repeats": repeats}
    return EnvironmentPlan(source, settings, tasks, env.n_users, env.dim, notes)


def reward_scale_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """Return one note on the first run whose policy reports rewards on another scale than about 0 to 1, or no note."""
    problems = [outcome.reward_scale_problem for outcome in outcomes if outcome.reward_scale_problem is not None]
    if not problems:
        return []
    return [
        (
            f"At least one policy assumes rewards of about 0 to 1, but {problems[0]}: its choices and clusters may be "
            f"poor. {SCALE_REMEDY}"
        )
    ]


def missing_rewards_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a note if the regret of some rounds is not known, or if rewards of chosen arms were not observed."""
    notes = []
    known = min(outcome.known_regrets for outcome in outcomes)
    if known < 1.0:
        notes.append(
            f"The regret is known in {known:.1%} of the rounds, those with the rewards of all arms; the others add 0."
        )
    observed = [outcome.observed_rewards for outcome in outcomes]
    if min(observed) < 1.0:
        share = f"{min(observed):.1%} to {max(observed):.1%}" if min(observed) < max(observed) else f"{observed[0]:.1%}"
        notes.append(
            f"The reward of the chosen arm was observed in {share} of the rounds. Policies learn only these rewards. "
            "The mean reward is that of these rounds, which differ between policies."
        )
    return notes


def _policy_result(task: Task, outcomes: list[Outcome]) -> PolicyResult:
    return PolicyResult(
        policy=task.policy,
        alpha=task.varied.get("alpha"),
        regret=np.array([outcome.regret for outcome in outcomes]),
        reward=np.array([outcome.reward for outcome in outcomes]),
        n_clusters=np.array([len(outcome.found) for outcome in outcomes]),
        f1=np.array([outcome.f1 for outcome in outcomes]),
        microseconds_per_round=np.array([outcome.microseconds_per_round for outcome in outcomes]),
        cumulative_reward=np.array([outcome.cumulative_reward for outcome in outcomes]),
        cluster_history=_cluster_history(outcomes),
        parameters=task.varied,
        environment=task.environment.name,
    )


def _cluster_history(outcomes: list[Outcome]) -> ClusterHistory | None:
    counts = np.array([outcome.counts for outcome in outcomes])
    if not counts.any():
        return None
    return ClusterHistory(counts, np.array([outcome.f1s for outcome in outcomes]), outcomes[0].clusters)


def _user_map(tasks: list[Task], outcomes: list[Outcome]) -> UserMap | None:
    """Return the users and clusters of the first policy that finds clusters in repeat 0.

    None if no policy finds clusters, or if the environment has no true clusters or no attribute ``theta``.
    """
    for task, outcome in zip(tasks, outcomes, strict=True):
        if outcome.found:
            env: Any = task.environment.make(task.seed)
            groups = [cluster.tolist() for cluster in true_clusters(env, task.gamma)]
            if not groups or not hasattr(env, "theta"):
                return None
            return UserMap(task.policy, env.theta, groups, outcome.found)
    return None

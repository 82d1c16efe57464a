"""Execution of one run of a comparison: one policy with one set of parameters in one repeat."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.rounds import Rounds
from locb.environments import Environment
from locb.evaluation.clusters import match_clusters
from locb.evaluation.results import Run, sample_users
from locb.experiments.comparison.candidates import accepted_parameters
from locb.experiments.comparison.curve_points import regret_checkpoints
from locb.experiments.comparison.environment_sources import EnvironmentSource
from locb.experiments.environment_factory import true_clusters
from locb.experiments.jobs import Job
from locb.experiments.simulate import play_blocks
from locb.policies import Policy
from locb.policies.base.reward_scale import report_problems_to


@dataclass(frozen=True)
class Task:
    """Settings of one run: one policy with one set of parameters in one repeat.

    All policies have the same environment and the same rounds in a repeat.
    """

    policy: str  # name of the policy
    factory: Callable[..., Policy]  # class of the policy, or a function that returns it
    parameters: dict[str, Any]  # parameters of the policy; those that the class does not have are ignored
    environment: EnvironmentSource
    rounds: int
    seed: int  # random seed of the environment and the rounds
    gamma: float  # limit of the distance between two users of a true cluster of a data set
    cluster_checkpoints: tuple[int, ...] = ()  # rounds after which clusters are recorded
    keep_clusters: bool = False  # whether to record the members of clusters, not only their number and F1
    source: dict[str, Any] | None = None  # identity of a custom policy: its file and digest
    varied: dict[str, Any] = field(default_factory=dict)  # parameters that distinguish the results of the policy

    def make_policy(self, *, n_users: int, dim: int) -> Policy:
        """Return a new policy for ``n_users`` users and ``dim`` features.

        Raises
        ------
        ValueError
            If the policy rejects a parameter or its constructor raises another error.
        """
        try:
            return self.factory(n_users=n_users, dim=dim, **accepted_parameters(self.factory, self.parameters))
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"creating policy {self.policy!r} raised {type(error).__name__}: {error}") from error

    def to_job(self) -> Job:
        """Return the run as a job. ``Outcome.from_json`` reads the outcome of the job."""
        names = ("policy", "parameters", "rounds", "gamma", "cluster_checkpoints", "keep_clusters", "source")
        settings = {name: getattr(self, name) for name in names}
        environment = self.environment
        objects = {"factory": self.factory, "environment_factory": environment.factory}
        return Job(run_job, environment.settings, self.seed, settings, 1.0, environment.data, objects)


@dataclass(frozen=True)
class Outcome:
    """Result of one run of a comparison."""

    regret: Floats  # cumulative regret at each regret checkpoint
    cumulative_reward: Floats  # at each regret checkpoint
    reward: float  # mean per round
    found: list[list[int]]  # user indices of the distinct clusters after the last round
    f1: float  # of the clusters after the last round; NaN if there are none
    microseconds_per_round: float
    counts: list[int]  # number of distinct clusters at each cluster checkpoint
    f1s: list[float]  # F1 at each cluster checkpoint
    clusters: list[list[Ints]]  # clusters at each cluster checkpoint; empty unless Task.keep_clusters
    reward_scale_problem: str | None = (
        None  # which rewards are not on a scale of about 0 to 1; None if all are, or if reward_range is set
    )
    known_regrets: float = 1.0  # share of the rounds whose regret is known
    observed_rewards: float = 1.0  # share of the rounds in which the reward of the chosen arm was observed

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        lists = {name: getattr(self, name).tolist() for name in ("regret", "cumulative_reward")}
        clusters = [[members.tolist() for members in found] for found in self.clusters]
        return vars(self) | lists | {"clusters": clusters}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Outcome:
        """Return the outcome that ``to_json`` converted."""
        arrays = {name: np.array(fields[name]) for name in ("regret", "cumulative_reward")}
        clusters = [[np.array(members, np.int64) for members in found] for found in fields["clusters"]]
        return cls(**fields | arrays | {"clusters": clusters})


@dataclass(frozen=True)
class SharedRounds:
    """Environment of a repeat and its rounds, which several runs share."""

    environment: Environment
    blocks: list[Rounds]
    truths: dict[float, list[Ints]] = field(default_factory=dict)  # true clusters by gamma, once they were computed

    def true_clusters(self, gamma: float) -> list[Ints]:
        """Return the true clusters at ``gamma``, which take long to compute for real data."""
        if gamma not in self.truths:
            self.truths[gamma] = true_clusters(self.environment, gamma)
        return self.truths[gamma]

    @classmethod
    def draw(cls, environment: Environment, rounds: int, seed: int) -> SharedRounds:
        """Draw the rounds of a repeat."""
        return cls(environment, list(environment.stream(rounds, seed=seed)))


def distinct_clusters(policy: Policy) -> list[Ints]:
    """Return the distinct clusters of a policy as arrays of user indices, largest first."""
    found = {cluster.members.tobytes(): cluster.members for cluster in policy.clusters()}
    return sorted(found.values(), key=lambda members: (-len(members), members.tolist()))


def run_job(
    *,
    environment: dict[str, Any],
    seed: int,
    environment_factory: Callable[[int], Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Run the task with these fields and return its outcome as JSON values."""
    source = EnvironmentSource("environment", environment, environment_factory)
    return run_task(Task(environment=source, seed=seed, **settings)).to_json()


def run_task(task: Task, shared: SharedRounds | None = None) -> Outcome:
    """Run one task of a comparison and return its outcome, which depends only on the task, except for measured times.

    ``shared`` has the environment and the rounds of the task, if several tasks use them. By default, they are drawn.

    Raises
    ------
    ValueError
        If the policy raises an error. The message contains that error, its file and its line.
    """
    env = task.environment.make(task.seed) if shared is None else shared.environment
    blocks = env.stream(task.rounds, seed=task.seed) if shared is None else shared.blocks
    policy = task.make_policy(n_users=env.n_users, dim=env.dim)
    sampled = sample_users(env.n_users)
    counts: list[int] = []
    f1s: list[float] = []
    recorded: list[list[Ints]] = []
    problems: list[str] = []

    @cache  # true clusters of real data take long to compute, and policies without clusters do not need them
    def truth() -> list[Ints]:
        return true_clusters(env, task.gamma) if shared is None else shared.true_clusters(task.gamma)

    def score(found: list[Ints]) -> float:
        return match_clusters(found, truth()).f1 if found and truth() else float("nan")

    def record_clusters() -> None:
        found = distinct_clusters(policy)
        counts.append(len(found))
        f1s.append(score(found))
        if task.keep_clusters:
            complete = len(sampled) == env.n_users
            recorded.append(found if complete else [members[np.isin(members, sampled)] for members in found])

    points: dict[str, Any] = {"checkpoints": task.cluster_checkpoints, "at_checkpoint": record_clusters}
    try:
        with report_problems_to(problems.append):
            run = play_blocks(policy, blocks, rounds=task.rounds, **points)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        cause = f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
        raise ValueError(f"policy {task.policy!r} raised an error during the run: {cause}") from error
    found = distinct_clusters(policy)
    return Outcome(
        **_rewards(run, task),
        found=[members.tolist() for members in found],
        f1=score(found),
        microseconds_per_round=1e6 * run.seconds / task.rounds,
        counts=counts,
        f1s=f1s,
        clusters=recorded,
        reward_scale_problem=problems[0] if problems else None,
    )


def _rewards(run: Run, task: Task) -> dict[str, Any]:
    """Return the fields of an outcome about regret and rewards; raise a ValueError if no regret is known."""
    if run.known_regrets == 0:
        raise ValueError(
            f"policies cannot be compared by regret: no round of {task.environment.data} has the rewards, or expected "
            "rewards, of all its arms. Estimate what policies would earn from a log with locb.evaluate"
        )
    observed, points = ~np.isnan(run.rewards), regret_checkpoints(task.rounds) - 1
    return {
        "regret": run.regret[points],
        "cumulative_reward": np.nancumsum(run.rewards)[points],
        "reward": float(run.rewards[observed].mean()) if observed.any() else float("nan"),
        "known_regrets": 1.0 if run.known_regrets is None else run.known_regrets / task.rounds,
        "observed_rewards": float(observed.mean()),
    }

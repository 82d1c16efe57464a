"""Several policies on the same worlds and rounds: the main job."""

from __future__ import annotations

import inspect
import platform
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.clusters import match_clusters
from locb.evaluation.results import ClusterHistory, Comparison, PolicyResult, UserMap, sample_users
from locb.experiments.environment_factory import make_environment, noise_free_environment, note, truth
from locb.experiments.parallel import Workers
from locb.experiments.simulate import simulate
from locb.policies import POLICIES, REGISTRY, Policy

POINTS = 200  # of a regret curve
FEWEST, MOST = 12, 24  # moments at which groups are kept
DEFAULT_POLICIES = tuple(name for name, spec in REGISTRY.items() if spec.compare_by_default)


@dataclass(frozen=True)
class Task:
    """One policy at one alpha in one repeat. Its world and its rounds depend on the repeat alone."""

    policy: str
    factory: Callable[..., Policy]
    parameters: dict[str, Any]
    world: dict[str, Any]
    rounds: int
    seed: int
    gamma: float
    cluster_checkpoints: tuple[int, ...] = ()  # rounds after which groups are looked at
    draws: bool = False  # whether the groups of these moments are wanted, not only what they are worth

    def make(self, *, n_users: int, dim: int) -> Policy:
        """A new policy for a world of this size."""
        try:
            return self.factory(n_users=n_users, dim=dim, **accepted(self.factory, self.parameters))
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"policy {self.policy} cannot be made: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Outcome:
    """What a task gives back."""

    regret: Floats  # (points,)
    cumulative_reward: Floats  # (points,)
    reward: float
    found: list[list[int]]
    f1: float
    microseconds_per_round: float
    counts: list[int]  # a number a moment, here and below
    f1s: list[float]
    clusters: list[list[Ints]]


def accepted(factory: Callable[..., Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Those parameters that this factory takes: a policy of one's own need not know alpha, gamma or seeds."""
    known = inspect.signature(factory).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values()):
        return parameters
    return {name: value for name, value in parameters.items() if name in known}


def checkpoints(rounds: int) -> Any:
    """The rounds at which curves are kept: evenly spaced, the last one included."""
    return np.unique(np.linspace(1, rounds, min(POINTS, rounds)).round().astype(np.int64))


def moments(rounds: int, n_users: int) -> tuple[int, ...]:
    """The rounds at which groups are kept, the last one included: more of them early, when groups change most.

    A look at the groups takes time in proportion to the users, a run in proportion to its rounds: there are more looks
    where they cost little beside the run.
    """
    count = min(rounds, MOST, max(FEWEST, rounds // n_users))
    return tuple(np.unique(np.ceil(rounds * (np.arange(1, count + 1) / count) ** 2).astype(np.int64)).tolist())


def different(policy: Policy) -> list[Ints]:
    """The groups of a policy, each once, the largest first."""
    found = {cluster.members.tobytes(): cluster.members for cluster in policy.clusters()}
    return sorted(found.values(), key=lambda members: (-len(members), members.tolist()))


def run_task(task: Task) -> Outcome:
    """Play one task from scratch."""
    env = noise_free_environment(task.world, task.seed)
    policy = task.make(n_users=env.n_users, dim=env.dim)
    drawn = sample_users(env.n_users)
    counts: list[int] = []
    f1s: list[float] = []
    clusters_seen: list[list[Ints]] = []

    @cache  # real data take long to say, and some policies are never asked
    def true() -> list[Ints]:
        return truth(env, task.gamma)

    def f1(found: list[Ints]) -> float:
        return match_clusters(found, true()).f1 if found else float("nan")

    def look() -> None:
        found = different(policy)
        counts.append(len(found))
        f1s.append(f1(found))
        if task.draws:
            few = len(drawn) == env.n_users
            clusters_seen.append(found if few else [members[np.isin(members, drawn)] for members in found])

    try:
        run = simulate(policy, env, rounds=task.rounds, seed=task.seed, stops=task.cluster_checkpoints, at_stop=look)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
        raise ValueError(f"policy {task.policy} failed while it played: {told}") from error
    distinct = different(policy)
    at = checkpoints(task.rounds) - 1
    return Outcome(
        regret=run.regret[at],
        cumulative_reward=np.cumsum(run.rewards)[at],
        reward=float(run.rewards.mean()),
        found=[members.tolist() for members in distinct],
        f1=f1(distinct),
        microseconds_per_round=1e6 * run.seconds / task.rounds,
        counts=counts,
        f1s=f1s,
        clusters=clusters_seen,
    )


@dataclass(frozen=True)
class Plan:
    """A comparison that was checked and not yet run."""

    settings: dict[str, Any]
    tasks: list[Task]  # all repeats of a policy and alpha stand together
    n_users: int
    notes: list[str]  # what a reader must know

    def prepare(self) -> None:
        """Compile what the policies need, or load it if it was compiled before, so that no run waits for it."""
        for task in self.tasks[:: self.settings["repeats"]]:
            task.make(n_users=self.n_users, dim=2).prepare()

    def run(self, *, jobs: int = -1, progress: Callable[[int, int], None] | None = None) -> Comparison:
        """Play all tasks in ``jobs`` processes (−1: one a core); ``progress`` is told (runs done, runs in all)."""
        outcomes: list[Any] = [None] * len(self.tasks)
        with Workers(jobs=jobs) as workers:
            for done, (place, outcome) in enumerate(workers.run(run_task, self.tasks), start=1):
                outcomes[place] = outcome
                if progress is not None:
                    progress(done, len(self.tasks))
        repeats = self.settings["repeats"]
        return Comparison(
            settings=self.settings,
            checkpoints=checkpoints(self.settings["rounds"]),
            results=[
                _entry(self.tasks[start], outcomes[start : start + repeats])
                for start in range(0, len(self.tasks), repeats)
            ],
            user_map=_user_map(self.tasks[::repeats], outcomes[::repeats]),
            seeds=[task.seed for task in self.tasks[:repeats]],
            versions=_versions(),
            notes=self.notes,
            cluster_checkpoints=np.array(self.tasks[0].cluster_checkpoints),
        )


def check_asked(policies: Sequence[str], alphas: Sequence[float], rounds: int, repeats: int) -> None:
    """A ValueError unless these can be played."""
    for name, value in (("rounds", rounds), ("repeats", repeats)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    if isinstance(policies, str):
        raise ValueError(f"policies must be a list of names, not {policies!r}")
    if not policies or not alphas:
        raise ValueError(f"{'policies' if not policies else 'alphas'} must name at least one")
    if len(set(policies)) < len(policies):
        raise ValueError(f"policies must differ, not {', '.join(policies)}")
    if len(set(alphas)) < len(alphas):
        raise ValueError(f"alphas must differ, not {', '.join(map(str, alphas))}")


def plan(
    policies: Sequence[str] = DEFAULT_POLICIES,
    *,
    alphas: Sequence[float] = (1.0,),
    rounds: int = 50_000,
    repeats: int = 5,
    world: dict[str, Any] | None = None,
    n_seeds: int | None = None,
    gamma: float = 0.2,
    seed: int = 0,
) -> Plan:
    """Check the settings of a comparison, before any work; they are those of ``compare``."""
    world = dict(world or {})
    check_asked(policies, alphas, rounds, repeats)
    env = make_environment(world, seed)
    common = {"gamma": gamma, "n_seeds": n_seeds}
    looks = moments(rounds, env.n_users)
    tasks = [
        Task(
            name,
            POLICIES[name],
            {**parameters, "seed": seed + repeat},
            world,
            rounds,
            seed + repeat,
            gamma,
            cluster_checkpoints=looks,
            draws=repeat == 0,
        )
        for name in policies
        for parameters in parameter_sets(name, alphas, common)
        for repeat in range(repeats)
    ]
    for task in tasks[::repeats]:
        task.make(n_users=env.n_users, dim=env.dim)
    settings = {"policies": list(policies), "alphas": [float(a) for a in alphas], "rounds": rounds, "repeats": repeats}
    settings |= {"n_seeds": n_seeds, "gamma": gamma, "seed": seed, "world": world}
    told = note(env, gamma)
    return Plan(settings, tasks, env.n_users, [told] if told else [])


def compare(
    policies: Sequence[str] = DEFAULT_POLICIES,
    *,
    alphas: Sequence[float] = (1.0,),
    rounds: int = 50_000,
    repeats: int = 5,
    world: dict[str, Any] | None = None,
    n_seeds: int | None = None,
    gamma: float = 0.2,
    seed: int = 0,
    jobs: int = -1,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run every policy at every alpha on the same worlds, ``repeats`` times over.

    Parameters
    ----------
    policies : names in ``locb.POLICIES``
        Names added there work too.
    alphas : floats
        Each policy runs at each of them.
    rounds, repeats : int
        Rounds a run, and worlds.
    world : dict
        Arguments of ``locb.Synthetic``; repeat r plays in the world of seed ``seed + r``. Or ``data`` (movielens, yelp,
        yahoo, table), ``path`` and the arguments of that reader: repeats then differ in their rounds.
    n_seeds, gamma
        LOCB's; 30 seeds, or every user if there are fewer, unless given.
    seed : int
        Of the first repeat.
    jobs : int
        Processes; −1 for one a core.
    progress : callable
        Called with (runs done, runs in all).

    Examples
    --------
    >>> import locb
    >>> result = locb.compare(["linucb-one", "linucb-ind"], rounds=300, repeats=2, world={"n_users": 10}, jobs=1)
    >>> [entry.policy for entry in result.results]
    ['linucb-one', 'linucb-ind']
    """
    planned = plan(
        policies,
        alphas=alphas,
        rounds=rounds,
        repeats=repeats,
        world=world,
        n_seeds=n_seeds,
        gamma=gamma,
        seed=seed,
    )
    return planned.run(jobs=jobs, progress=progress)


def parameter_sets(name: str, alphas: Sequence[float], common: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings at which a policy runs: one an alpha, or a single one if it has no alpha."""
    if name not in POLICIES:
        raise ValueError(f"policies must be among {', '.join(POLICIES)}, not {name!r}")
    if accepted(POLICIES[name], {"alpha": 1.0}):
        return [{**common, "alpha": float(alpha)} for alpha in alphas]
    return [common]


def _entry(task: Task, outcomes: list[Outcome]) -> PolicyResult:
    return PolicyResult(
        policy=task.policy,
        alpha=task.parameters.get("alpha"),
        regret=np.array([outcome.regret for outcome in outcomes]),
        reward=np.array([outcome.reward for outcome in outcomes]),
        n_clusters=np.array([len(outcome.found) for outcome in outcomes]),
        f1=np.array([outcome.f1 for outcome in outcomes]),
        microseconds_per_round=np.array([outcome.microseconds_per_round for outcome in outcomes]),
        cumulative_reward=np.array([outcome.cumulative_reward for outcome in outcomes]),
        cluster_history=_forming(outcomes),
    )


def _forming(outcomes: list[Outcome]) -> ClusterHistory | None:
    counts = np.array([outcome.counts for outcome in outcomes])
    if not counts.any():
        return None
    return ClusterHistory(counts, np.array([outcome.f1s for outcome in outcomes]), outcomes[0].clusters)


def _user_map(tasks: list[Task], outcomes: list[Outcome]) -> UserMap | None:
    """The first run of the first policy that finds groups."""
    for task, outcome in zip(tasks, outcomes, strict=True):
        if outcome.found:
            env: Any = noise_free_environment(task.world, task.seed)
            groups = [cluster.tolist() for cluster in truth(env, task.gamma)]
            return UserMap(task.policy, env.theta, groups, outcome.found)
    return None


def _versions() -> dict[str, str]:
    import numba

    import locb

    return {
        "locb": locb.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }

"""Policies × worlds: every policy in every named world, against the best baseline of each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import locb
from locb.evaluation.findings import Findings, Measurement
from locb.experiments import paper_values as paper
from locb.experiments.compare import Task, check_asked, parameter_sets
from locb.experiments.environment_factory import noise_free_environment
from locb.experiments.jobs import Job, Ledger, run_jobs
from locb.experiments.matrix import runs as play
from locb.experiments.matrix.standings import Standing, WorldResult
from locb.experiments.matrix.tables import tell
from locb.experiments.parallel import Workers
from locb.experiments.reproduce.targets import open_data_set
from locb.experiments.scenarios import DEVELOPMENT, JUDGING, Scenario, dataset_scenarios, select_scenarios
from locb.policies import POLICIES, make_policy, policy_spec

ALPHAS = (0.1, 0.3, 1.0)
# What the outcome of a run depends on, besides its settings.
SOURCES = ("common", "policies", "kernels", "environments", "datasets", "evaluation")


@dataclass(frozen=True)
class MatrixPlan:
    """A matrix that was checked and not yet run."""

    worlds: list[Scenario]
    policies: list[str]
    own: dict[str, str]  # policies of one's own: name → file.py:Class
    alphas: list[float]
    rounds: int | None
    repeats: int
    seed: int
    sizes: dict[str, tuple[int, int, int]]  # a world's users, features, arms
    judged_at: dict[str, float] = field(default_factory=dict)  # gamma of a real world's true groups
    data: dict[str, str] = field(default_factory=dict)  # digests of real data
    command: str = ""

    @property
    def baselines(self) -> tuple[str, ...]:
        """What others are measured by: all but ELOC and policies of one's own, or all if there is nothing else."""
        known = tuple(name for name in self.policies if policy_spec(name).is_baseline and name not in self.own)
        return known or tuple(self.policies)

    def prepare(self) -> None:
        """Compile what the policies need, or load it if it was compiled before."""
        for name in self.policies:
            if name not in self.own:
                make_policy(name, n_users=2, dim=2).prepare()

    def open_folder(self, folder: Path) -> Ledger:
        """Where its runs are kept. A ValueError if the folder holds others, or runs of another version of the code."""
        return Ledger(folder, {"kind": "worlds", "code": code_digest(), "data": self.data})

    def run(self, ledger: Ledger, workers: Workers, progress: Callable[[float, float], None] | None = None) -> Findings:
        """Play what the ledger does not have yet, and tell what was found."""
        plan = {
            (world.name, name, parameters.get("alpha")): [
                self._job(world, name, parameters, repeat) for repeat in range(self.seed, self.seed + self.repeats)
            ]
            for world in self.worlds
            for name in self.policies
            for parameters in parameter_sets(name, self.alphas, {})
        }
        played = iter(run_jobs([job for jobs in plan.values() for job in jobs], ledger, workers, progress))
        standings: dict[str, list[Standing]] = {}
        for (world_name, name, alpha), jobs in plan.items():
            standings.setdefault(world_name, []).append(_standing(name, alpha, [next(played) for _ in jobs]))
        results = [WorldResult(world, standings[world.name], self.baselines) for world in self.worlds]
        settings = {
            "command": self.command,
            "worlds": [world.name for world in self.worlds],
            "policies": self.policies,
            "baselines": list(self.baselines),
            "alphas": self.alphas,
            "rounds": self.rounds,
            "repeats": self.repeats,
            "seed": self.seed,
            "locb": locb.__version__,
        }
        return tell(results, self.policies, settings)

    def _job(self, world: Scenario, policy: str, parameters: dict[str, Any], repeat: int) -> Job:
        rounds = world.rounds if self.rounds is None else self.rounds
        _, dim, n_arms = self.sizes[world.name]
        settings = {
            "policy": policy,
            "rounds": rounds,
            "parameters": parameters,
            "judged_at": self.judged_at.get(world.name, paper.GAMMA),
            "source": _source(self.own[policy]) if policy in self.own else None,
        }
        microseconds = policy_spec(policy).cost_class.value
        cost = rounds * (0.03 * n_arms * dim + microseconds * (dim / 6) ** 2)
        return Job(play.in_world, world.settings, world.seed(repeat), settings, cost, data=world.name)


def plan_matrix(
    policies: Sequence[str],
    worlds: Sequence[str] = ("all",),
    *,
    alphas: Sequence[float] = ALPHAS,
    rounds: int | None = None,
    repeats: int = 5,
    seed: int = 0,
    data: dict[str, Any] | None = None,
    own: Mapping[str, str] | None = None,
    command: str = "",
) -> MatrixPlan:
    """Check what is asked for, before any work.

    Parameters
    ----------
    policies : names in ``locb.POLICIES``
        Each plays at its defaults, but for alpha.
    worlds : names of worlds
        Or ``development``, ``judging``, ``all``.
    alphas : floats
        Each policy that has an alpha runs at each of them.
    rounds : int, optional
        If not given, every world's own number.
    repeats, seed : int
        A world's seeds are its own; ``seed`` is how many of them to pass over.
    data : dict, optional
        Settings of a world made of files, which is added.
    own : dict, optional
        Where the policies of one's own are: name → ``file.py:Class``.
    command : str
        Told with the result.
    """
    check_asked(policies, alphas, 100 if rounds is None else rounds, repeats)
    if rounds is not None and rounds < 100:
        raise ValueError(f"rounds must be at least 100, not {rounds}")
    chosen = select_scenarios(worlds)
    for world in chosen:
        world.seed(seed)
        world.seed(seed + repeats - 1)
    judged_at: dict[str, float] = {}
    digests: dict[str, str] = {}
    if data is not None:
        role = JUDGING if any(world.role == JUDGING for world in chosen) else DEVELOPMENT
        for world in dataset_scenarios(data, role):
            about = open_data_set(str(data["data"]), world.settings, 0)
            judged_at[world.name] = paper.GAMMA if about.scaled is None else about.scaled
            digests[world.name] = about.digest
            chosen.append(world)
        chosen.sort(key=lambda world: world.role != JUDGING)
    sizes = {}
    for world in chosen:
        env = noise_free_environment(world.settings, world.seed(seed))
        sizes[world.name] = env.n_users, env.dim, env.n_arms
        for name in policies:
            for parameters in parameter_sets(name, alphas, {}):
                Task(name, POLICIES[name], parameters, {}, 0, 0, 0.0).make(n_users=env.n_users, dim=env.dim)
    return MatrixPlan(
        worlds=chosen,
        policies=list(policies),
        own=dict(own or {}),
        alphas=[float(alpha) for alpha in alphas],
        rounds=rounds,
        repeats=repeats,
        seed=seed,
        sizes=sizes,
        judged_at=judged_at,
        data=digests,
        command=command,
    )


def code_digest() -> str:
    """Of the sources that decide what a policy does in a world: runs of other code are not to be mixed."""
    root = Path(locb.__file__).parent
    digest = hashlib.sha256()
    for name in SOURCES:
        for path in sorted((root / name).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _source(reference: str) -> dict[str, str]:
    """Where a policy of one's own is, and what is there: an edit makes other runs."""
    path, _, name = reference.rpartition(":")
    file = Path(path).resolve()
    return {"reference": f"{file}:{name}", "digest": hashlib.sha256(file.read_bytes()).hexdigest()[:16]}


def _standing(policy: str, alpha: float | None, outcomes: list[dict[str, Any]]) -> Standing:
    scores = [outcome["f1"] for outcome in outcomes if outcome["f1"] is not None]
    return Standing(
        policy,
        alpha,
        np.array([outcome["regret"] for outcome in outcomes]),
        Measurement.from_values(scores) if scores else None,
        float(np.mean([outcome["microseconds_per_round"] for outcome in outcomes])),
    )

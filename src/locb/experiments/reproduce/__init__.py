"""The paper's evaluation, regenerated: its tables and figures beside ours, and a verdict a claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from locb.evaluation.findings import Findings
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job, Ledger, run_jobs
from locb.experiments.parallel import Workers
from locb.experiments.reproduce import accuracy, parameters, regret
from locb.experiments.reproduce import figures as pictures
from locb.experiments.reproduce.targets import DataSet, Evidence, Played, Sizes, open_data_set
from locb.policies import make_policy


class Target(NamedTuple):
    """A table or figure of the paper: what to play for it, and what to tell from that."""

    heading: str
    plan: Callable[[DataSet, Sizes], list[Job]]
    tell: Callable[[DataSet, Sizes, Played], Evidence]


TARGETS = {
    "users": Target("Users have similar, not equal tastes", pictures.plan_users, pictures.tell_users),
    "accuracy": Target("Accuracy of the clusters", accuracy.plan, accuracy.tell),
    "rounds": Target("Accuracy as rounds go by", pictures.plan_rounds, pictures.tell_rounds),
    "regret": Target("Regret", regret.plan_regret, regret.tell_regret),
    "seeds": Target("Accuracy by the number of seeds", parameters.plan_seeds, parameters.tell_seeds),
    "regret-by-seeds": Target("Regret by the number of seeds", regret.plan_by_seeds, regret.tell_by_seeds),
    "gamma": Target("Accuracy by gamma", parameters.plan_gamma, parameters.tell_gamma),
    "regret-by-gamma": Target("Regret by gamma", regret.plan_by_gamma, regret.tell_by_gamma),
}
FULL = Sizes(repeats=paper.REPEATS, rounds=50_000, seed=0)
QUICK = Sizes(repeats=3, rounds=10_000, seed=0)


@dataclass(frozen=True)
class Reproduction:
    """A reproduction that was checked and not yet run."""

    targets: list[str]
    data_sets: list[DataSet]
    sizes: Sizes

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the data."""
        sizes = f"{self.sizes.repeats} repeats, {self.sizes.rounds:,} rounds a regret run, seed {self.sizes.seed}"
        short = " Few rounds: what is said of the long run can come out otherwise at full size."
        played = f"Played: {sizes}.{short if self.sizes.rounds < FULL.rounds else ''}"
        return [played, *(data.note for data in self.data_sets if data.note)]

    def prepare(self) -> None:
        """Compile what the runs need, or load it if it was compiled before."""
        for name in ("locb", "club", "sclub", "linucb-one", "linucb-ind"):
            make_policy(name, n_users=2, dim=2).prepare()

    def open_folder(self, folder: Path) -> tuple[Reproduction, Ledger]:
        """Where its runs are kept, and the reproduction with all that this folder tells already added to it.

        A ValueError if the folder holds runs of another number of rounds, another seed or other data.
        """
        identity = {"rounds": self.sizes.rounds, "seed": self.sizes.seed, "kind": "reproduce"}
        ledger = Ledger(folder, identity | {"data": {data.name: data.digest for data in self.data_sets}})
        told = ledger.told
        targets = [name for name in TARGETS if name in self.targets or name in told.get("targets", [])]
        sizes = replace(self.sizes, repeats=max(self.sizes.repeats, told.get("repeats", 0)))
        data_sets = list(self.data_sets)
        for name, world in told.get("data", {}).items():
            if name not in [data.name for data in data_sets]:
                data_sets.append(open_data_set(name, world, self.sizes.seed))
        return replace(self, targets=targets, sizes=sizes, data_sets=data_sets), ledger

    def run(self, ledger: Ledger, workers: Workers, progress: Callable[[float, float], None] | None = None) -> Findings:
        """Play what the ledger does not have yet, and tell what was found."""
        pieces = [(name, data) for name in self.targets for data in self.data_sets]
        plans = [TARGETS[name].plan(data, self.sizes) for name, data in pieces]
        jobs = list({job.name: job for plan in plans for job in plan}.values())  # targets may share runs
        outcomes = dict(zip((job.name for job in jobs), run_jobs(jobs, ledger, workers, progress), strict=True))
        findings = Findings(
            title="The evaluation of LOCB, reproduced",
            tables=[],
            figures=[],
            claims=[],
            sections={name: TARGETS[name].heading for name in self.targets},
            notes=self.notes,
            settings={
                "targets": self.targets,
                "repeats": self.sizes.repeats,
                "rounds": self.sizes.rounds,
                "seed": self.sizes.seed,
                "data": {data.name: data.world for data in self.data_sets},
            },
        )
        for (name, data), plan in zip(pieces, plans, strict=True):
            evidence = TARGETS[name].tell(data, self.sizes, [(job, outcomes[job.name]) for job in plan])
            findings.tables.extend(evidence.tables)
            findings.figures.extend(evidence.figures)
            findings.claims.extend(evidence.claims)
        ledger.remember(
            targets=self.targets, repeats=self.sizes.repeats, data={data.name: data.world for data in self.data_sets}
        )
        return findings


def plan_reproduction(
    targets: Sequence[str] = ("all",),
    *,
    data: Mapping[str, dict[str, Any]] | None = None,
    repeats: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    quick: bool = False,
) -> Reproduction:
    """Check what is asked for and look at the data. ``data`` maps movielens, yelp or yahoo to settings of its world."""
    for name in targets:
        if name != "all" and name not in TARGETS:
            raise ValueError(f"there is no target {name!r}; there are {', '.join(TARGETS)} and all")
    asked = list(TARGETS) if "all" in targets or not targets else [name for name in TARGETS if name in targets]
    usual = QUICK if quick else FULL
    sizes = Sizes(usual.repeats if repeats is None else repeats, usual.rounds if rounds is None else rounds, seed)
    for name, value, least in (("repeats", sizes.repeats, 1), ("rounds", sizes.rounds, 100), ("seed", seed, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    worlds: dict[str, dict[str, Any]] = {"synthetic": {}, **(data or {})}
    return Reproduction(asked, [open_data_set(name, world, seed) for name, world in worlds.items()], sizes)

"""Plan and execution of a reproduction of the evaluation in the LOCB paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from locb.common.validation import ParameterError
from locb.evaluation.findings import Findings
from locb.evaluation.run_folder import code_digest
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job, Ledger, provenance, run_jobs
from locb.experiments.reproduce import accuracy, accuracy_by_round, accuracy_by_setting, open_settings, regret, users
from locb.experiments.reproduce.data_set import DataSet, open_data_set
from locb.experiments.reproduce.side_by_side import merge_noise_variants
from locb.experiments.reproduce.target import Sizes, Target, TargetFindings
from locb.parallel.workers import Workers
from locb.policies import make_policy

TARGETS = {
    "users": Target("Users are similar, not identical", users.plan, users.summarize),
    "accuracy": Target("Accuracy of the clusters", accuracy.plan, accuracy.summarize),
    "rounds": Target("Accuracy over rounds", accuracy_by_round.plan, accuracy_by_round.summarize),
    "regret": Target("Regret", regret.plan_regret, regret.summarize_regret),
    "seeds": Target(
        "Accuracy by the number of seeds", accuracy_by_setting.plan_seeds, accuracy_by_setting.summarize_seeds
    ),
    "regret-by-seeds": Target("Regret by the number of seeds", regret.plan_by_seeds, regret.summarize_by_seeds),
    "gamma": Target("Accuracy by gamma", accuracy_by_setting.plan_gamma, accuracy_by_setting.summarize_gamma),
    "regret-by-gamma": Target("Regret by gamma", regret.plan_by_gamma, regret.summarize_by_gamma),
    "open-settings": Target("Settings that the paper does not state", open_settings.plan, open_settings.summarize),
}
NOISE_NOTE = (
    "The paper defines Gaussian noise without its standard deviation (Section 3). The synthetic environment therefore "
    "runs with rewards of 0 or 1, whose standard deviation is up to 0.5, and with Gaussian noise of standard deviation "
    "0.1 and 0.2. A claim about it holds only if it holds with all three."
)
FULL = Sizes(repeats=paper.REPEATS, rounds=50_000, seed=0)
QUICK = Sizes(repeats=3, rounds=10_000, seed=0)


@dataclass(frozen=True)
class Reproduction:
    """Plan of a reproduction with validated settings."""

    targets: list[str]
    data_sets: list[DataSet]
    sizes: Sizes

    @property
    def notes(self) -> list[str]:
        """Notes for the report: the sizes of the runs, and the limitations of the data."""
        sizes = f"{self.sizes.repeats} repeats, {self.sizes.rounds:,} rounds per regret run"
        sizes += f", first random seed {self.sizes.seed}."
        short = f" With fewer than {FULL.rounds:,} rounds, claims about the end of a run can have another verdict."
        note = sizes + (short if self.sizes.rounds < FULL.rounds else "")
        return [note, *(data.note for data in self.data_sets if data.note), NOISE_NOTE]

    def prepare(self) -> None:
        """Compile the kernels of all policies that run, or load them from the cache."""
        for name in ("locb", "eloc", "club", "sclub", "linucb-one", "linucb-ind"):
            make_policy(name, n_users=2, dim=2).prepare()

    def open_folder(self, folder: Path) -> tuple[Reproduction, Ledger]:
        """Open the folder of the runs.

        Returns
        -------
        Reproduction
            This plan, extended by the targets, data sets and repeats of earlier commands with the same folder.
        Ledger
            Outcomes of the finished runs in the folder.

        Raises
        ------
        ValueError
            If the folder has runs of another version of the source code, or with another number of rounds, another
            random seed or other data.
        """
        identity = {"rounds": self.sizes.rounds, "seed": self.sizes.seed, "kind": "reproduce", "code": code_digest()}
        ledger = Ledger(folder, identity | {"data": {data.name: data.digest for data in self.data_sets}})
        covered = ledger.report_scope
        targets = [name for name in TARGETS if name in self.targets or name in covered.get("targets", [])]
        sizes = replace(self.sizes, repeats=max(self.sizes.repeats, covered.get("repeats", 0)))
        data_sets = list(self.data_sets)
        for name, environment in covered.get("data", {}).items():
            if name not in [data.name for data in data_sets]:
                data_sets.append(open_data_set(name, environment, self.sizes.seed))
        return replace(self, targets=targets, sizes=sizes, data_sets=data_sets), ledger

    def run(self, ledger: Ledger, workers: Workers, progress: Callable[[float, float], None] | None = None) -> Findings:
        """Run the jobs whose outcomes are not in the ledger, and return the tables, figures and claims.

        Parameters
        ----------
        ledger : Ledger
            Outcomes of finished runs. New outcomes are added.
        workers : Workers
            Processes that run the jobs.
        progress : callable, optional
            Called with (finished work, total work) after each run, in the unit of ``Job.cost``.
        """
        origin = provenance(  # before the code can change
            seeds=range(self.sizes.seed, self.sizes.seed + self.sizes.repeats),
            data={data.name: data.digest for data in self.data_sets},
        )
        pairs = [(name, data) for name in self.targets for data in self.data_sets]
        plans = [TARGETS[name].plan(data, self.sizes) for name, data in pairs]
        jobs: list[Job] = list({job.name: job for plan in plans for job in plan}.values())  # targets may share runs
        outcomes = dict(zip((job.name for job in jobs), run_jobs(jobs, ledger, workers, progress), strict=True))
        parts: dict[str, list[tuple[DataSet, TargetFindings]]] = {name: [] for name in self.targets}
        for (name, data), plan in zip(pairs, plans, strict=True):
            part = TARGETS[name].summarize(data, self.sizes, [(job, outcomes[job.name]) for job in plan])
            claims = [replace(claim, family=data.family) for claim in part.claims]
            parts[name].append((data, part._replace(claims=claims)))
        found = TargetFindings([], [], [])
        for by_data_set in parts.values():
            found.extend(merge_noise_variants(by_data_set))
        environments = {data.name: data.environment for data in self.data_sets}
        ledger.extend_scope(targets=self.targets, repeats=self.sizes.repeats, data=environments)
        sizes = {"repeats": self.sizes.repeats, "rounds": self.sizes.rounds, "seed": self.sizes.seed}
        return Findings(
            title="Reproduction of the LOCB evaluation",
            tables=found.tables,
            figures=list(found.figures),
            claims=found.claims,
            sections={name: TARGETS[name].heading for name in self.targets},
            notes=self.notes,
            settings={"targets": self.targets, **sizes, "data": environments},
            provenance=origin,
        )


def plan_reproduction(
    targets: Sequence[str] = ("all",),
    *,
    data: Mapping[str, dict[str, Any]] | None = None,
    repeats: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    quick: bool = False,
) -> Reproduction:
    """Check the settings of a reproduction, load the data sets and return the plan.

    Parameters
    ----------
    targets : sequence of str, default ("all",)
        Tables and figures to reproduce: names in ``TARGETS``, or "all".
    data : dict, optional
        Real data in addition to the synthetic environment with each noise in ``paper.NOISES``: settings of
        :func:`~locb.experiments.environment_factory.make_environment` by name ("movielens", "yelp" or "yahoo").
    repeats : int, optional
        Number of runs per setting, each with its own random seed. The default is 5, or 3 if ``quick``.
    rounds : int, optional
        Rounds per regret run, at least 100. The default is 50,000, or 10,000 if ``quick``.
    seed : int, default 0
        Random seed of the first repeat.
    quick : bool, default False
        Whether to use the smaller defaults of ``repeats`` and ``rounds``.

    Raises
    ------
    ValueError
        If a setting is invalid or a data set cannot be read.
    """
    for name in targets:
        if name != "all" and name not in TARGETS:
            raise ParameterError("targets", f": unknown target {name!r}; choose from {', '.join(TARGETS)} and all")
    selected = list(TARGETS) if "all" in targets or not targets else [name for name in TARGETS if name in targets]
    default = QUICK if quick else FULL
    sizes = Sizes(default.repeats if repeats is None else repeats, default.rounds if rounds is None else rounds, seed)
    for name, value, minimum in (("repeats", sizes.repeats, 1), ("rounds", sizes.rounds, 100), ("seed", seed, 0)):
        if value < minimum:
            raise ParameterError(name, f" must be at least {minimum}, not {value}")
    environments: dict[str, dict[str, Any]] = {name: {"noise": noise} for name, noise in paper.NOISES.items()}
    environments |= data or {}
    for name in ("movielens", "yelp"):  # features from all likes, as in the paper
        if name in environments:
            environments[name] = {"features_from": "all", **environments[name]}
    data_sets = [open_data_set(name, environment, seed) for name, environment in environments.items()]
    return Reproduction(selected, data_sets, sizes)

"""Plan and execution of the experimental checks of the theorems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from locb.evaluation.findings import Findings
from locb.evaluation.run_folder import code_digest
from locb.experiments.jobs import Ledger, provenance, run_jobs
from locb.experiments.verify import correctness, cost, coverage, growth, safety, termination
from locb.parallel.workers import Workers
from locb.policies import make_policy

SECTIONS = {
    coverage.SECTION: "Coverage: does every error stay below its radius?",
    correctness.SECTION: "Theorem 1: are the final clusters true clusters?",
    termination.SECTION: "Theorem 2: how many rounds until all clusters are final?",
    growth.SECTION: "Theorem 3: how does regret grow?",
    cost.SECTION: "Cost: does the work of a round grow with the number of users?",
    safety.SECTION: "Safety screen: does regret stay below its bound?",
}


@dataclass(frozen=True)
class Verification:
    """Plan of the six checks: coverage of the radii, Theorems 1 to 3, cost of a round, and the safety screen."""

    coverage_rounds: int  # rounds per environment of the check of coverage
    theory_rounds: int  # rounds per environment for the theory radius, which begins to shrink only after many rounds
    users: int  # number of users in the check of Theorem 1
    gammas: tuple[float, ...]  # gammas in the check of Theorem 1; sequential arrivals use the first one only
    repeats: int  # environments per setting in all checks except coverage
    user_counts: tuple[int, ...]  # numbers of users in the checks of Theorem 2 and of the cost
    rounds: int  # rounds per run in the check of Theorem 3
    safety_rounds: int  # rounds per run in the check of the safety screen
    seed: int = 0  # random seed of the first environment of each check

    def prepare(self) -> None:
        """Compile the kernels that the runs need, or load them from the cache."""
        for name in ("locb", "eloc", "linucb-one", "linucb-ind"):
            make_policy(name, n_users=2, dim=2).prepare()
        coverage.measure_errors(environment={"n_users": 2, "n_clusters": 1}, seed=0, environments=1, rounds=1)

    def open_folder(self, folder: Path) -> Ledger:
        """Return the ledger of a folder, which holds the outcomes of finished runs.

        Raises
        ------
        ValueError
            If the folder has runs of another version of the source code, or with another random seed or another number
            of rounds of the check of coverage.
        """
        identity = {"kind": "verify", "seed": self.seed, "coverage_rounds": self.coverage_rounds, "code": code_digest()}
        return Ledger(folder, identity)

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
        plans = {
            coverage.SECTION: coverage.plan(self.coverage_rounds, self.theory_rounds, self.seed),
            correctness.SECTION: correctness.plan(self.users, self.gammas, self.repeats, self.seed),
            termination.SECTION: termination.plan(self.user_counts, self.repeats, self.seed),
            growth.SECTION: growth.plan(self.rounds, self.repeats, self.seed),
            cost.SECTION: cost.plan(self.user_counts, self.repeats, self.seed),
            safety.SECTION: safety.plan(self.safety_rounds, self.repeats, self.seed),
        }
        jobs = [job for plan in plans.values() for job in plan]
        outcomes = dict(zip((job.name for job in jobs), run_jobs(jobs, ledger, workers, progress), strict=True))
        by_section = {name: [(job, outcomes[job.name]) for job in plan] for name, plan in plans.items()}
        covered = coverage.summarize(by_section[coverage.SECTION])
        correct = correctness.summarize(by_section[correctness.SECTION])
        ended = termination.summarize(by_section[termination.SECTION])
        grown = growth.summarize(by_section[growth.SECTION])
        costs = cost.summarize(by_section[cost.SECTION])
        screened = safety.summarize(by_section[safety.SECTION])
        total = sum(outcome["rounds"] for outcome in outcomes.values())
        return Findings(
            title="Experimental checks of the LOCB theorems and of the safety screen",
            tables=[*covered[0], *correct[0], *ended[0], *grown[0], *costs[0], *screened[0]],
            figures=[*ended[1], *grown[1]],
            claims=[*covered[1], *correct[1], *ended[2], *grown[2], *costs[1], *screened[1]],
            sections=SECTIONS,
            notes=[f"{total:,} rounds in {len(jobs)} runs."],
            settings={**self.__dict__, "total rounds": total},
            provenance=provenance(seeds=f"{self.seed} and the following", data={}),
        )


FULL = Verification(
    coverage_rounds=250_000,
    theory_rounds=1_000_000,
    users=20,
    gammas=(0.8, 0.4),
    repeats=5,
    user_counts=(50, 100, 200, 400, 800),
    rounds=1_000_000,
    safety_rounds=1_000_000,
)
QUICK = Verification(
    coverage_rounds=20_000,
    theory_rounds=20_000,
    users=8,
    gammas=(0.8, 0.4),
    repeats=2,
    user_counts=(50, 100, 200),
    rounds=100_000,
    safety_rounds=200_000,
)

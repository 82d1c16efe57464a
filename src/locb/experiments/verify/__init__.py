"""The paper's theorems, checked by experiment at their own constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from locb.evaluation.findings import Findings
from locb.experiments.jobs import Ledger, run_jobs
from locb.experiments.parallel import Workers
from locb.experiments.verify import correctness, coverage, growth, termination
from locb.policies import make_policy

SECTIONS = {
    coverage.SECTION: "Coverage: does every error stay below its radius?",
    correctness.SECTION: "Theorem 1: are the returned sets true clusters?",
    termination.SECTION: "Theorem 2: how long until all sets are returned?",
    growth.SECTION: "Theorem 3: how does regret grow?",
}


@dataclass(frozen=True)
class Verification:
    """How much to play for each of the four checks."""

    coverage_rounds: int
    users: int  # in the check of Theorem 1
    gammas: tuple[float, ...]  # in the same; users who take turns have the first
    worlds: int
    sizes: tuple[int, ...]  # numbers of users in the check of Theorem 2
    rounds: int  # in the check of Theorem 3
    seed: int = 0

    def prepare(self) -> None:
        """Compile what the runs need, or load it if it was compiled before."""
        for name in ("locb", "linucb-one", "linucb-ind"):
            make_policy(name, n_users=2, dim=2).prepare()
        coverage.cover(world={"n_users": 2, "n_clusters": 1}, seed=0, worlds=1, rounds=1)

    def open_folder(self, folder: Path) -> Ledger:
        """Where its runs are kept; a ValueError if the folder holds others."""
        return Ledger(folder, {"kind": "verify", "seed": self.seed, "coverage rounds": self.coverage_rounds})

    def run(self, ledger: Ledger, workers: Workers, progress: Callable[[float, float], None] | None = None) -> Findings:
        """Play what the ledger does not have yet, and tell what was found."""
        plans = {
            coverage.SECTION: coverage.plan(self.coverage_rounds, self.seed),
            correctness.SECTION: correctness.plan(self.users, self.gammas, self.worlds, self.seed),
            termination.SECTION: termination.plan(self.sizes, self.worlds, self.seed),
            growth.SECTION: growth.plan(self.rounds, self.worlds, self.seed),
        }
        jobs = [job for plan in plans.values() for job in plan]
        outcomes = dict(zip((job.name for job in jobs), run_jobs(jobs, ledger, workers, progress), strict=True))
        played = {name: [(job, outcomes[job.name]) for job in plan] for name, plan in plans.items()}
        covered = coverage.tell(played[coverage.SECTION])
        correct = correctness.tell(played[correctness.SECTION])
        ended = termination.tell(played[termination.SECTION])
        grown = growth.tell(played[growth.SECTION])
        total = sum(outcome["rounds"] for outcome in outcomes.values())
        return Findings(
            title="The theorems of LOCB, checked by experiment",
            tables=[*covered[0], *correct[0], *ended[0], *grown[0]],
            figures=[*ended[1], *grown[1]],
            claims=[*covered[1], *correct[1], *ended[2], *grown[2]],
            sections=SECTIONS,
            notes=[f"{total:,} rounds were played in {len(jobs)} runs."],
            settings={**self.__dict__, "rounds played": total},
        )


FULL = Verification(
    coverage_rounds=250_000,
    users=20,
    gammas=(0.8, 0.4),
    worlds=5,
    sizes=(50, 100, 200, 400, 800),
    rounds=1_000_000,
)
QUICK = Verification(coverage_rounds=20_000, users=8, gammas=(0.8, 0.4), worlds=2, sizes=(50, 100, 200), rounds=100_000)

"""Command ``locb compare --scenarios``, which compares policies in several named environments."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from locb.cli.common import console, preparing, report_findings, resumable, run_all


def compare_scenarios(
    *,
    scenarios: list[str],
    policies: list[str],
    custom: dict[str, str],
    alphas: list[float] | None,
    rounds: int | None,
    repeats: int,
    tuning_repeats: int,
    seed: int,
    jobs: int,
    data: dict[str, Any] | None,
    output: Path | None,
) -> None:
    """Run the scenario matrix, print its tables, and write the results to ``output``."""
    from locb.experiments.matrix import ALPHAS, plan_matrix
    from locb.parallel.workers import Workers
    from locb.report.tables.scenario_matrix import make_matrix_table, make_policy_table

    workers = Workers(jobs=jobs)
    with preparing(None if data is None else Path(data["path"])):
        plan = plan_matrix(
            policies,
            scenarios,
            alphas=ALPHAS if alphas is None else alphas,
            rounds=rounds,
            repeats=repeats,
            tuning_repeats=tuning_repeats,
            seed=seed,
            data=data,
            custom=custom,
            command=shlex.join(["locb", *hide_folders(sys.argv[1:])]),
        )
    folder = output or Path("runs") / "scenarios"
    with workers, resumable(plan.open_folder(folder)) as ledger:
        findings = run_all(lambda progress: plan.run(ledger, workers, progress), plan.prepare, ledger)
        console.print(make_matrix_table(findings))
        console.print(make_policy_table(findings))
        report_findings(findings, folder)


def hide_folders(arguments: list[str]) -> list[str]:
    """Return the arguments of the command for the report, with the name of the data set in place of its path."""
    return [
        Path(word).name if before == "--path" else word
        for before, word in zip(["", *arguments], arguments, strict=False)
    ]

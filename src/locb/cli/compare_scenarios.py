"""locb compare --worlds: policies × named worlds."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from locb.cli.common import console, play_all, preparing


def compare_worlds(
    *,
    worlds: list[str],
    policies: list[str],
    own: dict[str, str],
    alphas: list[float] | None,
    rounds: int | None,
    repeats: int,
    seed: int,
    jobs: int,
    data: dict[str, Any] | None,
    output: Path | None,
) -> None:
    """Play, print the matrix, and write the folder."""
    from locb.experiments.matrix import ALPHAS, plan_matrix
    from locb.experiments.parallel import Workers
    from locb.report.findings_folder import make_verdict_table, summarize_verdicts, write_findings
    from locb.report.tables.scenario_matrix import make_matrix_table, make_policy_table

    workers = Workers(jobs=jobs)
    with preparing(None if data is None else Path(data["path"])):
        planned = plan_matrix(
            policies,
            worlds,
            alphas=ALPHAS if alphas is None else alphas,
            rounds=rounds,
            repeats=repeats,
            seed=seed,
            data=data,
            own=own,
            command=shlex.join(["locb", *sys.argv[1:]]),
        )
    folder = output or Path("runs") / "worlds"
    with workers:
        ledger = planned.open_folder(folder)
        findings = play_all(lambda progress: planned.run(ledger, workers, progress), planned.prepare, ledger)
    console.print(make_matrix_table(findings))
    console.print(make_policy_table(findings))
    if findings.claims:
        console.print(make_verdict_table(findings))
        console.print(summarize_verdicts(findings))
    console.print("\nWritten:")
    for path in write_findings(findings, folder):
        console.print(f"  {path}", soft_wrap=True)

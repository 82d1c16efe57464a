"""Run of ``locb compare`` in one environment: progress, result table and folder of results."""

from __future__ import annotations

from pathlib import Path

from locb.cli.common import console, print_written, resumable, run_all
from locb.evaluation.run_folder import UNFINISHED_FOLDER
from locb.experiments.comparison.comparison_plan import ComparisonPlan
from locb.parallel.workers import Workers
from locb.report.comparison_folder import write_comparison
from locb.report.tables.comparison_table import make_comparison_table


def compare_environment(plan: ComparisonPlan, jobs: int, output: Path, *more: str) -> None:
    """Run a comparison with a progress bar, print its result table, and write the results to ``output``.

    Outcomes of finished runs are in a subfolder until the results are written. After Ctrl-C, the options ``more`` are
    part of the command that continues.
    """
    workers = Workers(jobs=jobs)
    if output.exists() and not output.is_dir():
        raise ValueError(f"--output: {output} is a file, not a folder; choose a new folder")
    created = [folder for folder in (output, output.parent) if not folder.exists()]
    ledger = plan.open_folder(output / UNFINISHED_FOLDER)
    try:
        with workers, resumable(ledger, *more):
            result = run_all(lambda progress: plan.run(ledger, workers, progress), plan.prepare, ledger)
            console.print()
            console.print(make_comparison_table(result))
            console.print(" ".join([result.verdict(), *result.notes]))
            print_written(write_comparison(result, output))
            ledger.delete()
    finally:
        if ledger.folder.exists() and not ledger.finished:
            ledger.delete()
        for folder in created:
            if not any(folder.iterdir()):
                folder.rmdir()

"""The command ``locb verify``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from locb.cli.common import Address, Backend, Jobs, Seed, leave, report_findings, run_all


def verify(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Fewer environments and rounds: minutes, with wider confidence intervals.",
            rich_help_panel="Size",
        ),
    ] = False,
    repeats: Annotated[
        int | None,
        typer.Option(
            help="Number of environments per setting in the checks of the three theorems, at least 2.",
            show_default="5; with --quick 2",
            rich_help_panel="Size",
        ),
    ] = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the results. A run with the same settings in it continues.",
            show_default="runs/verify; with --quick runs/verify-quick",
        ),
    ] = None,
    backend: Backend = "loky",
    address: Address = None,
    jobs: Jobs = -1,
) -> None:
    """Check the theorems of the paper by experiment, in environments with known true clusters.

    - **Coverage**: does the error of every user stay below its radius in all rounds, for each of the four radii?
    - **Theorem 1**: are all final clusters true gamma-clusters, with and without the re-test of all members, and how
    many rounds does `stop="certificate"` save?
    - **Theorem 2**: how many rounds until all clusters are final, as the number of users grows, and what is the bound?
    - **Theorem 3**: regret compared with the bound, and its growth with rounds and seeds.

    The command prints a verdict per claim and writes the same files as `locb reproduce` to the folder --output. The
    exit code is 1 if a guarantee of locb itself fails. Without --quick it takes about 20 minutes on two cores.

    Examples:
    - `locb verify --quick`
    - `locb verify --repeats 20`
    """
    from locb.experiments.parallel import Workers
    from locb.experiments.verify import FULL, QUICK

    workers = Workers(jobs=jobs, backend=backend, address=address)
    for name, value, minimum in (("repeats", repeats, 2), ("seed", seed, 0)):
        if value is not None and value < minimum:
            raise ValueError(f"--{name} must be at least {minimum}, not {value}")
    default = QUICK if quick else FULL
    plan = replace(default, seed=seed, repeats=repeats or default.repeats)
    folder = output or Path("runs") / ("verify-quick" if quick else "verify")
    with workers:
        ledger = plan.open_folder(folder)
        findings = run_all(lambda progress: plan.run(ledger, workers, progress), plan.prepare, ledger)
    report_findings(findings, folder)
    if failed := findings.failed_guarantees():
        leave("a guarantee does not hold: " + " ".join(f"{claim.statement} ({claim.data})" for claim in failed), 1)

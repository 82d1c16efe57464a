"""Command ``locb verify``, which checks the theorems of the LOCB paper by experiment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from locb.cli.common import Address, Backend, Jobs, Seed, report_findings, resumable, run_all
from locb.cli.errors import leave


def verify(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Use fewer environments and rounds. This takes a few minutes and gives wider confidence intervals.",
            rich_help_panel="Size",
        ),
    ] = False,
    repeats: Annotated[
        int | None,
        typer.Option(
            help="Number of environments per setting in all checks except coverage, at least 2.",
            show_default="5; with --quick 2",
            rich_help_panel="Size",
        ),
    ] = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the results. An interrupted run with the same settings in the folder continues.",
            show_default="runs/verify; with --quick runs/verify-quick",
        ),
    ] = None,
    backend: Backend = "loky",
    address: Address = None,
    jobs: Jobs = -1,
) -> None:
    """Check the theorems of the LOCB paper and of the safety screen by experiment, in synthetic environments.

    - **Coverage**: does the error of every estimate stay within the confidence radius, for each of the four radii?
    - **Theorem 1**: are any two users of a final cluster less than gamma apart? How many rounds does each rule need?
    - **Theorem 2**: how many rounds pass until all clusters are final, compared with the bound of the theorem?
    - **Theorem 3**: how does regret grow with rounds and seed users, compared with the bound of the theorem?
    - **Safety screen**: is the regret of ELOC (`screen="theory"`) and LOCB (`safe=True`, large alpha) below its bound?

    A cluster of LOCB is final when it does not change any more. The command prints a verdict for each claim and writes
    the same files as `locb reproduce` to the folder --output. The exit code is 1 if a guarantee of locb itself fails.
    Without --quick, the command takes about 20 minutes on two cores. Repeat the command to continue after Ctrl-C.

    Examples:
    - `locb verify --quick`
    - `locb verify --repeats 20`
    """
    from locb.experiments.verify import FULL, QUICK
    from locb.parallel.workers import Workers

    workers = Workers(jobs=jobs, backend=backend, address=address)
    for name, value, minimum in (("repeats", repeats, 2), ("seed", seed, 0)):
        if value is not None and value < minimum:
            raise ValueError(f"--{name} must be at least {minimum}, not {value}")
    default = QUICK if quick else FULL
    plan = replace(default, seed=seed, repeats=repeats or default.repeats)
    folder = output or Path("runs") / ("verify-quick" if quick else "verify")
    with workers, resumable(plan.open_folder(folder)) as ledger:
        findings = run_all(lambda progress: plan.run(ledger, workers, progress), plan.prepare, ledger)
        report_findings(findings, folder)
    if failed := findings.failed_guarantees():
        leave("a guarantee does not hold: " + " ".join(f"{claim.statement} ({claim.data})" for claim in failed), 1)

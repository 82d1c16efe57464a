"""locb verify."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from locb.cli.common import Address, Backend, Jobs, console, leave, play_all


def verify(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer worlds and rounds: minutes, with wider intervals.")
    ] = False,
    worlds: Annotated[
        int | None, typer.Option(help="Worlds in the checks of the three theorems; if not given 5, or 2 with --quick.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the first world; the same seed gives the same figures.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the results; a run of the same settings in it goes on. If not given runs/verify, or "
            "runs/verify-quick."
        ),
    ] = None,
    backend: Backend = "loky",
    address: Address = None,
    jobs: Jobs = -1,
) -> None:
    """Check the paper's theorems by experiment, at their own constants, in worlds whose truth is known.

    - **Coverage**: does every user's error stay below its radius in all rounds, for each of the four radii?
    - **Theorem 1**: are all returned sets true gamma-clusters, with and without the last test of all members, and how
    much sooner does `stop="certificate"` return them?
    - **Theorem 2**: how many rounds until all sets are returned, against the bound, as users grow?
    - **Theorem 3**: regret against the bound, and its growth with rounds and seeds.

    Prints a verdict a claim and writes the same folder as `locb reproduce`. Leaves with 1 if something that locb itself
    promises is broken. Without --quick it plays some 10^9 rounds; on two cores that takes some twenty minutes.

    Examples:
    - `locb verify --quick`
    - `locb verify --worlds 20`
    """
    from locb.experiments.parallel import Workers
    from locb.experiments.verify import FULL, QUICK
    from locb.report.findings_folder import make_verdict_table, summarize_verdicts, write_findings

    workers = Workers(jobs=jobs, backend=backend, address=address)
    for name, value, least in (("worlds", worlds, 2), ("seed", seed, 0)):
        if value is not None and value < least:
            raise ValueError(f"--{name} must be at least {least}, not {value}")
    usual = QUICK if quick else FULL
    asked = replace(usual, seed=seed, worlds=usual.worlds if worlds is None else worlds)
    folder = output or Path("runs") / ("verify-quick" if quick else "verify")
    with workers:
        ledger = asked.open_folder(folder)
        findings = play_all(lambda progress: asked.run(ledger, workers, progress), asked.prepare, ledger)
    console.print(make_verdict_table(findings))
    console.print(summarize_verdicts(findings))
    console.print("\nWritten:")
    for path in write_findings(findings, folder):
        console.print(f"  {path}", soft_wrap=True)
    broken = findings.failed_guarantees()
    if broken:
        leave("broken: " + " ".join(f"{claim.statement} ({claim.data})" for claim in broken), 1)

"""locb reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from locb.cli.common import Address, Backend, CacheDir, Jobs, console, play_all, preparing


def reproduce(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to regenerate: **accuracy**, **seeds**, **gamma**, **regret**, **rounds**, **regret-by-seeds**, "
            "**regret-by-gamma**, **users** or **all** (if none is named).",
        ),
    ] = None,
    movielens: Annotated[
        Path | None, typer.Option(help="MovieLens as published: a folder or an archive.", rich_help_panel="Data")
    ] = None,
    yelp: Annotated[
        Path | None, typer.Option(help="The Yelp data set: a folder or an archive.", rich_help_panel="Data")
    ] = None,
    yahoo: Annotated[Path | None, typer.Option(help="Yahoo R6A: a folder or a file.", rich_help_panel="Data")] = None,
    cache_dir: CacheDir = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="3 repeats of 10,000 rounds: a minute or so, with wider intervals.")
    ] = False,
    repeats: Annotated[int | None, typer.Option(help="Runs of everything; if not given 5, as in the paper.")] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="Rounds of a regret run; if not given 50,000. Accuracy runs end when LOCB has ended."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the first repeat; the same seed gives the same figures.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the results; a run of the same settings in it goes on. If not given runs/reproduce, or "
            "runs/reproduce-quick."
        ),
    ] = None,
    backend: Backend = "loky",
    address: Address = None,
    jobs: Jobs = -1,
) -> None:
    """Regenerate the paper's tables and figures, with its figures beside ours and a verdict for each of its claims.

    The synthetic world is always played; real data are played where a path is given. Writes **index.html** (from claim
    to evidence, open it in a browser), **tables/** (CSV and Markdown), **figures/** (PNG and SVG) and **runs/** (every
    run). A run that was stopped goes on where it was when the same command is given again, and targets, data sets
    and repeats can be added to the same folder.

    Examples:
    - `locb reproduce --quick`
    - `locb reproduce accuracy regret`
    - `locb reproduce all --movielens ml-latest-small.zip --repeats 20`
    - `locb reproduce all --backend dask --address 10.0.0.5:8786`
    """
    from locb.experiments.parallel import Workers
    from locb.experiments.reproduce import plan_reproduction
    from locb.report.findings_folder import make_verdict_table, summarize_verdicts, write_findings

    workers = Workers(jobs=jobs, backend=backend, address=address)
    data: dict[str, dict[str, Any]] = {}
    for name, path in (("movielens", movielens), ("yelp", yelp), ("yahoo", yahoo)):
        if path is not None:
            if not path.exists():
                raise ValueError(f"--{name}: there is no {path}")
            data[name] = {"data": name, "path": str(path.resolve())}
            data[name] |= {} if cache_dir is None else {"cache_dir": str(cache_dir.resolve())}
    with preparing(next((path for path in (movielens, yelp, yahoo) if path is not None), None)):
        planned = plan_reproduction(
            targets or ["all"], data=data, repeats=repeats, rounds=rounds, seed=seed, quick=quick
        )
    folder = output or Path("runs") / ("reproduce-quick" if quick else "reproduce")
    with workers:
        planned, ledger = planned.open_folder(folder)
        findings = play_all(lambda progress: planned.run(ledger, workers, progress), planned.prepare, ledger)
    console.print(make_verdict_table(findings))
    console.print(summarize_verdicts(findings))
    console.print("\nWritten:")
    for path in write_findings(findings, folder):
        console.print(f"  {path}", soft_wrap=True)

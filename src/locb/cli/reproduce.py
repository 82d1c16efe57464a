"""Command ``locb reproduce``, which reproduces the tables and figures of the LOCB paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from locb.cli.common import Address, Backend, Jobs, Seed, preparing, report_findings, resumable, run_all
from locb.cli.data.dataset_options import CacheDir


def reproduce(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to reproduce: **users** (map of users), **accuracy** (Tables 1 and 2), **rounds** (accuracy by "
            "round), **regret** (regret of the policies of the paper), **seeds** (Table 3: accuracy by the number of "
            "seed users), **regret-by-seeds**, **gamma** (Table 4: accuracy by gamma), **regret-by-gamma**, "
            "**open-settings** (effect of settings that the paper does not state) or **all**.",
            show_default="all",
        ),
    ] = None,
    movielens: Annotated[
        Path | None, typer.Option(help="MovieLens data: a folder or an archive.", rich_help_panel="Data")
    ] = None,
    yelp: Annotated[
        Path | None, typer.Option(help="Yelp Open Dataset: a folder or an archive.", rich_help_panel="Data")
    ] = None,
    yahoo: Annotated[
        Path | None, typer.Option(help="Yahoo R6A log: a folder or a file.", rich_help_panel="Data")
    ] = None,
    cache_dir: CacheDir = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Use 3 repeats of 10,000 rounds. This takes about two minutes and gives wider confidence intervals.",
            rich_help_panel="Size",
        ),
    ] = False,
    repeats: Annotated[
        int | None,
        typer.Option(
            help="Number of runs per setting, each with its own random seed.",
            show_default="5; with --quick 3",
            rich_help_panel="Size",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Rounds per regret run; the target **rounds** uses twice as many. The other accuracy targets ignore "
            "this option: their runs end by the stopping rule of each method.",
            show_default="50,000; with --quick 10,000",
            rich_help_panel="Size",
        ),
    ] = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the results. An interrupted run with the same settings in the folder continues.",
            show_default="runs/reproduce; with --quick runs/reproduce-quick",
        ),
    ] = None,
    backend: Backend = "loky",
    address: Address = None,
    jobs: Jobs = -1,
) -> None:
    """Reproduce the tables and figures of the LOCB paper, with a verdict for each claim of the paper.

    The experiments use the synthetic environment with rewards of 0 or 1 and with Gaussian noise of standard deviation
    0.1 and 0.2, and each data set whose path you give. The command writes
    **index.html** (claims and evidence: open it in a browser), **tables/** (CSV and Markdown), **figures/** (PNG and
    SVG) and **runs/** (the outcome of every run) to the folder --output. Repeat the command to continue after Ctrl-C.
    Later commands can add targets, data sets and repeats to the same folder.

    Examples:
    - `locb reproduce --quick`
    - `locb reproduce accuracy regret`
    - `locb reproduce all --movielens ml-latest-small.zip --repeats 20`
    - `locb reproduce all --backend dask --address 10.0.0.5:8786`
    """
    from locb.experiments.reproduce import plan_reproduction
    from locb.parallel.workers import Workers

    workers = Workers(jobs=jobs, backend=backend, address=address)
    data: dict[str, dict[str, Any]] = {}
    for name, path in (("movielens", movielens), ("yelp", yelp), ("yahoo", yahoo)):
        if path is not None:
            if not path.exists():
                raise ValueError(f"--{name}: {path} does not exist; give the folder or file of the data set")
            data[name] = {"data": name, "path": str(path.resolve())}
            data[name] |= {} if cache_dir is None else {"cache_dir": str(cache_dir.resolve())}
    with preparing(next((path for path in (movielens, yelp, yahoo) if path is not None), None)):
        plan = plan_reproduction(targets or ["all"], data=data, repeats=repeats, rounds=rounds, seed=seed, quick=quick)
    folder = output or Path("runs") / ("reproduce-quick" if quick else "reproduce")
    with workers:
        plan, ledger = plan.open_folder(folder)
        with resumable(ledger):
            findings = run_all(lambda progress: plan.run(ledger, workers, progress), plan.prepare, ledger)
            report_findings(findings, folder)

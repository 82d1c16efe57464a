"""Command ``locb tune``, which chooses a policy and its parameters on a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from locb.cli.common import console, print_written, resumable_replays
from locb.cli.data.log_options import (
    AllowSkipped,
    Arms,
    Chosen,
    Decimal,
    Dim,
    Feature,
    LogFiles,
    LogFormat,
    MissingReward,
    NoHeader,
    Position,
    Propensity,
    Reward,
    Separator,
    Time,
    User,
    read_log,
    reading_options,
)

SIZE = "Search"


def tune(
    log: LogFiles,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Policy to try; repeat the option for several. A learning policy, such as **eloc**, or a fixed "
            "policy: **first**, **random**, **arm:ID**.",
            show_default="eloc, locb, linucb-one, linucb-ind",
            rich_help_panel=SIZE,
        ),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            help="Values of a parameter, **name=value,value,…**. Can be repeated. Each policy uses the parameters that "
            "it has.",
            show_default="alpha=0.1,0.3,1 beta=0.5,1,2 gamma=0.2,0.5",
            rich_help_panel=SIZE,
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Number of folds of users.", rich_help_panel=SIZE)] = 5,
    replays: Annotated[
        int, typer.Option(help="Number of replays of each learning policy per fold.", rich_help_panel=SIZE)
    ] = 3,
    replicates: Annotated[int, typer.Option(help="Number of bootstrap replicates.", rich_help_panel=SIZE)] = 200,
    seed: Annotated[int, typer.Option(help="Random seed.", rich_help_panel=SIZE)] = 0,
    log_format: LogFormat = "auto",
    user: User = None,
    chosen: Chosen = None,
    arms: Arms = None,
    reward: Reward = None,
    propensity: Propensity = None,
    time: Time = None,
    feature: Feature = None,
    missing_reward: MissingReward = None,
    decimal: Decimal = None,
    separator: Separator = None,
    no_header: NoHeader = False,
    allow_skipped: AllowSkipped = False,
    dim: Dim = None,
    position: Position = None,
    output: Annotated[Path, typer.Option(help="Folder of report.html and tuning.json.", rich_help_panel=SIZE)] = Path(
        "runs/tune"
    ),
) -> None:
    """Choose a policy and its parameters on a log, and estimate on held-out users what the choice earns.

    The highest of many estimates is too high on average, because chance contributes to it (*winner's curse*). Users are
    therefore split into folds. On each fold, the command evaluates the candidate that is best on the other folds. It
    states this held-out value, its difference from the mean reward of the log, and by how much the estimate that
    selected the choice was too high. The log must have propensities; see `locb evaluate`.

    Examples:
    - `locb tune decisions.csv`
    - `locb tune decisions.csv --policy eloc --grid beta=0.25,0.5,1,2,4`
    - `locb tune test.csv --propensity uniform --policy arm:A --policy arm:B --policy arm:C`
    """
    import locb
    from locb.report.tables.tuning_table import make_tuning_table
    from locb.report.tuning_folder import write_tuning

    options = reading_options(
        user,
        feature,
        separator,
        no_header,
        allow_skipped,
        chosen=chosen,
        arms=arms,
        reward=reward,
        time=time,
        propensity=propensity,
        missing_reward=missing_reward,
        decimal=decimal,
        dim=dim,
        position=position,
    )
    values = dict(_grid_values(text) for text in grid or ()) or None
    read = read_log(log, log_format, options)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with resumable_replays(output) as folder:
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("Evaluating candidates", total=1.0)
            tuning = locb.tune(
                read,
                **({"policies": policy} if policy else {}),
                grid=values,
                folds=folds,
                replays=replays,
                replicates=replicates,
                seed=seed,
                folder=folder,
                progress=lambda share: bar.update(task, completed=share),
            )
        console.print(make_tuning_table(tuning))
        console.print(str(tuning), style="bold", markup=False, emoji=False)
        for note in tuning.notes:
            console.print(f"note: {note}", style="yellow", markup=False, emoji=False)
        print_written(write_tuning(tuning, output))


def _grid_values(text: str) -> tuple[str, list[Any]]:
    """Return the name and the values of --grid; each value is JSON, or text."""
    name, equals, values = text.partition("=")
    if not equals or not name.isidentifier() or not values:
        raise ValueError(f"--grid must be name=value,value,…, for example beta=0.5,1,2, not {text!r}")
    found: list[Any] = []
    for value in values.split(","):
        try:
            found.append(json.loads(value))
        except ValueError:
            found.append(value.strip())
    return name, found

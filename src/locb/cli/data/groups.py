"""Command ``locb groups``, which finds groups of users with similar preferences in a log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from locb.cli.common import console, print_written
from locb.cli.data.log_options import (
    LOG,
    Chosen,
    Decimal,
    Feature,
    LogFiles,
    LogFormat,
    MissingReward,
    NoHeader,
    Reward,
    Separator,
    User,
    reading_options,
)
from locb.cli.errors import leave

SIZE, CERTIFICATES = "Groups", "Certificates"
STEPS = {
    "rows": "Reading the log: {:,.0f} rows",
    "gamma": "Comparing values of gamma",
    "estimates": "Assigning users",
    "stability": "Repeating the search in bootstrap samples: {:.0%}",
}


def groups(
    log: LogFiles,
    method: Annotated[
        str,
        typer.Option(
            help="**eloc**: groups with probabilities. **locb**: groups in which the distance between any two members "
            "is at most gamma, with a probability of at least 1 - delta. **off-club**: connected components of users "
            "whose confidence regions overlap.",
            rich_help_panel=SIZE,
        ),
    ] = "eloc",
    gamma: Annotated[
        float | None,
        typer.Option(
            help="eloc, locb: intended largest distance between two users of a group. **locb** requires it.",
            show_default="with eloc, chosen with held-out users",
            rich_help_panel=SIZE,
        ),
    ] = None,
    max_groups: Annotated[int, typer.Option(help="eloc, locb: largest number of groups.", rich_help_panel=SIZE)] = 50,
    min_probability: Annotated[
        float,
        typer.Option(help="eloc: smallest probability with which a user is in a group.", rich_help_panel=SIZE),
    ] = 0.5,
    alpha: Annotated[
        float,
        typer.Option(
            help="off-club: factor of the confidence radii. Two users are connected if the distance between their "
            "estimates is at most this factor times the sum of their radii.",
            rich_help_panel=SIZE,
        ),
    ] = 1.0,
    robust: Annotated[
        bool,
        typer.Option(
            help="Whether rewards of outliers are limited: if those beyond twice the 97.5% quantile (of the distances "
            "from the median) have at least 10% of the variance. The log is then read twice.",
            rich_help_panel=SIZE,
        ),
    ] = True,
    replicates: Annotated[
        int,
        typer.Option(
            help="Number of bootstrap samples for the stability of groups; 0 omits the stability.", rich_help_panel=SIZE
        ),
    ] = 20,
    seed: Annotated[int, typer.Option(help="Random seed.", rich_help_panel=SIZE)] = 0,
    similar_to: Annotated[
        list[str] | None,
        typer.Option(help="Also print the users who are most similar to this user. Can be repeated."),
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            help="Scale of the noise of rewards.",
            show_default="half of the range of the rewards",
            rich_help_panel=CERTIFICATES,
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Maximum probability that any certificate is too small.", rich_help_panel=CERTIFICATES)
    ] = 0.1,
    norm_bound: Annotated[
        float | None,
        typer.Option(
            help="Assumed upper bound on the norm of a preference vector.",
            show_default="1, or 1.2 times the largest norm of a group centre if that norm is above 1",
            rich_help_panel=CERTIFICATES,
        ),
    ] = None,
    log_format: LogFormat = "auto",
    user: User = None,
    reward: Reward = None,
    feature: Feature = None,
    chosen: Chosen = None,
    missing_reward: MissingReward = None,
    decimal: Decimal = None,
    separator: Separator = None,
    no_header: NoHeader = False,
    max_memory: Annotated[
        float, typer.Option(help="Maximum memory of the sums of all users, in GiB.", rich_help_panel=LOG)
    ] = 4.0,
    on: Annotated[
        str | None,
        typer.Option(
            help="Cluster that reads the files of a table: **dask://HOST:PORT** or **ray://HOST:PORT** (of the "
            "scheduler or the head). **dask** or **ray** starts workers on this machine. The result is the same.",
            show_default="this process",
            rich_help_panel="Execution",
        ),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write users and memberships as CSV instead of Parquet.")] = False,
    output: Annotated[Path, typer.Option(help="Folder of report.html and the tables.", rich_help_panel=SIZE)] = Path(
        "runs/groups"
    ),
) -> None:
    """Find groups of users with similar preferences in a log, by default with membership probabilities.

    The log has one row per decision: the *user*, the *reward*, and either the *arm* or columns with *features* of what
    the user was shown. Rows are read in batches, so the log may be larger than the memory. They are read once. If
    features are arms or text, a pass before collects the values of these columns, and if rewards have outliers, a
    second pass limits them. Columns with usual names are detected, and the command prints the columns that it uses.

    Each user gets a group (with the method eloc, with its probability), or "alone", "no group fits", or "not enough
    data to tell". For each group, the command reports what its members like, a certificate (an upper bound on the
    distance between any two members), and its stability (mean similarity with the best-fitting group in bootstrap
    samples of users, with further noise of the rewards).

    Examples:
    - `locb groups ratings.csv --user customer --chosen product --reward stars`
    - `locb groups 'logs/*.parquet' --feature price --feature category --reward revenue`
    - `locb groups visits.csv --gamma 0.3 --similar-to ann`
    - `locb groups export.parquet --method off-club` (an export of the service)
    - `locb groups '/data/logs/*.parquet' --on dask://10.0.0.5:8786`
    """
    import locb
    from locb.report.groups_folder import write_groups
    from locb.report.tables.groups_table import make_groups_table

    options = reading_options(
        user,
        feature,
        separator,
        no_header,
        chosen=chosen,
        reward=reward,
        missing_reward=missing_reward,
        decimal=decimal,
    )
    with (
        _not_resumable(),
        Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True
        ) as bar,
    ):
        task = bar.add_task("Opening the log", total=None)
        found = locb.find_groups(
            list(log),
            method=method,
            gamma=gamma,
            max_groups=max_groups,
            min_probability=min_probability,
            alpha=alpha,
            sigma=sigma,
            delta=delta,
            norm_bound=norm_bound,
            robust=robust,
            replicates=replicates,
            max_memory=max_memory,
            seed=seed,
            on=on,
            format=log_format,
            progress=lambda step, amount: bar.update(task, description=STEPS[step].format(amount)),
            **options,
        )
    _print(found)
    if found.groups.height:
        console.print(make_groups_table(found))
    written = write_groups(found, output, as_csv=csv)
    for name in similar_to or ():
        console.print(f"Most similar to {name}:", markup=False)
        for other, distance, *_ in _similar(found, name).iter_rows():
            console.print(f"  {other}  distance {distance:.3g}", markup=False)
    print_written(written)


@contextmanager
def _not_resumable() -> Iterator[None]:
    """On Ctrl-C, exit with a message."""
    try:
        yield
    except KeyboardInterrupt:
        saved = "nothing was saved, because the groups depend on all rows of the log"
        leave(f"interrupted; {saved}; run the same command to start again", 130)


def _print(found: Any) -> None:
    columns = ", ".join(f"{part} = {text}" for part, text in found.columns.items())
    console.print(f"Columns: {columns}", markup=False, emoji=False)
    for rows in found.skipped:
        console.print(f"note: {rows}", style="yellow", markup=False, emoji=False)
    facts = ", ".join(f"{name}: {text}" for name, text in found.summary().items())
    console.print(facts, markup=False, emoji=False)
    for note in found.notes:
        console.print(f"note: {note}", style="yellow", markup=False, emoji=False)


def _similar(found: Any, name: str) -> Any:
    """Return the users who are similar to a user whose id is text on the command line."""
    return found.similar_users(int(name) if found.users["user"].dtype.is_integer() and name.isdigit() else name)

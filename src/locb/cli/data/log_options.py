"""Options of the commands that read a log: its format, and the columns of a table."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import typer

from locb.cli.common import console
from locb.common.live_store import without_password

LOG, COLUMNS = "Log", "Columns of a table"


def column(text: str) -> Any:
    """Return the option of a column that is found by its name if the option is not given."""
    return typer.Option(help=text, show_default="found by its name", rich_help_panel=COLUMNS)


LogFiles = Annotated[
    list[str],
    typer.Argument(
        help="Log: files (CSV, TSV, JSON lines, Parquet, dsjson; .gz is allowed), a folder, or the store of a service "
        "(data folder, SQLite file, or address such as postgresql://user@host/name)."
    ),
]
LogFormat = Annotated[
    str,
    typer.Option(
        "--format",
        help="Format of the log: **table**, **dsjson** (Vowpal Wabbit), **open-bandit**, **yahoo** (R6A), "
        "**store** (of a service).",
        show_default="detected",
        rich_help_panel=LOG,
    ),
]
User = Annotated[
    list[str] | None, column("Column of the user; repeat the option if several columns identify a user together.")
]
Chosen = Annotated[str | None, column("Column of the chosen arm.")]
Reward = Annotated[str | None, column("Column of the reward: any number, such as 1 or 12,50 €.")]
Arms = Annotated[
    str | None,
    column(
        "Column of the offered arms, as JSON or separated by |. Without this column: all arms that were ever chosen in "
        "the log."
    ),
]
Propensity = Annotated[
    str | None,
    column("Column of the probability of the chosen arm, or **uniform** if all arms were equally probable."),
]
Time = Annotated[str | None, column("Column of the time.")]
Feature = Annotated[
    list[str] | None,
    typer.Option(help="Column that describes the chosen arm; repeat the option for several.", rich_help_panel=COLUMNS),
]
MissingReward = Annotated[
    float | None,
    typer.Option(
        help="Reward of decisions without a reward, for example 0.",
        show_default="such decisions are not used",
        rich_help_panel=COLUMNS,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="Decimal separator, **.** or **,**.", show_default="detected", rich_help_panel=COLUMNS),
]
Separator = Annotated[
    str | None,
    typer.Option(help="Separator of the columns of text files.", show_default="detected", rich_help_panel=LOG),
]
NoHeader = Annotated[
    bool,
    typer.Option("--no-header", help="Text files have no header; columns are numbers from 1.", rich_help_panel=LOG),
]
AllowSkipped = Annotated[
    bool,
    typer.Option(
        "--allow-skipped",
        help="Continue if more than half of the rows cannot be used. Without this option, that is an error.",
        rich_help_panel=LOG,
    ),
]
Dim = Annotated[
    int | None,
    typer.Option(help="Number of features into which named features of arms are hashed.", rich_help_panel=LOG),
]
Position = Annotated[
    int | None,
    typer.Option(help="open-bandit: use only this position, 1, 2 or 3.", show_default="all", rich_help_panel=LOG),
]


def reading_options(
    user: list[str] | None,
    feature: list[str] | None,
    separator: str | None,
    no_header: bool,
    allow_skipped: bool = False,
    **others: Any,
) -> dict[str, Any]:
    """Return the options of ``Log.read`` that are given on the command line."""
    options = others | {
        "user": user[0] if user and len(user) == 1 else user or None,
        "features": feature or None,
        "separator": {"tab": "\t"}.get(separator or "", separator),
        "header": False if no_header else None,
        "allow_skipped": allow_skipped or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def read_log(files: list[str], log_format: str, options: dict[str, Any]) -> Any:
    """Return the log in files, and print facts about it, its columns, and the rows that were skipped."""
    import locb

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with console.status(f"Reading {', '.join(map(without_password, files))} …"):
            read = locb.Log.read(files, format=log_format, **options)
    facts = ", ".join(f"{name} {text}" for name, text in read.summary().items())
    found = ", ".join(f"{part} = {text}" for part, text in (read.columns or {}).items())
    for title, text in (("Log", facts), ("Columns", found)):
        console.print(f"{title}: {text}", markup=False, emoji=False)
    for warning in caught:
        console.print(f"note: {warning.message}", style="yellow", markup=False, emoji=False)
    return read

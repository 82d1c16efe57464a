"""Code that several commands share: console, options, result folders and conversion of option values."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from locb.cli.errors import leave
from locb.evaluation.findings import Findings
from locb.evaluation.run_folder import UNFINISHED_FOLDER

if TYPE_CHECKING:
    from locb.experiments.jobs import Ledger

Result = TypeVar("Result")

PIPED_WIDTH = 1_000  # characters per line if the output is a file or a pipe, so that tables are complete


def make_console() -> Console:
    """Return the console for standard output. The width of a terminal or of ``COLUMNS`` limits the width of tables."""
    made = Console(highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPED_WIDTH
    return made


console = make_console()

Backend = Annotated[
    str,
    typer.Option(
        help="Where to run: **loky** (processes on this machine), **dask** or **ray** (the cluster at --address, or "
        "workers on this machine without --address).",
        rich_help_panel="Execution",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="HOST:PORT of the Dask scheduler or the Ray head. All cores of the cluster are used, and --jobs has no "
        "effect.",
        show_default="start workers on this machine",
        rich_help_panel="Execution",
    ),
]
Jobs = Annotated[
    int, typer.Option(help="Number of worker processes; -1 for one per core.", rich_help_panel="Execution")
]
Seed = Annotated[
    int,
    typer.Option(
        help="Random seed of the first repeat; repeat r = 0, 1, … uses --seed + r. The same random seed gives the "
        "same results, except for measured times.",
        rich_help_panel="Size",
    ),
]


@contextmanager
def preparing(path: Path | None) -> Iterator[None]:
    """Show a status line while the data set at ``path`` is prepared, and print warnings as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if path is None:
            yield
        else:
            try:
                with console.status(f"Preparing {path} (the first time, this can take minutes) …"):
                    yield
            except KeyboardInterrupt:
                leave(f"interrupted; the next command prepares {path} from the beginning", 130)
    for warning in caught:
        console.print(f"note: {warning.message}", style="yellow", markup=False)


@contextmanager
def resumable(ledger: Ledger, *more: str) -> Iterator[Ledger]:
    """On Ctrl-C, exit with a message. If runs are finished, the message has the command that continues.

    That command is the current command with the options ``more`` appended.
    """
    try:
        yield ledger
    except KeyboardInterrupt:
        if not ledger.finished:
            leave("interrupted; no run was finished, so nothing was saved; run the same command to start again", 130)
        kept = f"finished runs in {ledger.folder}: {ledger.finished}"
        leave(f"interrupted; {kept}; to continue, run: {shlex.join(['locb', *sys.argv[1:], *more])}", 130)


@contextmanager
def resumable_replays(output: Path) -> Iterator[Path]:
    """Provide the folder of finished replays, which is deleted when the block ends. On Ctrl-C, exit with a message."""
    from locb.logs.saved_replays import count_saved

    folder = output / UNFINISHED_FOLDER
    if before := count_saved(folder):
        console.print(f"Found {before:,} finished replays in {folder}.", markup=False)
    try:
        yield folder
    except KeyboardInterrupt:
        count = count_saved(folder)
        if not count:
            leave("interrupted; no replay was finished, so nothing was saved; run the same command to start again", 130)
        leave(f"interrupted; finished replays in {folder}: {count:,}; run the same command to continue", 130)
    shutil.rmtree(folder, ignore_errors=True)


class ProgressLines:
    """Progress of an experiment whose output is not a terminal: at most one line per minute, with the remaining time.

    Parameters
    ----------
    show : callable
        Function that prints a line.
    clock : callable, default time.monotonic
        Function that returns the time in seconds.
    """

    INTERVAL = 60.0  # seconds

    def __init__(self, show: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._show, self._clock = show, clock
        self._started = self._shown = clock()

    def __call__(self, done: float, total: float) -> None:
        """Print a line if the last one is more than a minute old. ``done`` and ``total`` are amounts of work."""
        now = self._clock()
        if done <= 0.0 or now - self._shown < self.INTERVAL:
            return
        self._shown = now
        elapsed = now - self._started
        minutes = elapsed * (total - done) / done / 60.0
        self._show(f"{done / total:.0%} finished after {elapsed / 60.0:,.0f} min; about {minutes:,.0f} min remaining")


def run_all(
    run: Callable[[Callable[[float, float], None]], Result], prepare: Callable[[], None], ledger: Ledger
) -> Result:
    """Compile the policies, run an experiment with a progress bar, and return its result.

    If the output is not a terminal, for example a file, progress is printed in lines.

    Parameters
    ----------
    run : callable
        Function that runs the experiment. Its argument is a function that reports (finished work, total work).
    prepare : callable
        Function that compiles the policies.
    ledger : Ledger
        Outcomes of finished runs.
    """
    with console.status("Compiling the policies that are not in the cache …"):
        prepare()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("remaining:"), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("Running", total=None, visible=console.is_terminal)
        lines = ProgressLines(partial(console.print, markup=False))

        def report(done: float, total: float) -> None:
            bar.update(task, completed=done, total=total)
            if not console.is_terminal:
                lines(done, total)

        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: console.print(f"note: {message}", style="yellow")
            result = run(report)
        bar.update(task, completed=1.0, total=1.0)  # if all runs are reused, run reports no progress
    if ledger.reused:
        console.print(f"Reused {ledger.reused} of {ledger.total} runs from {ledger.folder}.", soft_wrap=True)
    return result


def print_written(paths: list[Path]) -> None:
    """Print the paths of the files and folders that a command has written."""
    console.print("\nWritten:")
    for path in paths:
        console.print(f"  {path}", soft_wrap=True)


def report_findings(findings: Findings, folder: Path) -> None:
    """Print the notes and the verdicts of all claims, and write the folder of the findings."""
    from locb.report.findings_folder import make_verdict_table, summarize_verdicts, write_findings

    for note in findings.notes:
        console.print(note, style="yellow", markup=False)
    if findings.claims:
        console.print(make_verdict_table(findings))
        console.print(summarize_verdicts(findings))
    print_written(write_findings(findings, folder))


def reject_options(context: typer.Context, names: tuple[str, ...], reason: str) -> None:
    """Raise a ValueError if one of the options ``names`` was given on the command line.

    The message consists of the option and ``reason``.
    """
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{name.replace('_', '-')} {reason}")


def split_list(name: str, text: str) -> list[str]:
    """Return the elements of the comma-separated value of the option --NAME. Raise a ValueError if it is empty."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise ValueError(f"--{name} must have at least one element, not {text!r}")
    return items


def number(name: str, text: str, alternative: str = "") -> float:
    """Return the value of the option --NAME as a number. Raise a ValueError if it is not a number.

    The error message mentions ``alternative``, another value that the option accepts.
    """
    try:
        return float(text)
    except ValueError:
        choice = f"{alternative!r} or a number" if alternative else "a number"
        raise ValueError(f"--{name} must be {choice}, not {text!r}") from None


def number_pair(name: str, text: str) -> tuple[float, float]:
    """Return the value of the option --NAME, two numbers separated by a comma."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"--{name} must be two numbers separated by a comma, such as 0,5, not {text!r}") from None
    return low, high


def seconds(name: str, text: str) -> float:
    """Return the value of the option --NAME, a duration such as 90, 30s, 10m, 2h or 1d, in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if found is None:
        raise ValueError(
            f"--{name} must be a duration such as 30s, 10m, 2h or 1d, or a number of seconds, not {text!r}"
        )
    return float(found[1]) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}[found[2]]


def parameter_pair(text: str, option: str = "parameter") -> tuple[str, Any]:
    """Return the name and the value of the option --parameter, or of another option; the value is JSON, or text."""
    name, equals, value = text.partition("=")
    if option != "parameter" and (not equals or not name.isidentifier()):
        raise ValueError(f"--{option} must be name=value, for example user=customer, not {text!r}")
    if not equals or not name.isidentifier():
        raise ValueError(
            "--parameter must be name=value, where name is a parameter of the policy, written with underscores, for "
            f"example min_eigenvalue=0.1, not {text!r}"
        )
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value

"""What the commands share: the console, options of data sets, folders and small conversions."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from locb.evaluation.findings import Findings

if TYPE_CHECKING:
    from locb.experiments.jobs import Ledger

console = Console(highlight=False)

Zeros = Annotated[
    str | None,
    typer.Option(
        help="Arms that are not liked: **any** item the user never liked, only **rated** ones, or ones **shown** "
        "and not liked that time.",
        rich_help_panel="Data",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="For a table: user=…,item=…,rating=… (or reward=…), and feature=… for each column that describes items.",
        rich_help_panel="Data",
    ),
]
ItemFeatures = Annotated[
    Path | None, typer.Option(help="For a table: a second one that describes the items.", rich_help_panel="Data")
]
CacheDir = Annotated[
    Path | None,
    typer.Option(
        help="Where prepared data are kept; if not given $LOCB_CACHE, or locb in your cache folder.",
        rich_help_panel="Data",
    ),
]

Backend = Annotated[
    str,
    typer.Option(
        help="Where runs are played: **loky** (processes of this machine), **dask** or **ray**.",
        rich_help_panel="Machines",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="HOST:PORT of the Dask scheduler or Ray head; if not given, dask and ray start workers on this machine.",
        rich_help_panel="Machines",
    ),
]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one a core.", rich_help_panel="Machines")]


def leave(message: str, code: int) -> NoReturn:
    """Say why in one line and end."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"locb: {message}", style="red", markup=False)
    raise SystemExit(code)


@contextmanager
def preparing(path: Path | None) -> Iterator[None]:
    """Say what takes long, and print as notes what was left out."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if path is None:
            yield
        else:
            try:
                with console.status(f"Preparing {path}; the first time this may take minutes …"):
                    yield
            except KeyboardInterrupt:
                leave("stopped", 130)
    for warning in told:
        console.print(f"note: {warning.message}", style="yellow", markup=False)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder for results; removed again if nothing was put into it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output: {folder} is a file, not a folder")
    made = [path for path in (folder, folder.parent) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except KeyboardInterrupt:
        leave("stopped", 130)
    finally:
        for path in made:
            if not any(path.iterdir()):
                path.rmdir()


def play_all(
    run: Callable[[Callable[[float, float], None]], Findings], prepare: Callable[[], None], ledger: Ledger
) -> Findings:
    """Compile, then run with progress and the time left; Ctrl-C leaves what is finished on disk."""
    try:
        waiting = threading.Timer(1.5, console.print, ["Compiling the kernels: once on this machine, about a minute …"])
        waiting.start()
        try:
            prepare()
        finally:
            waiting.cancel()
        shown = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*shown, TextColumn("left:"), TimeRemainingColumn(), console=console) as bar:
            task = bar.add_task("Playing", total=None)
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_, **__: console.print(f"note: {message}", style="yellow")
                findings = run(lambda done, total: bar.update(task, completed=done, total=total))
            bar.update(task, completed=1.0, total=1.0)  # also where nothing was left to play
        if ledger.reused:
            console.print(f"{ledger.reused} of {ledger.total} runs were there already.")
        for note in findings.notes:
            console.print(note, style="yellow", markup=False)
        return findings
    except KeyboardInterrupt:
        leave(f"stopped; what is finished is kept in {ledger.folder}, and the same command goes on from there", 130)


def data_world(
    name: str,
    path: Path,
    zeros: str | None,
    columns: str | None,
    item_features: Path | None,
    cache_dir: Path | None,
) -> dict[str, Any]:
    """The settings of a world made from files; only what was asked for."""
    world: dict[str, Any] = {"data": name, "path": str(path)}
    world |= {} if zeros is None else {"zeros": zeros}
    world |= {} if cache_dir is None else {"cache_dir": str(cache_dir)}
    if name != "table":
        if columns is not None or item_features is not None:
            raise ValueError(f"{'--columns' if columns else '--item-features'} is for a table, not for {name}")
        return world
    if columns is None:
        raise ValueError("--columns must say which column is which: user=…,item=…,rating=…")
    features = []
    for pair in listed("columns", columns):
        role, _, column = pair.partition("=")
        if role == "feature":
            features.append(column)
        elif role in ("user", "item", "rating", "reward") and column:
            world[role] = column
        else:
            raise ValueError(f"--columns: {pair!r} is not user=…, item=…, rating=…, reward=… or feature=…")
    missing = [role for role in ("user", "item") if role not in world]
    if missing:
        raise ValueError(f"--columns must say which column is {' and which is '.join(missing)}")
    world |= {"features": features} if features else {}
    return world | ({} if item_features is None else {"item_features": str(item_features)})


def refuse(context: typer.Context, names: tuple[str, ...], why: str) -> None:
    """An error if one of these options was given."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{name.replace('_', '-')} {why}")


def listed(name: str, text: str) -> list[str]:
    """What stands between the commas, at least one thing."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise ValueError(f"--{name} must name at least one, not {text!r}")
    return items


def number(name: str, text: str, word: str = "") -> float:
    """A number, or a ValueError that says what else it may be."""
    try:
        return float(text)
    except ValueError:
        choice = f"{word!r} or a number" if word else "a number"
        raise ValueError(f"--{name} must be {choice}, not {text!r}") from None


def seconds(name: str, text: str) -> float:
    """A time such as 90, 30s, 10m, 2h or 1d, in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if found is None:
        raise ValueError(f"--{name} must be a time such as 30s, 10m, 2h or 1d, not {text!r}")
    return float(found[1]) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}[found[2]]

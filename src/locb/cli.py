"""The command line: parsing and printing only."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import locb

app = typer.Typer(
    help="Contextual bandits that find like-minded users. Start with: locb compare",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
console = Console(highlight=False)


# What the library calls by another name than the option that sets it.
OPTIONS = {"n_users": "--users", "n_clusters": "--clusters", "raw_dim": "--dimensions", "n_arms": "--arms"}


def main() -> None:
    """Run the command line; a mistake in the input is one line, not a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        told = re.sub(r"\w+", lambda word: OPTIONS.get(word[0], word[0]), str(error))
        _leave(told, 2)


def _leave(message: str, code: int) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"locb: {message}", style="red", markup=False)
    raise SystemExit(code)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    """Print the version if asked."""
    if show:
        console.print(f"locb {locb.__version__}")
        raise typer.Exit


@app.command()
def compare(
    policies: Annotated[
        str,
        typer.Option(
            help="Names, separated by commas. A policy of your own is given as [bold]file.py:Class[/bold].",
            rich_help_panel="Policies",
        ),
    ] = "locb,linucb-one,linucb-ind,club,sclub",
    alphas: Annotated[
        str,
        typer.Option(
            help="How much to explore. Several, separated by commas, are tried one by one; "
            "the chart then shows each policy at its best.",
            rich_help_panel="Policies",
        ),
    ] = "1.0",
    gamma: Annotated[
        float, typer.Option(help="LOCB: users of a cluster are nearer than this.", rich_help_panel="Policies")
    ] = 0.2,
    n_seeds: Annotated[
        int | None,
        typer.Option(
            help="LOCB: sets to grow, |S|. If not given 30, or one a user if there are fewer.",
            rich_help_panel="Policies",
        ),
    ] = None,
    users: Annotated[int, typer.Option(help="Users.", rich_help_panel="World")] = 100,
    clusters: Annotated[int, typer.Option(help="Clusters of users.", rich_help_panel="World")] = 5,
    dimensions: Annotated[
        int, typer.Option(help="Random features of an arm; a constant one is added.", rich_help_panel="World")
    ] = 5,
    arms: Annotated[int, typer.Option(help="Arms a round.", rich_help_panel="World")] = 10,
    noise: Annotated[
        str,
        typer.Option(
            help="[bold]bernoulli[/bold] for rewards of 0 or 1, or a number: the deviation of Gaussian noise.",
            rich_help_panel="World",
        ),
    ] = "bernoulli",
    arrivals: Annotated[
        str,
        typer.Option(
            help="Who comes: [bold]uniform[/bold] (all alike) or [bold]zipf[/bold] (few often).",
            rich_help_panel="World",
        ),
    ] = "uniform",
    rounds: Annotated[int, typer.Option(help="Rounds a run.", rich_help_panel="Size")] = 50_000,
    repeats: Annotated[
        int, typer.Option(help="Worlds; the more, the narrower the intervals.", rich_help_panel="Size")
    ] = 5,
    seed: Annotated[
        int, typer.Option(help="The first world's seed; the same seed gives the same result.", rich_help_panel="Size")
    ] = 0,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one a core.", rich_help_panel="Size")] = -1,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the results; an earlier run in it is replaced. If not given, a new one under runs/.",
            rich_help_panel="Size",
        ),
    ] = None,
) -> None:
    """Let policies play the same rounds and see who wins, and which users belong together.

    Every policy meets the same users, arms and rewards, so that differences are paired. Prints a table (regret is
    what was lost against always showing the best arm; F1 tells how well the groups found match the true ones) and
    writes a folder with [bold]regret.png[/bold], [bold]users.png[/bold], [bold]report.html[/bold] (open it in a
    browser) and [bold]run.json[/bold].

    Examples:
      locb compare

      locb compare --policies locb,linucb-ind --noise 0.1

      locb compare --alphas 0.1,0.3,1 --users 500 --rounds 100000
    """
    from locb.experiments.compare import plan
    from locb.experiments.own_policy import register
    from locb.report.folder import write_comparison
    from locb.report.tables import comparison_table

    names = [register(name) if ":" in name else name for name in _listed("policies", policies)]
    values = [_number("alphas", text) for text in _listed("alphas", alphas)]
    world: dict[str, Any] = {
        "n_users": users,
        "n_clusters": clusters,
        "raw_dim": dimensions,
        "n_arms": arms,
        "noise": noise if noise == "bernoulli" else _number("noise", noise, "bernoulli"),
        "arrivals": arrivals,
    }
    planned = plan(
        names, alphas=values, rounds=rounds, repeats=repeats, world=world, n_seeds=n_seeds, gamma=gamma, seed=seed
    )
    with _new_folder(output or Path("runs") / time.strftime("compare-%Y%m%d-%H%M%S")) as folder:
        compiling = threading.Timer(
            1.5, console.print, ["Compiling the kernels: once on this machine, about half a minute …"]
        )
        compiling.start()
        planned.prepare()
        compiling.cancel()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
            task = bar.add_task("Playing", total=len(planned.tasks))
            result = planned.run(jobs=jobs, progress=lambda done, total: bar.update(task, completed=done, total=total))
        console.print()
        console.print(comparison_table(result))
        console.print(result.verdict())
        console.print("\nWritten:")
        for path in write_comparison(result, folder):
            console.print(f"  {path}", soft_wrap=True)


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder for results; removed again if nothing was put into it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output: {folder} is a file, not a folder")
    made = [path for path in (folder, folder.parent) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except KeyboardInterrupt:
        _leave("stopped", 130)
    finally:
        for path in made:
            if not any(path.iterdir()):
                path.rmdir()


def _listed(name: str, text: str) -> list[str]:
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise ValueError(f"--{name} must name at least one, not {text!r}")
    return items


def _number(name: str, text: str, word: str = "") -> float:
    try:
        return float(text)
    except ValueError:
        choice = f"{word!r} or a number" if word else "a number"
        raise ValueError(f"--{name} must be {choice}, not {text!r}") from None

"""The command line: parsing and printing only."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

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


Zeros = Annotated[
    str | None,
    typer.Option(
        help="Arms that are not liked: [bold]any[/bold] item the user does not like, or only [bold]rated[/bold] ones.",
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


@app.command()
def compare(
    context: typer.Context,
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
    data: Annotated[
        str | None,
        typer.Option(
            help="Play on real data instead: [bold]movielens[/bold], [bold]yelp[/bold], [bold]yahoo[/bold] or "
            "[bold]table[/bold], with --path.",
            rich_help_panel="Data",
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(help="The files of --data as published: a folder or an archive.", rich_help_panel="Data"),
    ] = None,
    zeros: Zeros = None,
    columns: Columns = None,
    item_features: ItemFeatures = None,
    cache_dir: CacheDir = None,
    users: Annotated[
        int, typer.Option(help="Users; on real data those with the most records.", rich_help_panel="World")
    ] = 100,
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

      locb compare --data movielens --path ml-latest-small.zip --rounds 30000
    """
    from locb.experiments.compare import plan
    from locb.experiments.own_policy import register
    from locb.report.folder import write_comparison
    from locb.report.tables import comparison_table

    names = [register(name) if ":" in name else name for name in _listed("policies", policies)]
    values = [_number("alphas", text) for text in _listed("alphas", alphas)]
    if data is None:
        _refuse(context, ("path", "zeros", "columns", "item_features", "cache_dir"), "goes with --data")
        world: dict[str, Any] = {
            "n_users": users,
            "n_clusters": clusters,
            "raw_dim": dimensions,
            "n_arms": arms,
            "noise": noise if noise == "bernoulli" else _number("noise", noise, "bernoulli"),
            "arrivals": arrivals,
        }
    else:
        _refuse(context, ("clusters", "dimensions", "noise", "arrivals"), "is for the synthetic world, not for --data")
        if path is None:
            raise ValueError(f"--path must name the files of {data}")
        world = _data_world(data, path, zeros, columns, item_features, cache_dir) | {"n_users": users, "n_arms": arms}
    with _preparing(path):
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
        shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*shown, TimeRemainingColumn(), console=console) as bar:
            task = bar.add_task("Playing", total=len(planned.tasks))
            result = planned.run(jobs=jobs, progress=lambda done, total: bar.update(task, completed=done, total=total))
        console.print()
        console.print(comparison_table(result))
        console.print(" ".join([result.verdict(), *result.notes]))
        console.print("\nWritten:")
        for path in write_comparison(result, folder):
            console.print(f"  {path}", soft_wrap=True)


@app.command()
def data(
    name: Annotated[
        str, typer.Argument(help="[bold]movielens[/bold], [bold]yelp[/bold], [bold]yahoo[/bold] or [bold]table[/bold].")
    ],
    path: Annotated[
        Path | None,
        typer.Argument(help="Its files as published: a folder or an archive. With --download: where to put the zip."),
    ] = None,
    download: Annotated[
        str | None, typer.Option(help="Fetch MovieLens of this size from its publisher first, such as ml-latest-small.")
    ] = None,
    users: Annotated[int, typer.Option(help="Users in the pool, those with the most records.")] = 100,
    zeros: Zeros = None,
    columns: Columns = None,
    item_features: ItemFeatures = None,
    cache_dir: CacheDir = None,
    output: Annotated[Path | None, typer.Option(help="The picture; if not given, users-NAME.png here.")] = None,
) -> None:
    """Prepare a data set and show what is in it: sizes, likes, how far apart users are, and which groups there are.

    What was prepared is kept, so that the next command on the same files starts at once. Writes a picture of the users
    in two dimensions, coloured by the ground truth groups.

    Examples:
      locb data movielens ml-25m.zip

      locb data movielens --download ml-latest-small

      locb data table likes.csv --columns user=customer,item=product,rating=stars
    """
    from locb.experiments.survey import survey
    from locb.experiments.worlds import make_world
    from locb.report.folder import write_groups
    from locb.report.tables import facts_table

    if download is not None:
        path = _download(name, download, path or Path())
    if path is None:
        raise ValueError(f"PATH must name the files of {name} (or use --download)")
    world = _data_world(name, path, zeros, columns, item_features, cache_dir)
    with _preparing(path):
        env: Any = make_world({**world, "n_users": users}, 0)
        found = survey(env)
    console.print(facts_table(f"{name}: {path}", found.facts))
    picture = output or Path(f"users-{name}.png")
    subtitle = f"θ of {env.n_users} users in two dimensions; groups of users all nearer than {found.gamma:.2f}"
    write_groups(env.theta, found.groups, f"Users of {name}", subtitle, picture)
    console.print(f"\nWritten:\n  {picture}", soft_wrap=True)


def _download(name: str, size: str, folder: Path) -> Path:
    from locb.datasets.download import LICENCE, download

    if name != "movielens":
        raise ValueError(f"--download is for movielens; {name} must be asked for at its publisher's")
    console.print(LICENCE)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(size, total=None)
        return download(size, folder, progress=lambda here, total: bar.update(task, completed=here, total=total))


def _data_world(
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
    features = []
    for pair in _listed("columns", columns or ""):
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


def _refuse(context: typer.Context, names: tuple[str, ...], why: str) -> None:
    """An error if one of these options was given."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{name.replace('_', '-')} {why}")


@contextmanager
def _preparing(path: Path | None) -> Iterator[None]:
    """Say what takes long, and print as notes what was left out."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if path is None:
            yield
        else:
            with console.status(f"Preparing {path}; the first time this may take minutes …"):
                yield
    for warning in told:
        console.print(f"note: {warning.message}", style="yellow", markup=False)


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

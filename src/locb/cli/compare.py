"""locb compare."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from locb.cli.common import (
    CacheDir,
    Columns,
    ItemFeatures,
    Zeros,
    console,
    data_world,
    listed,
    new_folder,
    number,
    preparing,
    refuse,
)

# What belongs to a world or a policy, and so cannot be set for many worlds at once.
FIXED_IN_WORLDS = ("users", "clusters", "dimensions", "arms", "noise", "arrivals", "gamma", "n_seeds")


def compare(
    context: typer.Context,
    policies: Annotated[
        str | None,
        typer.Option(
            help="Names (see below), separated by commas, or **all**. A custom policy is given as **file.py:Class**. "
            "Default: the built-in policies; with --worlds all.",
            rich_help_panel="Policies",
        ),
    ] = None,
    alphas: Annotated[
        str | None,
        typer.Option(
            help="How much to explore. Several, separated by commas, are tried one by one; the chart then shows each "
            "policy at its best. If not given 1; with --worlds 0.1,0.3,1.",
            rich_help_panel="Policies",
        ),
    ] = None,
    gamma: Annotated[
        float, typer.Option(help="LOCB, ELOC: users of a cluster are nearer than this.", rich_help_panel="Policies")
    ] = 0.2,
    n_seeds: Annotated[
        int | None,
        typer.Option(
            help="LOCB, ELOC: sets to grow, |S|. If not given 30, or one a user if there are fewer.",
            rich_help_panel="Policies",
        ),
    ] = None,
    worlds: Annotated[
        str | None,
        typer.Option(
            help="Play in named worlds instead of one: **all**, **judging**, **development**, or names separated by "
            "commas. Gives a matrix of policies and worlds.",
            rich_help_panel="Worlds",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Play on real data instead: **movielens**, **yelp**, **yahoo** or **table**, with --path. With "
            "--worlds the data are added to them.",
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
            help="**bernoulli** for rewards of 0 or 1, or a number: the deviation of Gaussian noise.",
            rich_help_panel="World",
        ),
    ] = "bernoulli",
    arrivals: Annotated[
        str,
        typer.Option(
            help="Who comes: **uniform** (all alike) or **zipf** (few often).",
            rich_help_panel="World",
        ),
    ] = "uniform",
    rounds: Annotated[
        int | None,
        typer.Option(help="Rounds a run. If not given 50,000; with --worlds each world's own.", rich_help_panel="Size"),
    ] = None,
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
            help="Folder for the results; an earlier run in it is replaced. If not given, a new one under runs/. With "
            "--worlds a stopped run in it goes on, and it is runs/worlds if not given.",
            rich_help_panel="Size",
        ),
    ] = None,
) -> None:
    """Let policies play the same rounds and see who wins, and which users belong together.

    Every policy meets the same users, arms and rewards, so that differences are paired. Prints a table (regret is
    what was lost against always showing the best arm; F1 tells how well the groups found match the true ones) and
    writes a folder with **regret.png**, **users.png**, **report.html** (open it in a
    browser and explore: policies, alphas and repeats over the rounds, groups as they form) and **run.json**.

    With --worlds every policy, at its defaults and best alpha, plays in many worlds: some were used to set constants
    (development), others have other seeds and other kinds of structure, noise, arrivals and drift (judging). Regret is
    then told relative to the best baseline of each world, as a table and a heat map. What is finished is kept: the
    same command goes on after Ctrl-C.

    Examples:
    - `locb compare`
    - `locb compare --policies locb,linucb-ind --noise 0.1`
    - `locb compare --alphas 0.1,0.3,1 --users 500 --rounds 100000`
    - `locb compare --data movielens --path ml-latest-small.zip --rounds 30000`
    - `locb compare --worlds all --policies all --data movielens --path ml-latest-small.zip`
    - `locb compare --worlds overlap,hierarchy --rounds 5000 --repeats 2`
    """
    from locb.cli.compare_scenarios import compare_worlds
    from locb.experiments.compare import DEFAULT_POLICIES, plan
    from locb.experiments.custom_policy import register
    from locb.policies import POLICIES
    from locb.report.comparison_folder import write_comparison
    from locb.report.tables.comparison_table import make_comparison_table

    usual = ",".join(DEFAULT_POLICIES) if worlds is None else "all"
    asked = [
        one
        for name in listed("policies", usual if policies is None else policies)
        for one in (POLICIES if name == "all" else [name])
    ]
    own = {register(name): name for name in asked if ":" in name}
    names = [next((mine for mine, place in own.items() if place == name), name) for name in asked]
    values = None if alphas is None else [number("alphas", text) for text in listed("alphas", alphas)]
    if data is None:
        refuse(context, ("path", "zeros", "columns", "item_features", "cache_dir"), "goes with --data")
    elif path is None:
        raise ValueError(f"--path must name the files of {data}")
    if worlds is not None:
        refuse(
            context,
            FIXED_IN_WORLDS,
            "does not go with --worlds: a named world has its own, and policies play at their defaults",
        )
        compare_worlds(
            worlds=listed("worlds", worlds),
            policies=names,
            own=own,
            alphas=values,
            rounds=rounds,
            repeats=repeats,
            seed=seed,
            jobs=jobs,
            data=None
            if data is None or path is None
            else data_world(data, path.resolve(), zeros, columns, item_features, cache_dir),
            output=output,
        )
        return
    if data is None or path is None:
        world: dict[str, Any] = {
            "n_users": users,
            "n_clusters": clusters,
            "raw_dim": dimensions,
            "n_arms": arms,
            "noise": noise if noise == "bernoulli" else number("noise", noise, "bernoulli"),
            "arrivals": arrivals,
        }
    else:
        refuse(context, ("clusters", "dimensions", "noise", "arrivals"), "is for the synthetic world, not for --data")
        world = data_world(data, path, zeros, columns, item_features, cache_dir) | {"n_users": users, "n_arms": arms}
    with preparing(path):
        planned = plan(
            names,
            alphas=values or [1.0],
            rounds=50_000 if rounds is None else rounds,
            repeats=repeats,
            world=world,
            n_seeds=n_seeds,
            gamma=gamma,
            seed=seed,
        )
    with new_folder(output or Path("runs") / time.strftime("compare-%Y%m%d-%H%M%S")) as folder:
        compiling = threading.Timer(
            1.5, console.print, ["Compiling the kernels: once on this machine, about a minute …"]
        )
        compiling.start()
        planned.prepare()
        compiling.cancel()
        shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*shown, TimeRemainingColumn(), console=console) as bar:
            task = bar.add_task("Playing", total=len(planned.tasks))
            result = planned.run(jobs=jobs, progress=lambda done, total: bar.update(task, completed=done, total=total))
        console.print()
        console.print(make_comparison_table(result))
        console.print(" ".join([result.verdict(), *result.notes]))
        console.print("\nWritten:")
        for path in write_comparison(result, folder):
            console.print(f"  {path}", soft_wrap=True)

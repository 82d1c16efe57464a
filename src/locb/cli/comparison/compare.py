"""Command ``locb compare``, which compares policies on the same rounds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from locb.cli.common import Jobs, number, number_pair, preparing, reject_options, split_list
from locb.cli.comparison.selection import parse_grid, select_policies
from locb.cli.data.dataset_options import (
    CacheDir,
    Columns,
    FeaturesFrom,
    ItemFeatures,
    LikeAbove,
    NoHeader,
    Offer,
    Separator,
    Zeros,
    data_settings,
)

# Options that cannot be used with --scenarios, because each scenario or policy has its own value.
SCENARIO_OPTIONS = (
    "more",
    "grid",
    "environment",
    "users",
    "clusters",
    "dim",
    "arms",
    "noise",
    "arrivals",
    "gamma",
    "n_seeds",
    "reward_range",
)
DATA_OPTIONS = (
    "path",
    "zeros",
    "columns",
    "offer",
    "like_above",
    "features_from",
    "item_features",
    "separator",
    "no_header",
    "cache_dir",
)
SYNTHETIC_OPTIONS = ("clusters", "dim", "noise", "arrivals")
POLICIES, ENVIRONMENT, DATA, SIZE = "Policies", "Environment", "Data", "Size"


def compare(
    context: typer.Context,
    more: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GRID]...",
            help="Further parameters of --grid.",
            show_default=False,
        ),
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated names of policies (listed below), or **all**. **file.py:Class** is a custom policy.",
            show_default="the five policies of the paper, and eloc; with --scenarios all",
            rich_help_panel=POLICIES,
        ),
    ] = None,
    alphas: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated values of alpha, the weight of the exploration bonus. Each policy that has the "
            "parameter alpha (all except ELOC) runs at each value, and the table shows the result at its best alpha. "
            "With --scenarios, a grid starts with these values and is extended if its best value is at an edge.",
            show_default="1; with --scenarios 0.1,0.3,1",
            rich_help_panel=POLICIES,
        ),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            help="Values of a parameter, as name=value,value,…; separate several parameters with spaces, or repeat the "
            "option. Each policy runs with all combinations of the values of the parameters that it has. "
            "POLICY.name=… sets a parameter of one policy.",
            metavar="NAME=VALUES",
            rich_help_panel=POLICIES,
        ),
    ] = None,
    gamma: Annotated[
        float,
        typer.Option(
            help="LOCB: intended maximum distance between two users of a cluster. CAB: users learn each other's "
            "rewards once their confidence widths are below a quarter of this value. With --data, also the limit of "
            "the distance in the true clusters.",
            rich_help_panel=POLICIES,
        ),
    ] = 0.2,
    n_seeds: Annotated[
        int | None,
        typer.Option(
            help="LOCB, ELOC: number of seed users, around each of whom the policy builds one cluster.",
            show_default="30, or all users if there are fewer",
            rich_help_panel=POLICIES,
        ),
    ] = None,
    reward_range: Annotated[
        str | None,
        typer.Option(
            help="Lowest and highest reward, as low,high: policies learn rewards mapped from this range to 0 … 1. The "
            "results are in the original units.",
            show_default="rewards are not mapped",
            rich_help_panel=POLICIES,
        ),
    ] = None,
    scenarios: Annotated[
        str | None,
        typer.Option(
            help="Compare in several scenarios (named environments): **all**, **evaluation**, **development**, or "
            "comma-separated names. An unknown name prints the list of names. The result is a matrix of policies and "
            "scenarios.",
            rich_help_panel=ENVIRONMENT,
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            help="Your own environment, as **file.py:Class**: a subclass of locb.Environment.",
            metavar="FILE.PY:CLASS",
            rich_help_panel=ENVIRONMENT,
        ),
    ] = None,
    users: Annotated[
        int,
        typer.Option(
            help="Number of users. With --data: the users with the most records.", rich_help_panel=ENVIRONMENT
        ),
    ] = 100,
    clusters: Annotated[int, typer.Option(help="Number of true clusters of users.", rich_help_panel=ENVIRONMENT)] = 5,
    dim: Annotated[
        int, typer.Option(help="Features per arm, including a constant feature.", min=2, rich_help_panel=ENVIRONMENT)
    ] = 6,
    arms: Annotated[
        int | None,
        typer.Option(
            help="Arms per round.",
            show_default="10; with --data at most the number of items",
            rich_help_panel=ENVIRONMENT,
        ),
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            help="**bernoulli** for rewards of 0 or 1, or the standard deviation of Gaussian noise.",
            rich_help_panel=ENVIRONMENT,
        ),
    ] = "bernoulli",
    arrivals: Annotated[
        str,
        typer.Option(
            help="How often users arrive: **uniform** (all equally often) or **zipf** (the r-th most frequent user in "
            "proportion to 1/r).",
            rich_help_panel=ENVIRONMENT,
        ),
    ] = "uniform",
    data: Annotated[
        str | None,
        typer.Option(
            help="Compare on the real data at --path: **movielens**, **yelp**, **yahoo**, or **table** for your own "
            "data. With --scenarios, the data set is added to the scenarios.",
            rich_help_panel=DATA,
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(help="Files of the data set of --data: a folder, an archive or a file.", rich_help_panel=DATA),
    ] = None,
    zeros: Zeros = None,
    columns: Columns = None,
    offer: Offer = None,
    like_above: LikeAbove = None,
    features_from: FeaturesFrom = None,
    item_features: ItemFeatures = None,
    separator: Separator = None,
    no_header: NoHeader = False,
    cache_dir: CacheDir = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Rounds per run.",
            show_default="50,000, or the number of recorded rounds of a table if there are fewer; with --scenarios "
            "each scenario has its own number",
            rich_help_panel=SIZE,
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            help="Number of runs per policy and set of parameters, each with its own random seed. More repeats give "
            "narrower confidence intervals.",
            rich_help_panel=SIZE,
        ),
    ] = 5,
    tuning_repeats: Annotated[
        int,
        typer.Option(
            help="With --scenarios: number of repeats at the start that run all settings. They only select the three "
            "best settings of each policy, which the other repeats run and measure. 0: all repeats run and measure all "
            "settings.",
            rich_help_panel=SIZE,
        ),
    ] = 0,
    seed: Annotated[
        int,
        typer.Option(
            help="Random seed of the first repeat; repeat r = 0, 1, … uses --seed + r. With --scenarios: number of "
            "random seeds of each scenario to skip. The same value gives the same results, except for measured times.",
            rich_help_panel=SIZE,
        ),
    ] = 0,
    jobs: Jobs = -1,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the results. An interrupted comparison in the folder continues, and a finished comparison "
            "is replaced. With --scenarios, finished runs in the folder are reused.",
            show_default="a new folder in runs; with --scenarios runs/scenarios",
        ),
    ] = None,
) -> None:
    """Compare policies on the same users, arms and rewards.

    All policies get the same rounds, so the differences between policies are paired. The command prints a table. Regret
    is the expected reward lost compared with always choosing the best arm. F1 measures how well the found clusters
    match the true clusters (1 is a perfect match). The command writes **report.html** (open it in a browser),
    **regret.png** and **run.json** (settings, versions and all numbers) to the folder --output, and **users.png** if a
    policy finds clusters and the environment has true clusters and an attribute theta.

    With --scenarios, every policy runs in several named environments, with several values of alpha and of its
    threshold, such as gamma of LOCB; its other parameters have their defaults. Development scenarios were used to set
    the constants of policies; evaluation scenarios were not. The table and the heat map show the regret relative to the
    best baseline of each scenario. Each scenario has its own random seeds, and --seed N skips the first N of them.

    After Ctrl-C, finished runs are kept, and a message shows the command that continues.

    Examples:
    - `locb compare`
    - `locb compare --policies locb,linucb-ind --noise 0.1`
    - `locb compare --alphas 0.1,0.3,1 --users 500 --rounds 100000`
    - `locb compare --policies locb,linucb-ind --grid alpha=0.1,0.3,1 gamma=0.1,0.2`
    - `locb compare --environment my_site.py:NewsSite`
    - `locb compare --data movielens --path ml-latest-small.zip --rounds 30000`
    - `locb compare --data table --path sales.csv --columns user=customer,item=product,reward=euros,time=day`
    - `locb compare --scenarios all --policies all --data movielens --path ml-latest-small.zip`
    - `locb compare --scenarios overlap,hierarchy --rounds 5000 --repeats 2`
    """
    from locb.cli.comparison.compare_environment import compare_environment
    from locb.cli.comparison.compare_scenarios import compare_scenarios
    from locb.experiments.comparison.comparison_plan import plan_comparison

    names, custom = select_policies(policies, default_all=scenarios is not None)
    alpha_values = None if alphas is None else [number("alphas", text) for text in split_list("alphas", alphas)]
    real_data: dict[str, Any] | None = None
    if data is None:
        reject_options(context, DATA_OPTIONS, "requires --data: add --data, or omit the option")
    elif path is None:
        raise ValueError(f"--path is required with --data {data}: the file, folder or archive of the data set")
    else:
        if scenarios is not None:  # an interrupted run may be continued from another working directory
            path, item_features = path.resolve(), item_features and item_features.resolve()
        real_data = data_settings(
            data,
            path,
            zeros=zeros,
            columns=columns,
            offer=offer,
            like_above=like_above,
            features_from=features_from,
            item_features=item_features,
            separator=separator,
            no_header=no_header,
            cache_dir=cache_dir,
        )
    if scenarios is not None:
        if offer == "recorded":
            raise ValueError("--offer recorded cannot be used with --scenarios, which need likes; omit --offer")
        reason = "cannot be used with --scenarios, because each scenario or policy has its own value; omit the option"
        reject_options(context, SCENARIO_OPTIONS, reason)
        compare_scenarios(
            scenarios=split_list("scenarios", scenarios),
            policies=names,
            custom=custom,
            alphas=alpha_values,
            rounds=rounds,
            repeats=repeats,
            tuning_repeats=tuning_repeats,
            seed=seed,
            jobs=jobs,
            data=real_data,
            output=output,
        )
        return
    reject_options(context, ("tuning_repeats",), "requires --scenarios: add --scenarios, or omit the option")
    if environment is not None:
        reason = "cannot be used with --environment; omit one of the two options"
        reject_options(context, ("data", "users", "arms", *SYNTHETIC_OPTIONS), reason)
        settings = None
    elif real_data is None:
        settings = {
            "n_users": users,
            "n_clusters": clusters,
            "raw_dim": dim - 1,
            "n_arms": 10 if arms is None else arms,
            "noise": noise if noise == "bernoulli" else number("noise", noise, "bernoulli"),
            "arrivals": arrivals,
        }
    else:
        reason = "is an option of the synthetic environment and cannot be used with --data; omit the option"
        reject_options(context, SYNTHETIC_OPTIONS, reason)
        settings = real_data | {"n_users": users} | ({} if arms is None else {"n_arms": arms})
    with preparing(path):
        plan = plan_comparison(
            names,
            environments=environment,
            grid=parse_grid([*(grid or []), *(more or [])]),
            alphas=alpha_values,
            rounds=rounds,
            repeats=repeats,
            environment=settings,
            n_seeds=n_seeds,
            gamma=gamma,
            reward_range=None if reward_range is None else number_pair("reward-range", reward_range),
            seed=seed,
            custom=custom,
        )
    if output is None:
        output = Path("runs") / time.strftime("compare-%Y%m%d-%H%M%S")
        compare_environment(plan, jobs, output, "--output", str(output))
    else:
        compare_environment(plan, jobs, output)

"""Command ``locb data``, which prepares a data set and prints a summary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from locb.cli.common import console, preparing, print_written
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

Download = Annotated[
    str | None,
    typer.Option(
        help="Download this version of MovieLens from GroupLens first: **ml-latest-small**, **ml-latest**, **ml-32m**, "
        "**ml-25m**, **ml-20m**, **ml-10m**, **ml-1m** or **ml-100k**."
    ),
]


def data(
    name: Annotated[
        str, typer.Argument(help="Data set: **movielens**, **yelp**, **yahoo**, or **table** for your own data.")
    ],
    path: Annotated[
        Path | None,
        typer.Argument(
            help="Files of the data set: a folder, an archive or a file. With --download: the folder to which the zip "
            "file is downloaded.",
            show_default="the current folder with --download",
        ),
    ] = None,
    download: Download = None,
    users: Annotated[int, typer.Option(help="Number of users: those with the most records are selected.")] = 100,
    zeros: Zeros = None,
    columns: Columns = None,
    offer: Offer = None,
    like_above: LikeAbove = None,
    features_from: FeaturesFrom = None,
    item_features: ItemFeatures = None,
    separator: Separator = None,
    no_header: NoHeader = False,
    cache_dir: CacheDir = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Image file for the map of users, .png or .svg.", show_default="users-NAME.png in the current folder"
        ),
    ] = None,
) -> None:
    """Prepare a data set and print a summary: sizes, likes, distances between users, and true groups.

    The users are divided into 5 groups by K-means. The true group in each of them is the largest set of users in which
    the distance between the estimated preferences of any two users is below gamma. The summary shows the true groups at
    two values of gamma: 0.2, the value of the paper, and the smallest gamma at which at least half of the users are in
    true groups of two or more users.

    The prepared data is cached for later commands with the same files and the same options for reading them. The
    command writes a map of the users in two dimensions, coloured by true group at the second gamma.

    Examples:
    - `locb data movielens ml-25m.zip`
    - `locb data movielens --download ml-latest-small`
    - `locb data table likes.csv --columns user=customer,item=product,rating=stars`
    - `locb data table sales.csv --columns user=customer,item=product,reward=euros,time=day,feature=price`
    - `locb data table plays.csv --columns user=listener,item=song,rating=plays --like-above q75`
    - `locb data table ratings.dat --no-header --columns user=1,item=2,rating=3`
    """
    from locb.experiments.dataset_summary import summarize_dataset
    from locb.experiments.environment_factory import make_environment
    from locb.report.comparison_folder import write_group_chart
    from locb.report.tables.comparison_table import make_facts_table

    image = output or Path(f"users-{name}.png")
    if image.suffix not in (".png", ".svg"):
        raise ValueError(f"--output must end in .png or .svg, not {image.name!r}")
    if download is not None:
        path = _download(name, download, path or Path())
    if path is None:
        raise ValueError(f"PATH is required: the files of {name} (for movielens, you can use --download instead)")
    settings = data_settings(
        name,
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
    with preparing(path):
        env: Any = make_environment({**settings, "n_users": users}, 0)
        summary = summarize_dataset(env)
    console.print(make_facts_table(f"{name}: {path}", summary.facts))
    write_group_chart(env.theta, summary.groups, f"Users of {name}", summary.map_subtitle, image)
    print_written([image])


def _download(name: str, size: str, folder: Path) -> Path:
    from locb.datasets.download import LICENCE, download

    if name != "movielens":
        raise ValueError(
            f"--download is available for movielens only, not for {name}; get the files from the publisher"
        )
    if (target := folder / f"{size}.zip").exists():
        console.print(f"{target} exists and is not downloaded again.")
        return target
    console.print(LICENCE)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(size, total=None)
        return download(size, folder, progress=lambda done, total: bar.update(task, completed=done, total=total))

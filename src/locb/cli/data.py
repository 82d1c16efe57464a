"""locb data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from locb.cli.common import CacheDir, Columns, ItemFeatures, Zeros, console, data_world, preparing


def data(
    name: Annotated[str, typer.Argument(help="**movielens**, **yelp**, **yahoo** or **table**.")],
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
    - `locb data movielens ml-25m.zip`
    - `locb data movielens --download ml-latest-small`
    - `locb data table likes.csv --columns user=customer,item=product,rating=stars`
    """
    from locb.experiments.dataset_summary import survey
    from locb.experiments.environment_factory import make_environment
    from locb.report.comparison_folder import write_group_chart
    from locb.report.tables.comparison_table import make_facts_table

    picture = output or Path(f"users-{name}.png")
    if picture.suffix not in (".png", ".svg"):
        raise ValueError(f"--output must end in .png or .svg, not {picture.name!r}")
    if download is not None:
        path = _download(name, download, path or Path())
    if path is None:
        raise ValueError(f"PATH must name the files of {name} (or use --download)")
    world = data_world(name, path, zeros, columns, item_features, cache_dir)
    with preparing(path):
        env: Any = make_environment({**world, "n_users": users}, 0)
        found = survey(env)
    console.print(make_facts_table(f"{name}: {path}", found.facts))
    subtitle = f"θ of {env.n_users} users in two dimensions; groups of users all nearer than {found.gamma:.3g}"
    write_group_chart(env.theta, found.groups, f"Users of {name}", subtitle, picture)
    console.print(f"\nWritten:\n  {picture}", soft_wrap=True)


def _download(name: str, size: str, folder: Path) -> Path:
    from locb.datasets.download import LICENCE, download

    if name != "movielens":
        raise ValueError(f"--download is for movielens; {name} must be asked for at its publisher's")
    if (here := folder / f"{size}.zip").exists():
        console.print(f"{here} is already there and is not fetched again.")
        return here
    console.print(LICENCE)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(size, total=None)
        return download(size, folder, progress=lambda here, total: bar.update(task, completed=here, total=total))

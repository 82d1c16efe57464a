"""Reader of custom tables of likes or ratings: CSV, Parquet or JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from locb.datasets.item_features import one_hot
from locb.datasets.records import Records, load_environment
from locb.datasets.source_files import Source
from locb.datasets.text_files import json_lines
from locb.environments import Interactions

READERS = {".csv": "read_csv", ".tsv": "read_csv", ".parquet": "read_parquet", ".jsonl": "read_ndjson"}
READERS |= {".ndjson": "read_ndjson", ".json": "read_ndjson"}


def table(
    path: str | Path,
    *,
    user: str,
    item: str,
    rating: str | None = None,
    reward: str | None = None,
    threshold: float = 3.0,
    features: Sequence[str] = (),
    item_features: str | Path | None = None,
    n_users: int = 100,
    n_arms: int = 10,
    dim: int = 10,
    zeros: str = "any",
    cache_dir: str | Path | None = None,
) -> Interactions:
    """Read a custom table of likes or ratings as an environment.

    Parameters
    ----------
    path : path
        CSV (.csv, .tsv), Parquet (.parquet) or JSON lines file (.jsonl, .ndjson, .json). It may be gzipped (.gz).
    user, item : str
        Names of the columns of users and items. The values are numbers or text.
    rating, reward : str
        Set exactly one: the name of a column of ratings, or the name of a column of rewards 0 and 1.
    threshold : float, default 3.0
        Ratings above the threshold are likes.
    features : sequence of str, default ()
        Names of columns that describe the items. Text may have several values, separated by "|".
    item_features : path, optional
        Second table, used instead of ``features``: the column ``item``, and columns that describe the items.
    n_users, n_arms, zeros
        Number of users, arms per round, and items with reward 0. See :class:`locb.Interactions`.
    dim : int, default 10
        Features per item: dim − 1 computed from likes and descriptions, and a constant.
    cache_dir : path, optional
        Cache folder of the prepared data. The default is $LOCB_CACHE or the cache folder of the user.
    """
    if (rating is None) == (reward is None):
        raise ValueError("set exactly one of rating (column of ratings) and reward (column of 0 and 1)")
    if isinstance(features, str):
        features = [features]
    if features and item_features is not None:
        raise ValueError("set features or item_features, not both")
    sources = [Source(_check_file(path))]
    if item_features is not None:
        sources.append(Source(_check_file(item_features)))
    columns = {"user": user, "item": item, "rating": rating, "reward": reward, "features": list(features)}
    return load_environment(
        "table",
        sources,
        lambda: read(sources, columns, float(threshold)),
        options={**columns, "threshold": float(threshold)},
        dim=dim,
        cache_dir=cache_dir,
        n_users=n_users,
        n_arms=n_arms,
        zeros=zeros,
    )


def _check_file(path: str | Path) -> Path:
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(2, "No table at", str(file))
    return file


def read_frame(source: Source, required: Sequence[str], text: Sequence[str] = ()) -> Any:
    """Return the table in a file as a Polars data frame.

    Parameters
    ----------
    source : Source
        File of the table. Its suffix determines the format.
    required : sequence of str
        Columns that the table must have.
    text : sequence of str, default ()
        Columns of a CSV file that are read as text, so that "007" does not become 7.

    Raises
    ------
    ValueError
        If the format is unknown, or if the table cannot be read, has no rows or lacks a column.
    """
    import polars as pl

    suffix = (source.path.with_suffix("") if source.path.suffix == ".gz" else source.path).suffix.lower()
    if suffix not in READERS:
        raise ValueError(
            f"{source.name}: the file name must end in {', '.join(READERS)}, optionally with .gz, not {suffix!r}"
        )
    with source.open() as stream:
        data = stream.read()
    if not data.strip():
        raise ValueError(f"{source.name} is empty; it must have at least one row")
    options: dict[str, Any] = {}
    if READERS[suffix] == "read_csv":
        as_text = dict.fromkeys(text, pl.String)
        separator = "\t" if suffix == ".tsv" else ","
        options = {"infer_schema_length": None, "separator": separator, "schema_overrides": as_text}
    try:
        found = getattr(pl, READERS[suffix])(data, **options)
    except Exception as error:  # Polars errors have no common base class
        if READERS[suffix] == "read_ndjson":
            list(json_lines(source, dict))  # raises an error that names the line
        raise ValueError(f"cannot read {source.name} as {suffix}: {str(error).splitlines()[0]}") from error
    missing = [column for column in required if column not in found.columns]
    if missing:
        raise ValueError(f"{source.name} has no column {', '.join(missing)}; it has {', '.join(found.columns)}")
    if found.height == 0:
        raise ValueError(f"{source.name} has no rows; it must have at least one")
    return found


def read(sources: list[Source], columns: dict[str, Any], threshold: float) -> Records:
    """Return the records of a table, with item attributes from columns of the same table or from a second table.

    Parameters
    ----------
    sources : list of Source
        The table, and optionally a second table that describes the items.
    columns : dict
        Arguments ``user``, ``item``, ``rating``, ``reward`` and ``features`` of :func:`table`.
    threshold : float
        Ratings above the threshold are likes.
    """
    name, item, value = sources[0].name, columns["item"], columns["rating"] or columns["reward"]
    main = read_frame(sources[0], [columns["user"], item, value, *columns["features"]], [columns["user"], item])
    main = main.with_row_index("row of the table", offset=1)
    complete = main.drop_nulls([columns["user"], item, value])
    incomplete = main.height - complete.height
    if complete.height == 0:
        raise ValueError(f"{name} must have at least one row with values for {columns['user']}, {item} and {value}")
    numbers = complete[value].cast(float, strict=False).to_numpy()
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        row, shown = complete["row of the table"][int(wrong[0])], complete[value][int(wrong[0])]
        raise ValueError(f"{name}: column {value} must have numbers, but row {row} has {shown!r}")
    wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
    if columns["reward"] is not None and wrong.size:
        row = complete["row of the table"][int(wrong[0])]
        raise ValueError(f"{name}: column {value} must have 0 or 1, but row {row} has {numbers[wrong[0]]:g}")
    liked = numbers > (threshold if columns["reward"] is None else 0.5)
    user_names, users = _encode_column(complete[columns["user"]])
    names, items = _encode_column(complete[item])
    attributes = None
    described = (
        complete if columns["features"] else read_frame(sources[1], [item], [item]) if len(sources) > 1 else None
    )
    if described is not None:
        selected = columns["features"] or [column for column in described.columns if column != item]
        if not selected:
            raise ValueError(f"{sources[1].name} has no column other than {item}; add columns that describe the items")
        unique = described.unique(item, keep="first", maintain_order=True)
        attributes = item_attributes(unique, item, selected, names)
    skipped = {"rows without user, item or value": incomplete} if incomplete else {}
    encoded = np.array([str(user_name).encode() for user_name in user_names.to_list()])
    return Records(users, items, liked, len(names), attributes, user_names=encoded, skipped=skipped)


def _encode_column(column: Any) -> tuple[Any, Any]:
    """Return the distinct values of a column in the order of appearance, and the index of each element among them."""
    if column.dtype.is_nested():
        raise ValueError(f"column {column.name} must have numbers or text, not {column.dtype}")
    names = column.unique(maintain_order=True)
    index_of = dict(zip(names.to_list(), range(len(names)), strict=True))
    return names, np.fromiter((index_of[value] for value in column.to_list()), np.int32, len(column))


def item_attributes(items: Any, item: str, columns: Sequence[str], names: Any) -> Any:
    """Return a sparse matrix (items, attributes): standardized values of numeric columns, one-hot columns for text.

    A missing number is replaced by the mean of its column, and missing text gives zeros. An item without a row in
    ``items`` has only missing values. Text may have several values, separated by ``|``.

    Parameters
    ----------
    items : polars.DataFrame
        Descriptions, with at most one row per item.
    item : str
        Name of the column of items.
    columns : sequence of str
        Names of the columns that describe the items.
    names : polars.Series
        Items in the order of the rows of the result.

    Raises
    ------
    ValueError
        If no item has a value in any of the columns.
    """
    import polars as pl
    from scipy import sparse

    known = items.with_columns(pl.col(item).cast(pl.String))
    aligned = pl.DataFrame({item: names.cast(pl.String)}).join(known, on=item, how="left", maintain_order="left")
    if aligned.select(columns).null_count().sum_horizontal()[0] == aligned.height * len(columns):
        raise ValueError(f"no item of column {item} has a value in {', '.join(columns)}; add values")
    blocks = []
    for column in columns:
        values = aligned[column]
        if values.dtype.is_numeric():
            real = values.cast(float)
            real = real.set(~real.is_finite().fill_null(True), None)  # NaN and infinity count as missing
            numbers = real.fill_null(real.mean() or 0.0).to_numpy()
            spread = numbers.std()
            blocks.append(sparse.csr_matrix(((numbers - numbers.mean()) / (spread or 1.0)).astype(np.float32)[:, None]))
        else:
            blocks.append(one_hot([() if value is None else str(value).split("|") for value in values.to_list()]))
    return sparse.hstack(blocks, format="csr") if blocks else None

"""Any table of who liked what: CSV, Parquet or JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from locb.datasets.item_features import one_hot
from locb.datasets.records import Records, world
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
    """A table of your own as a world.

    Parameters
    ----------
    path : path
        A CSV (.csv, .tsv), Parquet (.parquet) or JSON lines file (.jsonl, .ndjson, .json), gzipped or not.
    user, item : str
        Columns of who and what, of any kind.
    rating, reward : str
        One of the two: a column of ratings, or a column of 0 and 1.
    threshold : float
        Ratings above this count as liked.
    features : list of str
        Columns of the same table that describe the item: numbers or words.
    item_features : path
        Or a table of its own, with a column of the same name as ``item`` and the columns that describe it.
    n_users, n_arms, zeros
        As for ``locb.Interactions``.
    dim : int
        Features of an item: dim − 1 from likes and descriptions, and a constant.
    cache_dir : path
        Where prepared data are kept; if not given $LOCB_CACHE, or locb in the user's cache folder.
    """
    if (rating is None) == (reward is None):
        raise ValueError("give one of rating= and reward=: the column of ratings, or the column of 0 and 1")
    if isinstance(features, str):
        features = [features]
    if features and item_features is not None:
        raise ValueError("give features= or item_features=, not both")
    sources = [Source(_existing(path))]
    if item_features is not None:
        sources.append(Source(_existing(item_features)))
    columns = {"user": user, "item": item, "rating": rating, "reward": reward, "features": list(features)}
    return world(
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


def _existing(path: str | Path) -> Path:
    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(2, "There is no table at", str(place))
    return place


def frame(source: Source, needed: Sequence[str], words: Sequence[str] = ()) -> Any:
    """A table that has these columns, those of ``words`` as text, or a ValueError that says what is wrong with it."""
    import polars as pl

    kind = (source.path.with_suffix("") if source.path.suffix == ".gz" else source.path).suffix.lower()
    if kind not in READERS:
        raise ValueError(f"{source.name}: a table ends in {', '.join(READERS)} (or these and .gz), not {kind!r}")
    with source.open() as stream:
        data = stream.read()
    if not data.strip():
        raise ValueError(f"{source.name} is empty")
    options: dict[str, Any] = {}
    if READERS[kind] == "read_csv":
        # Ids stay as they are written: 007 is not 7.
        as_text = dict.fromkeys(words, pl.String)
        separator = "\t" if kind == ".tsv" else ","
        options = {"infer_schema_length": None, "separator": separator, "schema_overrides": as_text}
    try:
        found = getattr(pl, READERS[kind])(data, **options)
    except Exception as error:  # Polars promises no common base class of its errors
        if READERS[kind] == "read_ndjson":
            list(json_lines(source, dict))  # names the line
        raise ValueError(f"{source.name} does not read as {kind}: {str(error).splitlines()[0]}") from error
    missing = [column for column in needed if column not in found.columns]
    if missing:
        raise ValueError(f"{source.name} has no column {', '.join(missing)}; it has {', '.join(found.columns)}")
    if found.height == 0:
        raise ValueError(f"{source.name} has no rows")
    return found


def read(sources: list[Source], columns: dict[str, Any], threshold: float) -> Records:
    """Records of a table, and what it, or a second table, says of the items."""
    name, item, value = sources[0].name, columns["item"], columns["rating"] or columns["reward"]
    main = frame(sources[0], [columns["user"], item, value, *columns["features"]], [columns["user"], item])
    main = main.with_row_index("row of the table", offset=1)
    whole = main.drop_nulls([columns["user"], item, value])
    incomplete = main.height - whole.height
    if whole.height == 0:
        raise ValueError(f"{name} has no row with {columns['user']}, {item} and {value}")
    numbers = whole[value].cast(float, strict=False).to_numpy()
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        place, shown = whole["row of the table"][int(wrong[0])], whole[value][int(wrong[0])]
        raise ValueError(f"{name}: column {value} must be numbers, but row {place} has {shown!r}")
    wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
    if columns["reward"] is not None and wrong.size:
        place = whole["row of the table"][int(wrong[0])]
        raise ValueError(f"{name}: column {value} must be 0 or 1, but row {place} has {numbers[wrong[0]]:g}")
    liked = numbers > (threshold if columns["reward"] is None else 0.5)
    user_names, users = _numbers(whole[columns["user"]])
    names, items = _numbers(whole[item])
    attributes = None
    told = whole if columns["features"] else frame(sources[1], [item], [item]) if len(sources) > 1 else None
    if told is not None:
        listed = columns["features"] or [column for column in told.columns if column != item]
        if not listed:
            raise ValueError(f"{sources[1].name} has no column but {item}: it says nothing of the items")
        attributes = described(told.unique(item, keep="first", maintain_order=True), item, listed, names)
    skipped = {"rows without a user, an item or a value": incomplete} if incomplete else {}
    called = np.array([str(each).encode() for each in user_names.to_list()])
    return Records(users, items, liked, len(names), attributes, user_names=called, skipped=skipped)


def _numbers(column: Any) -> tuple[Any, Any]:
    """The different values of a column, in the order in which they come, and the number of each among them."""
    if column.dtype.is_nested():
        raise ValueError(f"column {column.name} must be numbers or words, not {column.dtype}")
    names = column.unique(maintain_order=True)
    ranks = dict(zip(names.to_list(), range(len(names)), strict=True))
    return names, np.fromiter((ranks[value] for value in column.to_list()), np.int32, len(column))


def described(items: Any, item: str, columns: Sequence[str], names: Any) -> Any:
    """Sparse (items, a): numbers standardised, words as one column each."""
    import polars as pl
    from scipy import sparse

    known = items.with_columns(pl.col(item).cast(pl.String))
    aligned = pl.DataFrame({item: names.cast(pl.String)}).join(known, on=item, how="left", maintain_order="left")
    if aligned.select(columns).null_count().sum_horizontal()[0] == aligned.height * len(columns):
        raise ValueError(f"no item of column {item} is described by {', '.join(columns)}")
    parts = []
    for column in columns:
        values = aligned[column]
        if values.dtype.is_numeric():
            real = values.cast(float)
            real = real.set(~real.is_finite().fill_null(True), None)  # not a number, or infinite: as if not given
            numbers = real.fill_null(real.mean() or 0.0).to_numpy()
            spread = numbers.std()
            parts.append(sparse.csr_matrix(((numbers - numbers.mean()) / (spread or 1.0)).astype(np.float32)[:, None]))
        else:
            parts.append(one_hot([() if value is None else str(value).split("|") for value in values.to_list()]))
    return sparse.hstack(parts, format="csr") if parts else None

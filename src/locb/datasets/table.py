"""Reader of custom tables of likes or ratings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.validation import ParameterError
from locb.datasets.item_features import one_hot
from locb.datasets.like_threshold import check_like_above, find_likes
from locb.datasets.records import Records, load_environment
from locb.datasets.source_files import Source
from locb.datasets.table_files import TextFormat, check_text_format, read_frame
from locb.environments import Interactions

MIN_DESCRIBED = 0.8  # a column that describes a smaller share of the items gives a warning


def table(
    path: str | Path,
    *,
    user: str | int,
    item: str | int,
    rating: str | int | None = None,
    reward: str | int | None = None,
    like_above: float | str | None = None,
    features: Sequence[str | int] = (),
    item_features: str | Path | None = None,
    separator: str | None = None,
    header: bool = True,
    n_users: int = 100,
    n_arms: int | None = None,
    dim: int = 10,
    zeros: str = "any",
    features_from: str = "other-half",
    cache_dir: str | Path | None = None,
) -> Interactions:
    """Read a custom table of likes or ratings as an environment.

    Parameters
    ----------
    path : path
        Text file (.csv, .tsv, .dat, .txt), Parquet file (.parquet) or JSON lines file (.jsonl, .ndjson, .json). The
        file may be gzipped (.gz).
    user, item : str or int
        Names of the columns of users and items, or their numbers without a header. The values are numbers or text.
    rating, reward : str or int
        Set exactly one: the name of a column of ratings, or the name of a column of rewards 0 and 1.
    like_above : float or str, optional
        Ratings above this threshold are likes. A quantile such as "q75" is the smallest rating that at least 75% of the
        ratings do not exceed. The default is 3. It is rejected if fewer than 1% or more than 95% of the ratings would
        be likes.
    features : sequence of str or int, default ()
        Names of columns that describe the items. Text may have several values, separated by "|".
    item_features : path, optional
        Second table, used instead of ``features``: a column with the name ``item``, and columns that describe the
        items. Rows of the two tables belong together if their items are equal. Without a header, the item is the first
        column of the second table.
    separator : str, optional
        Separator of the columns of text files. By default, it is detected: comma, tab, ";", "::" or "|".
    header : bool, default True
        Whether the first line of text files has the names of the columns. If False, columns are numbered from 1.
    n_users, n_arms, zeros
        Number of users, arms per round, and which items have reward 0. See :class:`locb.Interactions`.
    dim : int, default 10
        Features per item, at least 2: dim − 1 computed from likes and descriptions, and a constant.
    features_from : {"other-half", "all"}, default "other-half"
        Records from which the features are computed, see :func:`locb.datasets.movielens`. With "all", the features
        contain the likes that are used in rounds, so rewards are higher than with new likes.
    cache_dir : path, optional
        Cache folder of the prepared data. The default is $LOCB_CACHE if set, else $XDG_CACHE_HOME/locb if set, else
        ~/.cache/locb.

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    ValueError
        If a file cannot be read or lacks a column, or if an argument is invalid.
    """
    columns = _check_columns(user, item, rating, reward, [features] if isinstance(features, str) else features)
    if rating is None and like_above is not None:
        raise ParameterError(
            "like_above", " requires rating, a column of ratings; with reward, a column of 0 and 1, omit like_above"
        )
    if features and item_features is not None:
        raise ValueError("features and item_features are both set; set only one of them")
    sources = [Source(_check_file(file)) for file in (path, item_features) if file is not None]
    text_format, threshold = TextFormat(separator, bool(header)), check_like_above(like_above)
    check_text_format(sources[0], text_format)
    return load_environment(
        "table",
        sources,
        lambda: read(sources, columns, text_format, threshold),
        options={**columns, **text_format._asdict(), "like_above": threshold},
        dim=dim,
        features_from=features_from,
        cache_dir=cache_dir,
        n_users=n_users,
        n_arms=n_arms,
        zeros=zeros,
    )


def _check_columns(user: Any, item: Any, rating: Any, reward: Any, features: Sequence[Any]) -> dict[str, Any]:
    """Return the names of the columns by role; raise a ValueError if they contradict each other."""
    if (rating is None) == (reward is None):
        found = "neither is" if rating is None else "both are"
        raise ValueError(f"set exactly one of rating (column of ratings) and reward (column of 0 and 1): {found} set")
    if item in features:
        raise ParameterError("features", f" must not contain {item!r}, the column of items")
    return {
        "user": str(user),
        "item": str(item),
        "rating": None if rating is None else str(rating),
        "reward": None if reward is None else str(reward),
        "features": list(dict.fromkeys(str(feature) for feature in features)),
    }


def _check_file(path: str | Path) -> Path:
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(2, "Table does not exist or is not a file", str(file))
    return file


def read(
    sources: list[Source], columns: dict[str, Any], text_format: TextFormat, like_above: float | str | None
) -> Records:
    """Return the records of a table, with item attributes from columns of the same table or from a second table.

    Parameters
    ----------
    sources : list of Source
        The table, and optionally a second table that describes the items.
    columns : dict
        Arguments ``user``, ``item``, ``rating``, ``reward`` and ``features`` of :func:`table`.
    text_format : TextFormat
        Separator and header of text files.
    like_above : float, str or None
        Threshold of ratings, see :func:`locb.datasets.like_threshold.find_likes`.
    """
    name, user, item, value = sources[0].name, columns["user"], columns["item"], columns["rating"] or columns["reward"]
    main = read_frame(sources[0], [user, item, value, *columns["features"]], [user, item], text_format)
    main = main.with_row_index("row of the table", offset=1)
    complete = main.drop_nulls([user, item, value])
    if complete.height == 0:
        raise ValueError(f"{name} must have at least one row with values for {user!r}, {item!r} and {value!r}")
    numbers = _check_numbers(complete, name, value, rewards_only=columns["reward"] is not None)
    likes = find_likes(numbers, like_above, name) if columns["reward"] is None else None
    user_names, users = _encode_column(complete[user])
    names, items = _encode_column(complete[item])
    attributes: Any = None
    notes: list[str] = []
    if columns["features"]:
        attributes, notes = describe_items(complete, item, columns["features"], names)
    elif len(sources) > 1:
        key = item if text_format.header else "1"
        described = read_frame(sources[1], [key], [key], text_format)
        selected = [column for column in described.columns if column != key]
        if not selected:
            raise ValueError(f"{sources[1].name} has no column other than {key!r}; add columns that describe the items")
        attributes, notes = describe_items(described, key, selected, names)
    incomplete = main.height - complete.height
    return Records(
        users,
        items,
        numbers > 0.5 if likes is None else likes.liked,
        len(names),
        attributes,
        user_names=np.array([str(user_name).encode() for user_name in user_names.to_list()]),
        skipped={"rows without user, item or value": incomplete} if incomplete else {},
        likes=likes,
        notes=notes,
    )


def _check_numbers(complete: Any, name: str, value: str, *, rewards_only: bool) -> Any:
    """Return a column as floats; raise a ValueError if a value is not a finite number, or a reward is not 0 or 1."""
    numbers = complete[value].cast(float, strict=False).to_numpy()
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        row, shown = complete["row of the table"][int(wrong[0])], complete[value][int(wrong[0])]
        raise ValueError(f"{name}: column {value!r} must have finite numbers, but row {row} has {shown!r}")
    wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
    if rewards_only and wrong.size:
        row = complete["row of the table"][int(wrong[0])]
        raise ValueError(f"{name}: column {value!r} must have 0 or 1, but row {row} has {numbers[wrong[0]]:g}")
    return numbers


def _encode_column(column: Any) -> tuple[Any, Any]:
    """Return the distinct values of a column in the order of appearance, and the index of each element in them."""
    if column.dtype.is_nested():
        raise ValueError(f"column {column.name!r} must have numbers or text, not {column.dtype}")
    names = column.unique(maintain_order=True)
    index_of = dict(zip(names.to_list(), range(len(names)), strict=True))
    return names, np.fromiter((index_of[value] for value in column.to_list()), np.int32, len(column))


def describe_items(table: Any, item: str, columns: Sequence[str], names: Any) -> tuple[Any, list[str]]:
    """Return the attributes of the items as a sparse matrix (items, attributes), and notes on the quality of columns.

    The value of an item in a column is the first value that is not missing. An item without a row in ``table`` has only
    missing values. Numeric columns are standardized, after missing numbers are replaced by the mean of the column. Text
    columns become one-hot columns, and missing text gives zeros. Text may have several values, separated by ``|``.

    The notes state which columns have no value for many items, and which have several values for an item.

    Parameters
    ----------
    table : polars.DataFrame
        Descriptions, with any number of rows per item.
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

    floats = [column for column in columns if table[column].dtype.is_float()]
    known = table.select(pl.col(item).cast(pl.String), *columns).with_columns(
        pl.when(pl.col(column).is_finite()).then(pl.col(column)).alias(column)  # NaN and infinity count as missing
        for column in floats
    )
    values = known.group_by(item).agg(pl.col(columns).drop_nulls().first())
    aligned = pl.DataFrame({item: names.cast(pl.String)}).join(values, on=item, how="left", maintain_order="left")
    if all(aligned[column].null_count() == aligned.height for column in columns):
        described = ", ".join(map(repr, columns))
        raise ValueError(
            f"none of the {len(names):,} items has a value in {described}: column {item!r} must contain the ids of "
            "these items, and at least one of them must have a value"
        )
    variants = (
        known.join(aligned.select(item), on=item, how="semi")
        .group_by(item)
        .agg(pl.col(columns).drop_nulls().n_unique())
    )
    blocks, notes = [], []
    for column in columns:
        notes += _note_quality(column, aligned[column], int((variants[column] > 1).sum()))
        if aligned[column].dtype.is_numeric():
            real = aligned[column].cast(float)
            numbers = real.fill_null(real.mean() or 0.0).to_numpy()
            spread = numbers.std()
            blocks.append(sparse.csr_matrix(((numbers - numbers.mean()) / (spread or 1.0)).astype(np.float32)[:, None]))
        else:
            texts = aligned[column].to_list()
            blocks.append(one_hot([() if value is None else str(value).split("|") for value in texts]))
    return sparse.hstack(blocks, format="csr"), notes


def _note_quality(column: str, values: Any, n_varying: int) -> list[str]:
    """Return a note if fewer than 80% of the items have a value, and a note if items have several values."""
    n_items, notes = len(values), []
    described = n_items - values.null_count()
    if described < MIN_DESCRIBED * n_items:
        rest = "the mean" if values.dtype.is_numeric() else "no label"
        share = f"{described:,} of {n_items:,} items ({described / n_items:.1%})"
        notes.append(f"column {column!r} has a value for {share}; the other items get {rest}")
    if n_varying:
        share = f"{n_varying:,} of {n_items:,} items ({n_varying / n_items:.1%})"
        notes.append(f"column {column!r} has more than one value for {share}; the first value of each item is used")
    return notes

"""Reader of custom tables of rewards, ratings or likes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.validation import ParameterError, ParameterName, check_choice
from locb.datasets.column_values import parse_numbers, parse_times
from locb.datasets.item_descriptions import describe_items
from locb.datasets.like_threshold import check_like_above, find_likes
from locb.datasets.records import Records, load_environment, load_recorded_rewards
from locb.datasets.source_files import Source
from locb.datasets.table_files import TextFormat, check_text_format, read_frame
from locb.environments import Interactions, RecordedRewards

OFFERS = ("recorded", "one-liked")


def table(
    path: str | Path,
    *,
    user: str | int,
    item: str | int,
    rating: str | int | None = None,
    reward: str | int | None = None,
    time: str | int | None = None,
    offer: str | None = None,
    like_above: float | str | None = None,
    features: Sequence[str | int] = (),
    item_features: str | Path | None = None,
    separator: str | None = None,
    header: bool = True,
    n_users: int = 100,
    n_arms: int | None = None,
    dim: int = 10,
    zeros: str | None = None,
    features_from: str | None = None,
    cache_dir: str | Path | None = None,
) -> Interactions | RecordedRewards:
    """Read a custom table of rewards, ratings or likes as an environment.

    Parameters
    ----------
    path : path
        Text file (.csv, .tsv, .dat, .txt), Parquet file (.parquet) or JSON lines file (.jsonl, .ndjson, .json). The
        file may be gzipped (.gz).
    user, item : str or int
        Names of the columns of users and items, or their numbers without a header. The values are numbers or text.
    rating, reward : str or int
        Set exactly one: the name of a column of ratings or of rewards. With ``offer="recorded"``, both have any
        numbers, also as text such as "12,50 €". With ``offer="one-liked"``, rewards are 0 and 1.
    time : str or int, optional
        Name of a column of times. Records are sorted by time. By default, they keep the order of the table.
    offer : {"recorded", "one-liked"}, optional
        What a round offers. "recorded": items for which the user has a record, with the recorded rewards, in the order
        of the records (:class:`locb.RecordedRewards`). "one-liked": one item that the user liked, with reward 1, and
        items with reward 0 (:class:`locb.Interactions`). The default is "recorded", unless ``like_above`` or ``zeros``
        is set.
    like_above : float or str, optional
        With ``offer="one-liked"``: ratings above this threshold are likes. A quantile such as "q75" is the smallest
        rating that at least 75% of the ratings do not exceed. The default is 3. It is rejected if fewer than 1% or more
        than 95% of the ratings would be likes.
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
        Features per item, at least 2: dim − 1 computed from records and descriptions, and a constant.
    features_from : {"own", "other-half", "all"}, optional
        "own": the columns that describe the items, and a constant, instead of ``dim`` features. "other-half", "all":
        records from which features are computed, see :func:`locb.datasets.movielens`; with ``time``, "other-half" is
        the earlier half. "all" reveals rewards that are used in rounds. The default is "other-half", or with
        ``offer="recorded"`` "own" if columns describe the items.
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
    columns = _check_columns(user, item, rating, reward, time, [features] if isinstance(features, str) else features)
    offer = _check_offer(offer, like_above, zeros, time)
    if rating is None and like_above is not None:
        raise ParameterError(
            "like_above", " requires rating, a column of ratings; with reward, a column of 0 and 1, omit like_above"
        )
    if features and item_features is not None:
        raise ValueError("features and item_features are both set; set only one of them")
    sources = [Source(_check_file(file)) for file in (path, item_features) if file is not None]
    text_format, threshold = TextFormat(separator, bool(header)), check_like_above(like_above)
    check_text_format(sources[0], text_format)
    is_described = bool(columns["features"]) or item_features is not None
    if features_from is None:
        features_from = "own" if is_described and offer == "recorded" else "other-half"
    source = "table", sources, lambda: read(sources, columns, text_format, threshold, offer)
    arguments: dict[str, Any] = {"dim": dim, "features_from": features_from, "cache_dir": cache_dir}
    arguments |= {"n_users": n_users, "n_arms": n_arms}
    options = {**columns, **text_format._asdict(), "like_above": threshold, "offer": offer}
    if offer == "recorded":
        return load_recorded_rewards(*source, options=options, **arguments)
    return load_environment(*source, options=options, zeros=zeros or "any", **arguments)


def _check_offer(offer: Any, like_above: Any, zeros: Any, time: Any) -> str:
    """Return what a round offers; raise a ValueError if other arguments contradict it."""
    likes = {name: value for name, value in (("like_above", like_above), ("zeros", zeros)) if value is not None}
    if offer is None:
        offer = "one-liked" if likes else "recorded"
    check_choice("offer", offer, OFFERS)
    if likes and offer == "recorded":
        name = next(iter(likes))
        raise ParameterError(
            name, " is allowed only with ", ParameterName("offer"), " 'one-liked', not with 'recorded'"
        )
    if time is not None and offer == "one-liked":
        found = " is allowed only with ", ParameterName("offer"), " 'recorded', because other rounds are random"
        raise ParameterError("time", *found)
    return str(offer)


def _check_columns(
    user: Any, item: Any, rating: Any, reward: Any, time: Any, features: Sequence[Any]
) -> dict[str, Any]:
    """Return the names of the columns by role; raise a ValueError if they contradict each other."""
    if (rating is None) == (reward is None):
        found = "neither is" if rating is None else "both are"
        raise ValueError(f"set exactly one of rating (column of ratings) and reward (column of rewards): {found} set")
    if item in features:
        raise ParameterError("features", f" must not contain {item!r}, the column of items")
    return {
        "user": str(user),
        "item": str(item),
        "rating": None if rating is None else str(rating),
        "reward": None if reward is None else str(reward),
        "time": None if time is None else str(time),
        "features": list(dict.fromkeys(str(feature) for feature in features)),
    }


def _check_file(path: str | Path) -> Path:
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(2, "Table does not exist or is not a file", str(file))
    return file


def read(
    sources: list[Source],
    columns: dict[str, Any],
    text_format: TextFormat,
    like_above: float | str | None,
    offer: str,
) -> Records:
    """Return the records of a table, with item attributes from columns of the same table or from a second table.

    Parameters
    ----------
    sources : list of Source
        The table, and optionally a second table that describes the items.
    columns : dict
        Arguments ``user``, ``item``, ``rating``, ``reward``, ``time`` and ``features`` of :func:`table`.
    text_format : TextFormat
        Separator and header of text files.
    like_above : float, str or None
        Threshold of ratings, see :func:`locb.datasets.like_threshold.find_likes`.
    offer : {"recorded", "one-liked"}
        Whether to keep the rewards of the records, or to make likes of them.
    """
    name, user, item, value = sources[0].name, columns["user"], columns["item"], columns["rating"] or columns["reward"]
    needed = [user, item, value] + ([] if columns["time"] is None else [columns["time"]])
    main = read_frame(sources[0], [*needed, *columns["features"]], [user, item], text_format)
    main = main.with_row_index("row of the table", offset=1)
    complete = main.drop_nulls(needed)
    if complete.height == 0:
        raise ValueError(f"{name} must have at least one row with values for {_join(needed)}")
    if columns["time"] is not None:
        complete = _sort_by_time(complete, name, columns["time"])
    values = _values(complete, name, columns, like_above, offer)
    user_names, users = _encode_column(complete[user])
    names, items = _encode_column(complete[item])
    attributes, notes = _describe(sources, complete, columns, text_format, names)
    incomplete, missing = main.height - complete.height, "rows without user, item, value or time"
    return Records(
        users,
        items,
        n_items=len(names),
        attributes=attributes,
        user_names=_encode_names(user_names),
        skipped={missing if columns["time"] else "rows without user, item or value": incomplete} if incomplete else {},
        notes=notes,
        has_times=columns["time"] is not None,
        item_names=_encode_names(names) if offer == "recorded" else None,
        **values,
    )


def _values(
    complete: Any, name: str, columns: dict[str, Any], like_above: float | str | None, offer: str
) -> dict[str, Any]:
    """Return the fields of ``Records`` with the rewards or the likes."""
    value = columns["rating"] or columns["reward"]
    if offer == "recorded":
        numbers, _ = parse_numbers(complete[value])
        _check_finite(numbers, complete, name, value)
        return {"liked": None, "rewards": numbers}
    numbers = _check_numbers(complete, name, value, rewards_only=columns["reward"] is not None)
    likes = find_likes(numbers, like_above, name) if columns["reward"] is None else None
    return {"liked": numbers > 0.5 if likes is None else likes.liked, "likes": likes}


def _sort_by_time(complete: Any, name: str, column: str) -> Any:
    """Return the rows in the order of time; rows with the same time keep their order."""
    times, wrong = parse_times(complete[column])
    for index in np.flatnonzero(wrong)[:1].tolist():
        row, shown = complete["row of the table"][index], complete[column][index]
        raise ValueError(f"{name}: column {column!r} must have times, but row {row} has {shown!r}")
    return complete[np.argsort(times, kind="stable")]


def _describe(
    sources: list[Source], complete: Any, columns: dict[str, Any], text_format: TextFormat, names: Any
) -> tuple[Any, list[str]]:
    """Return the attributes of the items, or None, and notes on their quality."""
    if columns["features"]:
        return describe_items(complete, columns["item"], columns["features"], names)
    if len(sources) == 1:
        return None, []
    key = columns["item"] if text_format.header else "1"
    described = read_frame(sources[1], [key], [key], text_format)
    selected = [column for column in described.columns if column != key]
    if not selected:
        raise ValueError(f"{sources[1].name} has no column other than {key!r}; add columns that describe the items")
    return describe_items(described, key, selected, names)


def _join(columns: list[str]) -> str:
    *first, last = map(repr, columns)
    return f"{', '.join(first)} and {last}"


def _encode_names(names: Any) -> Any:
    return np.array([str(name).encode() for name in names.to_list()])


def _check_numbers(complete: Any, name: str, value: str, *, rewards_only: bool) -> Any:
    """Return a column as floats; raise a ValueError if a value is not a finite number, or a reward is not 0 or 1."""
    numbers = complete[value].cast(float, strict=False).to_numpy()
    _check_finite(numbers, complete, name, value)
    wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
    if rewards_only and wrong.size:
        row = complete["row of the table"][int(wrong[0])]
        raise ValueError(
            f"{name}: column {value!r} must have 0 or 1, but row {row} has {numbers[wrong[0]]:g}; for ratings, use "
            "rating (rating=…) instead of reward"
        )
    return numbers


def _check_finite(numbers: Any, complete: Any, name: str, value: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        row, shown = complete["row of the table"][int(wrong[0])], complete[value][int(wrong[0])]
        raise ValueError(f"{name}: column {value!r} must have finite numbers, but row {row} has {shown!r}")


def _encode_column(column: Any) -> tuple[Any, Any]:
    """Return the distinct values of a column in the order of appearance, and the index of each element in them."""
    if column.dtype.is_nested():
        raise ValueError(f"column {column.name!r} must have numbers or text, not {column.dtype}")
    names = column.unique(maintain_order=True)
    index_of = dict(zip(names.to_list(), range(len(names)), strict=True))
    return names, np.fromiter((index_of[value] for value in column.to_list()), np.int32, len(column))

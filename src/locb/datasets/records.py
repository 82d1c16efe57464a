"""Records of a data set, and their conversion to an environment."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.validation import ParameterError
from locb.datasets.dataset_cache import load_or_prepare
from locb.datasets.item_features import ATTRIBUTE_WEIGHT, item_features, own_features, split_records
from locb.datasets.like_threshold import Likes
from locb.datasets.source_files import Source
from locb.environments import Interactions, RecordedRewards
from locb.environments.recorded_users import RecordedUsers

RECORD_VALUES = ("liked", "rewards", "counts", "user_names", "item_names")  # optional arrays of ``Records``
FEATURES_FROM = ("other-half", "all", "own")


@dataclass(frozen=True)
class Records:
    """Records of a data set: which user liked which item. Users and items are numbered from 0."""

    users: Any  # int32 array: user of each record
    items: Any  # int32 array: item of each record
    liked: Any  # bool array: whether the user of each record liked the item; None if there are rewards
    n_items: int
    attributes: Any = None  # sparse matrix (items, attributes), for example genres; None if there are none
    features: Any = None  # array (items, features) if the data set has its own features
    user_names: Any = None  # array of integers or bytes: the name of each user in the data set
    counts: Any = None  # array: number of occurrences of each record; None if each occurs once
    skipped: dict[str, int] = field(default_factory=dict)  # number of skipped lines by reason
    likes: Likes | None = None  # which ratings are likes; None if the data set has no ratings
    notes: list[str] = field(default_factory=list)  # limitations of the data, issued as warnings
    rewards: Any = None  # float array: reward of each record, for rounds of recorded rewards; None for rounds of likes
    item_names: Any = None  # array of bytes: name of each item, if there are rewards
    has_times: bool = False  # whether the records are in the order of time


def encode_ids(values: Any) -> tuple[Any, Any]:
    """Return the sorted distinct values of an array, and the index of each element in these values."""
    names, indices = np.unique(values, return_inverse=True)
    return names, indices.astype(np.int32)


def load_environment(
    name: str,
    sources: list[Source],
    read: Callable[[], Records],
    *,
    options: dict[str, Any],
    dim: int | None,
    features_from: str = "all",
    cache_dir: str | Path | None,
    **arguments: Any,
) -> Interactions:
    """Return the environment of a data set. The prepared data comes from the cache if files and options are unchanged.

    Parameters
    ----------
    name : str
        Name of the reader.
    sources : list of Source
        Files of the data set. Their fingerprints are part of the cache key.
    read : callable
        Function without arguments that reads the files and returns :class:`Records`.
    options : dict
        Options of the reader. They are part of the cache key.
    dim : int or None
        Number of features per item to compute; None if the data set has its own features.
    features_from : {"other-half", "all", "own"}, default "all"
        Records from which the features are computed, see :func:`locb.datasets.movielens`; "own" for the attributes of
        the items.
    cache_dir : path or None
        Cache folder; None for :func:`locb.common.cache_dir.cache_dir`.
    **arguments
        Arguments of :class:`locb.Interactions`.
    """
    arrays, facts = _load(name, sources, read, options, dim, features_from, cache_dir)
    users, items, liked, counts = (arrays.get(column) for column in ("users", "items", "liked", "counts"))
    played, excluded = arrays.get("played"), None
    if played is not None:
        # The pairs of the other records are never arms, because the features of their items reveal the reward.
        excluded = arrays["users"][~played], arrays["items"][~played]
        users, items, liked = (arrays[column][played] for column in ("users", "items", "liked"))
        counts = None if counts is None else counts[played]
    env = Interactions(users, items, liked, arrays["features"], counts=counts, excluded=excluded, **arguments)
    _add_facts(env, name, arrays, facts)
    return env


def load_recorded_rewards(
    name: str,
    sources: list[Source],
    read: Callable[[], Records],
    *,
    options: dict[str, Any],
    dim: int,
    features_from: str,
    cache_dir: str | Path | None,
    **arguments: Any,
) -> RecordedRewards:
    """Return the environment of records with rewards; the parameters are those of ``load_environment``.

    ``arguments`` are those of :class:`locb.RecordedRewards`.
    """
    arrays, facts = _load(name, sources, read, options, dim, features_from, cache_dir)
    kept = arrays.get("played", slice(None))
    users, items, rewards = (arrays[column][kept] for column in ("users", "items", "rewards"))
    env = RecordedRewards(users, items, rewards, arrays["features"], **arguments)
    env.item_names = _decode(arrays["item_names"])
    _add_facts(env, name, arrays, facts)
    return env


def _load(
    name: str,
    sources: list[Source],
    read: Callable[[], Records],
    options: dict[str, Any],
    dim: int | None,
    features_from: str,
    cache_dir: str | Path | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays and facts of a data set from the cache, or prepare them. Issue warnings about the data."""
    _check_feature_options(name, dim, features_from)
    key: dict[str, Any] = {
        "name": name,
        "files": [source.fingerprint() for source in sources],
        "options": options,
        "dim": dim,
        "features_from": features_from,
    }
    key |= {"attribute_weight": ATTRIBUTE_WEIGHT}

    def prepare() -> tuple[dict[str, Any], dict[str, Any]]:
        records = read()
        if len(records.users) == 0:
            raise ValueError(f"{sources[0].name} has no records; at least one is required")
        return _prepare(records, dim, features_from)

    arrays, facts = load_or_prepare(cache_dir, key, prepare)
    for reason, count in facts["skipped"].items():
        warnings.warn(f"{name}: skipped {count:,} {reason}", stacklevel=4)
    for note in facts["notes"]:
        warnings.warn(f"{name}: {note}", stacklevel=4)
    return arrays, facts


def _add_facts(env: RecordedUsers, name: str, arrays: dict[str, Any], facts: dict[str, Any]) -> None:
    if "user_names" in arrays:
        env.user_names = _decode(arrays["user_names"][env.user_ids])
    env.about = {"data": name, **facts}


def _decode(names: Any) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for value in names.tolist()]


def _check_feature_options(name: str, dim: Any, features_from: Any) -> None:
    if dim is not None and (not isinstance(dim, int | np.integer) or dim < 2):
        raise ParameterError("dim", f" must be an integer of at least 2, not {dim!r}")
    choices = FEATURES_FROM if name == "table" else FEATURES_FROM[:2]
    if features_from not in choices:
        allowed = " or ".join(map(repr, choices))
        raise ParameterError("features_from", f" must be {allowed}, not {features_from!r}")


def _prepare(records: Records, dim: int | None, features_from: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of an environment by name, and facts about the data, such as the number of records."""
    arrays = {"users": records.users, "items": records.items}
    arrays |= {name: getattr(records, name) for name in RECORD_VALUES if getattr(records, name) is not None}
    if dim is None:
        arrays["features"] = records.features
    elif features_from == "own":
        arrays["features"] = own_features(records.attributes)
    elif features_from == "all":
        arrays["features"] = item_features(records, dim)
    else:
        sizes = records.users, records.items, records.n_items
        arrays["played"] = split_records(*sizes, by_time=records.has_times)
        arrays["features"] = item_features(records, dim, ~arrays["played"])
    counts = np.ones(len(records.users)) if records.counts is None else records.counts
    facts = {
        "records": int(counts.sum()),
        "users": len(np.unique(records.users)),
        "items": records.n_items,
        "share_of_likes": None if records.liked is None else float((counts * records.liked).sum() / counts.sum()),
        "rewards": None if records.rewards is None else _limits(records.rewards),
        "has_times": records.has_times,
        "like_above": None if records.likes is None else records.likes.threshold,
        "like_above_origin": None if records.likes is None else records.likes.origin,
        "features_from": None if dim is None else features_from,
        "skipped": records.skipped,
        "notes": records.notes,
    }
    return arrays, facts


def _limits(rewards: Any) -> list[float]:
    """Return the smallest, the mean and the largest reward."""
    return [float(rewards.min()), float(rewards.mean()), float(rewards.max())]

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
from locb.datasets.item_features import ATTRIBUTE_WEIGHT, item_features
from locb.datasets.likes import Likes
from locb.datasets.source_files import Source
from locb.environments import Interactions


@dataclass(frozen=True)
class Records:
    """Records of a data set: which user liked which item. Users and items are numbered from 0."""

    users: Any  # int32 array: user of each record
    items: Any  # int32 array: item of each record
    liked: Any  # bool array: whether the user of each record liked the item
    n_items: int
    attributes: Any = None  # sparse matrix (items, attributes), for example genres; None if there are none
    features: Any = None  # array (items, features) if the data set has its own features
    user_names: Any = None  # array of integers or bytes: the name of each user in the data set
    counts: Any = None  # array: number of occurrences of each record; None if each occurs once
    skipped: dict[str, int] = field(default_factory=dict)  # number of skipped lines by reason
    likes: Likes | None = None  # which ratings are likes; None if the data set has no ratings
    notes: list[str] = field(default_factory=list)  # limitations of the data, issued as warnings


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
    cache_dir : path or None
        Cache folder; None for :func:`locb.common.cache_dir.cache_dir`.
    **arguments
        Arguments of :class:`locb.Interactions`.
    """
    if dim is not None and (not isinstance(dim, int | np.integer) or dim < 2):
        raise ParameterError("dim", f" must be an integer of at least 2, not {dim!r}")
    key: dict[str, Any] = {
        "name": name,
        "files": [source.fingerprint() for source in sources],
        "options": options,
        "dim": dim,
    }
    key |= {"attribute_weight": ATTRIBUTE_WEIGHT}

    def prepare() -> tuple[dict[str, Any], dict[str, Any]]:
        records = read()
        if len(records.users) == 0:
            raise ValueError(f"{sources[0].name} has no records; at least one is required")
        return _prepare(records, dim)

    arrays, facts = load_or_prepare(cache_dir, key, prepare)
    for reason, count in facts["skipped"].items():
        warnings.warn(f"{name}: skipped {count:,} {reason}", stacklevel=3)
    for note in facts["notes"]:
        warnings.warn(f"{name}: {note}", stacklevel=3)
    counts = arrays.get("counts")
    env = Interactions(
        arrays["users"], arrays["items"], arrays["liked"], arrays["features"], counts=counts, **arguments
    )
    if "user_names" in arrays:
        names = arrays["user_names"][env.user_ids].tolist()
        env.user_names = [value.decode() if isinstance(value, bytes) else str(value) for value in names]
    env.about = {"data": name, **facts}
    return env


def _prepare(records: Records, dim: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of an environment by name, and facts about the data, such as the number of records."""
    features = records.features if dim is None else item_features(records, dim)
    arrays = {"users": records.users, "items": records.items, "liked": records.liked, "features": features}
    if records.user_names is not None:
        arrays["user_names"] = records.user_names
    if records.counts is not None:
        arrays["counts"] = records.counts
    counts = np.ones(len(records.users)) if records.counts is None else records.counts
    facts = {
        "records": int(counts.sum()),
        "users": len(np.unique(records.users)),
        "items": records.n_items,
        "share_of_likes": float((counts * records.liked).sum() / counts.sum()),
        "like_above": None if records.likes is None else records.likes.threshold,
        "like_above_origin": None if records.likes is None else records.likes.origin,
        "skipped": records.skipped,
        "notes": records.notes,
    }
    return arrays, facts

"""Records of who met which item and liked it, and the way from them to a world."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from locb.datasets import dataset_cache as cache
from locb.datasets.item_features import SAID, item_features
from locb.datasets.source_files import Source
from locb.environments import Interactions


@dataclass(frozen=True)
class Records:
    """What a reader gives: users and items numbered from 0, and what the data say of items."""

    users: Any  # (r,) int32
    items: Any  # (r,) int32
    liked: Any  # (r,) bool
    n_items: int
    attributes: Any = None  # (items, a) sparse: genres, categories, attributes; None where there are none
    features: Any = None  # (items, d) where the data come with features of their own
    user_names: Any = None  # (users,) numbers or bytes: what the data call each user
    counts: Any = None  # (r,) how many times each record happened; None for once
    skipped: dict[str, int] = field(default_factory=dict)  # lines that were passed over, by reason


def numbered(values: Any) -> tuple[Any, Any]:
    """The different values, sorted, and the number of each value among them."""
    names, numbers = np.unique(values, return_inverse=True)
    return names, numbers.astype(np.int32)


def world(
    name: str,
    sources: list[Source],
    read: Callable[[], Records],
    *,
    options: dict[str, Any],
    dim: int | None,
    cache_dir: str | Path | None,
    **arguments: Any,
) -> Interactions:
    """The world of some files: from the cache if they and the options are as they were, else read and prepared."""
    if dim is not None and (not isinstance(dim, int | np.integer) or dim < 2):
        raise ValueError(f"dim must be a whole number of at least 2, not {dim!r}")
    key = {"name": name, "files": [s.fingerprint() for s in sources], "options": options, "dim": dim, "said": SAID}

    def make() -> tuple[dict[str, Any], dict[str, Any]]:
        records = read()
        if len(records.users) == 0:
            raise ValueError(f"{sources[0].name}: there is no record in it")
        return _prepare(records, dim)

    arrays, about = cache.prepared(cache_dir, key, make)
    for reason, count in about["skipped"].items():
        warnings.warn(f"{name}: {count:,} {reason}", stacklevel=3)
    counts = arrays.get("counts")
    env = Interactions(
        arrays["users"], arrays["items"], arrays["liked"], arrays["features"], counts=counts, **arguments
    )
    if "user_names" in arrays:
        names = arrays["user_names"][env.user_ids].tolist()
        env.user_names = [each.decode() if isinstance(each, bytes) else str(each) for each in names]
    env.about = {"data": name, **about}
    return env


def _prepare(records: Records, dim: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays that a world is made of, and what is said of the data."""
    features = records.features if dim is None else item_features(records, dim)
    arrays = {"users": records.users, "items": records.items, "liked": records.liked, "features": features}
    if records.user_names is not None:
        arrays["user_names"] = records.user_names
    if records.counts is not None:
        arrays["counts"] = records.counts
    times = np.ones(len(records.users)) if records.counts is None else records.counts
    about = {
        "records": int(times.sum()),
        "users": len(np.unique(records.users)),
        "items": records.n_items,
        "share_of_likes": float((times * records.liked).sum() / times.sum()),
        "skipped": records.skipped,
    }
    return arrays, about

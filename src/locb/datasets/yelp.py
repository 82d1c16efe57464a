"""Yelp's open data set: reviews and businesses, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from locb.datasets.item_features import one_hot
from locb.datasets.records import Records, world
from locb.datasets.source_files import Source, find
from locb.datasets.text_files import json_lines
from locb.environments import Interactions

LAYOUTS = (
    ("yelp_academic_dataset_review.json", "yelp_academic_dataset_business.json"),
    ("review.json", "business.json"),
)
LEAST = 5  # businesses that must share a category or an attribute for it to count


class Review(msgspec.Struct):
    """What is kept of a review; its text is passed over as it is read."""

    user_id: str
    business_id: str
    stars: float


class Business(msgspec.Struct):
    """What is kept of a business. Categories were a list in old releases and are a string, or null, in new ones."""

    business_id: str
    categories: list[str] | str | None = None
    attributes: dict[str, Any] | list[str] | None = None


def yelp(
    path: str | Path,
    *,
    n_users: int = 100,
    n_arms: int = 10,
    dim: int = 10,
    zeros: str = "any",
    threshold: float = 3.0,
    cache_dir: str | Path | None = None,
) -> Interactions:
    """Yelp reviews as a world.

    Parameters
    ----------
    path : path
        The folder of the JSON files, the publisher's tar, or the review file.
    n_users, n_arms, zeros
        As for ``locb.Interactions``.
    dim : int
        Features of a business: dim − 1 from reviews, categories and attributes, and a constant.
    threshold : float
        More stars than this count as liked.
    cache_dir : path
        Where prepared data are kept; if not given $LOCB_CACHE, or locb in the user's cache folder.
    """
    sources = find(Path(path), LAYOUTS, "Yelp")
    return world(
        "yelp",
        sources,
        lambda: read(sources[0], sources[1], float(threshold)),
        options={"threshold": float(threshold)},
        dim=dim,
        cache_dir=cache_dir,
        n_users=n_users,
        n_arms=n_arms,
        zeros=zeros,
    )


def read(reviews: Source, businesses: Source, threshold: float) -> Records:
    """Records and attributes of the two files."""
    user_of: dict[str, int] = {}
    item_of: dict[str, int] = {}
    chunks: list[Any] = []
    rows: list[tuple[int, int, bool]] = []
    for review in json_lines(reviews, Review):
        user = user_of.setdefault(review.user_id, len(user_of))
        rows.append((user, item_of.setdefault(review.business_id, len(item_of)), review.stars > threshold))
        if len(rows) == 1 << 18:  # as small numbers, not as objects
            chunks.append(np.array(rows, np.int32))
            rows.clear()
    table = np.concatenate([*chunks, np.array(rows, np.int32).reshape(-1, 3)])
    words: list[tuple[str, ...]] = [()] * len(item_of)
    for business in json_lines(businesses, Business):
        if (item := item_of.get(business.business_id)) is not None:
            words[item] = tuple(words_of(business))
    return Records(
        np.ascontiguousarray(table[:, 0]),
        np.ascontiguousarray(table[:, 1]),
        table[:, 2].astype(bool),
        len(item_of),
        one_hot(words, least=min(LEAST, max(1, len(item_of) // 100))),
        user_names=np.array([user.encode() for user in user_of]),
    )


def words_of(business: Business) -> Iterator[str]:
    """Categories, and attributes that are said to hold: "WiFi=free", "Parking=True"."""
    categories = business.categories or []
    for category in categories.split(",") if isinstance(categories, str) else categories:
        yield category.strip()
    attributes = business.attributes or {}
    for name, value in attributes.items() if isinstance(attributes, dict) else ((each, True) for each in attributes):
        if value not in (None, False, "None", "False", "no", "u'no'", "'no'", "u'none'", "'none'"):
            yield f"{name}={value}"

"""Reader of the Yelp Open Dataset: files of reviews and businesses with one JSON object per line."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from locb.datasets.item_features import one_hot
from locb.datasets.like_threshold import check_like_above, find_likes
from locb.datasets.records import Records, load_environment
from locb.datasets.source_files import Source, find_sources
from locb.datasets.text_files import json_lines
from locb.environments import Interactions

LAYOUTS = (
    ("yelp_academic_dataset_review.json", "yelp_academic_dataset_business.json"),
    ("review.json", "business.json"),
)
# Categories and attributes of fewer businesses than this, and than 1% of all businesses, are dropped.
MIN_BUSINESSES = 5


class Review(msgspec.Struct):
    """Fields of a Yelp review that are read."""

    user_id: str
    business_id: str
    stars: float


class Business(msgspec.Struct):
    """Fields of a Yelp business that are read.

    Categories are a list in old releases of the data set, and a string or null in new releases.
    """

    business_id: str
    categories: list[str] | str | None = None
    attributes: dict[str, Any] | list[str] | None = None


def yelp(
    path: str | Path,
    *,
    n_users: int = 100,
    n_arms: int | None = None,
    dim: int = 10,
    zeros: str = "any",
    like_above: float | str | None = None,
    features_from: str = "other-half",
    cache_dir: str | Path | None = None,
) -> Interactions:
    """Read Yelp reviews as an environment.

    Parameters
    ----------
    path : path
        Folder of the JSON files, tar file from Yelp, or file of reviews.
    n_users : int, default 100
        Number of users. The users with the most reviews are selected, see :class:`locb.Interactions`.
    n_arms : int, optional
        Arms per round: one liked business, and businesses with reward 0. The default is 10, or the number of
        businesses if there are fewer.
    dim : int, default 10
        Features per business, at least 2: dim − 1 computed from reviews, categories and attributes, and a constant.
    zeros : {"any", "rated", "shown"}, default "any"
        Which businesses are the arms with reward 0. See :class:`locb.Interactions`.
    like_above : float or str, optional
        Reviews with more stars than this threshold are likes, see :func:`locb.datasets.movielens`. The default is 3.
    features_from : {"other-half", "all"}, default "other-half"
        Records from which the features are computed, see :func:`locb.datasets.movielens`.
    cache_dir : path, optional
        Cache folder. The default is $LOCB_CACHE if set, else $XDG_CACHE_HOME/locb if set, else ~/.cache/locb.

    Returns
    -------
    Interactions
        Environment in which a user likes the businesses to which the user gave more stars than ``like_above``.

    Raises
    ------
    FileNotFoundError
        If ``path`` does not exist.
    ValueError
        If a file is missing or cannot be read, or if an argument is invalid. A message about an invalid line names the
        file and the number of the line.
    """
    sources = find_sources(Path(path), LAYOUTS, "Yelp")
    threshold = check_like_above(like_above)
    return load_environment(
        "yelp",
        sources,
        lambda: read(sources[0], sources[1], threshold),
        options={"like_above": threshold},
        dim=dim,
        features_from=features_from,
        cache_dir=cache_dir,
        n_users=n_users,
        n_arms=n_arms,
        zeros=zeros,
    )


def read(reviews: Source, businesses: Source, like_above: float | str | None) -> Records:
    """Return the records of the reviews, with the categories and attributes of the businesses as item attributes."""
    user_index: dict[str, int] = {}
    item_index: dict[str, int] = {}
    users, items, stars = array("i"), array("i"), array("d")  # arrays need less memory than lists
    for review in json_lines(reviews, Review):
        users.append(user_index.setdefault(review.user_id, len(user_index)))
        items.append(item_index.setdefault(review.business_id, len(item_index)))
        stars.append(review.stars)
    likes = find_likes(np.array(stars), like_above, reviews.name)
    labels: list[tuple[str, ...]] = [()] * len(item_index)
    for business in json_lines(businesses, Business):
        if (item := item_index.get(business.business_id)) is not None:
            labels[item] = tuple(business_labels(business))
    return Records(
        np.array(users, np.int32),
        np.array(items, np.int32),
        likes.liked,
        len(item_index),
        one_hot(labels, min_items=min(MIN_BUSINESSES, max(1, len(item_index) // 100))),
        user_names=np.array([user.encode() for user in user_index]),
        likes=likes,
    )


def business_labels(business: Business) -> Iterator[str]:
    """Yield the categories of a business, and its attributes with values, such as "WiFi=free".

    Attributes with values such as "no" or "None" are omitted.
    """
    categories = business.categories or []
    for category in categories.split(",") if isinstance(categories, str) else categories:
        yield category.strip()
    attributes = business.attributes or {}
    pairs = attributes.items() if isinstance(attributes, dict) else [(attribute, True) for attribute in attributes]
    for name, value in pairs:
        if value not in (None, False, "None", "False", "no", "u'no'", "'no'", "u'none'", "'none'"):
            yield f"{name}={value}"

"""Likes of a data set: the ratings above a threshold, which is a rating or a quantile of the ratings."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from locb.common.validation import ParameterError

DEFAULT_THRESHOLD = 3.0  # for stars from 1 to 5
# The default threshold is rejected if the share of likes is outside these limits: the ratings then have another scale.
MIN_SHARE, MAX_SHARE = 0.01, 0.95


class Likes(NamedTuple):
    """Likes among the ratings of a data set, and the threshold above which a rating is a like."""

    liked: Any  # bool array: whether each rating is above the threshold
    threshold: float
    origin: str | None  # "default", a quantile such as "q75", or None if the threshold was given as a number


def check_like_above(value: Any) -> float | str | None:
    """Return ``like_above`` as a float, as a quantile such as "q75", or as None for the default.

    Raises
    ------
    ValueError
        If the value is neither a number nor a quantile above 0 and below 100.
    """
    if value is None:
        return None
    quantile = re.fullmatch(r"[qQ](\d+(?:\.\d+)?)", value) if isinstance(value, str) else None
    if quantile is not None:
        if not 0.0 < float(quantile[1]) < 100.0:
            raise ParameterError(
                "like_above", f" must be a quantile above 0 and below 100, such as 'q75', not {value!r}"
            )
        return f"q{float(quantile[1]):g}"
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool) or math.isnan(value):
        raise ParameterError("like_above", f" must be a number or a quantile such as 'q75', not {value!r}")
    return float(value)


def find_likes(ratings: Any, like_above: float | str | None, name: str) -> Likes:
    """Return which ratings are likes, and the threshold.

    Parameters
    ----------
    ratings : array of float
        Ratings of a data set.
    like_above : float, str or None
        Value from :func:`check_like_above`. The quantile "q75" is the smallest rating that at least 75% of the ratings
        do not exceed, so at most 25% of the ratings are likes.
    name : str
        Name of the file for error messages.

    Raises
    ------
    ValueError
        If there is no rating or no like, or if ``like_above`` is None and the share of likes is below 1% or above 95%.
    """
    if len(ratings) == 0:
        raise ValueError(f"{name} has no records; at least one is required")
    threshold = _find_threshold(ratings, like_above)
    liked = np.asarray(ratings > threshold)
    share = float(liked.mean())
    if like_above is None and not MIN_SHARE <= share <= MAX_SHARE:
        raise ParameterError(
            "like_above",
            f" must be set for {name}: {share:.1%} of {len(ratings):,} ratings (from {ratings.min():g} to "
            f"{ratings.max():g}) are above the default threshold, {threshold:g}. Choose a rating"
            f"{_suggest_quantile(ratings)}, or {threshold:g} to keep this split",
        )
    if not liked.any():
        found = "not" if isinstance(like_above, float) else f"but the quantile {like_above!r} is"
        largest = f"{ratings.max():g}, the largest rating in {name}"
        raise ParameterError("like_above", f" must be below {largest}, {found} {threshold:g}")
    origin = "default" if like_above is None else like_above if isinstance(like_above, str) else None
    return Likes(liked, threshold, origin)


def _find_threshold(ratings: Any, like_above: float | str | None) -> float:
    if isinstance(like_above, str):
        return float(np.quantile(ratings, float(like_above[1:]) / 100.0, method="inverted_cdf"))
    return DEFAULT_THRESHOLD if like_above is None else like_above


def _suggest_quantile(ratings: Any) -> str:
    """Return the part of an error message that suggests a quantile; empty if none of the tried quantiles fits."""
    for quantile in ("q75", "q50", "q25", "q10"):
        threshold = _find_threshold(ratings, quantile)
        share = float((ratings > threshold).mean())
        if MIN_SHARE <= share <= MAX_SHARE:
            return f", a quantile such as {quantile!r} ({threshold:g}: {share:.1%} likes)"
    return ""

"""Means of rewards, and how far off they may be."""

from __future__ import annotations

import math
from typing import NamedTuple

from locb.service.stats.event_stats import Counts

NORMAL = 1.959963984540054  # 97.5% of a normal distribution lie below


class Mean(NamedTuple):
    """A mean with its 95% interval; None where there are too few numbers to tell."""

    mean: float | None
    low: float | None
    high: float | None


def student(freedom: float) -> float:
    """97.5% of a Student distribution lie below; within 1% from 2 degrees of freedom on (Cornish and Fisher, 1938).

    Examples
    --------
    >>> [round(student(freedom), 2) for freedom in (3, 10, 100)]
    [3.18, 2.23, 1.98]
    """
    z = NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms))


def variance_of_mean(counts: Counts) -> float:
    """Of the mean of two or more rewards."""
    spread = max(counts.squares - counts.sum**2 / counts.rewards, 0.0)
    return spread / (counts.rewards - 1) / counts.rewards


def mean_of(counts: Counts) -> Mean:
    """The mean reward."""
    if counts.rewards < 1:
        return Mean(None, None, None)
    mean = counts.sum / counts.rewards
    if counts.rewards < 2:
        return Mean(mean, None, None)
    reach = student(counts.rewards - 1) * math.sqrt(variance_of_mean(counts))
    return Mean(mean, mean - reach, mean + reach)


def difference(counts: Counts, baseline: Counts) -> tuple[float, float | None, float | None] | None:
    """By how much the mean reward is above that of a baseline, with Welch's interval; None if one has no rewards."""
    if min(counts.rewards, baseline.rewards) < 1:
        return None
    change = counts.sum / counts.rewards - baseline.sum / baseline.rewards
    if min(counts.rewards, baseline.rewards) < 2:
        return change, None, None
    one, other = variance_of_mean(counts), variance_of_mean(baseline)
    if one + other == 0.0:
        return change, change, change
    freedom = (one + other) ** 2 / (one**2 / (counts.rewards - 1) + other**2 / (baseline.rewards - 1))
    reach = student(freedom) * math.sqrt(one + other)
    return change, change - reach, change + reach

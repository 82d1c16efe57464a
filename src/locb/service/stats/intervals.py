"""Confidence intervals of mean rewards."""

from __future__ import annotations

import math
from typing import NamedTuple

from locb.service.stats.event_stats import Counts

Z_975 = 1.959963984540054  # 97.5% quantile of the standard normal distribution


class MeanInterval(NamedTuple):
    """Mean reward with its 95% confidence interval.

    The mean is None without rewards. The bounds are None with fewer than two rewards.
    """

    mean: float | None
    low: float | None
    high: float | None


def t_quantile(degrees: float) -> float:
    """Return the 97.5% quantile of Student's t distribution, from its Cornish–Fisher expansion.

    The relative error is below 1% for 2 or more degrees of freedom, and 11% for 1.

    Examples
    --------
    >>> [round(t_quantile(degrees), 2) for degrees in (3, 10, 100)]
    [3.18, 2.23, 1.98]
    """
    z = Z_975
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / degrees ** (power + 1) for power, term in enumerate(terms))


def variance_of_mean(counts: Counts) -> float:
    """Return the estimated variance of the mean of at least two rewards."""
    deviation = max(counts.reward_square_sum - counts.reward_sum**2 / counts.rewards, 0.0)
    return deviation / (counts.rewards - 1) / counts.rewards


def mean_interval(counts: Counts) -> MeanInterval:
    """Return the mean reward with its 95% confidence interval from Student's t distribution."""
    if counts.rewards < 1:
        return MeanInterval(None, None, None)
    mean = counts.reward_sum / counts.rewards
    if counts.rewards < 2:
        return MeanInterval(mean, None, None)
    margin = t_quantile(counts.rewards - 1) * math.sqrt(variance_of_mean(counts))
    return MeanInterval(mean, mean - margin, mean + margin)


def difference_interval(counts: Counts, baseline: Counts) -> tuple[float, float | None, float | None] | None:
    """Return the difference of two mean rewards with Welch's 95% confidence interval.

    Parameters
    ----------
    counts, baseline : Counts
        Counts of two periods.

    Returns
    -------
    (float, float or None, float or None) or None
        Mean of ``counts`` minus mean of ``baseline``, lower bound, upper bound. The bounds are None if a period has
        fewer than two rewards. The result is None if a period has no rewards.
    """
    if min(counts.rewards, baseline.rewards) < 1:
        return None
    change = counts.reward_sum / counts.rewards - baseline.reward_sum / baseline.rewards
    if min(counts.rewards, baseline.rewards) < 2:
        return change, None, None
    variance, baseline_variance = variance_of_mean(counts), variance_of_mean(baseline)
    total = variance + baseline_variance
    if total == 0.0:
        return change, change, change
    degrees = total**2 / (variance**2 / (counts.rewards - 1) + baseline_variance**2 / (baseline.rewards - 1))
    margin = t_quantile(degrees) * math.sqrt(total)
    return change, change - margin, change + margin

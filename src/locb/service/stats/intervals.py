"""95% confidence intervals of mean rewards, and of differences of mean rewards, from sums of rewards."""

from __future__ import annotations

import math
from typing import NamedTuple

from locb.evaluation.confidence_intervals import proportion_interval, student_quantile
from locb.service.stats.event_stats import Counts


class MeanInterval(NamedTuple):
    """Mean reward with its 95% confidence interval.

    The mean is None without rewards. The bounds are None with fewer than two rewards.
    """

    mean: float | None
    low: float | None
    high: float | None


def variance_of_mean(counts: Counts) -> float:
    """Return the estimated variance of the mean of at least two rewards."""
    deviation = max(counts.reward_square_sum - counts.reward_sum**2 / counts.rewards, 0.0)
    return deviation / (counts.rewards - 1) / counts.rewards


def is_binary(counts: Counts) -> bool:
    """Return whether the sum of the rewards is equal to the sum of their squares, as it is for rewards of 0 and 1.

    Other rewards can have equal sums, too. Their mean and variance are then the same as those of rewards of 0 and 1, so
    the same interval applies.
    """
    return counts.reward_sum == counts.reward_square_sum


def mean_interval(counts: Counts) -> MeanInterval:
    """Return the mean reward with its 95% confidence interval.

    If all rewards are 0 or 1, the interval is that of Wilson, which is inside [0, 1]. Otherwise it is that of Student's
    t distribution.
    """
    if counts.rewards < 1:
        return MeanInterval(None, None, None)
    mean = counts.reward_sum / counts.rewards
    if counts.rewards < 2:
        return MeanInterval(mean, None, None)
    if is_binary(counts):
        centre, half_width = proportion_interval(counts.reward_sum, counts.rewards)
        # The minimum and maximum correct rounding errors.
        return MeanInterval(mean, max(0.0, min(mean, centre - half_width)), min(1.0, max(mean, centre + half_width)))
    margin = student_quantile(counts.rewards - 1) * math.sqrt(variance_of_mean(counts))
    return MeanInterval(mean, mean - margin, mean + margin)


def difference_interval(counts: Counts, baseline: Counts) -> tuple[float, float | None, float | None] | None:
    """Return the difference of two mean rewards with its 95% confidence interval.

    If all rewards are 0 or 1, the interval is that of Newcombe, which combines two Wilson intervals and is inside
    [−1, 1]. Otherwise it is that of Welch. If the rewards within each period are equal, the interval of Welch has
    length 0.

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
    (mean, low, high), (base_mean, base_low, base_high) = mean_interval(counts), mean_interval(baseline)
    if mean is None or base_mean is None:
        return None
    change = mean - base_mean
    if low is None or high is None or base_low is None or base_high is None:
        return change, None, None
    if is_binary(counts) and is_binary(baseline):
        below, above = math.hypot(mean - low, base_high - base_mean), math.hypot(high - mean, base_mean - base_low)
        return change, change - below, change + above
    variance, baseline_variance = variance_of_mean(counts), variance_of_mean(baseline)
    total = variance + baseline_variance
    if total == 0.0:
        return change, change, change
    degrees = total**2 / (variance**2 / (counts.rewards - 1) + baseline_variance**2 / (baseline.rewards - 1))
    margin = student_quantile(degrees) * math.sqrt(total)
    return change, change - margin, change + margin

"""Confidence intervals of ratios of sums, from a bootstrap of users (cluster bootstrap).

The decisions of one user depend on each other, so a bootstrap replicate draws users, with all their decisions. Every
estimator is a ratio of two sums over users. A replicate therefore needs only the sums of each user, and all replicates
together are one matrix product.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray
from locb.evaluation.confidence_intervals import student_quantile
from locb.logs.row_arrays import add_by_index, take

MAX_GROUPS = 20_000  # if there are more users, they are merged at random into this number of independent groups
BLOCK = 4_000_000  # numbers per block of replicates
MIN_VALID = 0.95  # share of replicates that must have an estimate
MIN_USERS = 5  # minimum number of users for an interval


class Interval(NamedTuple):
    """Estimate with its 95% confidence interval. The bounds are NaN if there is no interval."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def half_width(self) -> float:
        """Half of the length of the interval."""
        return (self.high - self.low) / 2

    def clip(self, low: float, high: float) -> Interval:
        """Return the part of the interval in the range of possible values, which covers the truth equally often.

        The estimate is not changed: it can be outside the range, if the estimator is unbiased.
        """
        return self._replace(low=float(np.clip(self.low, low, high)), high=float(np.clip(self.high, low, high)))


def mean_limits(rewards: Floats) -> tuple[float, float]:
    """Return the smallest and the largest possible mean reward: 0 and 1 if all rewards are 0 or 1, else ∓infinity."""
    return (0.0, 1.0) if np.isin(rewards, (0.0, 1.0)).all() else (-math.inf, math.inf)


def random_stream(seed: int, purpose: str) -> np.random.Generator:
    """Return a generator for one purpose. It is independent of ``np.random.default_rng(seed)``.

    A log may have been simulated with the same random seed. Equal random numbers in the log and in its evaluation
    would bias the estimates.
    """
    return np.random.default_rng([seed, *f"locb.logs {purpose}".encode()])


def sum_by_group(groups: IndexArray, n_groups: int, *values: Floats) -> Floats:
    """Return the sums of values (n,) by group, as an array (groups, values)."""
    sums = np.zeros((len(values), n_groups))
    for total, value in zip(sums, values, strict=True):
        add_by_index(total, groups, value)
    return np.ascontiguousarray(sums.T)


def make_groups(clusters: IndexArray, count: int, maximum: int, seed: int) -> tuple[IndexArray, int]:
    """Return the group of each decision (its user, or one of ``maximum`` random groups), and the number of groups.

    ``clusters`` (n,) is the user of each decision, from 0 to ``count`` − 1. Groups are random only if ``count`` exceeds
    ``maximum``.
    """
    if count <= maximum:
        return clusters, count
    merged = random_stream(seed, "groups").integers(maximum, size=count).astype(np.int32)
    return take(merged, clusters), maximum


def draw_counts(n_groups: int, replicates: int, rng: np.random.Generator) -> Floats:
    """Return how often each group occurs in each bootstrap replicate, (replicates, groups)."""
    drawn = rng.integers(n_groups, size=(replicates, n_groups))
    drawn += n_groups * np.arange(replicates)[:, None]
    counts: Floats = np.bincount(drawn.ravel(), minlength=replicates * n_groups).astype(np.float64)
    return counts.reshape(replicates, n_groups)


def bootstrap_ratio(sums: Floats, replicates: int, seed: int) -> Interval:
    """Return a ratio of sums, or the difference of two ratios, with a studentized bootstrap interval.

    Parameters
    ----------
    sums : (groups, 2) or (groups, 4) array
        Sums of each group: numerator and denominator, and, for a difference, those of the ratio that is subtracted.
    replicates : int
        Number of bootstrap replicates.
    seed : int
        Random seed of the replicates.

    Returns
    -------
    Interval
        The value, with bounds if there are at least 5 groups with a positive denominator and the groups differ. The
        bounds are those of Student's t if fewer than 95% of the replicates have an estimate.

    Examples
    --------
    >>> interval = bootstrap_ratio(np.stack([np.arange(40.0), np.ones(40)], axis=1), 1000, seed=0)
    >>> interval.value, bool(15 < interval.low < 16), bool(23 < interval.high < 24)
    (19.5, True, True)
    """
    n_groups, width = sums.shape
    total = sums.sum(axis=0)
    if (total[1::2] <= 0).any():
        return Interval(math.nan)
    products = (sums[:, :, None] * sums[:, None, :]).reshape(n_groups, width * width)
    value, variance = _ratio_and_variance(total[None], products.sum(axis=0)[None], n_groups)
    estimate, deviation = float(value[0]), math.sqrt(max(float(variance[0]), 0.0))
    scale = float(np.abs(sums).max())
    if (sums[:, 1::2] > 0).all(axis=1).sum() < MIN_USERS or deviation <= 1e-12 * scale:
        return Interval(estimate)
    rng = random_stream(seed, "replicates")
    columns = np.concatenate([sums, products], axis=1)
    found = []
    block = max(1, BLOCK // n_groups)
    for start in range(0, replicates, block):
        moments = draw_counts(n_groups, min(block, replicates - start), rng) @ columns
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio, spread = _ratio_and_variance(moments[:, :width], moments[:, width:], n_groups)
            found.append((ratio - estimate) / np.sqrt(spread))
    scores = np.concatenate(found)
    scores = scores[np.isfinite(scores)]
    if len(scores) < MIN_VALID * replicates:
        margin = student_quantile(n_groups - 1) * deviation
        return Interval(estimate, estimate - margin, estimate + margin)
    low, high = np.quantile(scores, (0.025, 0.975))
    return Interval(estimate, estimate - float(high) * deviation, estimate - float(low) * deviation)


def _ratio_and_variance(totals: Floats, products: Floats, n_groups: int) -> tuple[Floats, Floats]:
    """Return the ratio (or difference of ratios) of each replicate, and its estimated variance.

    The variance is that of the linearization: the ratio S / N changes by (s − S / N · n) / N if a group with the sums s
    and n is added.
    """
    width = totals.shape[1]
    numerators, denominators = totals[:, 0::2], totals[:, 1::2]
    ratios = numerators / denominators
    signs = np.array([1.0, -1.0])[: width // 2]
    gradient = np.empty_like(totals)
    gradient[:, 0::2] = signs / denominators
    gradient[:, 1::2] = -signs * ratios / denominators
    matrices = products.reshape(-1, width, width)
    variance = np.einsum("bi,bij,bj->b", gradient, matrices, gradient) * n_groups / max(n_groups - 1, 1)
    return ratios @ signs, variance

"""Limits of rewards with outliers, from the number of rows with each reward."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints

DROPPED_BITS = 38  # of the 52 bits of the mantissa: rewards that differ by less than 1 in 16,000 are counted together
MAX_LEVELS = 20  # rewards with at most this number of different values are not limited
QUANTILE, FACTOR = 0.975, 2.0  # the limit is FACTOR times this quantile of the distances from the median
MIN_SHARE = 0.1  # rewards are limited if those beyond the limit have at least this share of the variance


class RewardLimits(NamedTuple):
    """Lowest and highest reward that is used, and the rows whose reward is replaced by one of them."""

    low: float
    high: float
    lowest: float  # reward of the log
    rows: int
    total: int  # rows of the log
    share: float  # of the variance of the rewards

    def describe(self) -> str:
        """Return a note."""
        beyond = f"beyond {self.low:.4g} and {self.high:.4g}" if self.lowest < self.low else f"above {self.high:.4g}"
        counts = f"{self.rows:,} of {self.total:,} rows ({self.rows / self.total:.2%})"
        shares = f"{counts} have rewards {beyond} and {self.share:.0%} of the variance of the rewards"
        return f"outliers: {shares}; these rewards are set to the limit (robust=False or --no-robust: unchanged)"


class RewardCounts:
    """Number of rows with each reward. The counts do not depend on the order of the rows."""

    def __init__(self) -> None:
        self._keys: Ints = np.empty(0, np.int64)
        self._counts: Ints = np.empty(0, np.int64)

    def add(self, rewards: Floats) -> None:
        """Count the rewards of rows."""
        bits = (np.ascontiguousarray(rewards) + 0.0).view(np.int64)  # −0 becomes 0
        self._add(*np.unique(bits >> DROPPED_BITS, return_counts=True))

    def include(self, other: RewardCounts) -> None:
        """Add the counts of other rows."""
        self._add(other._keys, other._counts)

    def _add(self, keys: Ints, counts: Ints) -> None:
        self._keys, positions = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        total = np.zeros(len(self._keys), np.int64)
        np.add.at(total, positions, np.concatenate([self._counts, counts]))
        self._counts = total

    def find_limits(self) -> RewardLimits | None:
        """Return the limits of the rewards; None if rewards are not limited.

        The distance of a limit from the median is twice the 97.5% quantile of the distances of all rewards that differ
        from the median. Rewards are limited if they have more than 20 different values, and those beyond the limits
        have at least 10% of the variance.
        """
        if len(self._keys) <= MAX_LEVELS:
            return None
        values = (self._keys << DROPPED_BITS).view(np.float64)
        order = np.argsort(values, kind="stable")
        values, counts = values[order], self._counts[order]
        total = int(counts.sum())
        median = values[np.searchsorted(np.cumsum(counts), 0.5 * total)]
        distances = np.abs(values - median)
        others = np.argsort(distances, kind="stable")[1:]  # the first one is the median itself
        cumulated = np.cumsum(counts[others])
        quantile = distances[others][np.searchsorted(cumulated, QUANTILE * cumulated[-1])]
        limit = float(f"{FACTOR * quantile:.3g}")
        squares = counts * (values - values @ counts / total) ** 2
        beyond = distances > limit
        share = float(squares[beyond].sum() / squares.sum())
        if share < MIN_SHARE:
            return None
        low, high = float(median) - limit, float(median) + limit
        return RewardLimits(low, high, float(values[0]), int(counts[beyond].sum()), total, share)

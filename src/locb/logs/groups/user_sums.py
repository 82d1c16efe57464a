"""Sums of each user's rows of a log, for a linear model with features of norm about 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.kernels.groups.moments import convert_moments
from locb.logs.groups.row_source import RowSource
from locb.policies.base.reward_scale import HIGHEST, LOWEST, MIN_SIZE

UNIT_NORM = 1.0 + 1e-6  # features of at most this squared norm are used as they are


@dataclass
class UserSums:
    """Sums of n users, for a linear model with D features of norm about 1 and rewards of about 0 to 1.

    Attributes
    ----------
    ids : polars.Series
        Id of each user.
    counts : (n,) floats
        Number of rows of each user.
    rows : (n, ≥ D + D(D + 1)/2) floats
        The first columns are (b, G packed), see ``block`` and ``locb.kernels``.
    squares : (n,) floats
        Sum of the squared mapped rewards of each user.
    rewards : (n,) floats
        Sum of the rewards of each user, in the units of the log.
    names : list of str
        Name of each feature.
    effects : (D,) floats
        Factor by which an entry of a parameter vector is multiplied to give the effect of a feature on the reward, in
        the units of the log: of one unit of the feature, or, if features were standardized, of one standard deviation.
    offset : float
        Number that is added to each effect: the reward that is mapped to 0, if each feature is one arm; otherwise 0.
    is_standardized : bool
        Whether the features were standardized, and a constant was added.
    sigma : float
        Half of the range of the mapped rewards. Noise around any mean is sub-Gaussian with this scale.
    """

    ids: Any
    counts: Floats
    rows: Floats
    squares: Floats
    rewards: Floats
    names: list[str]
    effects: Floats
    offset: float
    is_standardized: bool
    sigma: float

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def dim(self) -> int:
        """Number of features D."""
        return len(self.names)

    def block(self, users: slice | Ints) -> Floats:
        """Return the rows (b, G) of some users as a contiguous array."""
        width = self.dim + self.dim * (self.dim + 1) // 2
        return np.ascontiguousarray(self.rows[users, :width])


def convert_sums(ids: Any, moments: Floats, source: RowSource, shift: Floats, extremes: Floats) -> UserSums:
    """Return the sums of users. Features are mapped to a norm of about 1, and rewards to about 0 to 1, in place.

    Parameters
    ----------
    ids : polars.Series
        Id of each user.
    moments : (n, (d + 2)(d + 3) / 2) floats
        Moments of the rows of each user, see ``locb.kernels.groups.moments``, which are replaced.
    source : RowSource
        Source of the rows.
    shift : (d + 1,) floats
        Features and reward that were subtracted from each row.
    extremes : (3,) floats
        Largest squared norm of the features, lowest and highest reward, after the subtraction.
    """
    names: Sequence[str] = source.names
    dim = len(names)
    counts = moments[:, -3].copy()  # the last moments are those of constant · constant, constant · reward and reward²
    rewards = moments[:, -2] + shift[-1] * counts
    low, high = float(extremes[1] + shift[-1]), float(extremes[2] + shift[-1])
    is_plain = low >= LOWEST and MIN_SIZE <= high <= HIGHEST
    offset, scale = (0.0, 1.0) if is_plain else (low, (high - low) or 1.0)
    reward_row = np.zeros(dim + 2)
    reward_row[dim:] = (shift[-1] - offset) / scale, 1.0 / scale
    is_standardized = bool(extremes[0] > UNIT_NORM or shift[:-1].any())
    if is_standardized:
        rows, kept, deviations = _standardize(moments.sum(axis=0), dim)
        names = [*(names[feature] for feature in kept), "constant"]
        effects = np.append(np.full(len(kept), 1.0 / math.sqrt(2.0 * max(len(kept), 1))), math.sqrt(0.5))
        names = [
            f"{name} (+{deviation:.3g})" if deviation else name
            for name, deviation in zip(names, [*deviations, 0.0], strict=True)
        ]
    else:
        rows, effects = np.eye(dim, dim + 2), np.ones(dim)
    squares = np.empty(len(moments))
    convert_moments(moments, np.vstack([rows, reward_row]), squares)
    return UserSums(
        ids=ids,
        counts=counts,
        rows=moments,
        squares=squares,
        rewards=rewards,
        names=list(names),
        effects=effects * scale,
        offset=offset if source.is_one_hot and not is_standardized else 0.0,
        is_standardized=is_standardized,
        sigma=max(0.5 * (high - low) / scale, 1e-3),
    )


def _standardize(totals: Floats, dim: int) -> tuple[Floats, list[int], list[float]]:
    """Return the linear map to standardized features and a constant, the features that vary, and their deviations."""
    full = np.zeros((dim + 2, dim + 2))
    full[np.triu_indices(dim + 2)] = totals
    count = full[dim, dim]
    means = full[:dim, dim] / count
    variances = np.diag(full)[:dim] / count - means**2
    kept = np.flatnonzero(variances > 1e-12 * (1.0 + means**2)).tolist()
    rows = np.zeros((len(kept) + 1, dim + 2))
    for row, feature in enumerate(kept):
        factor = 1.0 / math.sqrt(variances[feature] * 2.0 * len(kept))
        rows[row, feature], rows[row, dim] = factor, -factor * means[feature]
    rows[-1, dim] = math.sqrt(0.5)
    return rows, kept, np.sqrt(variances[kept]).tolist()

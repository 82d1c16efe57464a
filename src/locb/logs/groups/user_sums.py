"""Sums of each user's rows of a log, for a linear model with features of norm about 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.kernels.common.linear_algebra import unpack_symmetric
from locb.kernels.groups.moments import convert_moments
from locb.logs.groups.reward_limits import RewardLimits
from locb.logs.groups.row_source import RowSource
from locb.policies.base.reward_scale import HIGHEST, LOWEST, MIN_SIZE

UNIT_NORM = 1.0 + 1e-6  # features of at most this squared norm are used as they are
COLLINEAR = 1e-10  # directions with a smaller second moment, relative to the largest one, are not observed


@dataclass
class UserSums:
    """Sums of n users, for a linear model with features of norm about 1 and rewards of about 0 to 1.

    The model has D coordinates: the features, or, if features are collinear, coordinates in the span of the features
    that occur in the log.

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
        Name of each of the F features.
    basis : (F, D) floats
        Orthonormal columns that map a parameter vector to one entry per feature. Distances stay the same.
    effects : (F, D) floats
        Map of a parameter vector to the effects of the features on the reward, in the units of the log. See ``steps``.
    offsets : (F,) floats
        Numbers that are added to the effects.
    steps : (F,) floats
        Change of the feature to which the effect belongs: one standard deviation, or 1 if features were not
        standardized. NaN for values of text, arms and the constant.
    is_standardized : bool
        Whether the features were standardized, and a constant was added.
    scale : float
        Difference of two rewards that is mapped to 1.
    sigma : float
        Half of the range of the mapped rewards. Noise around any mean is sub-Gaussian with this scale.
    limits : RewardLimits, optional
        Limits of the rewards, if there are outliers. ``rewards`` has the sums without limits.
    """

    ids: Any
    counts: Floats
    rows: Floats
    squares: Floats
    rewards: Floats
    names: list[str]
    basis: Floats
    effects: Floats
    offsets: Floats
    steps: Floats
    is_standardized: bool
    scale: float
    sigma: float
    limits: RewardLimits | None = None

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def dim(self) -> int:
        """Number of coordinates D."""
        dim: int = self.basis.shape[1]
        return dim

    def block(self, users: slice | Ints) -> Floats:
        """Return the rows (b, G) of some users as a contiguous array."""
        width = self.dim + self.dim * (self.dim + 1) // 2
        return np.ascontiguousarray(self.rows[users, :width])


class _Features(NamedTuple):
    """Features of the model: a linear map (F, d + 2) of (features of the log, 1, reward), and what they mean."""

    rows: Floats
    names: list[str]
    effects: Floats  # (F, F), for mapped rewards
    is_level: Floats  # (F,): 1 if the effect is the expected reward itself, rather than a difference
    steps: Floats


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
    dim = len(source.names)
    counts = moments[:, -3].copy()  # the last moments are those of constant · constant, constant · reward and reward²
    rewards = moments[:, -2] + shift[-1] * counts
    low, high = float(extremes[1] + shift[-1]), float(extremes[2] + shift[-1])
    is_plain = low >= LOWEST and MIN_SIZE <= high <= HIGHEST
    offset, scale = (0.0, 1.0) if is_plain else (low, (high - low) or 1.0)
    reward_row = np.zeros(dim + 2)
    reward_row[dim:] = (shift[-1] - offset) / scale, 1.0 / scale
    is_standardized = bool(not source.is_vector or extremes[0] > UNIT_NORM or shift[:-1].any())
    totals = unpack_symmetric(moments.sum(axis=0), dim + 2)
    features = _standardize(totals, source) if is_standardized else _keep(source)
    basis = _observed_span(features.rows @ totals @ features.rows.T)
    squares = np.empty(len(moments))
    convert_moments(moments, np.vstack([basis.T @ features.rows, reward_row]), squares)
    return UserSums(
        ids=ids,
        counts=counts,
        rows=moments,
        squares=squares,
        rewards=rewards,
        names=features.names,
        basis=basis,
        effects=scale * features.effects @ basis,
        offsets=offset * features.is_level,
        steps=features.steps,
        is_standardized=is_standardized,
        scale=scale,
        sigma=max(0.5 * (high - low) / scale, 1e-3),
    )


def _observed_span(second: Floats) -> Floats:
    """Return an orthonormal basis (F, D) of the span of features with the second moments ``second`` (F, F).

    It is the identity if no feature is a linear combination of others. A direction without any observation would keep
    its prior uncertainty, however many rows there are.
    """
    values, vectors = np.linalg.eigh(second)
    observed = values > COLLINEAR * values[-1]
    if observed.all() or not observed.any():
        return np.eye(len(second))
    return np.ascontiguousarray(vectors[:, observed])


def _keep(source: RowSource) -> _Features:
    """Return the features of the log as they are."""
    dim = len(source.names)
    is_level = np.full(dim, float(source.is_one_hot))
    steps = np.where(np.array(source.text_columns) >= 0, np.nan, 1.0)
    return _Features(np.eye(dim, dim + 2), list(source.names), np.eye(dim), is_level, steps)


def _standardize(totals: Floats, source: RowSource) -> _Features:
    """Return the features that vary, standardized, and a constant.

    The effect of a number is that of one standard deviation. The effect of a value of text is its difference from the
    mean effect of all rows. The constant is the expected reward of a row with mean features.
    """
    dim, text = len(source.names), np.array(source.text_columns)
    means = totals[:dim, dim] / totals[dim, dim]
    variances = np.diag(totals)[:dim] / totals[dim, dim] - means**2
    kept = np.flatnonzero(variances > 1e-12 * (1.0 + means**2))
    deviations, count = np.sqrt(variances[kept]), len(kept)
    rows, effects = np.zeros((count + 1, dim + 2)), np.zeros((count + 1, count + 1))
    unit = 1.0 / math.sqrt(2.0 * max(count, 1))
    rows[np.arange(count), kept] = unit / deviations
    rows[:count, dim] = -unit / deviations * means[kept]
    rows[-1, dim] = effects[-1, -1] = math.sqrt(0.5)
    is_text = text[kept] >= 0
    same = is_text[:, None] & (text[kept][:, None] == text[kept])
    # The features of one value of text are 0 or 1. They are not shifted, because a shift is above 1.
    effects[:count, :count] = unit * np.where(same, (np.eye(count) - means[kept]) / deviations, np.eye(count))
    return _Features(
        rows,
        [*(source.names[feature] for feature in kept), "constant"],
        effects,
        np.append(np.zeros(count), 1.0),
        np.append(np.where(is_text, np.nan, deviations), np.nan),
    )

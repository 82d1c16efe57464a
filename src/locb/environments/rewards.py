"""Rewards of synthetic environments: Bernoulli, Gaussian or Student's t, with outliers and on any scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import MAX_REWARD, ParameterError, check_float

_NOISE = 3  # key of the random generator of standard deviations; synthetic.py lists the keys of the other generators


@dataclass(frozen=True)
class RewardModel:
    """Distribution of rewards around their means, and the linear mapping ``scale`` · r + ``shift`` of both.

    A model with the scale 1 and the shift 0 uses the same random numbers. Every reward is therefore ``scale`` · r +
    ``shift``, where r is the reward of that model.
    """

    deviations: Floats | None  # (n,) standard deviation of the noise of each user; None for Bernoulli rewards
    degrees_of_freedom: float | None  # of Student's t; None for Gaussian noise
    outlier_share: float
    outlier_factor: float
    scale: float
    shift: float

    @property
    def is_identity(self) -> bool:
        """Whether ``transform`` does not change its argument."""
        return (self.scale, self.shift) == (1.0, 0.0)

    def transform(self, values: Floats) -> Floats:
        """Return rewards, or means of rewards, on the scale of the environment."""
        return values if self.is_identity else self.scale * values + self.shift

    def draw(self, rng: np.random.Generator, users: Ints, means: Floats) -> tuple[Floats, Floats]:
        """Return rewards and their means, both (T, k) and on the scale of the environment.

        Parameters
        ----------
        rng : numpy.random.Generator
            Generator of the rewards.
        users : (T,) ints
            User of each round.
        means : (T, k) floats
            Mean reward of each arm before the mapping; from 0 to 1 for Bernoulli rewards.
        """
        if self.deviations is None:
            rewards = (rng.random(means.shape) < means).astype(np.float64)
        else:
            rewards = means + self._errors(rng, self.deviations[users][:, None], means.shape)
        return self.transform(rewards), self.transform(means)

    def _errors(self, rng: np.random.Generator, deviations: Floats, shape: tuple[int, ...]) -> Floats:
        if self.degrees_of_freedom is None:
            errors: Floats = deviations * rng.standard_normal(shape)
        else:  # the variance of Student's t is ν/(ν − 2)
            freedom = self.degrees_of_freedom
            errors = deviations * (math.sqrt((freedom - 2.0) / freedom) * rng.standard_t(freedom, shape))
        if self.outlier_share > 0.0:
            errors = np.where(rng.random(shape) < self.outlier_share, self.outlier_factor * errors, errors)
        return errors


def make_reward_model(
    seed: int, n_users: int, noise: Any, degrees_of_freedom: Any, outliers: tuple[Any, Any], mapping: tuple[Any, Any]
) -> RewardModel:
    """Check the reward options of an environment and return its reward model.

    Parameters
    ----------
    seed, n_users : int
        Random seed and number of users of the environment.
    noise, degrees_of_freedom
        See :class:`locb.Synthetic`.
    outliers : pair
        ``outlier_share`` and ``outlier_factor``, see :class:`locb.Synthetic`.
    mapping : pair
        ``reward_scale`` and ``reward_shift``, see :class:`locb.Synthetic`.
    """
    limits = _check_noise(noise)
    freedom = None
    if degrees_of_freedom is not None:
        freedom = check_float("degrees_of_freedom", degrees_of_freedom, 2.0, open_ends=True)
    share = check_float("outlier_share", outliers[0], 0.0, 1.0)
    factor = check_float("outlier_factor", outliers[1], 1.0)
    for name, value, unused in (("degrees_of_freedom", freedom, None), ("outlier_share", share, 0.0)):
        if limits is None and value != unused:
            raise ParameterError(name, f" must be {unused}, not {value!r}, with noise='bernoulli'")
    scale = check_float("reward_scale", mapping[0], 0.0, open_ends=True)
    shift = check_float("reward_shift", mapping[1], -MAX_REWARD)
    deviations = None if limits is None else _draw_deviations(seed, *limits, n_users)
    return RewardModel(deviations, freedom, share, factor, scale, shift)


def check_mean_range(mean_range: Any) -> tuple[float, float]:
    """Return the lowest and the highest mean reward, or raise a ValueError unless 0 ≤ low < high ≤ 1."""
    pair = parse_pair(mean_range)
    if pair is None or not pair[0] < pair[1] <= 1.0:
        raise ParameterError("mean_range", f" must be a pair (low, high) with 0 ≤ low < high ≤ 1, not {mean_range!r}")
    return pair


def parse_pair(values: Any) -> tuple[float, float] | None:
    """Return a tuple or list of two numbers as floats (low, high) with 0 ≤ low ≤ high < ∞; None for any other value."""
    if isinstance(values, str) or not isinstance(values, tuple | list) or len(values) != 2:
        return None
    try:
        low, high = (float(value) for value in values)
    except (TypeError, ValueError):
        return None
    return (low, high) if 0.0 <= low <= high < math.inf else None


def _draw_deviations(seed: int, low: float, high: float, n_users: int) -> Floats:
    rng = np.random.default_rng([seed, _NOISE])
    return np.full(n_users, low) if low == high else rng.uniform(low, high, n_users)


def _check_noise(noise: Any) -> tuple[float, float] | None:
    """Return the lowest and the highest standard deviation of the noise; None for Bernoulli rewards."""
    if isinstance(noise, str) and noise == "bernoulli":
        return None
    if isinstance(noise, int | float | np.integer | np.floating) and 0.0 <= noise < math.inf:
        return float(noise), float(noise)
    pair = parse_pair(noise)
    if pair is None:
        allowed = (
            "'bernoulli', a finite standard deviation of at least 0, or a pair of them, (low, high) with low ≤ high"
        )
        raise ParameterError("noise", f" must be {allowed}, not {noise!r}")
    return pair

"""Random features of the arms of a synthetic environment: fresh in every round, or from a fixed catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError, ParameterName, check_float, check_int
from locb.environments.preferences import lift, normalize
from locb.environments.rewards import parse_pair

_CATALOGUE = 5  # key of the random generator of a catalogue; synthetic.py lists the keys of the other generators


class ArmFeatures:
    """Source of the feature vectors of arms: a random direction and a constant, with a random length.

    Attributes
    ----------
    norms : (float, float)
        Lowest and highest length of a feature vector.
    items : (n_items, d) array of float or None
        Feature vectors of the catalogue; None if every round has new feature vectors.
    """

    def __init__(
        self, seed: int, raw_dim: int, n_arms: int, norms: tuple[float, float], correlation: Any, catalogue: Any
    ) -> None:
        self._shape = (n_arms, raw_dim)
        self.norms = norms
        self._factor: Floats | None = None  # (raw_dim, raw_dim) Cholesky factor of the correlation matrix
        rho = check_float("correlation", correlation, 0.0, 1.0)
        if rho == 1.0:
            raise ParameterError("correlation", " must be below 1, not 1.0")
        if rho > 0.0:
            distance = np.abs(np.subtract.outer(np.arange(raw_dim), np.arange(raw_dim)))
            self._factor = np.asarray(np.linalg.cholesky(rho**distance), dtype=np.float64)
        self.items: Floats | None = None
        if catalogue is not None:
            n_items = check_catalogue(catalogue, n_arms)
            self.items = self._draw_vectors(np.random.default_rng([seed, _CATALOGUE]), (n_items, raw_dim))

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return the feature vectors of the arms of ``count`` rounds: (count, n_arms, d)."""
        if self.items is None:
            return self._draw_vectors(rng, (count, *self._shape))
        vectors: Floats = self.items[draw_subsets(rng, count, len(self.items), self._shape[0])]
        return vectors

    def _draw_vectors(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        directions = rng.standard_normal(shape)
        if self._factor is not None:
            directions = directions @ self._factor.T
        vectors = lift(normalize(directions))
        if self.norms != (1.0, 1.0):
            vectors *= rng.uniform(*self.norms, size=shape[:-1])[..., None]
        return vectors


def draw_subsets(rng: np.random.Generator, count: int, population: int, size: int) -> Ints:
    """Return ``count`` random subsets of 0 to ``population − 1``, each with ``size`` numbers in random order.

    Floyd's algorithm: number i of a subset is drawn from 0 to population − size + i. If it is already in the subset,
    it is replaced by the upper limit, which cannot be in the subset yet.
    """
    chosen = np.empty((count, size), np.int64)
    for index in range(size):
        last = population - size + index
        drawn = rng.integers(last + 1, size=count)
        repeated = (chosen[:, :index] == drawn[:, None]).any(axis=1)
        chosen[:, index] = np.where(repeated, last, drawn)
    return rng.permuted(chosen, axis=1)


def check_catalogue(catalogue: Any, n_arms: int) -> int:
    """Return the number of items of a catalogue, or raise a ValueError if there are fewer items than arms per round."""
    n_items = check_int("catalogue", catalogue, 1)
    if n_items < n_arms:
        found = f" = {n_arms}, not {n_items}"
        raise ParameterError("catalogue", " must be at least ", ParameterName("n_arms"), found)
    return n_items


def check_norms(norms: Any, *, bernoulli: bool) -> tuple[float, float]:
    """Return the lowest and the highest length of feature vectors, or raise a ValueError if they are invalid."""
    pair = parse_pair(norms)
    if pair is None or pair[0] == 0.0:
        raise ParameterError(
            "norms", f" must be a pair (low, high) of finite lengths with 0 < low ≤ high, not {norms!r}"
        )
    if bernoulli and pair[1] > 1.0:
        raise ParameterError("norms", f" (low, high) must have high ≤ 1 with noise='bernoulli', not {norms!r}")
    return pair

"""Synthetic environment of the paper, with extensions: families, overlap, drift, unequal noise, unequal norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError, ParameterName
from locb.environments import preferences
from locb.environments.base import Environment
from locb.environments.drift import Rotation, draw_rotation

ARRIVALS = ("uniform", "zipf")
DRIFTERS = ("clusters", "users")
OVERLAP_FRACTIONS = (0.3, 0.7)  # range of the positions of overlapping users on the line between two centres
# Each extension has its own random generator, so that enabling an extension does not change what other generators draw.
_FAMILIES, _OVERLAP, _NOISE, _DRIFT = 1, 2, 3, 4


class Synthetic(Environment):
    """Synthetic environment: users in clusters with similar preferences, and arms with random features.

    The preference θ of a user and, with the default ``norms``, the features x of an arm are vectors of length 1. Each
    consists of a random unit vector divided by √2 and the constant feature 1/√2. The mean reward of an arm, θᵀx, is
    therefore in [0, 1].

    Parameters
    ----------
    n_users, n_clusters : int, default 100 and 5
        Number of users and of clusters. Cluster sizes are random, from a quarter of the mean size to twice the mean
        size (5 to 40 by default). If the two numbers are equal, every cluster has one user.
    raw_dim : int, default 5
        Number of random features per arm. ``dim`` is one larger because of the constant feature.
    n_arms : int, default 10
        Arms per round.
    spread : float, default 0.2
        Upper limit of the distance between the preferences of two users of a cluster. With 0, all users of a cluster
        have the same preference.
    noise : "bernoulli", float, or pair of floats, default "bernoulli"
        "bernoulli": a reward is 1 with the mean reward as probability, else 0. A number: a reward is the mean reward
        plus Gaussian noise with this standard deviation. A pair (low, high): each user has its own standard deviation,
        drawn uniformly from low to high.
    arrivals : {"uniform", "zipf"}, default "uniform"
        Probability that a round serves a user. "uniform": equal for all users. "zipf": proportional to 1/r for the
        r-th most frequent user.
    families : int, optional
        Number of families, which are groups of similar clusters: each cluster centre is drawn near the centre of its
        family. The attribute ``family_of`` (n_clusters,) has the family of each cluster. By default, there are no
        families, and ``family_of`` is None.
    family_spread : float, default 0.6
        Upper limit of the distance between two cluster centres of a family.
    overlap : float, default 0
        Share of overlapping users, from 0 to 1. The preference of an overlapping user is between the centre of the
        user's cluster and the nearest other centre. The user belongs to both clusters, and the distance to other
        members may exceed ``spread``. Overlap requires at least 2 clusters and a ``raw_dim`` of at least 2.
    drift : float, default 0
        Angle in radians by which preferences rotate per 10,000 rounds. The attribute ``theta`` holds the preferences of
        round 0. Mean rewards, and therefore regret, are those of the current round. Drift requires a ``raw_dim`` of at
        least 2.
    drifters : {"clusters", "users"}, default "clusters"
        What rotates with ``drift``. "clusters": each cluster as a whole, so that the true clusters stay valid. "users":
        each user independently, so that the true clusters dissolve.
    norms : pair of floats, default (1, 1)
        Lowest and highest length of the feature vector of an arm, which is drawn uniformly: 0 < low ≤ high, and
        high ≤ 1 with Bernoulli rewards.
    seed : int, default 0
        Seed of the random generators of users and clusters. ``rounds`` and ``stream`` have their own seed.

    Examples
    --------
    >>> env = Synthetic(n_users=20, n_clusters=2, seed=7)
    >>> env.dim, [len(cluster) for cluster in env.true_clusters()]
    (6, [13, 7])
    >>> rounds = env.rounds(1000, seed=1)
    >>> bool((rounds.means.min() >= 0) and (rounds.means.max() <= 1))
    True
    >>> [len(cluster) for cluster in Synthetic(n_users=20, n_clusters=2, overlap=0.25, seed=7).true_clusters()]
    [15, 10]
    """

    def __init__(
        self,
        *,
        n_users: int = 100,
        n_clusters: int = 5,
        raw_dim: int = 5,
        n_arms: int = 10,
        spread: float = 0.2,
        noise: str | float | tuple[float, float] = "bernoulli",
        arrivals: str = "uniform",
        families: int | None = None,
        family_spread: float = 0.6,
        overlap: float = 0.0,
        drift: float = 0.0,
        drifters: str = "clusters",
        norms: tuple[float, float] = (1.0, 1.0),
        seed: int = 0,
    ) -> None:
        _check_sizes(n_users, n_clusters, raw_dim, n_arms, families, seed)
        _check_ranges(spread, family_spread, arrivals, drifters)
        _check_overlap(overlap, int(n_clusters), int(raw_dim))
        _check_drift(drift, int(raw_dim))
        deviations = _check_noise(noise)
        self.norms = _check_norms(norms, bernoulli=deviations is None)
        self.n_users = int(n_users)
        self.dim = int(raw_dim) + 1
        self.n_arms = int(n_arms)
        self.noise = noise
        rng = np.random.default_rng(seed)
        sizes = preferences.draw_cluster_sizes(rng, self.n_users, int(n_clusters))
        self.labels: Ints = np.repeat(np.arange(n_clusters), sizes)
        rng.shuffle(self.labels)
        centres = preferences.draw_centres(rng, int(n_clusters), int(raw_dim))
        self.family_of: Ints | None = None  # (n_clusters,)
        if families is not None:
            self.family_of = np.arange(n_clusters) % families
            centres = _draw_family_centres(seed, int(families), self.family_of, int(raw_dim), float(family_spread))
        raw = preferences.draw_near(rng, centres[self.labels], float(spread))  # (n, raw_dim)
        weight = np.ones(self.n_users) if arrivals == "uniform" else 1.0 / rng.permutation(np.arange(1, n_users + 1))
        self._arrival = np.cumsum(weight / weight.sum())  # (n,)
        self.second_labels: Ints = np.full(self.n_users, -1)  # (n,) second cluster of an overlapping user, or -1
        if overlap > 0.0:
            self._move_overlapping_users(seed, raw, centres, float(overlap), float(spread))
        self.deviations: Floats | None = None  # (n,) standard deviations of Gaussian noise
        if deviations is not None:
            self.deviations = _draw_deviations(seed, *deviations, self.n_users)
        self.theta: Floats = preferences.lift(raw)  # (n, d)
        self._raw = raw
        self._rotation: Rotation | None = None
        if drift != 0.0:
            directions = (centres, self.labels) if drifters == "clusters" else (raw, np.arange(self.n_users))
            self._rotation = draw_rotation(np.random.default_rng([seed, _DRIFT]), float(drift), *directions)

    def _move_overlapping_users(self, seed: int, raw: Floats, centres: Floats, overlap: float, spread: float) -> None:
        """Move a random share ``overlap`` of the users to points between their centre and the nearest other centre."""
        rng = np.random.default_rng([seed, _OVERLAP])
        moved = rng.choice(self.n_users, size=round(overlap * self.n_users), replace=False)
        self.second_labels[moved] = preferences.nearest_centres(centres)[self.labels[moved]]
        first, second = centres[self.labels[moved]], centres[self.second_labels[moved]]
        points = preferences.interpolate(first, second, rng.uniform(*OVERLAP_FRACTIONS, size=len(moved)))
        raw[moved] = preferences.draw_near(rng, points, spread)

    def true_clusters(self) -> list[Ints]:
        """Return the clusters from which the users were drawn. An overlapping user is in two clusters."""
        first, second = self.labels, self.second_labels
        return [np.flatnonzero((first == c) | (second == c)) for c in range(self.labels.max() + 1)]

    def theta_at(self, users: Any, rounds: Any) -> Floats:
        """Return the preference θ of a user in a round, for T pairs of user and round, as an array (T, d).

        Without drift, θ does not depend on the round.

        Parameters
        ----------
        users : (T,) ints
            User of each pair.
        rounds : (T,) ints
            Round of each pair, counted from 0.
        """
        user_indices, times = np.asarray(users, dtype=np.int64), np.asarray(rounds, dtype=np.int64)
        if self._rotation is not None:
            return preferences.lift(self._rotation.preferences_at(self._raw, user_indices, times))
        theta: Floats = self.theta[user_indices]
        return theta

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """Return rounds 0 to ``count − 1``, drawn with ``rng``."""
        return self.draw_at(rng, count, 0)

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> Rounds:
        """Return rounds ``start`` to ``start + count − 1``, counted from 0 and drawn with ``rng``."""
        users = np.minimum(np.searchsorted(self._arrival, rng.random(count), side="right"), self.n_users - 1)
        return self.rounds_of(users, rng, start=start)

    def rounds_of(self, users: Ints, rng: np.random.Generator, *, start: int = 0) -> Rounds:
        """Return rounds with a given sequence of users.

        Parameters
        ----------
        users : (T,) ints
            User of each round.
        rng : numpy.random.Generator
            Generator of arms and rewards.
        start : int, default 0
            Number of the first round, counted from 0. The number matters only with drift.
        """
        contexts = preferences.lift(preferences.normalize(rng.standard_normal((len(users), self.n_arms, self.dim - 1))))
        if self.norms != (1.0, 1.0):
            contexts *= rng.uniform(*self.norms, size=contexts.shape[:2])[:, :, None]
        theta = self.theta_at(users, start + np.arange(len(users)))
        means = np.matmul(contexts, theta[:, :, None])[:, :, 0]
        if self.deviations is None:
            rewards = (rng.random(means.shape) < means).astype(np.float64)
        else:
            rewards = means + self.deviations[users][:, None] * rng.standard_normal(means.shape)
        return Rounds(users, contexts, rewards, means)


def _draw_family_centres(seed: int, families: int, family_of: Ints, raw_dim: int, spread: float) -> Floats:
    rng = np.random.default_rng([seed, _FAMILIES])
    family_centres = preferences.draw_centres(rng, families, raw_dim)
    return preferences.draw_near(rng, family_centres[family_of], spread)


def _draw_deviations(seed: int, low: float, high: float, n_users: int) -> Floats:
    rng = np.random.default_rng([seed, _NOISE])
    return np.full(n_users, low) if low == high else rng.uniform(low, high, n_users)


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(name, f" must be an integer of at least 1, not {value!r}")


def _check_sizes(n_users: Any, n_clusters: Any, raw_dim: Any, n_arms: Any, families: Any, seed: Any) -> None:
    for name, value in (("n_users", n_users), ("n_clusters", n_clusters), ("raw_dim", raw_dim), ("n_arms", n_arms)):
        _check_count(name, value)
    if n_clusters > n_users:
        found = f" = {n_users}, not {n_clusters}"
        raise ParameterError("n_clusters", " must be at most ", ParameterName("n_users"), found)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError("seed", f" must be an integer of at least 0, not {seed!r}")
    if families is not None:
        _check_count("families", families)
        if families > n_clusters:
            found = f" = {n_clusters}, not {families}"
            raise ParameterError("families", " must be at most ", ParameterName("n_clusters"), found)


def _check_ranges(spread: Any, family_spread: Any, arrivals: Any, drifters: Any) -> None:
    for name, width in (("spread", spread), ("family_spread", family_spread)):
        if not 0.0 <= width < math.inf:
            raise ParameterError(name, f" must be a finite number of at least 0, not {width!r}")
    for name, value, choices in (("arrivals", arrivals, ARRIVALS), ("drifters", drifters, DRIFTERS)):
        if value not in choices:
            raise ParameterError(name, f" must be one of {', '.join(map(repr, choices))}, not {value!r}")


def _parse_pair(values: Any) -> tuple[float, float] | None:
    """Return a tuple or list of two numbers as floats (low, high) with 0 ≤ low ≤ high < ∞; None for any other value."""
    if isinstance(values, str) or not isinstance(values, tuple | list) or len(values) != 2:
        return None
    try:
        low, high = (float(value) for value in values)
    except (TypeError, ValueError):
        return None
    return (low, high) if 0.0 <= low <= high < math.inf else None


def _check_noise(noise: Any) -> tuple[float, float] | None:
    """Return the lowest and the highest standard deviation of the noise; None for Bernoulli rewards."""
    if isinstance(noise, str) and noise == "bernoulli":
        return None
    if isinstance(noise, int | float | np.integer | np.floating) and 0.0 <= noise < math.inf:
        return float(noise), float(noise)
    pair = _parse_pair(noise)
    if pair is None:
        allowed = (
            "'bernoulli', a finite standard deviation of at least 0, or a pair of them, (low, high) with low ≤ high"
        )
        raise ParameterError("noise", f" must be {allowed}, not {noise!r}")
    return pair


def _check_overlap(overlap: Any, n_clusters: int, raw_dim: int) -> None:
    if not 0.0 <= overlap <= 1.0:
        raise ParameterError("overlap", f" must be from 0 to 1, not {overlap!r}")
    if overlap > 0.0 and (n_clusters < 2 or raw_dim < 2):
        name = "n_clusters" if n_clusters < 2 else "raw_dim"
        raise ParameterError("overlap", f" must be 0, not {overlap!r}, if {name} is 1")


def _check_drift(drift: Any, raw_dim: int) -> None:
    if not math.isfinite(drift):
        raise ParameterError("drift", f" must be a finite angle in radians, not {drift!r}")
    if drift != 0.0 and raw_dim < 2:
        raise ParameterError("drift", f" must be 0, not {drift!r}, if raw_dim is 1")


def _check_norms(norms: Any, *, bernoulli: bool) -> tuple[float, float]:
    pair = _parse_pair(norms)
    if pair is None or pair[0] == 0.0:
        raise ParameterError(
            "norms", f" must be a pair (low, high) of finite lengths with 0 < low ≤ high, not {norms!r}"
        )
    if bernoulli and pair[1] > 1.0:
        raise ParameterError("norms", f" (low, high) must have high ≤ 1 with noise='bernoulli', not {norms!r}")
    return pair

"""Synthetic environment of the paper, with extensions: structure of users, arms, rewards, arrivals and drift."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError, ParameterName, check_choice
from locb.environments import preferences
from locb.environments.arm_features import ArmFeatures, check_norms
from locb.environments.arrivals import Arrivals, draw_weights
from locb.environments.base import Environment
from locb.environments.drift import Rotation, draw_rotation
from locb.environments.rewards import check_mean_range, make_reward_model

DRIFTERS = ("clusters", "users")
OVERLAP_FRACTIONS = (0.3, 0.7)  # range of the positions of overlapping users on the line between two centres
# Each extension has its own random generator, so that enabling an extension does not change what other generators draw.
# Further keys: 3 in rewards.py, 5 in arm_features.py, 6 in arrivals.py.
_FAMILIES, _OVERLAP, _DRIFT = 1, 2, 4


class Synthetic(Environment):
    """Synthetic environment: users in clusters with similar preferences, and arms with random features.

    The preference θ of a user and, with the default ``norms``, the features x of an arm are vectors of length 1. Each
    consists of a random unit vector divided by √2 and the constant feature 1/√2. The mean reward of an arm, θᵀx, is
    therefore in [0, 1]. With ``mean_range``, ``reward_scale`` or ``reward_shift``, the attribute ``theta`` is mapped
    like the means, so that the mean reward is θᵀx in all environments of this class.

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
    degrees_of_freedom : float, optional
        Degrees of freedom, above 2, of noise with Student's t distribution instead of Gaussian noise. ``noise`` remains
        the standard deviation. Small values give heavy tails.
    outlier_share, outlier_factor : float, default 0 and 10
        Share of the rewards that are outliers, from 0 to 1, and the factor, at least 1, by which the noise of an
        outlier is larger. Outliers and ``degrees_of_freedom`` require noise that is not "bernoulli".
    arrivals : {"uniform", "zipf"}, default "uniform"
        Probability that a round serves a user. "uniform": equal for all users. "zipf": proportional to 1/r for the
        r-th most frequent user.
    late_share, late_after : float and int, default 0 and 25,000
        Share of the users who arrive only from round ``late_after`` on. The attribute ``late_users`` has their indices.
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
        each user independently, so that users of a true cluster become different.
    norms : pair of floats, default (1, 1)
        Lowest and highest length of the feature vector of an arm. The length is drawn uniformly. 0 < low ≤ high, and
        high ≤ 1 with Bernoulli rewards.
    correlation : float, default 0
        Correlation of neighbouring random features before the vector is scaled to its length, from 0 to below 1. The
        correlation of features i and j is ``correlation`` to the power of the distance abs(i − j).
    catalogue : int, optional
        Number of items of a fixed catalogue, at least ``n_arms``. The arms of a round are different items. The
        attribute ``items`` (catalogue, d) has the feature vectors of the items. By default, every round has new
        feature vectors, and ``items`` is None.
    mean_range : pair of floats, default (0, 1)
        Mean rewards in [0, 1] are mapped linearly to this range, 0 ≤ low < high ≤ 1. For example, (0.01, 0.05) gives
        click rates of 1% to 5%. A range other than (0, 1) requires the default ``norms``.
    reward_scale, reward_shift : float, default 1 and 0
        Rewards and mean rewards r are returned as ``reward_scale`` · r + ``reward_shift``. Environments that differ
        only in these arguments draw the same random numbers. Regret is therefore ``reward_scale`` times the regret of
        the same choices without the mapping. A shift other than 0 requires the default ``norms``.
    seed : int, default 0
        Random seed of users, clusters, catalogue and standard deviations of the noise. ``rounds`` and ``stream`` have
        their own random seed.

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
    >>> clicks = Synthetic(mean_range=(0.01, 0.05), seed=7).rounds(1000, seed=1)
    >>> bool((clicks.means.min() >= 0.01) and (clicks.means.max() <= 0.05))
    True
    >>> scaled = Synthetic(mean_range=(0.01, 0.05), reward_scale=100.0, seed=7).rounds(1000, seed=1)
    >>> bool((scaled.rewards == 100.0 * clicks.rewards).all())
    True
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
        degrees_of_freedom: float | None = None,
        outlier_share: float = 0.0,
        outlier_factor: float = 10.0,
        arrivals: str = "uniform",
        late_share: float = 0.0,
        late_after: int = 25_000,
        families: int | None = None,
        family_spread: float = 0.6,
        overlap: float = 0.0,
        drift: float = 0.0,
        drifters: str = "clusters",
        norms: tuple[float, float] = (1.0, 1.0),
        correlation: float = 0.0,
        catalogue: int | None = None,
        mean_range: tuple[float, float] = (0.0, 1.0),
        reward_scale: float = 1.0,
        reward_shift: float = 0.0,
        seed: int = 0,
    ) -> None:
        check_sizes(n_users=n_users, n_clusters=n_clusters, n_arms=n_arms, raw_dim=raw_dim, seed=seed)
        _check_structure(families, n_clusters, spread, family_spread)
        _check_overlap(overlap, int(n_clusters), int(raw_dim))
        _check_drift(drift, drifters, int(raw_dim))
        self.n_users, self.dim, self.n_arms = int(n_users), int(raw_dim) + 1, int(n_arms)
        self.noise = noise
        outliers, mapping = (outlier_share, outlier_factor), (reward_scale, reward_shift)
        self._rewards = make_reward_model(seed, self.n_users, noise, degrees_of_freedom, outliers, mapping)
        self.deviations: Floats | None = self._rewards.deviations  # (n,) standard deviations of the noise
        self.norms = check_norms(norms, bernoulli=self.deviations is None)
        self._mean_range = _check_constant(self.norms, check_mean_range(mean_range), self._rewards.shift)
        self._arms = ArmFeatures(seed, self.dim - 1, self.n_arms, self.norms, correlation, catalogue)
        self.items: Floats | None = self._arms.items  # (catalogue, d)
        rng = np.random.default_rng(seed)
        self.labels: Ints = preferences.draw_labels(rng, self.n_users, int(n_clusters))
        centres = preferences.draw_centres(rng, int(n_clusters), int(raw_dim))
        self.family_of: Ints | None = None  # (n_clusters,)
        if families is not None:
            self.family_of = np.arange(n_clusters) % families
            centres = _draw_family_centres(seed, int(families), self.family_of, int(raw_dim), float(family_spread))
        raw = preferences.draw_near(rng, centres[self.labels], float(spread))  # (n, raw_dim)
        self._arrivals = Arrivals(draw_weights(rng, self.n_users, arrivals), late_share, late_after, seed)
        self.second_labels: Ints = np.full(self.n_users, -1)  # (n,) second cluster of an overlapping user, or -1
        if overlap > 0.0:
            self._move_overlapping_users(seed, raw, centres, float(overlap), float(spread))
        self._raw = raw
        self._theta = self._lift(raw)  # (n, d) preferences before the mapping with reward_scale and reward_shift
        self.theta: Floats = self._transform(self._theta)  # (n, d)
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

    @property
    def late_users(self) -> Ints:
        """Indices of the users who arrive only from round ``late_after`` on, in ascending order."""
        return self._arrivals.late_users

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
        return self._transform(self._theta_at(np.asarray(users, dtype=np.int64), np.asarray(rounds, dtype=np.int64)))

    def _theta_at(self, users: Ints, rounds: Ints) -> Floats:
        if self._rotation is not None:
            return self._lift(self._rotation.preferences_at(self._raw, users, rounds))
        theta: Floats = self._theta[users]
        return theta

    def _lift(self, raw: Floats) -> Floats:
        """Return preferences with the constant feature. Mean rewards are in ``mean_range``."""
        low, high = self._mean_range
        theta = preferences.lift(raw)
        return theta if (low, high) == (0.0, 1.0) else _map_preferences(theta, high - low, low)

    def _transform(self, theta: Floats) -> Floats:
        """Return preferences on the scale of the rewards."""
        rewards = self._rewards
        return theta if rewards.is_identity else _map_preferences(theta, rewards.scale, rewards.shift)

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """Return rounds 0 to ``count − 1``, drawn with ``rng``."""
        return self.draw_at(rng, count, 0)

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> Rounds:
        """Return rounds ``start`` to ``start + count − 1``, counted from 0 and drawn with ``rng``."""
        return self.rounds_of(self._arrivals.draw(rng, count, start), rng, start=start)

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
        contexts = self._arms.draw(rng, len(users))
        theta = self._theta_at(users, start + np.arange(len(users)))
        means = np.matmul(contexts, theta[:, :, None])[:, :, 0]
        rewards, means = self._rewards.draw(rng, users, means)
        return Rounds(users, contexts, rewards, means)


def _map_preferences(theta: Floats, scale: float, shift: float) -> Floats:
    """Return preferences with θᵀx mapped to ``scale`` · θᵀx + ``shift``, where the last feature of x is 1/√2."""
    mapped = scale * theta
    mapped[..., -1] += math.sqrt(2.0) * shift
    return mapped


def _draw_family_centres(seed: int, families: int, family_of: Ints, raw_dim: int, spread: float) -> Floats:
    rng = np.random.default_rng([seed, _FAMILIES])
    family_centres = preferences.draw_centres(rng, families, raw_dim)
    return preferences.draw_near(rng, family_centres[family_of], spread)


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(name, f" must be an integer of at least 1, not {value!r}")


def check_sizes(*, n_users: Any, n_clusters: Any, seed: Any, **sizes: Any) -> None:
    """Raise a ValueError unless all sizes are integers of at least 1, and there are at most as many clusters as users.

    ``seed`` must be an integer of at least 0.
    """
    for name, value in {"n_users": n_users, "n_clusters": n_clusters, **sizes}.items():
        _check_count(name, value)
    if n_clusters > n_users:
        found = f" = {n_users}, not {n_clusters}"
        raise ParameterError("n_clusters", " must be at most ", ParameterName("n_users"), found)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError("seed", f" must be an integer of at least 0, not {seed!r}")


def _check_structure(families: Any, n_clusters: int, spread: Any, family_spread: Any) -> None:
    if families is not None:
        _check_count("families", families)
        if families > n_clusters:
            found = f" = {n_clusters}, not {families}"
            raise ParameterError("families", " must be at most ", ParameterName("n_clusters"), found)
    for name, width in (("spread", spread), ("family_spread", family_spread)):
        if not 0.0 <= width < math.inf:
            raise ParameterError(name, f" must be a finite number of at least 0, not {width!r}")


def _check_overlap(overlap: Any, n_clusters: int, raw_dim: int) -> None:
    if not 0.0 <= overlap <= 1.0:
        raise ParameterError("overlap", f" must be from 0 to 1, not {overlap!r}")
    if overlap > 0.0 and (n_clusters < 2 or raw_dim < 2):
        name = "n_clusters" if n_clusters < 2 else "raw_dim"
        raise ParameterError("overlap", f" must be 0, not {overlap!r}, if {name} is 1")


def _check_drift(drift: Any, drifters: Any, raw_dim: int) -> None:
    check_choice("drifters", drifters, DRIFTERS)
    if not math.isfinite(drift):
        raise ParameterError("drift", f" must be a finite angle in radians, not {drift!r}")
    if drift != 0.0 and raw_dim < 2:
        raise ParameterError("drift", f" must be 0, not {drift!r}, if raw_dim is 1")


def _check_constant(norms: tuple[float, float], mean_range: tuple[float, float], shift: float) -> tuple[float, float]:
    """Return ``mean_range``, or raise a ValueError if means need a constant feature and ``norms`` makes it vary."""
    if norms != (1.0, 1.0):
        for name, value, required in (("mean_range", mean_range, (0.0, 1.0)), ("reward_shift", shift, 0.0)):
            if value != required:
                raise ParameterError(name, f" must be {required}, not {value!r}, if norms is {norms} instead of (1, 1)")
    return mean_range

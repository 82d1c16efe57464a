"""The paper's synthetic world: clusters of users with nearly the same taste, arms with random features. And its kin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.rounds import Rounds
from locb.environments import preferences as tastes
from locb.environments.base import Environment
from locb.environments.drift import Turning, draw_turning

ARRIVALS = ("uniform", "zipf")
DRIFTERS = ("clusters", "users")
BETWEEN = (0.3, 0.7)  # how far on the way to the other centre a user between two stands
# What is added to the paper's world has a generator of its own, so that the rest of the world stays as it was.
_FAMILIES, _OVERLAP, _NOISE, _DRIFT = 1, 2, 3, 4


class Synthetic(Environment):
    """Users in clusters. Tastes and arms are unit vectors over √2 with a constant 1/√2, so that means are in [0, 1].

    Parameters
    ----------
    n_users, n_clusters : int
        Sizes are drawn from a quarter to twice the mean size (5 to 40 for 100 users in 5 clusters). As many clusters as
        users make a world without structure; one cluster makes one where all are alike.
    raw_dim : int
        Random features of an arm; with the constant one, ``dim`` is one more.
    n_arms : int
        Arms a round.
    spread : float
        Any two users of a cluster are nearer than this. 0 makes them equal.
    noise : "bernoulli", float, or a pair of floats
        Rewards are 0 or 1 with the mean as probability, or the mean plus Gaussian noise of that deviation. With a pair,
        every user has a deviation of its own, drawn between the two.
    arrivals : "uniform" or "zipf"
        Who comes: everyone alike, or the r-th most frequent user with probability proportional to 1/r.
    families : int, optional
        A hierarchy: the clusters' centres are drawn around this many centres of families, so that clusters of a family
        are alike too. ``family_of`` (n_clusters,) tells which is whose. If not given, centres stand anywhere.
    family_spread : float
        Any two centres of a family are nearer than this.
    overlap : float
        Share of the users who stand between two centres, that of their cluster and the one nearest to it, instead of
        around one. They belong to both clusters, so that true clusters overlap, and may be farther than ``spread`` from
        the others there.
    drift : float
        Tastes turn by this angle (radians) in every 10,000 rounds; ``theta`` is where they start. Means, and so regret,
        are those of the round.
    drifters : "clusters" or "users"
        Who turns: a cluster as one, so that its users stay as near as they were and the true clusters stay true; or
        every user its own way, so that clusters dissolve and the true clusters are those of the start.
    norms : pair of floats
        Contexts of mixed length: every arm's is drawn between the two (both above 0; with Bernoulli rewards at most 1).
    seed : int
        For the users and their clusters; rounds have a seed of their own.

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
        for name, value in (("n_users", n_users), ("n_clusters", n_clusters), ("raw_dim", raw_dim), ("n_arms", n_arms)):
            _check_count(name, value)
        if n_clusters > n_users:
            raise ValueError(f"n_clusters must be at most n_users = {n_users}, not {n_clusters}")
        for name, width in (("spread", spread), ("family_spread", family_spread)):
            if not 0.0 <= width < math.inf:
                raise ValueError(f"{name} must be a number of at least 0, not {width!r}")
        deviations = _checked_noise(noise)
        for name, word, words in (("arrivals", arrivals, ARRIVALS), ("drifters", drifters, DRIFTERS)):
            if word not in words:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, not {word!r}")
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"seed must be a whole number of at least 0, not {seed!r}")
        if families is not None:
            _check_count("families", families)
            if families > n_clusters:
                raise ValueError(f"families must be at most n_clusters = {n_clusters}, not {families}")
        _check_overlap(overlap, int(n_clusters), int(raw_dim))
        if not math.isfinite(drift):
            raise ValueError(f"drift must be an angle in radians, not {drift!r}")
        if drift != 0.0 and raw_dim < 2:
            raise ValueError(f"drift must be 0 where raw_dim is 1, as there is no way to turn, not {drift!r}")
        self.norms = _checked_norms(norms, deviations is None)
        self.n_users = int(n_users)
        self.dim = int(raw_dim) + 1
        self.n_arms = int(n_arms)
        self.noise = noise
        rng = np.random.default_rng(seed)
        self.labels: Ints = np.repeat(np.arange(n_clusters), tastes.draw_sizes(rng, self.n_users, int(n_clusters)))
        rng.shuffle(self.labels)
        centres = tastes.draw_centres(rng, int(n_clusters), int(raw_dim))
        self.family_of: Ints | None = None  # (n_clusters,)
        if families is not None:
            self.family_of = np.arange(n_clusters) % families
            own = np.random.default_rng([seed, _FAMILIES])
            middles = tastes.draw_centres(own, int(families), int(raw_dim))
            centres = tastes.draw_around(own, middles[self.family_of], float(family_spread))
        raw = tastes.draw_around(rng, centres[self.labels], float(spread))  # (n, raw_dim)
        weight = np.ones(self.n_users) if arrivals == "uniform" else 1.0 / rng.permutation(np.arange(1, n_users + 1))
        self._arrival = np.cumsum(weight / weight.sum())  # (n,)
        self.second_labels: Ints = np.full(self.n_users, -1)  # (n,) the other cluster of a user between two
        if overlap > 0.0:
            own = np.random.default_rng([seed, _OVERLAP])
            moved = own.choice(self.n_users, size=round(overlap * self.n_users), replace=False)
            self.second_labels[moved] = tastes.nearest_other(centres)[self.labels[moved]]
            ends = centres[self.labels[moved]], centres[self.second_labels[moved]]
            places = tastes.between(*ends, own.uniform(*BETWEEN, size=len(moved)))
            raw[moved] = tastes.draw_around(own, places, float(spread))
        self.deviations: Floats | None = None  # (n,) of Gaussian noise
        if deviations is not None:
            low, high = deviations
            own = np.random.default_rng([seed, _NOISE])
            self.deviations = np.full(self.n_users, low) if low == high else own.uniform(low, high, self.n_users)
        self.theta: Floats = tastes.lift(raw)  # (n, d)
        self._raw = raw
        self._turning: Turning | None = None
        if drift != 0.0:
            planes = (centres, self.labels) if drifters == "clusters" else (raw, np.arange(self.n_users))
            self._turning = draw_turning(np.random.default_rng([seed, _DRIFT]), float(drift), *planes)

    def true_clusters(self) -> list[Ints]:
        """The clusters the users were drawn from; a user between two centres is in both of theirs."""
        first, second = self.labels, self.second_labels
        return [np.flatnonzero((first == c) | (second == c)) for c in range(self.labels.max() + 1)]

    def theta_at(self, users: Any, rounds: Any) -> Floats:
        """θ (T, d) of these users in these rounds, which count from 0; without drift it is always ``theta``."""
        who, when = np.asarray(users, dtype=np.int64), np.asarray(rounds, dtype=np.int64)
        if self._turning is not None:
            return tastes.lift(self._turning.at(self._raw, who, when))
        theta: Floats = self.theta[who]
        return theta

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """``count`` rounds from this generator, the first ones of the world."""
        return self.draw_at(rng, count, 0)

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> Rounds:
        """``count`` rounds from this generator, after ``start`` others."""
        users = np.minimum(np.searchsorted(self._arrival, rng.random(count), side="right"), self.n_users - 1)
        return self.rounds_of(users, rng, start=start)

    def rounds_of(self, users: Ints, rng: np.random.Generator, *, start: int = 0) -> Rounds:
        """Rounds in which these users come, in this order, after ``start`` others."""
        contexts = tastes.lift(tastes.unit(rng.standard_normal((len(users), self.n_arms, self.dim - 1))))
        if self.norms != (1.0, 1.0):
            contexts *= rng.uniform(*self.norms, size=contexts.shape[:2])[:, :, None]
        theta = self.theta_at(users, start + np.arange(len(users)))
        means = np.matmul(contexts, theta[:, :, None])[:, :, 0]
        if self.deviations is None:
            rewards = (rng.random(means.shape) < means).astype(np.float64)
        else:
            rewards = means + self.deviations[users][:, None] * rng.standard_normal(means.shape)
        return Rounds(users, contexts, rewards, means)


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")


def _pair(values: Any) -> tuple[float, float] | None:
    """Two numbers in ascending order, at least 0; None if they are not that."""
    if isinstance(values, str) or not isinstance(values, tuple | list) or len(values) != 2:
        return None
    try:
        low, high = (float(value) for value in values)
    except (TypeError, ValueError):
        return None
    return (low, high) if 0.0 <= low <= high < math.inf else None


def _checked_noise(noise: Any) -> tuple[float, float] | None:
    """The range of deviations; None for Bernoulli rewards."""
    if isinstance(noise, str) and noise == "bernoulli":
        return None
    if isinstance(noise, int | float | np.integer | np.floating) and 0.0 <= noise < math.inf:
        return float(noise), float(noise)
    pair = _pair(noise)
    if pair is None:
        told = "'bernoulli' or a deviation of at least 0, or a pair of them (least, largest)"
        raise ValueError(f"noise must be {told}, not {noise!r}")
    return pair


def _check_overlap(overlap: Any, n_clusters: int, raw_dim: int) -> None:
    if not 0.0 <= overlap <= 1.0:
        raise ValueError(f"overlap must be a share from 0 to 1, not {overlap!r}")
    if overlap > 0.0 and (n_clusters < 2 or raw_dim < 2):
        told = "n_clusters" if n_clusters < 2 else "raw_dim"
        raise ValueError(f"overlap must be 0 where {told} is 1, as nobody can stand between two, not {overlap!r}")


def _checked_norms(norms: Any, bernoulli: bool) -> tuple[float, float]:
    pair = _pair(norms)
    if pair is None or pair[0] == 0.0:
        raise ValueError(f"norms must be a pair (least, largest) of lengths above 0, not {norms!r}")
    if bernoulli and pair[1] > 1.0:
        raise ValueError(f"norms must be at most 1 where rewards are Bernoulli, as means are, not {norms!r}")
    return pair

"""The paper's synthetic world: clusters of users with nearly the same taste, arms with random features."""

from __future__ import annotations

import math

import numpy as np

from locb.arrays import Floats, Ints
from locb.environments.base import Environment
from locb.rounds import Rounds

ARRIVALS = ("uniform", "zipf")


class Synthetic(Environment):
    """Users in clusters. Tastes and arms are unit vectors over √2 with a constant 1/√2, so that means are in [0, 1].

    Parameters
    ----------
    n_users, n_clusters : int
        Sizes are drawn from a quarter to twice the mean size (5 to 40 for 100 users in 5 clusters).
    raw_dim : int
        Random features of an arm; with the constant one, ``dim`` is one more.
    n_arms : int
        Arms a round.
    spread : float
        Any two users of a cluster are nearer than this. 0 makes them equal.
    noise : "bernoulli" or float
        Rewards are 0 or 1 with the mean as probability, or the mean plus Gaussian noise of that deviation.
    arrivals : "uniform" or "zipf"
        Who comes: everyone alike, or the r-th most frequent user with probability proportional to 1/r.
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
    """

    def __init__(
        self,
        *,
        n_users: int = 100,
        n_clusters: int = 5,
        raw_dim: int = 5,
        n_arms: int = 10,
        spread: float = 0.2,
        noise: str | float = "bernoulli",
        arrivals: str = "uniform",
        seed: int = 0,
    ) -> None:
        for name, value in (("n_users", n_users), ("n_clusters", n_clusters), ("raw_dim", raw_dim), ("n_arms", n_arms)):
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        if n_clusters > n_users:
            raise ValueError(f"n_clusters must be at most n_users = {n_users}, not {n_clusters}")
        if not 0.0 <= spread < math.inf:
            raise ValueError(f"spread must be a number of at least 0, not {spread!r}")
        if noise != "bernoulli" and (isinstance(noise, str) or not 0.0 <= noise < math.inf):
            raise ValueError(f"noise must be 'bernoulli' or a deviation of at least 0, not {noise!r}")
        if arrivals not in ARRIVALS:
            raise ValueError(f"arrivals must be one of {', '.join(map(repr, ARRIVALS))}, not {arrivals!r}")
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"seed must be a whole number of at least 0, not {seed!r}")
        self.n_users = int(n_users)
        self.dim = int(raw_dim) + 1
        self.n_arms = int(n_arms)
        self.noise = noise
        rng = np.random.default_rng(seed)
        self.labels: Ints = np.repeat(np.arange(n_clusters), _draw_sizes(rng, self.n_users, int(n_clusters)))
        rng.shuffle(self.labels)
        self.theta: Floats = _lift(_draw_tastes(rng, self.labels, int(raw_dim), float(spread)))  # (n, d)
        weight = np.ones(self.n_users) if arrivals == "uniform" else 1.0 / rng.permutation(np.arange(1, n_users + 1))
        self._arrival = np.cumsum(weight / weight.sum())  # (n,)

    def true_clusters(self) -> list[Ints]:
        """The clusters the users were drawn from."""
        return [np.flatnonzero(self.labels == c) for c in range(self.labels.max() + 1)]

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """``count`` rounds from this generator."""
        users = np.minimum(np.searchsorted(self._arrival, rng.random(count), side="right"), self.n_users - 1)
        return self.rounds_of(users, rng)

    def rounds_of(self, users: Ints, rng: np.random.Generator) -> Rounds:
        """Rounds in which these users come, in this order."""
        contexts = _lift(_unit(rng.standard_normal((len(users), self.n_arms, self.dim - 1))))
        means = np.matmul(contexts, self.theta[users][:, :, None])[:, :, 0]
        if self.noise == "bernoulli":
            rewards = (rng.random(means.shape) < means).astype(np.float64)
        else:
            rewards = means + float(self.noise) * rng.standard_normal(means.shape)
        return Rounds(users, contexts, rewards, means)


def _unit(vectors: Floats) -> Floats:
    """Each last-axis vector, scaled to length 1."""
    scaled: Floats = vectors / np.sqrt(np.einsum("...i,...i->...", vectors, vectors))[..., None]
    return scaled


def _lift(unit: Floats) -> Floats:
    """V → (v/√2, 1/√2), so that any two such vectors have an inner product in [0, 1]."""
    lifted = np.full((*unit.shape[:-1], unit.shape[-1] + 1), math.sqrt(0.5))
    lifted[..., :-1] = unit * math.sqrt(0.5)
    return lifted


def _draw_sizes(rng: np.random.Generator, n_users: int, n_clusters: int) -> Ints:
    """Cluster sizes between a quarter of the mean and twice the mean that add up to ``n_users``."""
    mean = n_users / n_clusters
    low, high = max(1, math.ceil(mean / 4)), max(1, math.floor(2 * mean))
    sizes = rng.integers(low, high + 1, size=n_clusters)
    while (short := n_users - int(sizes.sum())) != 0:
        # Hand out what is missing, or take what is too much, one user at a time, wherever there is room.
        room = np.flatnonzero(sizes < high if short > 0 else sizes > low)
        picked = rng.choice(room, size=min(abs(short), len(room)), replace=False)
        sizes[picked] += 1 if short > 0 else -1
    return sizes


def _draw_tastes(rng: np.random.Generator, labels: Ints, raw_dim: int, spread: float) -> Floats:
    """A unit vector a user, within spread/2 of its cluster's centre once lifted: so any two are nearer than spread."""
    centres = _unit(rng.standard_normal((int(labels.max()) + 1, raw_dim)))
    tastes = centres[labels].copy()
    if spread == 0.0:
        return tastes
    # A step whose typical length is 0.35 of the spread after lifting, across the raw_dim − 1 directions of the sphere.
    step = 0.35 * spread * math.sqrt(2.0 / max(1, raw_dim - 1))
    pending = np.arange(len(labels))
    while pending.size:
        centre = centres[labels[pending]]
        tastes[pending] = _unit(centre + step * rng.standard_normal(centre.shape))
        far = np.linalg.norm(tastes[pending] - centre, axis=1) * math.sqrt(0.5) >= spread / 2
        pending = pending[far]
    return tastes

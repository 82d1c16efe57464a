"""Where the users of a synthetic world stand: sizes of clusters, their centres, the users around and between them.

Tastes are unit vectors until they are lifted; distances and spreads are those of lifted vectors.
"""

from __future__ import annotations

import math

import numpy as np

from locb.common.arrays import Floats, Ints


def unit(vectors: Floats) -> Floats:
    """Each last-axis vector, scaled to length 1."""
    scaled: Floats = vectors / np.sqrt(np.einsum("...i,...i->...", vectors, vectors))[..., None]
    return scaled


def lift(units: Floats) -> Floats:
    """V → (v/√2, 1/√2), so that any two such vectors have an inner product in [0, 1]."""
    lifted = np.full((*units.shape[:-1], units.shape[-1] + 1), math.sqrt(0.5))
    lifted[..., :-1] = units * math.sqrt(0.5)
    return lifted


def draw_sizes(rng: np.random.Generator, n_users: int, n_clusters: int) -> Ints:
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


def draw_centres(rng: np.random.Generator, count: int, raw_dim: int) -> Floats:
    """Unit vectors in all directions: (count, raw_dim)."""
    return unit(rng.standard_normal((count, raw_dim)))


def draw_around(rng: np.random.Generator, centres: Floats, spread: float) -> Floats:
    """A unit vector for each centre, within spread/2 of it once lifted: two of one centre are nearer than spread."""
    tastes = centres.copy()
    if spread == 0.0:
        return tastes
    # A step whose typical length is 0.35 of the spread after lifting, across the raw_dim − 1 directions of the sphere.
    step = 0.35 * spread * math.sqrt(2.0 / max(1, centres.shape[1] - 1))
    pending = np.arange(len(centres))
    while pending.size:
        centre = centres[pending]
        tastes[pending] = unit(centre + step * rng.standard_normal(centre.shape))
        far = np.linalg.norm(tastes[pending] - centre, axis=1) * math.sqrt(0.5) >= spread / 2
        pending = pending[far]
    return tastes


def nearest_other(centres: Floats) -> Ints:
    """For every centre the one that is nearest to it: (clusters,)."""
    near = centres @ centres.T
    np.fill_diagonal(near, -np.inf)
    nearest: Ints = near.argmax(axis=1)
    return nearest


def between(first: Floats, second: Floats, share: Floats) -> Floats:
    """Unit vectors on the way from ``first`` to ``second``, after this share of the straight line."""
    return unit(first + share[:, None] * (second - first))

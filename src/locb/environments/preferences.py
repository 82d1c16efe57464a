"""Random draws for synthetic users: cluster sizes, cluster centres, and preferences near the centres.

A preference is a unit vector with ``raw_dim`` entries until :func:`lift` appends the constant feature. Distances and
spreads refer to lifted vectors.
"""

from __future__ import annotations

import math

import numpy as np

from locb.common.arrays import Floats, Ints


def normalize(vectors: Floats) -> Floats:
    """Return the vectors along the last axis, scaled to length 1. No vector may be zero."""
    scaled: Floats = vectors / np.sqrt(np.einsum("...i,...i->...", vectors, vectors))[..., None]
    return scaled


def lift(units: Floats) -> Floats:
    """Map v to (v/√2, 1/√2), so that the inner product of two lifted unit vectors is in [0, 1]."""
    lifted = np.full((*units.shape[:-1], units.shape[-1] + 1), math.sqrt(0.5))
    lifted[..., :-1] = units * math.sqrt(0.5)
    return lifted


def draw_cluster_sizes(rng: np.random.Generator, n_users: int, n_clusters: int) -> Ints:
    """Return random cluster sizes with sum ``n_users``.

    Each size is at least 1, and from a quarter of the mean size to twice the mean size.
    """
    mean = n_users / n_clusters
    low, high = max(1, math.ceil(mean / 4)), max(1, math.floor(2 * mean))
    sizes = rng.integers(low, high + 1, size=n_clusters)
    while (missing := n_users - int(sizes.sum())) != 0:
        # Add or remove one user at a time in random clusters that are within the limits.
        candidates = np.flatnonzero(sizes < high if missing > 0 else sizes > low)
        picked = rng.choice(candidates, size=min(abs(missing), len(candidates)), replace=False)
        sizes[picked] += 1 if missing > 0 else -1
    return sizes


def draw_labels(rng: np.random.Generator, n_users: int, n_clusters: int) -> Ints:
    """Return the cluster of each user (n_users,), for clusters of random sizes (see ``draw_cluster_sizes``)."""
    labels: Ints = np.repeat(np.arange(n_clusters), draw_cluster_sizes(rng, n_users, n_clusters))
    rng.shuffle(labels)
    return labels


def draw_centres(rng: np.random.Generator, count: int, raw_dim: int) -> Floats:
    """Return random unit vectors: (count, raw_dim)."""
    return normalize(rng.standard_normal((count, raw_dim)))


def draw_near(rng: np.random.Generator, centres: Floats, spread: float) -> Floats:
    """Return one random unit vector per centre, whose distance to the centre after lifting is below spread/2.

    The distance between any two vectors that are drawn near the same centre is therefore below ``spread``. If
    ``spread`` is 0, the vectors are copies of the centres.
    """
    vectors = centres.copy()
    if spread == 0.0:
        return vectors
    # On the sphere, a step has raw_dim − 1 directions. Its typical length after lifting is 0.35 · spread.
    step = 0.35 * spread * math.sqrt(2.0 / max(1, centres.shape[1] - 1))
    pending = np.arange(len(centres))
    while pending.size:
        centre = centres[pending]
        vectors[pending] = normalize(centre + step * rng.standard_normal(centre.shape))
        far = np.linalg.norm(vectors[pending] - centre, axis=1) * math.sqrt(0.5) >= spread / 2
        pending = pending[far]
    return vectors


def nearest_centres(centres: Floats) -> Ints:
    """Return, for each row of ``centres``, the index of the nearest other row."""
    similarity = centres @ centres.T
    np.fill_diagonal(similarity, -np.inf)
    nearest: Ints = similarity.argmax(axis=1)
    return nearest


def interpolate(first: Floats, second: Floats, fraction: Floats) -> Floats:
    """Return a point between each row of ``first`` and the same row of ``second``, scaled to length 1.

    ``fraction`` has one element per row: 0 gives the row of ``first``, and 1 the row of ``second``.
    """
    return normalize(first + fraction[:, None] * (second - first))

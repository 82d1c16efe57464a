"""Stability of groups: how well they are found again in bootstrap samples of users with new noise of the rewards."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.kernels.common.linear_algebra import unpack_symmetric
from locb.logs.bootstrap import random_stream

CHUNK = 512  # users whose matrices are in memory at a time


def measure_stability(
    labels: Ints, n_groups: int, cluster: Callable[[Ints], Ints], users: Ints, replicates: int, seed: int
) -> Floats:
    """Return the stability (K,) of each group: how well it is found again in bootstrap samples of users.

    In each replicate, users are drawn with replacement, and groups are computed from the drawn users alone. The result
    is the mean, over replicates, of the largest Jaccard similarity of the group with a new group, among the drawn
    users. It is NaN for a group without drawn users.

    Parameters
    ----------
    labels : (n,) ints
        Group of each user; negative: none.
    n_groups : int
        Number of groups K.
    cluster : callable
        Function that returns the labels of the users whose indices are given.
    users : (m,) ints
        Users from which samples are drawn.
    replicates : int
        Number of samples.
    seed : int
        Seed of the samples.
    """
    rng = random_stream(seed, "stability")
    total, count = np.zeros(n_groups), np.zeros(n_groups)
    for _ in range(replicates):
        drawn = np.unique(users[rng.integers(len(users), size=len(users))])
        again = cluster(drawn)
        before = labels[drawn]
        n_again = int(again.max(initial=-1)) + 1
        sizes = np.bincount(before[before >= 0], minlength=n_groups)
        both = (before >= 0) & (again >= 0)
        table = np.bincount(before[both] * max(n_again, 1) + again[both], minlength=n_groups * max(n_again, 1))
        table = table.reshape(n_groups, -1)
        other = np.bincount(again[again >= 0], minlength=max(n_again, 1))
        jaccard = table / np.maximum(sizes[:, None] + other[None] - table, 1)
        present = sizes > 0
        total[present] += jaccard.max(axis=1)[present]
        count += present
    with np.errstate(invalid="ignore", divide="ignore"):
        stability: Floats = total / count
    return stability


def draw_noise(rows: Floats, dim: int, variance: float, rng: np.random.Generator) -> Floats:
    """Return noise (u, D) of the sums b of users, as if each of their rows had further noise of this variance.

    The noise of a user is drawn from N(0, σ² G). ``rows`` are the sums (b, G).
    """
    noise = np.empty((len(rows), dim))
    for start in range(0, len(rows), CHUNK):
        gram = unpack_symmetric(rows[start : start + CHUNK, dim:], dim)
        ridge = 1e-9 * np.trace(gram, axis1=1, axis2=2) + 1e-12
        roots = np.linalg.cholesky(gram + ridge[:, None, None] * np.eye(dim))
        noise[start : start + CHUNK] = np.einsum("ujk,uk->uj", roots, rng.standard_normal((len(gram), dim)))
    noise *= math.sqrt(variance)
    return noise


def ridge_solutions(rows: Floats, b: Floats) -> Floats:
    """Return the ridge estimates (u, D) for other sums b of the rewards; ``rows`` are the sums (b, G)."""
    found, dim = np.empty_like(b), b.shape[1]
    for start in range(0, len(rows), CHUNK):
        gram = unpack_symmetric(rows[start : start + CHUNK, dim:], dim)
        part = slice(start, start + CHUNK)
        found[part] = np.linalg.solve(gram + np.eye(dim), b[part, :, None])[..., 0]
    return found

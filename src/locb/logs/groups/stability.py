"""Stability of groups: how well they are found again in bootstrap samples of users."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.logs.bootstrap import random_stream


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

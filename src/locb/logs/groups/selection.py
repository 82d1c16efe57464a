"""Choice of gamma, and the stability of groups, from samples of users."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.logs.bootstrap import random_stream
from locb.logs.groups.mixture import (
    Population,
    compute_evidence,
    fit_mixture,
    group_evidence,
    normalize,
    within_variance,
)

GAMMAS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2)
MAX_COMPARED = 4000  # users with which values of gamma are compared, and groups are repeated
MIN_USERS = 20  # users from which gamma is chosen


class GammaScore(NamedTuple):
    """How well the groups of one value of gamma predict users who were not used to find them.

    ``evidence`` is the mean log evidence per held-out user, ``error`` the standard error of its difference to the best
    gamma, ``assigned`` the share of held-out users with a group of at least the required probability.
    """

    gamma: float
    groups: int
    assigned: float
    evidence: float
    error: float


def score_gammas(
    rows: Floats,
    population: Population,
    dim: int,
    *,
    gammas: Sequence[float],
    max_groups: int,
    min_probability: float,
    seed: int,
) -> list[GammaScore]:
    """Fit the groups of each gamma to one half of the users ``rows``, and score them with the other half."""
    half = len(rows) // 2
    found, totals = [], []
    for gamma in gammas:
        evidence = compute_evidence(rows, population, within_variance(gamma, dim), dim)
        train, test = evidence.select(slice(0, half)), evidence.select(slice(half, None))
        mixture = fit_mixture(train, population, gamma, max_groups, random_stream(seed, "gamma"))
        shares, total = normalize(group_evidence(test, mixture.centres) + np.log(mixture.weights))
        assigned = float((shares[:, :-1].max(axis=1) >= min_probability).mean())
        found.append((gamma, len(mixture.centres), assigned))
        totals.append(total)
    best = totals[int(np.argmax([total.mean() for total in totals]))]
    return [
        GammaScore(*entry, float(total.mean()), float((total - best).std() / math.sqrt(len(best))))
        for entry, total in zip(found, totals, strict=True)
    ]


def choose_gamma(scores: Sequence[GammaScore]) -> float:
    """Return the largest gamma whose evidence is within one standard error of the best."""
    best = max(score.evidence for score in scores)
    return max(score.gamma for score in scores if score.evidence >= best - score.error)


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

"""Choice of gamma: how well the groups of one half of the users predict the other half."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats
from locb.logs.bootstrap import random_stream
from locb.logs.groups.mixture import (
    Population,
    compute_evidence,
    find_alike,
    fit_mixture,
    group_evidence,
    normalize,
    within_variance,
)

# Values of gamma relative to the spread of the users: those that are compared, and the one for too few users. The
# spread is small compared with the range of the rewards if a few rewards are large, as with revenue.
RELATIVE_GAMMAS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2)
DEFAULT_RELATIVE_GAMMA = 0.4
MAX_COMPARED = 4000  # maximum number of users with which values of gamma are compared, and stability is measured
MIN_USERS = 20  # minimum number of users to choose gamma


class GammaScore(NamedTuple):
    """How well the groups of one value of gamma predict held-out users, who were not used to find the groups.

    ``evidence`` is the mean log evidence per held-out user, ``error`` the standard error of its difference from the
    highest evidence, ``assigned`` the share of held-out users with a group of at least the required probability.
    """

    gamma: float
    groups: int
    assigned: float
    evidence: float
    error: float


def scale_gamma(relative: float, population: Population) -> float:
    """Return gamma, with two significant digits, from its value relative to the spread of the users."""
    return float(f"{relative * population.spread:.1e}")


def default_gamma(population: Population) -> float:
    """Return gamma for users who are too few to choose it."""
    return scale_gamma(DEFAULT_RELATIVE_GAMMA, population)


def score_gammas(
    rows: Floats,
    population: Population,
    dim: int,
    *,
    max_groups: int,
    min_probability: float,
    seed: int,
) -> list[GammaScore]:
    """Fit the groups of each gamma to one half of the users ``rows``, and score them with the other half."""
    half = len(rows) // 2
    found, totals = [], []
    for gamma in [scale_gamma(relative, population) for relative in RELATIVE_GAMMAS]:
        evidence = compute_evidence(rows, population, within_variance(gamma, dim), dim)
        train, test = evidence.select(slice(0, half)), evidence.select(slice(half, None))
        mixture = fit_mixture(train, population, gamma, max_groups, random_stream(seed, "gamma"))
        shares, total = normalize(group_evidence(test, mixture.centres) + np.log(mixture.weights))
        groups = find_alike(mixture, rows[:half], train)
        by_group = shares[:, :-1] @ (groups[:, None] == np.unique(groups))
        assigned = float((by_group.max(axis=1) >= min_probability).mean())
        found.append((gamma, by_group.shape[1], assigned))
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


def describe_choice(scores: Sequence[GammaScore], gamma: float, groups: int) -> list[str]:
    """Return notes about the chosen gamma: at an edge of the compared values, or with another number of groups."""
    notes = []
    values = [score.gamma for score in scores]
    if gamma in (min(values), max(values)):
        edge, other = ("smallest", "smaller") if gamma == min(values) else ("largest", "larger")
        notes.append(f"gamma {gamma:g} is the {edge} value that was compared; set gamma to try {other} values")
    sampled = next(score.groups for score in scores if score.gamma == gamma)
    if sampled != groups:
        notes.append(
            f"the choice of gamma found {sampled} groups for gamma {gamma:g} with half of a sample of the users; the "
            f"result has {groups}, from all users and without groups of one user"
        )
    return notes

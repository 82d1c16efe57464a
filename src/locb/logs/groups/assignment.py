"""Assignment of all users of a log to groups, by one of three methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError
from locb.kernels.groups.evidence import own_estimates
from locb.kernels.groups.overlap import connected_components
from locb.logs.groups.mixture import (
    Mixture,
    Population,
    compute_evidence,
    group_evidence,
    normalize,
    update,
)
from locb.logs.groups.user_sums import UserSums

BLOCK = 32_768  # users per block
LISTED = 0.05  # smallest probability of a membership that is listed
REFINEMENTS = 2  # rounds of expectation maximization over all users
MAX_COMPARED = 200_000  # maximum number of users whose confidence regions are compared
UNKNOWN, NO_GROUP, ALONE = -1, -2, -3  # labels: not enough data to tell; no group fits; the only member of a group


@dataclass
class Assignment:
    """Groups of n users.

    Attributes
    ----------
    labels : (n,) ints
        Group of each user; −1: not enough data to tell; −2: no group fits; −3: the user is alone in a group.
    probabilities : (n,) floats
        Probability of the group (of the most probable one, for users without a group); NaN if the method has none.
    centres : (K, D) floats
        Centre of each group.
    theta : (n, D) floats
        Estimate of each user.
    listed : tuple of (m,) arrays, optional
        Users, groups and probabilities of all memberships with a probability of at least 5%.
    """

    labels: Ints
    probabilities: Floats
    centres: Floats
    theta: Floats
    listed: tuple[Ints, Ints, Floats] | None = None


@dataclass(frozen=True)
class Estimates:
    """Estimate of each user from the user's own rows: (n, D), and its radius, (n,)."""

    theta: Floats
    radii: Floats


def estimate_users(sums: UserSums, sigma: float, delta: float, norm_bound: float) -> Estimates:
    """Return the ridge estimate and the ``ellipsoid`` radius of each user. With probability 1 − δ, all radii hold."""
    theta, radii = np.empty((len(sums), sums.dim)), np.empty(len(sums))
    for start in range(0, len(sums), BLOCK):
        part = slice(start, start + BLOCK)
        own_estimates(sums.block(part), len(sums), sigma, delta, norm_bound, theta[part], radii[part])
    return Estimates(theta, radii)


def refine(mixture: Mixture, sums: UserSums, population: Population) -> Mixture:
    """Return the mixture after two rounds of expectation maximization over all users."""
    for _ in range(REFINEMENTS):
        shares, pooled = np.zeros(len(mixture.weights)), np.zeros((len(mixture.centres), sums.block(slice(1)).shape[1]))
        for start in range(0, len(sums), BLOCK):
            evidence = compute_evidence(sums.block(slice(start, start + BLOCK)), population, mixture.variance, sums.dim)
            block, _ = normalize(group_evidence(evidence, mixture.centres) + np.log(mixture.weights))
            shares += block.sum(axis=0)
            pooled += block[:, :-1].T @ evidence.forms
        mixture = update(mixture, shares, pooled, population)
    return mixture


def assign_by_evidence(
    mixture: Mixture, groups: Ints, sums: UserSums, population: Population, min_probability: float
) -> Assignment:
    """Assign users to the groups of a mixture. ``groups`` has the group of each component, see ``find_alike``.

    A user belongs to the most probable group if its probability is at least ``min_probability``, both with the mixing
    weights of the mixture and with equal weights of the groups. The second condition means that the rows of the user
    decide, rather than the sizes of the groups. If the population has at least this probability, no group fits a user.
    """
    count, n_groups = len(sums), int(groups.max()) + 1
    member = (groups[:, None] == np.arange(n_groups)) * mixture.weights[:-1, None]  # (components, groups)
    centres = member.T @ mixture.centres / member.sum(axis=0)[:, None]
    labels, probabilities = np.full(count, UNKNOWN, np.int64), np.empty(count)
    theta = np.empty((count, sums.dim))
    listed: list[tuple[Ints, Ints, Floats]] = []
    packed = _symmetric_positions(sums.dim)
    even = (member / member.sum(axis=0) / n_groups).sum(axis=1) * (1.0 - mixture.weights[-1])
    even = np.append(even, mixture.weights[-1])
    combine = np.zeros((len(groups) + 1, n_groups + 1))
    combine[np.arange(len(groups)), groups] = combine[-1, -1] = 1.0
    for start in range(0, count, BLOCK):
        part = slice(start, min(start + BLOCK, count))
        evidence = compute_evidence(sums.block(part), population, mixture.variance, sums.dim)
        logs = group_evidence(evidence, mixture.centres)
        parts, _ = normalize(logs + np.log(mixture.weights))
        shares, equal = parts @ combine, normalize(logs + np.log(even))[0] @ combine
        users = np.arange(len(shares))
        best = shares[:, :n_groups].argmax(axis=1)
        certain = np.minimum(shares[users, best], equal[users, best])
        probabilities[part] = shares[users, best]
        labels[part][certain >= min_probability] = best[certain >= min_probability]
        labels[part][shares[:, -1] >= min_probability] = NO_GROUP
        rows, groups = np.nonzero(shares[:, :n_groups] >= LISTED)
        listed.append((rows + start, groups, shares[rows, groups]))
        centre = parts[:, :-1] @ mixture.centres + parts[:, -1:] * evidence.means
        pulled = np.einsum("ujk,uk->uj", evidence.forms[:, packed], centre)
        own = evidence.forms[:, : sums.dim] - pulled
        theta[part] = centre + mixture.variance * own
    columns = [np.concatenate(column) for column in zip(*listed, strict=True)]
    return Assignment(labels, probabilities, centres, theta, (columns[0], columns[1], columns[2]))


def _symmetric_positions(dim: int) -> Ints:
    """Return (D, D): the column of M_ij in a row that has D numbers and then a packed symmetric matrix M."""
    positions = np.empty((dim, dim), np.int64)
    upper = np.triu_indices(dim)
    positions[upper] = np.arange(len(upper[0])) + dim
    positions.T[upper] = positions[upper]
    return positions


def assign_certified(estimates: Estimates, gamma: float, max_groups: int, delta: float) -> Assignment:
    """Build groups in which the distance between any two members is at most gamma, by local clustering.

    The bound holds for all groups with a probability of at least 1 − δ. User i has the estimate θ̂_i and the radius B_i.
    The seed s of a group is the user without a group whose radius is smallest. The group has the users without a group
    for whom ‖θ̂_i − θ̂_s‖ + B_i ≤ γ / 2. By the triangle inequality, any two of them are at most γ apart if their radii
    hold. Users with a radius above γ / 2 cannot be in any group: there is not enough data to tell.
    """
    theta, radii = estimates.theta, estimates.radii
    labels = np.full(len(radii), UNKNOWN, np.int64)
    free = np.flatnonzero(radii <= 0.5 * gamma)
    if not free.size:
        raise ParameterError(
            "gamma",
            f" must be above {2 * radii.min():.4g} for method='locb', not {gamma:g}: no user has a confidence radius "
            f"of at most gamma / 2. With gamma {2 * float(np.median(radii)):.4g}, half of the users have such a radius",
        )
    free = free[np.argsort(radii[free], kind="stable")]
    centres: list[Floats] = []
    while free.size and len(centres) < max_groups:
        inside = np.linalg.norm(theta[free] - theta[free[0]], axis=1) + radii[free] <= 0.5 * gamma
        inside[0] = True
        if inside.sum() > 1:
            members = free[inside]
            labels[members] = len(centres)
            centres.append(theta[members].mean(axis=0))
            free = free[~inside]
        else:
            labels[free[0]] = NO_GROUP
            free = free[1:]
    labels[free] = NO_GROUP
    probabilities = np.where(labels >= 0, 1.0 - delta, np.nan)
    return Assignment(labels, probabilities, np.array(centres).reshape(-1, theta.shape[1]), theta)


def assign_connected(estimates: Estimates, alpha: float) -> Assignment:
    """Return the groups of Off-CLUB: connected components of the graph of users with overlapping confidence regions.

    The graph starts complete. The edge of two users is removed if ‖θ̂_i − θ̂_j‖ > α (B_i + B_j), where B is the
    ``ellipsoid`` radius. Groups are numbered by their size, largest first. Off-CLUB has no probabilities.
    """
    count = len(estimates.radii)
    if count > MAX_COMPARED:
        raise ParameterError(
            "method", f" 'off-club' compares pairs of users and allows at most {MAX_COMPARED:,} users, not {count:,}"
        )
    order = np.argsort(-estimates.radii, kind="stable")  # users with large radii have many edges
    labels = np.empty(count, np.int64)
    theta, radii = np.ascontiguousarray(estimates.theta[order]), alpha * estimates.radii[order]
    found = connected_components(theta, radii, labels)
    own = np.empty(count, np.int64)
    own[order] = labels
    sizes = np.bincount(own, minlength=found)
    rank = np.empty(found, np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(found)
    own = rank[own]
    sizes = np.sort(sizes)[::-1]
    centres = np.stack([np.bincount(own, weights=column, minlength=found) for column in estimates.theta.T], axis=1)
    return Assignment(own, np.full(count, np.nan), centres / sizes[:, None], estimates.theta)


def order_by_size(found: Assignment) -> Assignment:
    """Return the assignment with the groups numbered by size, largest first. Groups of fewer than two are omitted."""
    sizes = np.bincount(found.labels[found.labels >= 0], minlength=len(found.centres))
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 1]
    rank = np.full(len(found.centres), ALONE, np.int64)
    rank[order] = np.arange(len(order))
    labels = found.labels.copy()
    labels[labels >= 0] = rank[labels[labels >= 0]]
    listed = found.listed
    if listed is not None:
        kept = rank[listed[1]] >= 0
        listed = (listed[0][kept], rank[listed[1][kept]], listed[2][kept])
    return Assignment(labels, found.probabilities, found.centres[order], found.theta, listed)

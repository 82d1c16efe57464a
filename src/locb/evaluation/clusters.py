"""Groups of users: what a policy found, how well it matches the truth, and what is certain about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Cluster:
    """A set of users who are alike.

    Attributes
    ----------
    seed : int or None
        The user around whom the set was found; None where the policy has no seeds.
    members : (m,) ints
        Its users, in ascending order.
    returned_at : int or None
        The round in which it was declared finished; None while it is still changing.
    """

    seed: int | None
    members: Ints
    returned_at: int | None = None

    def __len__(self) -> int:
        return int(self.members.size)

    def __contains__(self, user: object) -> bool:
        return bool(np.any(self.members == user))


class Membership(NamedTuple):
    """A group that holds a user, without its members: seed and round as in ``Cluster``; None for a size not kept."""

    seed: int | None
    size: int | None
    returned_at: int | None = None


class ClusterScore(NamedTuple):
    """Averages over the true clusters, each against the found set that fits it best."""

    f1: float
    precision: float
    recall: float


class SimilarUser(NamedTuple):
    """Another user, how far apart the two estimates are, and the radius of the other's."""

    user: int
    distance: float
    radius: float


def sorted_members(cluster: Any) -> Ints:
    """The users of a Cluster or of any sequence of users, sorted, each once."""
    values = np.asarray(cluster.members if isinstance(cluster, Cluster) else cluster)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise ValueError(f"cluster must be a Cluster or a list of users, not {values.dtype} of shape {values.shape}")
    users = values.astype(np.int64)
    # Those of a policy are in order already, and looking takes a fraction of the time of sorting.
    return users if bool((users[1:] > users[:-1]).all()) else np.unique(users)


def group_by_label(names: Ints) -> list[Ints]:
    """The users of each name, ascending, in the order of the names; ``names`` has one a user.

    Examples
    --------
    >>> [group.tolist() for group in group_by_label(np.array([4, 2, 4]))]
    [[1], [0, 2]]
    """
    order = np.argsort(names, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(names[order])) + 1)


def count_common_users(some: Sequence[Ints], others: Sequence[Ints]) -> Ints:
    """How many users each of some groups shares with each of others: (some, others). No group may be empty.

    Examples
    --------
    >>> count_common_users([np.array([0, 1, 2])], [np.array([1, 2, 7]), np.array([7])]).tolist()
    [[2, 0]]
    """
    sizes = np.array([len(group) for group in others])
    # All users of all others in one array, so that a group is counted in every one of them by one pass.
    names, users = np.unique(np.concatenate(others), return_inverse=True)
    begins = np.cumsum(sizes) - sizes
    inside = np.array([np.isin(names, group) for group in some])[:, users]
    counts: Ints = np.add.reduceat(inside, begins, axis=1, dtype=np.int64)
    return counts


def match_clusters(found: Iterable[Any], truth: Sequence[Any]) -> ClusterScore:
    """Score found sets against true clusters: for each true one the found set of the highest F1 counts.

    Examples
    --------
    >>> match_clusters([[0, 1], [2, 3, 4]], [[0, 1, 2], [3, 4]])
    ClusterScore(f1=0.8, precision=0.8333333333333333, recall=0.8333333333333333)
    """
    if len(truth) == 0:
        raise ValueError("truth must hold at least one cluster")
    wanted = [sorted_members(cluster) for cluster in truth]
    if any(cluster.size == 0 for cluster in wanted):
        raise ValueError("truth must not hold an empty cluster")
    candidates = [cluster for cluster in (sorted_members(c) for c in found) if cluster.size]
    best = np.zeros((len(wanted), 3))
    if candidates:
        common = count_common_users(wanted, candidates)
        true_sizes, sizes = (np.array([len(cluster) for cluster in kind]) for kind in (wanted, candidates))
        f1s = 2.0 * common / (true_sizes[:, None] + sizes)
        fit = f1s.argmax(axis=1)
        row = np.arange(len(wanted))
        best = np.column_stack([f1s[row, fit], common[row, fit] / sizes[fit], common[row, fit] / true_sizes])
    f1, precision, recall = best.mean(axis=0)
    return ClusterScore(float(f1), float(precision), float(recall))


def diameter(theta: Floats, radius: Floats) -> float:
    """The largest ‖θ̂_i − θ̂_j‖ + B_i + B_j over all pairs; 0 where there is no pair.

    Where every θ_i is within B_i of its estimate, no two of the users are farther apart than this.
    """
    largest = 0.0
    for i in range(len(theta) - 1):
        gaps = np.linalg.norm(theta[i + 1 :] - theta[i], axis=1) + radius[i + 1 :] + radius[i]
        largest = max(largest, float(gaps.max()))
    return largest


def diameter_bound(theta: Floats, radius: Floats) -> float:
    """At least ``diameter``, by way of the middle: the sum of the two largest ‖θ̂_i − middle‖ + B_i, in O(n)."""
    if len(theta) < 2:
        return 0.0
    reach = np.linalg.norm(theta - theta.mean(axis=0), axis=1) + radius
    return float(np.partition(reach, -2)[-2:].sum())


def maximum_clique(theta: Floats, gamma: float) -> Ints:
    """The largest set of rows of which any two are nearer than gamma: a maximum clique, exact.

    Branch and bound on sets as Python integers; a greedy colouring bounds what a branch can still give (users of one
    colour are pairwise apart, so a clique takes one of each colour at most). Meant for some hundreds of rows.

    Examples
    --------
    >>> maximum_clique(np.array([[0.0], [0.1], [0.15], [0.9]]), 0.2).tolist()
    [0, 1, 2]
    """
    count = len(theta)
    if count == 0:
        return np.empty(0, np.int64)
    near = np.linalg.norm(theta[:, None] - theta[None, :], axis=2) < gamma
    np.fill_diagonal(near, False)
    order = np.argsort(-near.sum(axis=1), kind="stable")  # those with many neighbours first
    near = near[order][:, order]
    neighbours = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in near]
    best: list[int] = []

    def coloured(candidates: int) -> list[tuple[int, int]]:
        """Candidates with the number of colours used up to them, in ascending order of colours."""
        listed, colour = [], 0
        while candidates:
            colour += 1
            free = candidates
            while free:
                user = (free & -free).bit_length() - 1
                free &= ~neighbours[user] & ~(1 << user)
                candidates ^= 1 << user
                listed.append((user, colour))
        return listed

    def grow(chosen: list[int], candidates: int) -> None:
        nonlocal best
        for user, colours in reversed(coloured(candidates)):
            if len(chosen) + colours <= len(best):
                return
            grown = [*chosen, user]
            rest = candidates & neighbours[user]
            if rest:
                grow(grown, rest)
            elif len(grown) > len(best):
                best = grown
            candidates ^= 1 << user

    grow([], (1 << count) - 1)
    return np.sort(order[best])

"""Clusters of users: result types, scores against the true clusters, and maximum cliques."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Cluster:
    """A group of similar users.

    Attributes
    ----------
    seed : int or None
        The seed user, around whom the policy built the cluster; None for a cluster without a seed user.
    members : (m,) array of int
        The m users of the cluster, in ascending order.
    returned_at : int or None, default None
        The round in which the policy returned the cluster: from then on it is final, and its members do not change,
        except that LOCB may accept users who are added later. None if the cluster is not final.
    """

    seed: int | None
    members: Ints
    returned_at: int | None = None

    def __repr__(self) -> str:
        around = "" if self.seed is None else f" around user {self.seed}"
        state = "still changing" if self.returned_at is None else f"final since round {self.returned_at:,}"
        return f"Cluster({len(self):,} user{'' if len(self) == 1 else 's'}{around}, {state})"

    def __len__(self) -> int:
        return int(self.members.size)

    def __contains__(self, user: object) -> bool:
        return bool(np.any(self.members == user))


class Membership(NamedTuple):
    """One of the clusters that contain a given user, described without its members.

    ``seed`` and ``returned_at`` are as in ``Cluster``. ``size`` is the number of members; None if it is not known.
    """

    seed: int | None
    size: int | None
    returned_at: int | None = None


class ClusterScore(NamedTuple):
    """Scores of found clusters, each the mean over the true clusters.

    Each true cluster is compared with the found cluster that has the highest F1 score for it.
    """

    f1: float
    precision: float
    recall: float


class SimilarUser(NamedTuple):
    """A user who shares a cluster with a given user."""

    user: int
    distance: float  # between the estimates of the two users
    radius: float  # confidence radius of the estimate of ``user``


def sorted_members(cluster: Any) -> Ints:
    """Return the users of a Cluster, or of any sequence of users, in ascending order and without duplicates."""
    values = np.asarray(cluster.members if isinstance(cluster, Cluster) else cluster)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise ValueError(
            f"cluster must be a Cluster or a list of integers (users), not {values.dtype} of shape {values.shape}"
        )
    users = values.astype(np.int64)
    # The members of a Cluster are already sorted, and this test is much faster than sorting.
    return users if bool((users[1:] > users[:-1]).all()) else np.unique(users)


def group_by_label(labels: Ints) -> list[Ints]:
    """Return one array of users per distinct label, in the order of the labels; ``labels`` has one entry per user.

    Examples
    --------
    >>> [group.tolist() for group in group_by_label(np.array([4, 2, 4]))]
    [[1], [0, 2]]
    """
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def count_common_users(groups: Sequence[Ints], others: Sequence[Ints]) -> Ints:
    """Return the number of users that each of ``groups`` shares with each of ``others``.

    The result has shape (len(groups), len(others)). No group may be empty.

    Examples
    --------
    >>> count_common_users([np.array([0, 1, 2])], [np.array([1, 2, 7]), np.array([7])]).tolist()
    [[2, 0]]
    """
    sizes = np.array([len(group) for group in others])
    # ``others`` are concatenated, so that one pass per group counts the users that it shares with each other group.
    unique_users, positions = np.unique(np.concatenate(others), return_inverse=True)
    starts = np.cumsum(sizes) - sizes
    is_common = np.array([np.isin(unique_users, group) for group in groups])[:, positions]
    counts: Ints = np.add.reduceat(is_common, starts, axis=1, dtype=np.int64)
    return counts


def match_clusters(found: Iterable[Any], truth: Sequence[Any]) -> ClusterScore:
    """Score found clusters against the true clusters by F1, precision and recall.

    Each true cluster is compared with the found cluster that has the highest F1 score for it.

    Parameters
    ----------
    found : iterable of Cluster or of sequences of users
        The clusters that a policy found. Clusters may overlap. Empty clusters are ignored.
    truth : sequence of Cluster or of sequences of users
        The true clusters: at least one, and none of them empty.

    Returns
    -------
    ClusterScore
        F1, precision and recall, each averaged over the true clusters. All are 0 if ``found`` is empty.

    Raises
    ------
    ValueError
        If ``truth`` is empty or contains an empty cluster, or if a cluster is not a sequence of integers.

    Examples
    --------
    >>> match_clusters([[0, 1], [2, 3, 4]], [[0, 1, 2], [3, 4]])
    ClusterScore(f1=0.8, precision=0.8333333333333333, recall=0.8333333333333333)
    """
    if len(truth) == 0:
        raise ValueError("truth must contain at least one cluster, not 0")
    true_clusters = [sorted_members(cluster) for cluster in truth]
    for index, cluster in enumerate(true_clusters):
        if cluster.size == 0:
            raise ValueError(f"truth[{index}] is empty: every true cluster must contain at least one user")
    candidates = [cluster for cluster in (sorted_members(c) for c in found) if cluster.size]
    best = np.zeros((len(true_clusters), 3))
    if candidates:
        common = count_common_users(true_clusters, candidates)
        true_sizes, sizes = (np.array([len(cluster) for cluster in kind]) for kind in (true_clusters, candidates))
        f1s = 2.0 * common / (true_sizes[:, None] + sizes)
        fit = f1s.argmax(axis=1)
        row = np.arange(len(true_clusters))
        best = np.column_stack([f1s[row, fit], common[row, fit] / sizes[fit], common[row, fit] / true_sizes])
    f1, precision, recall = best.mean(axis=0)
    return ClusterScore(float(f1), float(precision), float(recall))


def maximum_clique(theta: Floats, gamma: float) -> Ints:
    """Return a maximum clique: the indices of a largest set of rows of ``theta`` with pairwise distances below gamma.

    The search is exact: branch and bound, with sets as bits of Python integers. A greedy colouring bounds the size of a
    branch: rows of the same colour are at least gamma apart, so a clique has at most one row of each colour. Intended
    for some hundreds of rows.

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
    order = np.argsort(-near.sum(axis=1), kind="stable")  # by descending degree
    near = near[order][:, order]
    neighbours = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in near]
    best: list[int] = []

    def colour(candidates: int) -> list[tuple[int, int]]:
        """Return pairs (candidate, number of colours that are used up to and including this candidate)."""
        coloured, n_colours = [], 0
        while candidates:
            n_colours += 1
            uncoloured = candidates
            while uncoloured:
                user = (uncoloured & -uncoloured).bit_length() - 1
                uncoloured &= ~neighbours[user] & ~(1 << user)
                candidates ^= 1 << user
                coloured.append((user, n_colours))
        return coloured

    def search(chosen: list[int], candidates: int) -> None:
        """Extend the clique ``chosen`` by subsets of ``candidates``, and store the largest clique found in ``best``."""
        nonlocal best
        for user, colours in reversed(colour(candidates)):
            if len(chosen) + colours <= len(best):
                return
            extended = [*chosen, user]
            remaining = candidates & neighbours[user]
            if remaining:
                search(extended, remaining)
            elif len(extended) > len(best):
                best = extended
            candidates ^= 1 << user

    search([], (1 << count) - 1)
    return np.sort(order[best])

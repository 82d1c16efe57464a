"""Estimates and memberships of many users at once, as copies that another thread can use.

A *group* is a cluster of a policy. The *name* of a group is an integer, not necessarily its index in ``clusters``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints, Words
from locb.evaluation.clusters import Cluster
from locb.kernels.common.bit_sets import ONE, pack_bits, unpack_bits

MAX_SINGLE_BITS = 16  # for at most this many groups, bits are extracted one by one instead of unpacked
SMALL_PRODUCT = 250_000  # multiplications in a matrix product; for smaller products OpenBLAS starts no threads
BLOCK = 8192  # users whose bits are unpacked at once, to limit memory


class GroupSummary(NamedTuple):
    """The K clusters of a policy in the order of ``clusters``, described without their members.

    Attributes
    ----------
    names : (K,) ints
        Name of each cluster, as used in a ``BatchMembership``.
    seeds : (K,) ints
        Seed user of each cluster; −1 for none.
    returned : (K,) bools
        Whether each cluster is final (returned).
    progress : (K,) floats
        Progress of each cluster towards being final, from 0 to 1; NaN if it is not known, or if clusters are never
        final.
    theta : (K, d) floats or None
        Sum of the members' estimates for each cluster; None if the policy does not maintain these sums.
    same_as : (K,) ints or None
        For a policy with ``UserBatch.weights``: position of the cluster of which each cluster is a duplicate, or its
        own position. Duplicates count as one group.
    """

    names: Ints
    seeds: Ints
    returned: NDArray[np.bool_]
    progress: Floats
    theta: Floats | None = None
    same_as: Ints | None = None


class OverlappingGroups(NamedTuple):
    """Memberships of u users in K overlapping groups, as bits. The names of the groups are 0 to K − 1.

    Examples
    --------
    >>> three = OverlappingGroups.from_matrix(np.array([[True, True], [False, True], [True, False]]))
    >>> three.counts(np.arange(2)).tolist(), three.sums(np.arange(2), np.array([[1.0], [2.0], [4.0]])).ravel().tolist()
    ([2, 1, 1], [5.0, 3.0])
    """

    bits: Words  # (u, ⌈K/64⌉) bit set of the groups of each user
    groups: int  # K, the number of groups

    @classmethod
    def from_matrix(cls, inside: NDArray[np.bool_]) -> OverlappingGroups:
        """Return the memberships given by a boolean matrix (u, K): whether each user is in each group."""
        return cls(pack_bits(inside), inside.shape[1])

    @classmethod
    def concatenate(cls, parts: Sequence[OverlappingGroups]) -> OverlappingGroups:
        """Return one object with the users of all ``parts``, in order."""
        return cls(np.concatenate([part.bits for part in parts]), parts[-1].groups)

    def blocks(self, names: Ints) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Yield slices of users, each with a boolean matrix (users of the slice, names): who is in which group."""
        bit_indices = names.astype(np.uint64)
        for start in range(0, len(self.bits), BLOCK):
            rows = slice(start, start + BLOCK)
            if len(names) > MAX_SINGLE_BITS:
                yield rows, unpack_bits(self.bits[rows], self.groups)[:, names]
            else:
                yield rows, (self.bits[rows][:, names >> 6] >> (bit_indices & np.uint64(63)) & ONE).astype(bool)

    def first(self, names: Ints) -> Ints:
        """Return the row of the first user of each group in ``names``; −1 for a group without users."""
        first = np.full(len(names), -1)
        for rows, inside in self.blocks(names):
            row = inside.argmax(axis=0)
            found = (first < 0) & inside[row, np.arange(len(names))]
            first[found] = rows.start + row[found]
        return first

    def counts(self, names: Ints) -> Ints:
        """Return, for each user, the number of groups in ``names`` that contain the user."""
        wanted = np.zeros((1, self.groups), bool)
        wanted[0, names] = True
        counts: Ints = np.bitwise_count(self.bits & pack_bits(wanted)).sum(axis=1, dtype=np.int64)
        return counts

    def sums(self, names: Ints, values: Floats) -> Floats:
        """Return the sum of ``values`` (u, c) over the users of each group in ``names``: (names, c)."""
        total = np.zeros((self.groups, values.shape[1]))
        size = max(16, SMALL_PRODUCT // max(total.size, 1))
        for start in range(0, len(self.bits), size):
            rows = slice(start, start + size)
            total += unpack_bits(self.bits[rows], self.groups).astype(np.float64).T @ values[rows]
        return total[names]

    def share_group_with(self, row: int) -> NDArray[np.bool_]:
        """Return, for each user, whether the user shares a group with the user in row ``row``."""
        shared: NDArray[np.bool_] = (self.bits & self.bits[row]).any(axis=1)
        return shared

    def take(self, rows: Ints) -> OverlappingGroups:
        """Return the memberships of the users in ``rows``."""
        return OverlappingGroups(self.bits[rows], self.groups)


class Partition(NamedTuple):
    """Memberships of u users in disjoint groups: the name of the group of each user.

    Examples
    --------
    >>> three = Partition(np.array([7, 5, 7]))
    >>> three.sums(np.array([5, 7]), np.array([[1.0], [2.0], [4.0]])).ravel().tolist()
    [2.0, 5.0]
    """

    names: Ints  # (u,) name of the group of each user

    @classmethod
    def concatenate(cls, parts: Sequence[Partition]) -> Partition:
        """Return one object with the users of all ``parts``, in order."""
        return cls(np.concatenate([part.names for part in parts]))

    def blocks(self, names: Ints) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Yield slices of users, each with a boolean matrix (users of the slice, names): who is in which group."""
        size = max(1, BLOCK * 64 // max(len(names), 1))
        for start in range(0, len(self.names), size):
            rows = slice(start, start + size)
            yield rows, self.names[rows, None] == names

    def counts(self, names: Ints) -> Ints:
        """Return, for each user, 1 if one of the groups in ``names`` contains the user, else 0."""
        return np.isin(self.names, names).astype(np.int64)

    def sums(self, names: Ints, values: Floats) -> Floats:
        """Return the sum of ``values`` (u, c) over the users of each group in ``names``: (names, c)."""
        known = np.isin(self.names, names)
        order = np.argsort(names)
        column = order[np.searchsorted(names, self.names[known], sorter=order)]
        total = np.zeros((len(names), values.shape[1]))
        np.add.at(total, column, values[known])
        return total

    def first(self, names: Ints) -> Ints:
        """Return the row of the first user of each group in ``names``; −1 for a group without users."""
        found, rows = np.unique(self.names, return_index=True)
        index = np.searchsorted(found, names)
        first = np.full(len(names), -1)
        known = index < len(found)
        known[known] = found[index[known]] == names[known]
        first[known] = rows[index[known]]
        return first

    def share_group_with(self, row: int) -> NDArray[np.bool_]:
        """Return, for each user, whether the user shares a group with the user in row ``row``."""
        shared: NDArray[np.bool_] = self.names == self.names[row]
        return shared

    def take(self, rows: Ints) -> Partition:
        """Return the memberships of the users in ``rows``."""
        return Partition(self.names[rows])


BatchMembership: TypeAlias = OverlappingGroups | Partition  # one row per user


class UserBatch(NamedTuple):
    """Estimates and memberships of u users.

    Attributes
    ----------
    theta : (u, d) floats
        Estimates; NaN for a policy without estimates.
    radii : (u,) floats
        Confidence radius of each estimate (ELOC, MixedEffects: its expected error); NaN for a policy without estimates.
    served : (u,) ints
        Number of rounds per user.
    groups : BatchMembership
        The groups that contain each user.
    weights : (u, K) floats or None
        Probability that each user belongs to each of the K groups; None if the policy has no probabilities. Duplicates
        share the probability of one group (see ``membership_probabilities``).
    """

    theta: Floats
    radii: Floats
    served: Ints
    groups: BatchMembership
    weights: Floats | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[UserBatch]) -> UserBatch:
        """Return one object with the users of all ``parts``, in order."""
        theta = np.concatenate([part.theta for part in parts])
        radii = np.concatenate([part.radii for part in parts])
        served = np.concatenate([part.served for part in parts])
        bits = [part.groups for part in parts if isinstance(part.groups, OverlappingGroups)]
        names = [part.groups for part in parts if isinstance(part.groups, Partition)]
        groups = OverlappingGroups.concatenate(bits) if bits else Partition.concatenate(names)
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(theta, radii, served, groups, np.concatenate(weights) if weights else None)


def membership_probabilities(summary: GroupSummary, batch: UserBatch) -> Floats | None:
    """Return the probability that each user belongs to each cluster of ``summary``: (u, K).

    The weights of duplicates are added, so they have the same probability. Returns None for a policy without
    probabilities.

    Examples
    --------
    >>> summary = summarize_open_groups(np.arange(3))._replace(same_as=np.array([0, 1, 0]))
    >>> groups = OverlappingGroups.from_matrix(np.ones((1, 3), bool))
    >>> batch = UserBatch(np.zeros((1, 2)), np.zeros(1), np.zeros(1, int), groups, np.array([[0.5, 0.125, 0.25]]))
    >>> membership_probabilities(summary, batch).tolist()
    [[0.75, 0.125, 0.75]]
    """
    if summary.same_as is None or batch.weights is None:
        return None
    totals = np.zeros(batch.weights.shape[::-1])
    np.add.at(totals, summary.same_as, batch.weights.T)
    return totals[summary.same_as].T


def summarize_clusters(clusters: Sequence[Cluster]) -> GroupSummary:
    """Return the summary of a list of clusters, whose names are 0, 1, …"""
    seeds = [-1 if cluster.seed is None else cluster.seed for cluster in clusters]
    returned = np.array([cluster.returned_at is not None for cluster in clusters], bool)
    progress = np.where(returned, 1.0, np.nan)
    return GroupSummary(np.arange(len(clusters)), np.array(seeds, np.int64), returned, progress)


def summarize_open_groups(names: Ints, seeds: Ints | None = None) -> GroupSummary:
    """Return the summary of clusters that are never final, given by their names and, optionally, seed users."""
    count = len(names)
    none = np.full(count, -1)
    return GroupSummary(names, none if seeds is None else seeds, np.zeros(count, bool), np.full(count, np.nan))


def batch_membership(clusters: Sequence[Cluster], users: Ints) -> OverlappingGroups:
    """Return the memberships of ``users`` in ``clusters``; the names of the clusters are 0, 1, …"""
    inside = np.zeros((len(users), len(clusters)), bool)
    for column, cluster in enumerate(clusters):
        inside[:, column] = np.isin(users, cluster.members)
    return OverlappingGroups.from_matrix(inside)

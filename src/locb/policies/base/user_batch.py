"""Many users at once: what is known of them, and which groups hold them, as copies that another thread may work on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints, Words
from locb.evaluation.clusters import Cluster
from locb.kernels.common.bit_sets import ONE, pack_bits, unpack_bits

FEW = 16  # groups whose bits are looked at one by one
SMALL_PRODUCT = 250_000  # multiplications: OpenBLAS does not wake other threads for so few, who would spin beside us
BLOCK = 8192  # users whose bits are spread out at once, so that memory stays bounded


class GroupSummary(NamedTuple):
    """The groups of a policy in the order of ``clusters``, without their members.

    Attributes
    ----------
    names : (K,) ints
        What a ``Belonging`` calls each group.
    seeds : (K,) ints
        The user around whom each grew; −1 for none.
    returned : (K,) bools
        Whether each is complete.
    progress : (K,) floats
        How near each is to being complete, from 0 to 1; NaN where a policy has no such rule.
    theta : (K, d) floats
        The sum of its members' estimates; None where a policy does not keep it.
    """

    names: Ints
    seeds: Ints
    returned: NDArray[np.bool_]
    progress: Floats
    theta: Floats | None = None


class OverlappingGroups(NamedTuple):
    """Groups as bits: a user may be in several. Names are 0, 1, …

    Examples
    --------
    >>> three = OverlappingGroups.of(np.array([[True, True], [False, True], [True, False]]))
    >>> three.counts(np.arange(2)).tolist(), three.sums(np.arange(2), np.array([[1.0], [2.0], [4.0]])).ravel().tolist()
    ([2, 1, 1], [5.0, 3.0])
    """

    bits: Words  # (u, ⌈K/64⌉)
    groups: int  # K

    @classmethod
    def of(cls, inside: NDArray[np.bool_]) -> OverlappingGroups:
        """From whether each user is in each group: (u, K)."""
        return cls(pack_bits(inside), inside.shape[1])

    @classmethod
    def joined(cls, parts: Sequence[OverlappingGroups]) -> OverlappingGroups:
        """Several as one, the users of the first first."""
        return cls(np.concatenate([part.bits for part in parts]), parts[-1].groups)

    def blocks(self, names: Ints) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Rows and whether each user in them is in each of these groups: (rows, K)."""
        places = names.astype(np.uint64)
        for start in range(0, len(self.bits), BLOCK):
            rows = slice(start, start + BLOCK)
            if len(names) > FEW:
                yield rows, unpack_bits(self.bits[rows], self.groups)[:, names]
            else:
                yield rows, (self.bits[rows][:, names >> 6] >> (places & np.uint64(63)) & ONE).astype(bool)

    def first(self, names: Ints) -> Ints:
        """The row of the first user of each of these groups; −1 where there is none."""
        first = np.full(len(names), -1)
        for rows, inside in self.blocks(names):
            row = inside.argmax(axis=0)
            found = (first < 0) & inside[row, np.arange(len(names))]
            first[found] = rows.start + row[found]
        return first

    def counts(self, names: Ints) -> Ints:
        """How many of these groups hold each user."""
        wanted = np.zeros((1, self.groups), bool)
        wanted[0, names] = True
        counts: Ints = np.bitwise_count(self.bits & pack_bits(wanted)).sum(axis=1, dtype=np.int64)
        return counts

    def sums(self, names: Ints, values: Floats) -> Floats:
        """The sum of ``values`` (u, c) over the users of each of these groups: (K, c)."""
        total = np.zeros((self.groups, values.shape[1]))
        size = max(16, SMALL_PRODUCT // max(total.size, 1))
        for start in range(0, len(self.bits), size):
            rows = slice(start, start + size)
            total += unpack_bits(self.bits[rows], self.groups).astype(np.float64).T @ values[rows]
        return total[names]

    def at(self, rows: Ints) -> OverlappingGroups:
        """The same of some of the users."""
        return OverlappingGroups(self.bits[rows], self.groups)


class Partition(NamedTuple):
    """Groups that do not overlap: each user is in one, told by its name.

    Examples
    --------
    >>> three = Partition(np.array([7, 5, 7]))
    >>> three.sums(np.array([5, 7]), np.array([[1.0], [2.0], [4.0]])).ravel().tolist()
    [2.0, 5.0]
    """

    names: Ints  # (u,)

    @classmethod
    def joined(cls, parts: Sequence[Partition]) -> Partition:
        """Several as one, the users of the first first."""
        return cls(np.concatenate([part.names for part in parts]))

    def blocks(self, names: Ints) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Rows and whether each user in them is in each of these groups: (rows, K)."""
        size = max(1, BLOCK * 64 // max(len(names), 1))
        for start in range(0, len(self.names), size):
            rows = slice(start, start + size)
            yield rows, self.names[rows, None] == names

    def counts(self, names: Ints) -> Ints:
        """How many of these groups hold each user: one or none."""
        return np.isin(self.names, names).astype(np.int64)

    def sums(self, names: Ints, values: Floats) -> Floats:
        """The sum of ``values`` (u, c) over the users of each of these groups: (K, c)."""
        known = np.isin(self.names, names)
        order = np.argsort(names)
        place = order[np.searchsorted(names, self.names[known], sorter=order)]
        total = np.zeros((len(names), values.shape[1]))
        np.add.at(total, place, values[known])
        return total

    def first(self, names: Ints) -> Ints:
        """The row of the first user of each of these groups; −1 where there is none."""
        found, rows = np.unique(self.names, return_index=True)
        first_of = dict(zip(found.tolist(), rows.tolist(), strict=True))
        return np.array([first_of.get(name, -1) for name in names.tolist()], np.int64)

    def at(self, rows: Ints) -> Partition:
        """The same of some of the users."""
        return Partition(self.names[rows])


BatchMembership: TypeAlias = (
    OverlappingGroups | Partition
)  # which groups hold which of some users; these are told by their rows


class UserBatch(NamedTuple):
    """What is known of some users.

    Attributes
    ----------
    theta : (u, d) floats
        Their estimates; NaN from a policy that does not tell.
    served : (u,) ints
        The rounds that these rest on.
    groups : Belonging
        Who is in which group.
    """

    theta: Floats
    served: Ints
    groups: BatchMembership

    @classmethod
    def joined(cls, parts: Sequence[UserBatch]) -> UserBatch:
        """Several as one, the users of the first first."""
        theta = np.concatenate([part.theta for part in parts])
        served = np.concatenate([part.served for part in parts])
        bits = [part.groups for part in parts if isinstance(part.groups, OverlappingGroups)]
        names = [part.groups for part in parts if isinstance(part.groups, Partition)]
        return cls(theta, served, OverlappingGroups.joined(bits) if bits else Partition.joined(names))


def summarize_clusters(clusters: Sequence[Cluster]) -> GroupSummary:
    """The outline of groups that are known by their members."""
    seeds = [-1 if cluster.seed is None else cluster.seed for cluster in clusters]
    returned = np.array([cluster.returned_at is not None for cluster in clusters], bool)
    progress = np.where(returned, 1.0, np.nan)
    return GroupSummary(np.arange(len(clusters)), np.array(seeds, np.int64), returned, progress)


def summarize_open_groups(names: Ints, seeds: Ints | None = None) -> GroupSummary:
    """The outline of groups that go on changing for ever."""
    count = len(names)
    none = np.full(count, -1)
    return GroupSummary(names, none if seeds is None else seeds, np.zeros(count, bool), np.full(count, np.nan))


def batch_membership(clusters: Sequence[Cluster], users: Ints) -> OverlappingGroups:
    """Which of the groups hold which of these users."""
    inside = np.zeros((len(users), len(clusters)), bool)
    for column, cluster in enumerate(clusters):
        inside[:, column] = np.isin(users, cluster.members)
    return OverlappingGroups.of(inside)

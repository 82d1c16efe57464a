"""Mapping between user names and the user indices of the policy."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

import numpy as np

from locb.common.arrays import Ints
from locb.evaluation.clusters import Membership


class UserIndex:
    """Two-way mapping between user names and the user indices of the policy.

    An index without a user is *unassigned*. An unknown user gets the lowest free index, or a new index at the end.
    The index of an erased user is unassigned at once, but becomes free only when ``reclaim`` is called.

    Parameters
    ----------
    capacity : int
        Number of user indices of the policy.
    assigned : iterable of (int, str)
        Indices that are already assigned, each with the name of its user.
    """

    def __init__(self, capacity: int, assigned: Iterable[tuple[int, str]] = ()) -> None:
        self._names: list[str | None] = [None] * capacity
        self._is_assigned = bytearray(capacity)  # 0 or 1 per index
        self._indices: dict[str, int] = {}
        for index, name in assigned:
            self._names[index] = name
            self._is_assigned[index] = 1
            self._indices[name] = index
        self.unassigned = capacity - len(self._indices)  # number of indices without a user
        # index_of returns None for an unknown user, and name_of for an index without a user.
        self.index_of: Callable[[str], int | None] = self._indices.get
        self.name_of: Callable[[int], str | None] = self._names.__getitem__
        self._free = [index for index, name in enumerate(self._names) if name is None]

    def __len__(self) -> int:
        return len(self._indices)

    def __contains__(self, name: str) -> bool:
        return name in self._indices

    @property
    def capacity(self) -> int:
        """Number of indices, assigned and unassigned."""
        return len(self._names)

    def assigned(self) -> Ints:
        """Return all assigned indices in ascending order."""
        return np.flatnonzero(np.frombuffer(bytes(self._is_assigned), np.bool_))

    def summarize(self, membership: Membership) -> tuple[str | None, int | None, bool] | None:
        """Return the name of the seed of a cluster, the number of users, and whether the cluster is final.

        Return None while no user is assigned to the seed's index.
        """
        final = membership.returned_at is not None
        if membership.seed is None:
            return None, membership.size, final
        name = self.name_of(membership.seed)
        # Every cluster that is not final contains all unassigned indices, which must not be counted as users.
        unassigned = 0 if final else self.unassigned
        size = None if membership.size is None else membership.size - unassigned
        return None if name is None else (name, size, final)

    def assign(self, name: str) -> int:
        """Assign the lowest free index, or a new index, to an unknown user, and return the index."""
        if self._free:
            index = heapq.heappop(self._free)
            self._names[index] = name
            self._is_assigned[index] = 1
            self.unassigned -= 1
        else:
            index = len(self._names)
            self._names.append(name)
            self._is_assigned.append(1)
        self._indices[name] = index
        return index

    def release(self, name: str) -> int:
        """Remove a user, and return the index, which cannot be assigned again before it is reclaimed."""
        index = self._indices.pop(name)
        self._names[index] = None
        self._is_assigned[index] = 0
        self.unassigned += 1
        return index

    def reclaim(self, index: int) -> None:
        """Make a released index available for assignment."""
        heapq.heappush(self._free, index)

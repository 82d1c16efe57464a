"""The mapping between user names and user indices of the policy's arrays."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from locb.common.arrays import Ints


class UserIndex:
    """Two-way mapping between user names and indices.

    An index without a name is *unassigned*. Unknown users get the lowest free index, or a new one at the end.
    The index of an erased user is released at once, but becomes free only when ``reclaim`` is called.

    Parameters
    ----------
    capacity : int
        Number of users that the policy has.
    assigned : iterable of (int, str)
        Indices that are already assigned, each with the name of its user.
    """

    def __init__(self, capacity: int, assigned: Iterable[tuple[int, str]] = ()) -> None:
        self._names: list[str | None] = [None] * capacity
        self._indices: dict[str, int] = {}
        for index, name in assigned:
            self._names[index] = name
            self._indices[name] = index
        self._free = [index for index, name in enumerate(self._names) if name is None]

    def __len__(self) -> int:
        return len(self._indices)

    def __contains__(self, name: str) -> bool:
        return name in self._indices

    @property
    def unassigned(self) -> int:
        """Number of indices without a user."""
        return len(self._names) - len(self._indices)

    @property
    def capacity(self) -> int:
        """Number of indices, assigned and unassigned."""
        return len(self._names)

    def index_of(self, name: str) -> int | None:
        """Return the index of a user, or None if the user is unknown."""
        return self._indices.get(name)

    def name_of(self, index: int) -> str | None:
        """Return the name of the user at an index, or None if the index is unassigned."""
        return self._names[index]

    def assigned(self) -> Ints:
        """Return all assigned indices in ascending order."""
        if not self.unassigned:
            return np.arange(len(self._names))
        return np.array([index for index, name in enumerate(self._names) if name is not None], np.int64)

    def assign(self, name: str) -> int:
        """Assign the lowest free index, or a new one, to an unknown user and return it."""
        if self._free:
            index = heapq.heappop(self._free)
            self._names[index] = name
        else:
            index = len(self._names)
            self._names.append(name)
        self._indices[name] = index
        return index

    def release(self, name: str) -> int:
        """Remove a user and return their index, which stays unassigned until it is reclaimed."""
        index = self._indices.pop(name)
        self._names[index] = None
        return index

    def reclaim(self, index: int) -> None:
        """Make a released index available for an unknown user."""
        heapq.heappush(self._free, index)

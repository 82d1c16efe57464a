"""Who has which place in the policy."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from locb.common.arrays import Ints


class UserIndex:
    """Users by name and by place. A place is free until somebody comes for it, and again when they are forgotten.

    Parameters
    ----------
    places : int
        How many places the policy has.
    taken : pairs of place and name
        Who is there already.
    """

    def __init__(self, places: int, taken: Iterable[tuple[int, str]] = ()) -> None:
        self._names: list[str | None] = [None] * places
        self._places: dict[str, int] = {}
        for place, name in taken:
            self._names[place] = name
            self._places[name] = place
        self._free = [place for place, name in enumerate(self._names) if name is None]

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    @property
    def empty(self) -> int:
        """How many places nobody has."""
        return len(self._names) - len(self._places)

    @property
    def places(self) -> int:
        """How many places there are, free ones too."""
        return len(self._names)

    def place(self, name: str) -> int | None:
        """The place of a user; None for somebody new."""
        return self._places.get(name)

    def name(self, place: int) -> str | None:
        """Who is there."""
        return self._names[place]

    def taken(self) -> Ints:
        """The places that somebody has."""
        if not self.empty:
            return np.arange(len(self._names))
        return np.array([place for place, name in enumerate(self._names) if name is not None], np.int64)

    def assign(self, name: str) -> int:
        """A place for somebody new: the lowest free one, or one more."""
        if self._free:
            place = heapq.heappop(self._free)
            self._names[place] = name
        else:
            place = len(self._names)
            self._names.append(name)
        self._places[name] = place
        return place

    def leave(self, name: str) -> int:
        """Forget a name; its place stays out of use until it is set free."""
        place = self._places.pop(name)
        self._names[place] = None
        return place

    def reclaim(self, place: int) -> None:
        """Let somebody new have this place."""
        heapq.heappush(self._free, place)

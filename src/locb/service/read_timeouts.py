"""Requests that arrive: those that take too long are given up."""

from __future__ import annotations

import asyncio
import math
from typing import Protocol


class Arriving(Protocol):
    """A connection on which a request may be arriving."""

    since: float  # when it began, by the loop's clock; infinite while none is

    def give_up(self, seconds: float) -> None:
        """The request that is arriving took longer than this."""


class ReadTimeouts:
    """Looks at all connections now and then, which is cheaper than a timer a request.

    Parameters
    ----------
    seconds : float
        In which a request must arrive whole.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._open: set[Arriving] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: Arriving) -> None:
        """Look after this one too."""
        self._open.add(connection)
        self._wait()

    def discard(self, connection: Arriving) -> None:
        """It is gone."""
        self._open.discard(connection)

    def _wait(self) -> None:
        if self._timer is None and self._open:
            self._timer = asyncio.get_running_loop().call_later(self._seconds / 4, self._look)

    def _look(self) -> None:
        self._timer = None
        late = asyncio.get_running_loop().time() - self._seconds
        for connection in [one for one in self._open if one.since < late]:
            connection.since = math.inf
            connection.give_up(self._seconds)
        self._wait()

"""Read timeouts: detection of connections on which a request takes too long to arrive."""

from __future__ import annotations

import asyncio
import math
from typing import Protocol


class ReadingConnection(Protocol):
    """Connection on which a request may be arriving."""

    reading_since: float  # event loop time at which the request began to arrive; infinite if no request is arriving

    def on_read_timeout(self, seconds: float) -> None:
        """Handle a request that took longer than ``seconds`` to arrive."""


class ReadTimeouts:
    """Read timeouts of all connections.

    All connections are checked every quarter of the timeout, which costs less than one timer per request.

    Parameters
    ----------
    timeout : float
        Seconds within which a request must arrive.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._connections: set[ReadingConnection] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: ReadingConnection) -> None:
        """Start checking a connection."""
        self._connections.add(connection)
        self._start_timer()

    def discard(self, connection: ReadingConnection) -> None:
        """Stop checking a connection."""
        self._connections.discard(connection)

    def _start_timer(self) -> None:
        if self._timer is None and self._connections:
            self._timer = asyncio.get_running_loop().call_later(self._timeout / 4, self._check)

    def _check(self) -> None:
        self._timer = None
        deadline = asyncio.get_running_loop().time() - self._timeout
        for connection in [connection for connection in self._connections if connection.reading_since < deadline]:
            connection.reading_since = math.inf
            connection.on_read_timeout(self._timeout)
        self._start_timer()

"""Open connections: read and send timeouts, and limits of the number of connections."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
from functools import lru_cache
from heapq import nsmallest
from typing import Protocol

from locb.service import errors
from locb.service.errors import ProblemError

CLOSED_SHARE = 16  # at a limit, 1 of this many connections is closed, so that not every new connection needs a search
SEND_TIMEOUT = 60.0  # seconds that a client may take to read responses; exports have the same timeout
WARNING_INTERVAL = 60.0  # seconds between warnings about a limit
IPV6_PREFIX = 64  # bits; a client usually has all IPv6 addresses with the same prefix
_log = logging.getLogger("locb.service")


class Connection(Protocol):
    """Connection of a client."""

    client_network: str  # address of the client, see ``client_network``
    # Event loop time at which the request began to arrive, or the connection was opened; infinite if none is arriving.
    reading_since: float
    sending_since: float  # event loop time since which the client reads too slowly; infinite if it does not

    def waiting_since(self) -> float:
        """Return the event loop time since which the service waits for the client; infinite if it does not.

        It waits if no request is in progress, or if the client does not read the response.
        """

    def refuse(self, problem: ProblemError) -> None:
        """Close a connection that waits for its client.

        ``problem`` is sent first if the service waits for a request that has begun to arrive, or for the first request
        of the connection. It is not sent if a response has started.
        """


@lru_cache(maxsize=4096)
def client_network(host: str) -> str:
    """Return the address under which the connections and unknown tokens of a client are counted.

    It is the IPv4 address of the client, or the first 64 bits of its IPv6 address.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, IPV6_PREFIX), strict=False))


class Connections:
    """All open connections.

    If a limit is reached, a new connection is still accepted, so that the routes for health checks stay available.
    Instead, the connections that have waited longest for their clients are closed. A client that sends its requests
    without interruption, and reads the responses, is therefore not affected by clients that do not.

    Parameters
    ----------
    read_timeout : float
        Seconds within which a request must arrive. All connections are checked every quarter of this time, which costs
        less than one timer per request.
    maximum : int
        Number of connections at which connections that wait for their clients are closed. Connections with a request in
        progress are not closed unless the client does not read the responses, so there can be more connections.
    max_per_client : int
        The same limit for the connections of one client address.
    """

    def __init__(self, read_timeout: float, maximum: int, max_per_client: int) -> None:
        self._read_timeout = read_timeout
        self._maximum = maximum
        self._max_per_client = max_per_client
        self._all: dict[Connection, None] = {}
        self._by_client: dict[str, dict[Connection, None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._warned_at = -math.inf

    def add(self, connection: Connection) -> None:
        """Add a new connection. If a limit is reached, first close connections that wait for their clients."""
        client = connection.client_network
        of_client = self._by_client.get(client, {})
        if len(of_client) >= self._max_per_client:
            self._close_waiting(client, max(1, len(of_client) // CLOSED_SHARE))
        if len(self._all) >= self._maximum:
            self._close_waiting(None, max(1, len(self._all) // CLOSED_SHARE))
        self._all[connection] = self._by_client.setdefault(client, {})[connection] = None
        self._start_timer()

    def discard(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._all.pop(connection, None)
        of_client = self._by_client.get(connection.client_network, {})
        of_client.pop(connection, None)
        if not of_client:
            self._by_client.pop(connection.client_network, None)

    def _close_waiting(self, client: str | None, count: int) -> None:
        """Close up to ``count`` connections of a client, or of all clients, that wait for their clients."""
        limit = self._maximum if client is None else self._max_per_client
        problem = errors.too_many_connections(client, limit)
        since = {one: one.waiting_since() for one in (self._all if client is None else self._by_client[client])}
        for connection in nsmallest(count, since, key=since.__getitem__):
            if since[connection] < math.inf:
                self.discard(connection)
                connection.refuse(problem)
        now = asyncio.get_running_loop().time()
        if now >= self._warned_at + WARNING_INTERVAL:
            self._warned_at = now
            _log.warning("%s: %s", problem.problem.title, problem.problem.detail)

    def _start_timer(self) -> None:
        if self._timer is None and self._all:
            self._timer = asyncio.get_running_loop().call_later(self._read_timeout / 4, self._check)

    def _check(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        reading, sending = now - self._read_timeout, now - SEND_TIMEOUT
        for connection in [one for one in self._all if one.reading_since < reading or one.sending_since < sending]:
            connection.refuse(errors.read_timeout(self._read_timeout))
        # Connections of clients that read no responses are known to wait only after their buffers are full.
        excess = {client: len(own) - self._max_per_client for client, own in self._by_client.items()}
        for client, count in [*excess.items(), (None, len(self._all) - self._maximum)]:
            if count > 0:
                self._close_waiting(client, count)
        self._start_timer()

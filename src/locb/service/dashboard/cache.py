"""Cache of the dashboard's views, with which many open pages cause as much load as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Time to live (TTL) of each view in seconds.
STATUS_TTL = 1.0
HISTORY_TTL = 2.0
STATE_TTL = 2.0  # captured state, map and table of clusters
FEATURE_NAMES_TTL = 10.0
STORE_SIZE_TTL = 10.0
# Minimum TTL of a view of all users, in seconds per second of its computation. The computation thus takes at most 1/300
# of the time.
TTL_PER_SECOND = 300.0

MAX_ENTRIES = 32  # cached results per view


class ViewCache(Generic[T]):
    """Cache of the results of a coroutine function. Concurrent calls with the same key share one computation.

    Parameters
    ----------
    compute : coroutine function
        Computes a result.
    ttl : float
        Time to live of a result in seconds.
    ttl_per_second : float, default 0.0
        Time to live of a result, in seconds per second of its computation. The longer of the two times applies.
    """

    def __init__(self, compute: Callable[..., Awaitable[T]], ttl: float, ttl_per_second: float = 0.0) -> None:
        self._compute = compute
        self._ttl = ttl
        self._ttl_per_second = ttl_per_second
        self._entries: dict[Hashable, tuple[float, T]] = {}  # expiry and result
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, key: Hashable, *arguments: Any) -> T:
        """Return the cached result for a key. Compute the result from the arguments if it is missing or expired."""
        entry = self._entries.get(key)
        if entry is not None and time.monotonic() < entry[0]:
            return entry[1]
        return await asyncio.shield(self._task(key, arguments))

    async def get_within(self, key: Hashable, timeout: float, *arguments: Any) -> T | None:
        """Return the result for a key like ``get``, but wait at most ``timeout`` seconds for the computation.

        After the timeout, return the expired result, or None if there is none. The computation continues in the
        background.
        """
        entry = self._entries.get(key)
        if entry is not None and time.monotonic() < entry[0]:
            return entry[1]
        task = self._task(key, arguments)
        done, _ = await asyncio.wait([task], timeout=timeout)
        return task.result() if done else None if entry is None else entry[1]

    def _task(self, key: Hashable, arguments: tuple[Any, ...]) -> asyncio.Task[T]:
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(self._refresh(key, arguments))
        return task

    async def _refresh(self, key: Hashable, arguments: tuple[Any, ...]) -> T:
        start = time.monotonic()
        try:
            result = await self._compute(*arguments)
        finally:
            del self._tasks[key]
        now = time.monotonic()
        self._entries.pop(key, None)
        while len(self._entries) >= MAX_ENTRIES:
            self._entries.pop(next(iter(self._entries)))
        self._entries[key] = now + max(self._ttl, self._ttl_per_second * (now - start)), result
        return result

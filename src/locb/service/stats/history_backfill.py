"""Backfill of ``EventStats`` from the event log, in the background while requests are served."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar

from locb.service.stats.event_stats import EventStats, uses_group
from locb.service.store.database import StoreError
from locb.service.store.log import EventLog

EVENTS_PER_QUERY = 20_000  # events that the database aggregates per query; the event loop adds the result in about 2 ms
MAX_RESPONSES, RESPONSES_PER_QUERY = 5_000, 250  # responses that are read to find which decisions used a group
MAX_RESPONSE_AGE = 3600.0  # seconds; older responses are not read
MATCH_INTERVAL = 20.0  # seconds between attempts to match corrections
RETRY_INTERVAL = 1.0  # seconds between attempts while the store is unavailable
T = TypeVar("T")
StartTask = Callable[[str, Callable[[], Awaitable[None]]], asyncio.Task[None]]
_log = logging.getLogger("locb.service")


class HistoryBackfill:
    """Statistics of an event log, with the background tasks that count the events.

    Parameters
    ----------
    log : EventLog
        The log to count.
    start : callable
        Starts a background task with a name and a coroutine function, which is called again if it fails.
    position : callable
        Returns the sequence number of the last event that was added to the statistics.
    stopping : callable
        Returns whether the service is stopping. If it is, the backfill ends early.
    """

    def __init__(
        self, log: EventLog, start: StartTask, position: Callable[[], int], stopping: Callable[[], bool]
    ) -> None:
        self.event_stats = EventStats()
        self._log = log
        self._start = start
        self._position = position
        self._stopping = stopping
        self._backfill: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []  # that have not ended; those of earlier statistics are cancelled

    @property
    def running(self) -> bool:
        """Whether the backfill is running, so that ``event_stats`` does not count the whole log yet."""
        return self._backfill is not None and not self._backfill.done()

    def restart(self, last: int) -> None:
        """Start new statistics: the backfill counts the events up to ``last``; the caller adds later events."""
        before = [task for task in self._tasks if not task.done()]
        for task in before:
            task.cancel()
        self.event_stats = event_stats = EventStats()
        attempts = count()

        async def run() -> None:
            if next(attempts):  # the first attempt failed, and may have counted a part of the log
                self.restart(self._position())
                return
            if before:  # at most one query runs in a thread
                await asyncio.wait(before)
            await backfill(self._log, event_stats, last, self._stopping)

        self._backfill = self._start("statistics", run)
        matching = self._start("corrections", lambda: _match_periodically(self._log, event_stats))
        self._tasks = [*before, self._backfill, matching]

    async def stop(self) -> None:
        """Stop the background tasks, and wait for a query that is running."""
        for task in self._tasks:
            if task is not self._backfill:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def backfill(log: EventLog, event_stats: EventStats, last: int, stopping: Callable[[], bool]) -> None:
    """Count the events of the log up to the sequence number ``last``, in parts, newest part first."""
    event_stats.add_history_counts(*await _query_with_retry(stopping, log.counts, last))
    until = last
    while until > 0 and not stopping():
        after = max(0, until - EVENTS_PER_QUERY)
        event_stats.add_history(await _query_with_retry(stopping, log.totals, after, until, last))
        if until == last:
            await _backfill_groups(log, event_stats, last, stopping)
        until = after


async def _query_with_retry(stopping: Callable[[], bool], query: Callable[..., T], *arguments: int) -> T:
    """Run a query in a thread, and repeat it while the store is unavailable and the service is not stopping."""
    while True:
        try:
            return await _run_query(query, *arguments)
        except StoreError as error:
            if stopping():
                raise
            _log.warning("backfill of statistics is waiting for the store: %s", error)
            await asyncio.sleep(RETRY_INTERVAL)


async def _run_query(query: Callable[..., T], *arguments: Any) -> T:
    """Run a query in a thread. If the caller is cancelled, it nevertheless waits until the query ends."""
    running = asyncio.ensure_future(asyncio.to_thread(query, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        running.cancelled() or running.exception()
        raise


async def _backfill_groups(log: EventLog, event_stats: EventStats, last: int, stopping: Callable[[], bool]) -> None:
    """Count which of the newest ``MAX_RESPONSES`` decisions used a group. Decisions older than an hour are omitted."""
    oldest, until = time.time() - MAX_RESPONSE_AGE, last
    for _ in range(0, MAX_RESPONSES, RESPONSES_PER_QUERY):
        try:
            found = await _run_query(_read_groups, log, until, oldest)
        except StoreError:
            return  # it stays unknown which of the decisions used a group
        if found is None or stopping():
            return
        until, times, grouped = found
        event_stats.add_history_groups(times, grouped)


def _read_groups(log: EventLog, until: int, oldest: float) -> tuple[int, list[float], list[bool]] | None:
    rows = log.recent_responses(until, RESPONSES_PER_QUERY)
    recent = [row for row in rows if row[1] >= oldest]
    if not recent:
        return None
    return recent[-1][0] - 1, [row[1] for row in recent], [uses_group(row[2]) for row in recent]


async def match_corrections(log: EventLog, event_stats: EventStats) -> None:
    """Count the corrections that are not counted yet. Each counts at the time of the first reward of its decision."""
    unmatched = event_stats.unmatched_corrections
    if unmatched:
        event_stats.match_corrections(await _run_query(log.first_reward_times, unmatched))


async def _match_periodically(log: EventLog, event_stats: EventStats) -> None:
    """Match corrections at intervals, so that they do not accumulate while no client requests the history."""
    while True:
        await asyncio.sleep(MATCH_INTERVAL)
        try:
            await match_corrections(log, event_stats)
        except StoreError as error:
            _log.debug("corrections are not counted yet, because the store is unavailable: %s", error)

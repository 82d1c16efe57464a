"""The past of the log, counted in the background while requests are served."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from locb.service.core.evidence import told_by_group
from locb.service.stats.event_stats import EventStats
from locb.service.store.database import StoreError
from locb.service.store.log import Log

AT_ONCE = 50_000  # events of the log that the database adds up at once
ANSWERS, ANSWERS_AT_ONCE = 5_000, 250  # that are read for whether groups served: they are large
TOLD_SECONDS = 3600.0  # for decisions so old that is not looked up any more
SETTLE_EVERY = 20.0  # seconds
TRY_EVERY = 1.0
T = TypeVar("T")
_log = logging.getLogger("locb.service")


class HistoryBackfill:
    """A tally that is kept of a log: of its past in the background, of what comes as it comes.

    Parameters
    ----------
    log : Log
        What is counted.
    stopping : callable
        Whether the service is stopping: the past is then let be.
    """

    def __init__(self, log: Log, stopping: Callable[[], bool]) -> None:
        self.event_stats = EventStats()
        self._log = log
        self._stopping = stopping
        self._past: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None

    @property
    def reading(self) -> bool:
        """Whether the past is still being counted."""
        return self._past is not None and not self._past.done()

    def begin(self, last: int) -> None:
        """Count the log up to its event ``last`` in the background, and what comes next at once; from nothing."""
        for task in (self._past, self._settling):
            if task is not None:
                task.cancel()
        self.event_stats = event_stats = EventStats()
        self._past = asyncio.create_task(count_past(self._log, event_stats, last, self._stopping))
        self._settling = asyncio.create_task(keep_settled(self._log, event_stats))

    async def stop(self) -> None:
        """End what is under way; the part of the past that is being added up is waited for."""
        if self._settling is not None:
            self._settling.cancel()
        tasks = [task for task in (self._past, self._settling) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)


async def count_past(log: Log, event_stats: EventStats, last: int, stopping: Callable[[], bool]) -> None:
    """Count the log up to its event ``last``, the newest first, a part at a time."""
    event_stats.begin_with(*await _until_it_answers(stopping, log.counts, last))
    until = last
    while until > 0 and not stopping():
        after = max(0, until - AT_ONCE)
        event_stats.add_past(await _until_it_answers(stopping, log.totals, after, until))
        if until == last:
            await _count_answers(log, event_stats, last, stopping)
        until = after


async def _until_it_answers(stopping: Callable[[], bool], ask: Callable[..., T], *about: int) -> T:
    """What the store says, in a thread; if it is away, when it is back."""
    while True:
        try:
            return await asyncio.to_thread(ask, *about)
        except StoreError as error:
            if stopping():
                raise
            _log.warning("the log's past is not counted yet: %s", error)
            await asyncio.sleep(TRY_EVERY)


async def _count_answers(log: Log, event_stats: EventStats, last: int, stopping: Callable[[], bool]) -> None:
    """Whether groups served the decisions of the last hour; of many, the last ones stand for all."""
    oldest, until = time.time() - TOLD_SECONDS, last
    for _ in range(0, ANSWERS, ANSWERS_AT_ONCE):
        try:
            found = await asyncio.to_thread(_read_answers, log, until, oldest)
        except StoreError:
            return  # of the past it is then not known
        if found is None or stopping():
            return
        until, times, grouped = found
        event_stats.add_told(times, grouped)


def _read_answers(log: Log, until: int, oldest: float) -> tuple[int, list[float], list[bool]] | None:
    rows = log.last_answers(until, ANSWERS_AT_ONCE)
    recent = [row for row in rows if row[1] >= oldest]
    if not recent:
        return None
    return recent[-1][0] - 1, [row[1] for row in recent], [told_by_group(row[2]) for row in recent]


async def place_corrections(log: Log, event_stats: EventStats) -> None:
    """Have corrections counted where the defaults are that they take the place of."""
    unplaced = event_stats.unplaced
    if unplaced:
        event_stats.place_corrections(await asyncio.to_thread(log.default_times, unplaced))


async def keep_settled(log: Log, event_stats: EventStats) -> None:
    """Place corrections now and then, so that they do not pile up while nobody looks."""
    while True:
        await asyncio.sleep(SETTLE_EVERY)
        try:
            await place_corrections(log, event_stats)
        except StoreError as error:
            _log.debug("corrections are not placed yet: %s", error)

"""Supervised tasks: a task that fails is logged, counted and started again."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

RESTART_INTERVAL = 1.0  # seconds until a failed task starts again
_log = logging.getLogger("locb.service")


class BackgroundTasks:
    """Tasks that run until the service stops. A task that fails is logged, counted and started again.

    Parameters
    ----------
    failures : Counter
        Number of failures by task, to which the failures of these tasks are added.
    """

    def __init__(self, failures: Counter[str]) -> None:
        self.failures = failures
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Start a task, which ends when ``work`` returns, and return it."""
        self.failures[name] += 0  # the metric has a value from the start
        task = asyncio.create_task(self.supervise(name, work))
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)
        return task

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks:
            task.cancel()

    async def supervise(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Call ``work`` until it returns without an exception."""
        while True:
            try:
                return await work()
            except Exception:
                self.failures[name] += 1
                _log.exception("the background task %r failed and starts again in %g s", name, RESTART_INTERVAL)
            await asyncio.sleep(RESTART_INTERVAL)

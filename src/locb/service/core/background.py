"""Threads and tasks that run beside the requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from locb.service.store.database import StoreError

if TYPE_CHECKING:
    from locb.service.core.group_commit import GroupCommitter

RESTART_INTERVAL = 1.0  # seconds until a failed task starts again
WATCH_INTERVAL = 0.5  # seconds between checks that the store responds
STORE_TIMEOUT = 4.0  # seconds for a response of the store; longer than locks are awaited
CHECKPOINT_INTERVAL = 0.5  # seconds between WAL checkpoints: short, so that each checkpoint is small
_log = logging.getLogger("locb.service")


class BackgroundTasks:
    """Tasks that run until the service stops. A task that fails is logged, counted and started again."""

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()  # by name of the task
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


async def checkpoint_periodically(committer: GroupCommitter) -> None:
    """Move the content of SQLite's WAL file into the database file every 0.5 s, if there were new events."""
    log, engine, thread = committer.log, committer.engine, WorkerThread("locb-checkpoint")
    checkpointed = 0
    try:
        while True:
            await asyncio.sleep(CHECKPOINT_INTERVAL)
            if engine.seq == checkpointed and not log.wal_pending:
                continue
            try:
                await thread.run(log.wal_checkpoint)
                async with committer.commit_lock:
                    # After a second checkpoint, without writers, the next commit starts at the beginning of the WAL
                    # file. Overwriting allocated blocks is much faster than allocating new blocks.
                    await committer.write_slow(log.wal_checkpoint, log.wal_pending)
                    checkpointed = engine.seq
            except StoreError as error:
                _log.warning("the checkpoint of the WAL file failed and is tried again later: %s", error)
    finally:
        thread.stop(wait=False)


async def watch_store(committer: GroupCommitter) -> None:
    """Report a store that does not respond within ``STORE_TIMEOUT``. PostgreSQL is asked, even without requests."""
    log, thread = committer.log, WorkerThread("locb-watchdog")
    try:
        while True:
            await asyncio.sleep(WATCH_INTERVAL)
            if log.backend == "postgresql" and not thread.busy_seconds:
                thread.run(log.ping).add_done_callback(asyncio.Future.exception)  # a failed commit reports errors
            seconds = max(committer.blocked_seconds, thread.busy_seconds)
            if seconds > STORE_TIMEOUT:
                committer.report_hang(seconds)
    finally:
        thread.stop(wait=False)


Job = tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]


class WorkerThread:
    """Thread that runs function calls for the event loop, one at a time.

    Passing a call to this thread takes half the time of ``run_in_executor``. Every batch passes at least one call.

    Parameters
    ----------
    name : str
        Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._busy_since: float | None = None
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def busy_seconds(self) -> float:
        """Seconds for which the current call has been running; 0 if there is none."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def run(self, work: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Queue a call, and return a future of its result."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put((future, work, arguments))
        return future

    def stop(self, wait: bool = True) -> None:
        """Finish the queued calls and end the thread. With ``wait``, return when the thread has ended."""
        self._jobs.put(None)
        if wait:
            self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, work, arguments = job
            result, error = None, None
            self._busy_since = time.monotonic()
            try:
                result = work(*arguments)
            except BaseException as raised:
                error = raised
            self._busy_since = None
            with suppress(RuntimeError):  # the event loop is closed, so nothing waits for the result
                future.get_loop().call_soon_threadsafe(_set_result, future, result, error)
            del job, future, work, arguments, result, error  # otherwise they would stay in memory until the next job


def _set_result(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():  # cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)

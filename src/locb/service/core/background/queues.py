"""Queue of commands, from which batches are taken, and threads with a queue of function calls."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from locb.recommender.commands import Command, Outcome, RecommendCommand
from locb.service import errors
from locb.service.errors import ProblemError

MAX_DELAY = 0.002  # seconds for which a batch waits for further requests
MAX_BATCH_WEIGHT = 5_000  # sum of ``ParsedRequest.weight``, for which preparing a batch takes up to 4 ms
UNDELAYED_COMMANDS = 32  # a batch of at least this many commands is not delayed: fixed costs per command are small
_SMOOTHING = 0.125  # weight of the newest batch in the smoothed concurrency
_MIN_CONCURRENCY = 0.1  # mean number of further requests at the same time, above which batches are delayed


class QueuedCommand(NamedTuple):
    """Command that waits for its outcome."""

    command: Command
    future: asyncio.Future[Outcome]
    queued_at: float  # monotonic time


class CommandQueue:
    """Queue of commands, which are taken in batches, one batch at a time.

    Under sustained load a batch waits for further requests, because each commit has fixed costs. It waits until the
    number of queued requests reaches the mean number of concurrent requests, but at most ``MAX_DELAY``. Requests of a
    single client that come one after the other are never delayed: while one of them is handled, no other arrives.

    Parameters
    ----------
    max_length : int
        Maximum number of queued commands; further commands are rejected with 503.
    """

    def __init__(self, max_length: int) -> None:
        self._max_length = max_length
        self._commands: deque[QueuedCommand] = deque()
        self._requests = 0  # calls of ``put`` since the last batch was taken
        self._has_rest = False  # whether the last batch did not take all commands
        self._batch: list[QueuedCommand] = []  # the batch that is handled
        self._concurrency = 1.0  # smoothed number of requests in a batch and of those that arrived while it was handled
        self._wake = asyncio.Event()
        self._wake_at = 1  # number of requests that ends ``wait`` or ``collect``

    def __len__(self) -> int:
        return len(self._commands)

    @property
    def oldest_wait(self) -> float:
        """Seconds since the oldest command that has no outcome yet was queued; 0 if there is none."""
        waiting = self._batch or self._commands
        return time.monotonic() - waiting[0].queued_at if waiting else 0.0

    def put(self, commands: Sequence[Command]) -> list[asyncio.Future[Outcome]]:
        """Queue the commands of a request, all or none of them, and return a future of the outcome of each.

        Raises
        ------
        ProblemError
            503, if the queue cannot take all commands.
        """
        if len(self._commands) + len(commands) > self._max_length:
            raise errors.queue_full(len(self._commands), len(commands), self._max_length)
        loop, now = asyncio.get_running_loop(), time.monotonic()
        queued = [QueuedCommand(command, loop.create_future(), now) for command in commands]
        self._commands.extend(queued)
        self._requests += 1
        if self._requests >= self._wake_at or len(self._commands) >= UNDELAYED_COMMANDS:
            self._wake.set()
        return [future for _, future, _ in queued]

    def wake(self) -> None:
        """End a wait for commands."""
        self._wake.set()

    async def wait(self, timeout: float | None) -> None:
        """Wait until there are commands, until ``wake`` is called, or for ``timeout`` seconds."""
        self._wake.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), timeout)

    async def collect(self) -> None:
        """Under sustained load, wait for further requests."""
        expected, before = math.ceil(self._concurrency - _MIN_CONCURRENCY), self._requests
        if before >= expected or not self._commands or self._has_rest or len(self._commands) >= UNDELAYED_COMMANDS:
            return
        self._wake.clear()
        self._wake_at = expected
        timer = asyncio.get_running_loop().call_later(MAX_DELAY, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
            self._wake_at = 1
        if self._requests == before:  # the load has probably ended
            self._concurrency = (self._concurrency + before) / 2

    @contextmanager
    def take(self, limit: int) -> Iterator[list[QueuedCommand]]:
        """Remove up to ``limit`` commands, and provide them as the batch that is handled in the ``with`` block.

        The batch has fewer commands if their requests are large. Set the outcomes of the batch after the ``with``
        block. Otherwise, requests that clients send after a response would count as concurrent with the batch.
        """
        self._batch = []
        weight = 0
        while self._commands and len(self._batch) < limit and weight < MAX_BATCH_WEIGHT:
            queued = self._commands.popleft()
            self._batch.append(queued)
            if isinstance(queued.command, RecommendCommand):
                weight += queued.command.parsed.weight
        requests_in_batch, self._requests = self._requests, 0
        self._has_rest = bool(self._commands)
        try:
            yield self._batch
        finally:
            self._batch = []
            self._concurrency += _SMOOTHING * (requests_in_batch + self._requests - self._concurrency)

    def refuse(self, problem: ProblemError, in_batch: ProblemError) -> None:
        """Remove all commands, with a problem as their outcome; those of the batch that is handled get ``in_batch``."""
        for command, outcome in [(own, in_batch) for own in self._batch] + [(own, problem) for own in self._commands]:
            if not command.future.done():
                command.future.set_result(outcome)
        self._commands.clear()


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

    async def run_to_end(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run a call, and return its result. If the caller is cancelled, it nevertheless waits until the call ends."""
        running = self.run(work, *arguments)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([running])
            running.exception()  # otherwise, asyncio would log the exception
            raise

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

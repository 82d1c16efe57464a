"""Group commit: commands that arrive together are committed together, then learned, then answered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from locb.recommender.commands import Batch, Command, Outcome, requested_ids
from locb.recommender.default_rewards import CHECK_INTERVAL
from locb.recommender.engine import Engine
from locb.service import errors
from locb.service.core.background.queues import CommandQueue, WorkerThread
from locb.service.core.background.supervised_tasks import BackgroundTasks
from locb.service.core.decision_encoding import render_stored
from locb.service.errors import ProblemError
from locb.service.store.database import DuplicateDecisionError, FencedError, OutcomeUnknownError, StoreError
from locb.service.store.locks import AlreadyOpenError
from locb.service.store.log import EventLog

MAX_BATCH = 160  # commands, so that preparing a batch, or learning its rewards, takes less than 5 ms
MAX_UNINTERRUPTED = 0.001  # seconds of preparation after which other requests are served before the rows are written
MAX_SLOW_SECONDS = 60.0  # for calls such as an erasure, which take longer than a commit
RETRY_INTERVAL = 1.0  # seconds between attempts to write to an unavailable store while no requests arrive
_log = logging.getLogger("locb.service")


class GroupCommitter:
    """Queue of commands that are handled in batches, one batch at a time.

    Parameters
    ----------
    engine : Engine
        Makes decisions and learns rewards.
    log : EventLog
        Log to which each batch is written before the engine applies it.
    after_commit : callable
        Called with each batch that was committed and learned, after its commands were answered and before the next
        batch is prepared.
    give_up : callable
        Called once, with the reason, if another process has taken over the log, so that the state in memory is invalid.
    max_queue : int
        Maximum number of queued commands; further commands are rejected with 503.
    """

    def __init__(
        self,
        engine: Engine,
        log: EventLog,
        *,
        after_commit: Callable[[Batch], None],
        give_up: Callable[[str], None],
        max_queue: int,
    ) -> None:
        self.engine = engine
        self.log = log
        self.after_commit = after_commit
        self.commit_lock = asyncio.Lock()  # held while a batch is handled: only the holder changes the policy
        self.store_error: str | None = None  # why the last commit failed
        self.commit_count = 0
        self._give_up = give_up
        self._fatal_error: str | None = None  # why no further command is accepted
        self._queue = CommandQueue(max_queue)
        self._slow = False  # whether the writer thread runs a call that may take long
        self._writer = WorkerThread("locb-writer")
        self._in_doubt: Batch | None = None  # written, but not known to be durable
        self._worker: asyncio.Task[None] | None = None
        self._stopping = False
        self._next_defaults = 0.0  # monotonic time of the next check for due default rewards

    @property
    def queue_length(self) -> int:
        """Number of queued commands."""
        return len(self._queue)

    @property
    def oldest_wait(self) -> float:
        """Seconds since the oldest command that has no outcome yet was queued; 0 if there is none."""
        return self._queue.oldest_wait

    @property
    def blocked_seconds(self) -> float:
        """Seconds for which the writer thread has waited for the store; for a slow call, minus ``MAX_SLOW_SECONDS``."""
        return self._writer.busy_seconds - (MAX_SLOW_SECONDS if self._slow else 0.0)

    def start(self, background: BackgroundTasks) -> None:
        """Start the task that handles commands until ``stop`` is called."""
        self._worker = asyncio.create_task(background.supervise("commits", self._run))

    async def stop(self) -> None:
        """Handle the queued commands, then end the task and the writer thread."""
        self._stopping = True
        self._queue.wake()
        if self._worker is not None:
            await self._worker
        self._writer.stop()

    def submit(self, commands: Sequence[Command]) -> list[asyncio.Future[Outcome]]:
        """Queue commands, all or none of them, and return a future of the outcome of each.

        An outcome is set when the effect of the command is durable and learned.

        Raises
        ------
        ProblemError
            503, if the queue cannot take all commands, or the service is stopping.
        """
        if self._stopping:
            raise errors.stopping()
        if self._fatal_error is not None:
            raise errors.store_unavailable(self._fatal_error)
        return self._queue.put(commands)

    async def execute(self, command: Command) -> Outcome:
        """Queue a command, wait until its effect is durable and learned, and return the outcome.

        Raises
        ------
        ProblemError
            If the outcome is a problem, or the command cannot be queued.
        """
        (future,) = self.submit([command])
        outcome = await future
        if isinstance(outcome, ProblemError):
            raise outcome
        return outcome

    async def _run(self) -> None:
        while True:
            if not self._queue:
                if self._stopping:
                    return
                await self._wait_for_work()
            await self._queue.collect()
            async with self.commit_lock:
                if self.store_error is not None and not self._queue:
                    await self._probe_store()
                await self._handle_queue()
                if self.engine.default_rewards.reward is not None and time.monotonic() >= self._next_defaults:
                    await self._commit_defaults()

    async def _wait_for_work(self) -> None:
        timeout = None if self.engine.default_rewards.reward is None else CHECK_INTERVAL
        if self.store_error is not None:
            timeout = RETRY_INTERVAL
        await self._queue.wait(timeout)

    async def _handle_queue(self) -> None:
        batch = None
        with self._queue.take(MAX_BATCH) as queued:
            # A cancelled request has no effect yet and is dropped.
            taken = [(command, future) for command, future, _ in queued if not future.done()]
            if not taken:
                return
            try:
                batch = await self._handle([command for command, _ in taken])
                outcomes = batch.outcomes
            except Exception as error:
                outcomes = [self.to_problem(error, [command.request_id for command, _ in taken])] * len(taken)
        for (_, future), outcome in zip(taken, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)
        if batch is not None:
            await asyncio.sleep(0)  # the responses are sent first
            self._call_after_commit(batch)

    async def _handle(self, commands: Sequence[Command]) -> Batch:
        """Prepare, commit and apply a batch of commands."""
        await self.resolve_in_doubt()
        engine = self.engine
        wanted = engine.ids_to_find(commands)
        found = await self._find(wanted, requested_ids(commands)) if wanted else []
        started = time.perf_counter()
        batch = engine.prepare(commands, found)
        if time.perf_counter() - started > MAX_UNINTERRUPTED:
            await asyncio.sleep(0)
        try:
            await self._commit(batch)
        except DuplicateDecisionError:
            requested = requested_ids(commands)
            found += await self._find(requested, requested)
            batch = engine.prepare(commands, found)
            await self._commit(batch)
        return batch

    async def _find(self, ids: Sequence[str], with_response: Sequence[str] = ()) -> Any:
        encoded = [decision_id.encode() for decision_id in ids]
        rendered = {decision_id.encode() for decision_id in with_response}
        return await self.write(self.log.find, encoded, rendered, render_stored)

    async def _commit_defaults(self) -> None:
        """Commit the default rewards that are due."""
        self._next_defaults = time.monotonic() + CHECK_INTERVAL
        try:
            await self.resolve_in_doubt()
            batch = self.engine.prepare_defaults(time.time(), MAX_BATCH)
            if batch.records.observations:
                try:
                    await self._commit(batch)
                except DuplicateDecisionError as error:  # one decision must not prevent the defaults of all others
                    self.to_problem(error)
                    for row in await self._find(list(batch.observed)):
                        if row.kind is not None:
                            self.engine.default_rewards.discard(row.decision.id.decode())
                else:
                    self._call_after_commit(batch)
                    self._next_defaults = 0.0  # more default rewards may be due
        except Exception as error:
            self.to_problem(error)

    async def _commit(self, batch: Batch) -> None:
        records = batch.records
        if not (records.users or records.decisions or records.observations or records.activations):
            return
        self._in_doubt = batch
        try:
            if self.log.try_begin():
                self.log.stage(records)
                await self.write(self.log.commit_staged)
            else:
                await self.write(self.log.commit, records)
        except (DuplicateDecisionError, FencedError):
            self._in_doubt = None  # the log has rejected the whole batch
            self.engine.roll_back(batch)
            raise
        except Exception as error:
            self.engine.roll_back(batch)
            try:
                written = await self._was_written(batch)
            except Exception as second:  # the store is still unavailable; ``resolve_in_doubt`` tries again
                if isinstance(second, FencedError):
                    self.fail(str(second))
                raise OutcomeUnknownError(str(error)) from error
            if not written:
                self._in_doubt = None
                raise
        self._in_doubt = None
        self.commit_count += 1
        self.engine.apply(batch)
        self._clear_store_error()

    async def commit_unlogged(self) -> None:
        """Commit the user indices that the policy kept from batches that were rolled back."""
        await self._commit(self.engine.prepare(()))

    def _call_after_commit(self, batch: Batch) -> None:
        try:
            self.after_commit(batch)
        except Exception:  # the batch is durable and learned, so its commands have succeeded
            extra = {"request_ids": batch.senders} if batch.senders else None
            _log.exception("updating the statistics or writing a snapshot failed after a commit", extra=extra)

    # For callers that hold the commit lock

    async def write(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in the writer thread. A cancelled caller keeps the commit lock until the call ends."""
        return await self._writer.run_to_end(work, *arguments)

    async def write_slow(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function, which may take some seconds, in the writer thread."""
        self._slow = True
        try:
            return await self.write(work, *arguments)
        finally:
            self._slow = False

    async def commit_with(self, batch: Batch, work: Callable[..., Any], *arguments: Any) -> Any:
        """Commit a batch that has no rows by calling ``work`` in the writer thread, and apply it.

        If ``work`` fails, ``resolve_in_doubt`` reads later whether the batch is in the log.
        """
        self._in_doubt = batch
        result = await self.write_slow(work, *arguments)
        self._in_doubt = None
        self.engine.apply(batch)
        self._call_after_commit(batch)
        return result

    async def resolve_in_doubt(self) -> None:
        """After a failed commit, read from the log whether the batch was written, and apply the batch if it was."""
        if self._in_doubt is None:
            return
        written = await self._was_written(self._in_doubt)
        batch, self._in_doubt = self._in_doubt, None
        if written:
            self.engine.apply(batch)
            self._call_after_commit(batch)

    async def _was_written(self, batch: Batch) -> bool:
        """Return whether a batch is in the log, although its commit failed."""
        seq = await self.write(self.log.last_seq)
        if seq not in (batch.last_seq, self.engine.seq):
            cause = f"the log ends at event {seq} instead of {self.engine.seq}"
            raise FencedError(f"{cause}: another process has written to the log; this process must stop")
        if batch.last_seq > self.engine.seq:
            return bool(seq == batch.last_seq)
        found = await self._find(list(batch.activated))  # activations are not events
        return bool(found) and all(row.decision.active_at is not None for row in found)

    def to_problem(self, error: Exception, request_ids: Sequence[str | None] = ()) -> ProblemError:
        """Log an exception that a commit raised, and return the problem for the clients that sent the requests."""
        extra = {"request_ids": request_ids} if request_ids else None
        if isinstance(error, StoreError | AlreadyOpenError):
            if isinstance(error, FencedError):
                self.fail(str(error))
            elif self.store_error is None:
                _log.error("the store is unavailable: %s", error, extra=extra)
            self.store_error = self._fatal_error or str(error)
            return errors.store_unavailable(error, unknown=isinstance(error, OutcomeUnknownError))
        _log.exception("a batch of commands failed", exc_info=error, extra=extra)
        return errors.internal()

    def report_hang(self, seconds: float) -> None:
        """Refuse all commands with 503, and end the connections, because the store does not respond.

        It is unknown whether the store will execute the commands that were sent to it.
        """
        reason = f"the database has not responded for {seconds:.1f} s"
        problem = self.to_problem(StoreError(reason))
        self._queue.refuse(problem, self.to_problem(OutcomeUnknownError(reason)))
        self.log.interrupt()
        self._queue.wake()

    def fail(self, reason: str) -> None:
        """Refuse all further commands with 503, because another process has taken over the log."""
        if self._fatal_error is None:
            self.store_error = self._fatal_error = reason
            self._give_up(reason)

    async def _probe_store(self) -> None:
        """Write to the store, and clear ``store_error`` on success.

        Without this, the error could remain: while it is set, a load balancer sends no requests that would clear it.
        """
        try:
            await self.resolve_in_doubt()
            await self.write(self.log.write_settings, {})
            await self.commit_unlogged()
        except Exception as error:
            self.to_problem(error)
        else:
            self._clear_store_error()

    def _clear_store_error(self) -> None:
        if self.store_error is not None:
            _log.info("the store is available again")
        self.store_error = None

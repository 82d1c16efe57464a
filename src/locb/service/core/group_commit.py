"""Group commit: requests that wait together are brought to disk together, then learned, then answered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from locb.policies.base.policy import ServablePolicy
from locb.service.core.commands import Batch, Command, EncodedDecision
from locb.service.core.engine import Engine
from locb.service.core.writer_thread import WriterThread
from locb.service.errors import ProblemError
from locb.service.schemas import RewardResponse
from locb.service.store.database import DuplicateDecisionError, StoreError
from locb.service.store.locks import AlreadyOpenError
from locb.service.store.log import EventLog, Redaction

LARGEST_BATCH = 256  # requests: what is prepared in about 10 ms
DEFAULTS_EVERY = 0.25  # seconds between looks for rewards that did not come
TRY_EVERY = 1.0  # seconds between looks whether a store that failed can be written again, while nobody asks
Outcome = EncodedDecision | RewardResponse | ProblemError | None
_log = logging.getLogger("locb.service")


class GroupCommitter:
    """Takes requests in, one batch at a time.

    Parameters
    ----------
    engine : Engine
        What decides and learns.
    log : Log
        Where it is written first.
    after : callable
        Called with each batch that was learned.
    give_up : callable
        Called with the reason if the log went on without us: what is in memory is no longer what it says.
    most_waiting : int
        Requests that may wait; more are turned away.
    """

    def __init__(
        self,
        engine: Engine,
        log: EventLog,
        *,
        after: Callable[[Batch], None],
        give_up: Callable[[str], None],
        most_waiting: int = 20_000,
    ) -> None:
        self.engine = engine
        self.log = log
        self.commit_lock = (
            asyncio.Lock()
        )  # held while a batch is under way: whoever holds it sees the policy stand still
        self.store_error: str | None = None  # why the last commit failed
        self._after = after
        self._give_up = give_up
        self._most_waiting = most_waiting
        self._queue: deque[tuple[Command, asyncio.Future[Outcome]]] = deque()
        self._wake = asyncio.Event()
        self._writer = WriterThread("locb-writer")
        self._in_doubt: Batch | None = None  # sent, and not known to be on disk
        self._worker: asyncio.Task[None] | None = None
        self._stopping = False
        self._next_defaults = 0.0

    @property
    def queue_length(self) -> int:
        """Requests that wait."""
        return len(self._queue)

    def start(self) -> None:
        """Begin to take batches."""
        self._worker = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Finish what waits, then end."""
        self._stopping = True
        self._wake.set()
        if self._worker is not None:
            await self._worker
        self._writer.stop()

    def submit(self, task: Command) -> asyncio.Future[Outcome]:
        """Queue a request; its outcome comes when it is on disk.

        Raises
        ------
        ProblemError
            503, if too many wait, or the service is stopping.
        """
        if self._stopping:
            raise ProblemError(503, "stopping", "the service is stopping", retry_after=5)
        if len(self._queue) >= self._most_waiting:
            raise ProblemError(503, "too-many-requests", f"{len(self._queue)} requests wait already", retry_after=1)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._queue.append((task, future))
        self._wake.set()
        return future

    async def write(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Have the writer's thread do this."""
        return await self._writer.do(work, *arguments)

    async def redact(self, words: Redaction) -> None:
        """Have stored answers say something else; the caller holds the turn.

        Raises
        ------
        ProblemError
            503 if the store cannot be written.
        """
        try:
            await self.write(self.log.redact, words)
        except (StoreError, AlreadyOpenError) as error:
            raise self._explain(error) from error

    async def erase(self, user: str, words: Redaction | None) -> int:
        """Erase a user from the log, at once; the caller holds the turn. How many decisions were erased.

        ``words``, if given, are those in which answers to others tell of the user.

        Raises
        ------
        ProblemError
            404 for a user who is not known; 503 if the store cannot be written.
        """
        try:
            await self.resolve_in_doubt()
            user_index = self.engine.users.index_of(user)
            if user_index is None:
                raise ProblemError(404, "unknown-user", f"there is no user {user!r}")
            batch = self._in_doubt = self.engine.prepare_forgetting(user)
            erased = await self.write(self.log.erase, user_index, {"rebuilt_at": None, "seq": batch.last}, words)
            self._in_doubt = None
            self.engine.apply(batch)
            self._after(batch)
        except (StoreError, AlreadyOpenError) as error:
            raise self._explain(error) from error
        return int(erased)

    async def renew(self, policy: ServablePolicy, pending_erasure: list[int]) -> None:
        """Go on with a policy that knows the log to its end, and never knew the users of these places.

        The caller holds the turn, and has made sure what the end is.
        """
        batch = self._in_doubt = self.engine.prepare_renewal(policy, pending_erasure)
        await self.write(self.log.write_settings, {"rebuilt_at": batch.last, "seq": batch.last})
        self._in_doubt = None
        self.engine.apply(batch)

    async def _work(self) -> None:
        while True:
            if not self._queue:
                if self._stopping:
                    return
                await self._rest()
            async with self.commit_lock:
                if self.store_error is not None and not self._queue:
                    await self._try_again()
                await self._serve()
                if time.time() >= self._next_defaults:
                    await self._serve_defaults()

    async def _rest(self) -> None:
        """Sleep until there is something to do."""
        self._wake.clear()
        try:
            seconds = DEFAULTS_EVERY if self.engine.default_reward is not None else None
            if self.store_error is not None:
                seconds = TRY_EVERY
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            pass

    async def _try_again(self) -> None:
        """Write something: whoever sends requests only to services that are well would never send one again."""
        try:
            await self.resolve_in_doubt()
            await self.write(self.log.write_settings, {"seq": self.engine.seq})
        except Exception as error:
            self._explain(error)
        else:
            self._is_well()

    def _is_well(self) -> None:
        if self.store_error is not None:
            _log.info("the store can be written again")
        self.store_error = None

    async def _serve(self) -> None:
        queue = self._queue
        taken = [queue.popleft() for _ in range(min(len(queue), LARGEST_BATCH))]
        # Nobody waits for a cancelled request any more, and nothing of it was done yet.
        taken = [(task, future) for task, future in taken if not future.done()]
        if not taken:
            return
        try:
            outcomes = await self._settle([task for task, _ in taken])
        except Exception as error:
            problem = self._explain(error)
            outcomes = [problem] * len(taken)
        for (_, future), outcome in zip(taken, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)

    async def _settle(self, tasks: Sequence[Command]) -> Sequence[Outcome]:
        await self.resolve_in_doubt()
        engine = self.engine
        wanted = engine.unknown(tasks)
        found = await self.write(self.log.find, [name.encode() for name in wanted]) if wanted else []
        batch = engine.prepare(tasks, found)
        try:
            await self._commit(batch)
        except DuplicateDecisionError:
            found += await self.write(self.log.find, [name.encode() for name in engine.named(tasks)])
            batch = engine.prepare(tasks, found)
            await self._commit(batch)
        return batch.outcomes

    async def _serve_defaults(self) -> None:
        self._next_defaults = time.time() + DEFAULTS_EVERY
        try:
            await self.resolve_in_doubt()
            batch = self.engine.prepare_defaults(time.time(), LARGEST_BATCH)
            if batch.records:
                await self._commit(batch)
                self._next_defaults = 0.0  # there may be more
        except Exception as error:
            self._explain(error)

    async def _commit(self, batch: Batch) -> None:
        if batch.records:
            self._in_doubt = batch
            try:
                if self.log.stages_inline:
                    self.log.stage(batch.records)
                    await self.write(self.log.commit_staged)
                else:
                    await self.write(self.log.commit, batch.records)
            except DuplicateDecisionError:
                self._in_doubt = None  # the log said no, and nothing of it is there
                raise
            self._in_doubt = None
            self.engine.apply(batch)
            self._is_well()
        self._after(batch)

    async def resolve_in_doubt(self) -> None:
        """After a failure, learn from the log itself whether the last batch is in it; the caller holds the turn."""
        if self._in_doubt is None:
            return
        seq = await self.write(self.log.last_seq)
        batch, self._in_doubt = self._in_doubt, None
        if seq == batch.last and seq > self.engine.seq:
            self.engine.apply(batch)
            self._after(batch)
        elif seq != self.engine.seq:
            told = f"the log ends at {seq}, where this service knows of {self.engine.seq}: another one wrote to it"
            self._in_doubt = batch
            self._give_up(told)
            raise StoreError(told)

    def _explain(self, error: Exception) -> ProblemError:
        if isinstance(error, StoreError | AlreadyOpenError):
            if self.store_error is None:
                _log.error("the store cannot be written: %s", error)
            self.store_error = str(error)
            return ProblemError(503, "unavailable", f"the store cannot be written now: {error}", retry_after=2)
        _log.exception("a batch failed", exc_info=error)
        return ProblemError(500, "internal", "the request could not be handled; the service's log tells more")

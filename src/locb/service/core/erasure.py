"""Erasure of users: delete their names and events, and rebuild the policy without them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from locb.policies.base.policy import ServablePolicy
from locb.recommender.commands import Batch
from locb.service import errors
from locb.service.core.background.queues import WorkerThread
from locb.service.core.background.supervised_tasks import BackgroundTasks
from locb.service.core.group_commit import RETRY_INTERVAL, GroupCommitter
from locb.service.core.model import StoreModel
from locb.service.core.startup.replay import replay
from locb.service.core.startup.snapshots import Snapshots
from locb.service.errors import ProblemError
from locb.service.store.database import FencedError, StoreError
from locb.service.store.locks import AlreadyOpenError

# A rebuild replays the log in short steps, with a pause after each step in which the event loop can run.
OBSERVATIONS_PER_STEP, PAUSE = 100, 0.0001
MAX_ERASURES = 32  # users that are erased in one transaction, for which requests wait
MAX_FINAL_CATCH_UP = 2_000  # maximum number of events that a rebuild replays while requests wait
_log = logging.getLogger("locb.service")

_Rebuild = asyncio.Future[ProblemError | None]  # its outcome, which is None when the policy is rebuilt


class _Found(NamedTuple):
    """Number of erased decisions or problem, and the rebuild for which the request waits."""

    outcome: int | ProblemError
    rebuild: _Rebuild | None = None


class _Request(NamedTuple):
    """Requested erasure."""

    user: str
    found: asyncio.Future[_Found]


class Eraser:
    """Erasure of users, with a rebuild of the policy in the background.

    Parameters
    ----------
    committer : GroupCommitter
        Commits the erasure.
    model : StoreModel
        Builds the policy without the erased users.
    snapshots : Snapshots
        Snapshots of the policy, which are deleted because they contain the erased users.
    background : BackgroundTasks
        Runs the rebuild of the policy.
    stopping : callable
        Returns whether the service is stopping. If it is, a rebuild ends early.
    """

    def __init__(
        self,
        committer: GroupCommitter,
        model: StoreModel,
        snapshots: Snapshots,
        background: BackgroundTasks,
        stopping: Callable[[], bool],
    ) -> None:
        self._committer = committer
        self._engine = committer.engine
        self._log = committer.log
        self._model = model
        self._snapshots = snapshots
        self._background = background
        self._stopping = stopping
        self._thread = WorkerThread("locb-rebuild")  # used only for rebuilds, which can take long and must not wait
        self._rebuild: asyncio.Task[None] | None = None
        self._requests: deque[_Request] = deque()  # erasures that are not committed yet
        self._committing: asyncio.Task[None] | None = None
        # Rebuilds for which the erased users wait: by index, and by the name that the user had.
        self._rebuilds: dict[int, tuple[str, _Rebuild]] = {}
        self._rebuild_of: dict[str, _Rebuild] = {}

    async def erase(self, user: str) -> int:
        """Erase a user, wait until the policy is rebuilt without the user, and return the number of erased decisions.

        Raises
        ------
        ProblemError
            404 for an unknown user, but not before the policy is rebuilt if the user was erased by an earlier request;
            409 for a user of the saved policy from which the service started; 503 if the store is unavailable, or the
            service is stopping.
        """
        if self._stopping():
            raise errors.stopping()
        request = _Request(user, asyncio.get_running_loop().create_future())
        self._requests.append(request)
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._background.supervise("erasures", self._commit_requests))
        outcome, rebuild = await request.found
        if rebuild is not None and (problem := await asyncio.shield(rebuild)) is not None:
            raise problem
        if isinstance(outcome, ProblemError):
            raise outcome
        return outcome

    async def _commit_requests(self) -> None:
        """Commit the requested erasures. Decisions are committed in between, because the commit lock is fair."""
        while self._requests and not self._stopping():
            async with self._committer.commit_lock:
                await self._commit_group()
            await asyncio.sleep(0)  # the next batch of decisions can wait for the lock first

    async def _commit_group(self) -> None:
        """Commit up to ``MAX_ERASURES`` requested erasures in one transaction."""
        requests = [self._requests.popleft() for _ in range(min(len(self._requests), MAX_ERASURES))]
        try:
            await self._committer.resolve_in_doubt()
            index_of, first = self._engine.users.index_of, self._model.base_users
            indices = {user: index for user, _ in requests if (index := index_of(user)) is not None}
            known = {user: index for user, index in indices.items() if index >= first}
            outcomes: dict[str, int | ProblemError] = {
                user: errors.user_of_saved_policy(user) for user, index in indices.items() if index < first
            }
            if known:
                batch = self._engine.prepare_erasure(known)
                counts = await self._committer.commit_with(batch, self._log.erase, list(known.values()))
                outcomes |= zip(known, counts, strict=True)
            found = [
                # If a user is requested twice, the second request finds an unknown user.
                _Found(outcomes.pop(user, errors.unknown_user(user)), self._rebuild_of.get(user))
                for user, _ in requests
            ]
        except Exception as error:
            found = [_Found(self._committer.to_problem(error))] * len(requests)
        _respond(requests, found)

    def after_commit(self, batch: Batch) -> None:
        """Start a rebuild after a batch that erases users; end the erasures for which the policy was rebuilt."""
        for user, user_index in batch.erased.items():
            rebuild = asyncio.get_running_loop().create_future()
            self._rebuilds[user_index] = user, rebuild
            self._rebuild_of[user] = rebuild
        for user_index in () if batch.rebuilt is None else batch.rebuilt[1]:
            self._end_rebuild(user_index, None)
        if self._engine.pending_erasure and (self._rebuild is None or self._rebuild.done()):
            self._rebuild = self._background.start("rebuild", self._rebuild_all)

    def _end_rebuild(self, user_index: int, outcome: ProblemError | None) -> None:
        user, rebuild = self._rebuilds.pop(user_index)
        rebuild.set_result(outcome)
        if self._rebuild_of.get(user) is rebuild:  # otherwise, the user was created and erased again
            del self._rebuild_of[user]

    # Rebuild of the policy

    async def stop(self) -> None:
        """Cancel a rebuild; the service rebuilds the policy at its next startup."""
        if self._rebuild is not None:
            self._rebuild.cancel()
        if self._committing is not None:
            await self._committing
        self._thread.stop(wait=False)
        self._refuse(errors.stopping())

    def _refuse(self, problem: ProblemError) -> None:
        """Respond with a problem to all requests."""
        _respond(self._requests, [_Found(problem)] * len(self._requests))
        self._requests.clear()
        for user_index in list(self._rebuilds):
            self._end_rebuild(user_index, problem)

    async def _rebuild_all(self) -> None:
        while self._engine.pending_erasure:
            try:
                await self._rebuild_once()
            except FencedError as error:
                self._refuse(self._committer.to_problem(error))
                return
            except (StoreError, AlreadyOpenError) as error:
                _log.warning("the rebuild of the policy is waiting for the store: %s", error)
                await asyncio.sleep(RETRY_INTERVAL)

    async def _rebuild_once(self) -> None:
        """Replay the log on a new policy while requests are served, then replace the current policy.

        The new policy may depend on users that are erased in the meantime. The next rebuild removes all of them, so
        each erasure is complete after at most two rebuilds, however many erasures follow.
        """
        engine, committer = self._engine, self._committer
        async with committer.commit_lock:
            await committer.resolve_in_doubt()  # the previous rebuild may be in the log
            erased = list(engine.pending_erasure)
        if not erased:
            return
        policy = await self._thread.run(self._model.build)
        position = 0
        while engine.seq - position > MAX_FINAL_CATCH_UP:
            until = engine.seq
            await self._thread.run(self._catch_up, policy, position, until)
            position = until
        async with committer.commit_lock:
            await committer.resolve_in_doubt()
            await committer.commit_unlogged()
            await committer.write_slow(self._catch_up, policy, position, engine.seq)
            await committer.write_slow(self._snapshots.remove_all)  # these snapshots contain the erased users
            batch = engine.prepare_rebuild(policy, erased)
            complete = engine.pending_erasure == erased
            await committer.commit_with(batch, self._log.record_rebuild, complete)
        _log.info("the policy was rebuilt from the log without %d erased users", len(erased))

    def _catch_up(self, policy: ServablePolicy, after: int, until: int) -> None:
        for _ in replay(self._log, policy, after, until, OBSERVATIONS_PER_STEP):
            if self._stopping():
                return  # a long log must not delay the shutdown
            time.sleep(PAUSE)


def _respond(requests: Iterable[_Request], found: Iterable[_Found]) -> None:
    for request, outcome in zip(requests, found, strict=True):
        if not request.found.done():  # otherwise, the client has closed the connection
            request.found.set_result(outcome)

"""Erasure of users: delete their names and events, and rebuild the policy without them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from locb.policies.base.policy import ServablePolicy
from locb.service import errors
from locb.service.core.background.queues import WorkerThread
from locb.service.core.background.supervised_tasks import BackgroundTasks
from locb.service.core.commands import Batch
from locb.service.core.group_commit import RETRY_INTERVAL, GroupCommitter
from locb.service.core.model import Model
from locb.service.core.replay import replay
from locb.service.core.snapshots import Snapshots
from locb.service.errors import ProblemError
from locb.service.store.database import FencedError, StoreError
from locb.service.store.locks import AlreadyOpenError

MAX_FINAL_CATCH_UP = 2_000  # maximum number of events that a rebuild replays while requests wait
_log = logging.getLogger("locb.service")


class Eraser:
    """Erasure of users, with a rebuild of the policy in the background.

    Parameters
    ----------
    committer : GroupCommitter
        Commits the erasure.
    model : Model
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
        model: Model,
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
        # For each erased user that the policy still depends on, by index: the outcome of the rebuild, which is None or
        # a problem.
        self._rebuilds: dict[int, asyncio.Future[ProblemError | None]] = {}

    async def erase(self, user: str) -> int:
        """Erase a user, wait until the policy is rebuilt without the user, and return the number of erased decisions.

        Raises
        ------
        ProblemError
            404 for an unknown user; 503 if the store is unavailable, or the service is stopping.
        """
        async with self._committer.commit_lock:
            try:
                user_index, erased = await self._commit_erasure(user)
            except (StoreError, AlreadyOpenError) as error:
                raise self._committer.to_problem(error) from error
        rebuild = self._rebuilds.get(user_index)
        problem = None if rebuild is None else await asyncio.shield(rebuild)
        if problem is not None:
            raise problem
        return erased

    async def _commit_erasure(self, user: str) -> tuple[int, int]:
        """Commit the erasure, and return the index of the user and the number of erased decisions."""
        await self._committer.resolve_in_doubt()
        user_index = self._engine.users.index_of(user)
        if user_index is None:
            raise errors.unknown_user(user)
        batch = self._engine.prepare_erasure({user: user_index})
        erased = await self._committer.commit_with(batch, self._log.erase, user_index)
        return user_index, int(erased)

    def after_commit(self, batch: Batch) -> None:
        """Note which users a committed batch has erased, or end the erasures for which the policy was rebuilt."""
        for user_index in batch.erased.values():
            self._rebuilds[user_index] = asyncio.get_running_loop().create_future()
        for user_index in () if batch.rebuilt is None else batch.rebuilt[1]:
            self._rebuilds.pop(user_index).set_result(None)

    # Rebuild of the policy

    def start_rebuild(self) -> None:
        """Start a rebuild of the policy in the background if the policy depends on erased users."""
        if self._engine.pending_erasure and (self._rebuild is None or self._rebuild.done()):
            self._rebuild = self._background.start("rebuild", self._rebuild_all)

    async def stop(self) -> None:
        """Cancel a rebuild; the service rebuilds the policy at its next startup."""
        if self._rebuild is not None:
            self._rebuild.cancel()
        self._thread.stop(wait=False)
        self._refuse(errors.stopping())

    def _refuse(self, problem: ProblemError) -> None:
        """Respond with a problem to all requests that wait for a rebuild."""
        while self._rebuilds:
            self._rebuilds.popitem()[1].set_result(problem)

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
        policy = self._model.build()
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
        for _ in replay(self._log, policy, after, until):
            if self._stopping():
                return  # a long log must not delay the shutdown
            time.sleep(0)  # yields to the event loop between steps

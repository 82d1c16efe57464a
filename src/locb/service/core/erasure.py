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
from locb.service.core.group_commit import RETRY_INTERVAL, GroupCommitter
from locb.service.core.model import StoreModel
from locb.service.core.startup.replay import replay
from locb.service.core.startup.snapshots import Snapshots
from locb.service.store.database import FencedError, StoreError
from locb.service.store.locks import AlreadyOpenError

# A rebuild replays the log in short steps, with a pause after each step in which the event loop can run.
OBSERVATIONS_PER_STEP, PAUSE = 100, 0.0001
MAX_FINAL_CATCH_UP = 2_000  # maximum number of events that a rebuild replays while requests wait
_log = logging.getLogger("locb.service")


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
        self._rebuilt = asyncio.Condition()  # notified after each rebuild

    async def erase(self, user: str) -> int:
        """Erase a user, wait until the policy is rebuilt without the user, and return the number of erased decisions.

        Raises
        ------
        ProblemError
            404 for an unknown user; 409 for a user of the saved policy from which the service started; 503 if
            the store is unavailable, or the service is stopping.
        """
        async with self._committer.commit_lock:
            try:
                user_index, erased = await self._commit_erasure(user)
            except (StoreError, AlreadyOpenError) as error:
                raise self._committer.to_problem(error) from error
            await self._committer.write_slow(self._snapshots.remove_all)
        async with self._rebuilt:
            await self._rebuilt.wait_for(lambda: user_index not in self._engine.pending_erasure or self._stopping())
        if user_index in self._engine.pending_erasure:
            raise errors.stopping()
        return erased

    async def _commit_erasure(self, user: str) -> tuple[int, int]:
        """Commit the erasure, and return the index of the user and the number of erased decisions."""
        await self._committer.resolve_in_doubt()
        user_index = self._engine.users.index_of(user)
        if user_index is None:
            raise errors.unknown_user(user)
        if user_index < self._model.base_users:
            raise errors.user_of_saved_policy(user)
        batch = self._engine.prepare_erasure(user)
        erased = await self._committer.commit_with(batch, self._log.erase, user_index)
        self._committer.after_commit(batch)
        return user_index, int(erased)

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
        async with self._rebuilt:
            self._rebuilt.notify_all()

    async def _rebuild_all(self) -> None:
        while self._engine.pending_erasure:
            try:
                await self._rebuild_once()
            except FencedError as error:
                self._committer.to_problem(error)
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
        erased = list(engine.pending_erasure)
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
            batch = engine.prepare_rebuild(policy, erased)
            complete = engine.pending_erasure == erased
            await committer.commit_with(batch, self._log.record_rebuild, complete)
            await committer.write_slow(self._snapshots.remove_all)  # these snapshots contain the erased users
            if complete:
                self._snapshots.write_if_supported(engine.policy, engine.seq)
        async with self._rebuilt:
            self._rebuilt.notify_all()
        _log.info("the policy was rebuilt from the log without %d erased users", len(erased))

    def _catch_up(self, policy: ServablePolicy, after: int, until: int) -> None:
        for _ in replay(self._log, policy, after, until, OBSERVATIONS_PER_STEP):
            if self._stopping():
                return  # a long log must not delay the shutdown
            time.sleep(PAUSE)

"""The service without HTTP: start from the log, take requests in, keep snapshots, forget users, stop."""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from locb.common.arrays import Ints
from locb.evaluation.clusters import Cluster
from locb.policies import policy_spec
from locb.policies.base.capabilities import (
    SupportsCertificates,
    SupportsCorrection,
    SupportsEstimates,
    SupportsSimilarUsers,
    SupportsSnapshot,
    UnavailableError,
    explainer,
)
from locb.policies.base.policy import ServablePolicy
from locb.service.config import ServiceConfig, load_or_create_model
from locb.service.core.commands import Batch, CachedDecision, Command
from locb.service.core.decision_encoding import told_seed
from locb.service.core.engine import Engine
from locb.service.core.group_commit import TRY_EVERY, GroupCommitter, Outcome
from locb.service.core.replay import Model, replay
from locb.service.core.snapshots import Snapshots
from locb.service.core.user_index import UserIndex
from locb.service.errors import ProblemError
from locb.service.stats.event_stats import EventStats
from locb.service.stats.history_backfill import HistoryBackfill
from locb.service.store.database import StoreError
from locb.service.store.locks import AlreadyOpenError
from locb.service.store.log import EventLog, Redaction

TIDY_EVERY = 0.5  # seconds between tidying SQLite's log file: often, so that it is little and the disk soon free again
MAX_PAIRED = 2_000  # members of a set of which all pairs are looked at
NEAR = 2_000  # events: a policy made anew that is no farther behind catches up while requests wait
REWORDED = 1_000  # events whose answers are reworded at once, some 20 ms, in which requests wait
_log = logging.getLogger("locb.service")


class Service:
    """One policy, served from a log.

    Parameters
    ----------
    options : Options
        How it is set up.

    Raises
    ------
    AlreadyOpenError
        If another process serves from the same folder or database.
    """

    def __init__(self, options: ServiceConfig) -> None:
        self.config = options
        self.log = EventLog(options.data_dir, options.store)
        try:
            for unsent in options.data_dir.glob("export-*"):  # of a process that was killed
                shutil.rmtree(unsent, ignore_errors=True)
            self.model, store = load_or_create_model(options, self.log)
            self.policy_spec = policy_spec(self.model.policy)
            self.snapshots = Snapshots(options.data_dir / "snapshots", store)
            self.engine = self._recover()
        except BaseException:
            self.log.close()
            raise
        self.committer: GroupCommitter
        self._renewing: asyncio.Task[None] | None = None
        self._tidying: asyncio.Task[None] | None = None
        self._can_save = isinstance(self.engine.policy, SupportsSnapshot)
        if not self._can_save:
            _log.warning(
                "no snapshots, so that every start replays the whole log: %s has no methods save and checkpoint",
                type(self.engine.policy).__name__,
            )
        self._stopping = False
        self.given_up: str | None = None  # why this process ends itself
        self.started_at = time.time()
        self.erasure_count = 0  # users erased by this process: what was worked out before may name them
        self._counting = HistoryBackfill(self.log, lambda: self._stopping)
        self._snapshot_at = self.engine.seq

    @property
    def policy(self) -> ServablePolicy:
        """As it is now."""
        return self.engine.policy

    @property
    def event_stats(self) -> EventStats:
        """What was counted so far."""
        return self._counting.event_stats

    @property
    def backfilling(self) -> bool:
        """Whether the past of the log is still being counted."""
        return self._counting.running

    @property
    def rebuilding(self) -> bool:
        """Whether the policy is made anew, since it still rests on users who were erased."""
        return bool(self.engine.pending_erasure)

    def _recover(self) -> Engine:
        """The newest good snapshot, and what the log has after it."""
        last = self.log.last_seq()
        anew = self.log.settings()["rebuilt_at"]
        found = self.snapshots.newest_good(last + 1 if anew is None else anew, last)
        policy, seq = found or (self.model.build(), 0)
        _log.info("getting ready: compiling, the first time on this machine for up to a minute, and reading the log")
        warm_up(self.model)
        start = time.perf_counter()
        for _ in replay(self.log, policy, seq):
            pass
        self.snapshots.make_room(policy)
        took = time.perf_counter() - start
        _log.info("ready: %d events in the log, those after %d replayed in %.2f s", last, seq, took)
        if anew is None:
            self.log.write_settings({"rebuilt_at": last})
        people = [(user_index, name.decode()) for user_index, _, name in self.log.users() if name is not None]
        engine = Engine(
            policy,
            UserIndex(policy.n_users, people),
            last,
            default_reward=self.config.default_reward,
            reward_wait=self.config.reward_wait,
        )
        if self.config.default_reward is not None:
            waiting = [row for chunk in self.log.unrewarded_decisions() for row in chunk]
            engine.await_all(
                (name.decode(), CachedDecision(seq, user_index, context, active_at))
                for seq, name, user_index, active_at, context in sorted(waiting, key=lambda row: row.active_at)
            )
        return engine

    # Running

    async def start(self) -> None:
        """Begin to take requests."""
        self.committer = GroupCommitter(self.engine, self.log, after=self._after_batch, give_up=self._give_up)
        self.committer.start()
        self._tidying = asyncio.create_task(self._wal_checkpoint())
        self._counting.restart(self.engine.seq)

    async def stop(self) -> None:
        """Finish what waits, write a snapshot, and let the store go."""
        _log.info("stopping")
        self._stopping = True
        if self._tidying is not None:
            self._tidying.cancel()
        if self._renewing is not None:
            self._renewing.cancel()  # the next start makes the policy anew
        await self.committer.stop()
        await self._counting.stop()
        if self._can_save and self.engine.seq > (self.snapshots.newest_seq or 0) and not self.engine.pending_erasure:
            self._snapshot()
        await asyncio.to_thread(self.snapshots.wait)
        self.log.close()

    async def submit(self, task: Command) -> Outcome:
        """The outcome of a request, once it is on disk; a problem is raised."""
        outcome = await self.committer.submit(task)
        if isinstance(outcome, ProblemError):
            raise outcome
        return outcome

    def _after_batch(self, batch: Batch) -> None:
        engine = self.engine
        if batch.forgotten is None:
            self.event_stats.add(batch.records, batch.grouped)
        else:
            self.erasure_count += 1
            self._counting.restart(engine.seq)
        if engine.pending_erasure and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.create_task(self._renew())
        due = engine.seq - self._snapshot_at >= self.config.snapshot_every
        if due and self._can_save and not engine.pending_erasure and not self.snapshots.busy:
            self._snapshot()

    def _snapshot(self) -> None:
        self._snapshot_at = self.engine.seq
        if isinstance(self.policy, SupportsSnapshot):
            try:
                self.snapshots.write(self.policy, self.engine.seq)
            except Exception:  # a custom policy may raise anything; the log has all that a snapshot would hold
                _log.exception("snapshot %d failed", self.engine.seq)

    async def _wal_checkpoint(self) -> None:
        tidied = 0
        while True:
            await asyncio.sleep(TIDY_EVERY)
            await asyncio.to_thread(self.snapshots.make_room, self.policy)
            if self.engine.seq == tidied and not self.log.wal_pending:
                continue
            try:
                await asyncio.to_thread(self.log.wal_checkpoint)
                async with self.committer.commit_lock:
                    # What came meanwhile, so that all is moved and the file is written from its start again: room that
                    # it has already is much quicker to bring to disk than new room.
                    await self.committer.write(self.log.wal_checkpoint, self.log.wal_pending)
                    tidied = self.engine.seq
            except StoreError as error:
                _log.warning("the log could not be tidied: %s", error)

    def _give_up(self, reason: str) -> None:
        """End this process, in good order: what it knows is not what the log says."""
        if self.given_up is None:
            self.given_up = reason
            _log.critical("stopping: %s", reason)
            signal.raise_signal(signal.SIGTERM)

    # Forgetting

    async def erase_user(self, user: str) -> int:
        """Erase a user, and make the policy anew as though they had never been; how many decisions were erased.

        Raises
        ------
        ProblemError
            404 for a user who is not known; 503 if the store cannot be written.
        """
        words = await self._redact(user) if self._may_be_told(user) else None
        async with self.committer.commit_lock:
            erased = await self.committer.erase(user, words)
            await asyncio.to_thread(self.snapshots.remove_all)
        if self._renewing is not None:
            await asyncio.shield(self._renewing)
        return erased

    async def _redact(self, user: str) -> Redaction:
        """Have answers to others no longer name a user, between requests; what is then left to do with the erasing."""
        words = Redaction(told_seed(user), told_seed(None), 0, 0)
        while self.engine.seq - words.until > REWORDED:
            words = words._replace(after=words.until, until=words.until + REWORDED)
            async with self.committer.commit_lock:
                await self.committer.redact(words)
        return words._replace(after=words.until, until=1 << 62)

    def _may_be_told(self, user: str) -> bool:
        """Whether answers to others can name this user, as the seed of a set."""
        user_index = self.engine.users.index_of(user)
        if user_index is None or not self.policy_spec.names_other_users:
            return False
        # With fixed seeds a user who is no seed never was one.
        return not self.policy_spec.fixed_seeds or any(cluster.seed == user_index for cluster in self.policy.clusters())

    async def _renew(self) -> None:
        """Replay the log without the users who were erased, beside the requests, and go on with what comes out."""
        while self.engine.pending_erasure:
            try:
                await self._renew_once()
            except (StoreError, AlreadyOpenError) as error:
                _log.warning("the policy is not yet made anew: %s", error)
                await asyncio.sleep(TRY_EVERY)

    async def _renew_once(self) -> None:
        engine = self.engine
        pending_erasure = list(engine.pending_erasure)
        policy = self.model.build()
        at = 0
        while engine.seq - at > NEAR and engine.pending_erasure == pending_erasure:
            until = engine.seq
            await asyncio.to_thread(self._catch_up, policy, at, until)
            at = until
        async with self.committer.commit_lock:
            await self.committer.resolve_in_doubt()
            if engine.pending_erasure != pending_erasure:
                return  # one more was erased, of whom this policy may know
            await asyncio.to_thread(self._catch_up, policy, at, engine.seq)
            if policy.n_users < engine.users.capacity:
                policy.add_users(engine.users.capacity - policy.n_users)  # who came, and is not in the log yet
            await self.committer.renew(policy, pending_erasure)
            await asyncio.to_thread(self.snapshots.remove_all)  # those before know who was erased
            if self._can_save:
                self._snapshot()
        _log.info("the policy was made anew from the log, without users who were erased: %d", len(pending_erasure))

    def _catch_up(self, policy: ServablePolicy, after: int, until: int) -> None:
        for _ in replay(self.log, policy, after, until):
            if self._stopping:
                return  # a long log must not keep the process from ending
            time.sleep(0)  # lets requests be served between steps

    # Reading

    def require_index(self, user: str) -> int:
        """The place of a known user, or a problem."""
        user_index = self.engine.users.index_of(user)
        if user_index is None:
            raise ProblemError(404, "unknown-user", f"there is no user {user!r}")
        return user_index

    def cluster_size(self, cluster: Cluster) -> int:
        """How many users a set holds; places that nobody has do not count."""
        name = self.engine.users.name_of
        return sum(name(user_index) is not None for user_index in cluster.members.tolist())

    def cluster_name(self, cluster: Cluster) -> str | None:
        """Who a set is named after: its seed, or its first member where sets have no seeds."""
        user_index = cluster.seed
        if user_index is None and len(cluster) and not self.policy_spec.has_seeds:
            user_index = int(cluster.members[0])
        return None if user_index is None else self.engine.users.name_of(user_index)

    def find_cluster(self, seed: str) -> Cluster:
        """The set that is named after this user, or a problem."""
        self.require_index(seed)
        for cluster in self.policy.clusters():
            if self.cluster_name(cluster) == seed:
                return cluster
        raise ProblemError(404, "unknown-cluster", f"no set is named after user {seed!r}")

    async def certificate(self, cluster: Cluster) -> tuple[float | None, bool]:
        """How far apart two members can be, and whether that was looked at for all pairs; None if it is not known."""
        name = self.engine.users.name_of
        members = np.array([index for index in cluster.members.tolist() if name(index) is not None], np.int64)
        return await self.certify_members(members, len(cluster) <= MAX_PAIRED)

    async def certify_members(self, members: Ints, exact: bool) -> tuple[float | None, bool]:
        """The same of users by their places, over all pairs or by way of the middle."""
        if not isinstance(self.policy, SupportsCertificates) or not len(members):
            return None, False
        try:
            certify = self.policy.certifier(members)
        except UnavailableError:
            return None, False
        return await asyncio.to_thread(certify, exact), exact


def warm_up(model: Model) -> None:
    """Compile all that requests need, on a policy of its own, so that the first ones do not wait for it."""
    policy = model.build()
    policy.prepare()
    context = np.zeros(model.dim)
    context[0] = 1.0
    explainer(policy)([0], [np.array([context, context])])
    policy.update(0, context, 1.0)
    policy.add_users(1)
    if isinstance(policy, SupportsCorrection):
        _try("correct", policy.correct, 0, context, 1.0, 0.0)
    if isinstance(policy, SupportsEstimates):
        _try("estimate", policy.estimate, 1)
    if isinstance(policy, SupportsSimilarUsers):
        _try("similar_users", policy.similar_users, 1)
    if isinstance(policy, SupportsCertificates):
        for cluster in policy.clusters()[:1]:
            _try("certifier", _certify, policy, cluster)


def _certify(policy: SupportsCertificates, cluster: Cluster) -> None:
    for exact in (True, False):
        policy.certifier(cluster)(exact)


def _try(name: str, method: Callable[..., Any], *arguments: Any) -> None:
    """Call a method of a policy during warm-up; an error is logged, because it may not concern later calls."""
    try:
        method(*arguments)
    except UnavailableError:
        pass
    except Exception:
        _log.exception("warm-up: the method %s of the policy failed", name)

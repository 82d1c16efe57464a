"""Service without HTTP: startup, recovery, shutdown, erasure, and queries of users and clusters."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.policies import policy_spec
from locb.policies.base.capabilities import SupportsCertificates, SupportsSnapshot, UnavailableError
from locb.policies.base.certificates import CertificateMixin, certify
from locb.policies.base.policy import ServablePolicy
from locb.recommender.commands import Batch
from locb.recommender.default_rewards import DefaultRewards
from locb.recommender.user_index import UserIndex
from locb.service import errors
from locb.service.config import ServiceConfig
from locb.service.core.background.retention import Retention
from locb.service.core.background.store_watchdog import watch_store
from locb.service.core.background.supervised_tasks import BackgroundTasks
from locb.service.core.background.wal_checkpoints import checkpoint_periodically
from locb.service.core.erasure import Eraser
from locb.service.core.group_commit import GroupCommitter
from locb.service.core.model import load_or_create_model, warm_up
from locb.service.core.service_engine import ServiceEngine, unrewarded_decisions
from locb.service.core.startup.replay import replay
from locb.service.core.startup.snapshots import Snapshots
from locb.service.core.startup.start import start_from
from locb.service.stats.event_stats import EventStats, uses_group
from locb.service.stats.history_backfill import HistoryBackfill
from locb.service.store.chain import Damage
from locb.service.store.database import database_url
from locb.service.store.export import Exports
from locb.service.store.integrity import DamagedLogError
from locb.service.store.log import EventLog
from locb.service.store.permissions import protect

# Maximum number of floats that are copied at once for a certificate. NumPy computes with them for about 1 ms, during
# which no other Python code runs.
CERTIFIED_FLOATS = 6_000
CHECKED_EVENTS = 2_000  # newest events whose content is checked at startup, also that of decisions
_log = logging.getLogger("locb.service")


class Service:
    """Service without HTTP: one policy with its event log, snapshots, statistics and background tasks.

    Parameters
    ----------
    config : ServiceConfig
        The configuration.
    on_fatal_error : callable, optional
        Called once, with the reason, if the service cannot continue because another process has taken over its log.
        All further commands fail with 503. Stop the service, and create another one to recover.

    Raises
    ------
    AlreadyOpenError
        If another process uses the same folder or database.
    ValueError
        If the configuration is invalid, or does not match the store.
    StoreError
        If the store is unavailable, or the log is damaged.
    """

    def __init__(self, config: ServiceConfig, on_fatal_error: Callable[[str], None] | None = None) -> None:
        self.config = config
        self._on_fatal_error = on_fatal_error
        url = database_url(config.data_dir, config.store)
        protect(config.data_dir, url.database if url.get_backend_name() == "sqlite" else None)
        self._loop: asyncio.AbstractEventLoop | None = None  # set by ``start``
        self.log = EventLog(config.data_dir, config.store, self._on_fenced)
        try:
            self.exports = Exports(url, config.data_dir, config.max_exports)
            start_from(config, self.log)
            self.model, store_id = load_or_create_model(config, self.log)
            self.policy_spec = policy_spec(self.model.policy)
            self.snapshots = Snapshots(config.data_dir / "snapshots", store_id, config.snapshot_every)
            self.engine = self._recover(store_id)
            self.retention = Retention(config.retain or 0.0, self.log.dropped_until())
        except BaseException:
            self.log.close()
            raise
        if self.retention.position:
            text = "decisions up to event %d have no stored requests: they were imported, or are old (--retain)"
            _log.info(text, self.retention.position)
        if not isinstance(self.policy, SupportsSnapshot):
            _log.warning(
                "snapshots are disabled, and every startup replays the whole log: %s has no methods save() and "
                "checkpoint(); implement both to enable snapshots",
                type(self.policy).__name__,
            )
        self.committer: GroupCommitter  # created by ``start``
        self.eraser: Eraser  # created by ``start``
        self.started_at = time.time()
        self.erasure_count = 0  # users erased by this process; results cached before an erasure may name erased users
        self.fatal_error: str | None = None  # why the service cannot continue
        self._stopping = False
        self.background = BackgroundTasks(self.log.failures)
        self._snapshot: asyncio.Task[None] | None = None  # writes the last snapshot
        self._counted_seq = self.engine.seq  # last event that was added to the statistics
        self._backfill = HistoryBackfill(
            self.log, self.background.start, lambda: self._counted_seq, lambda: self._stopping
        )

    @property
    def policy(self) -> ServablePolicy:
        """Current policy. The rebuild after an erasure replaces it."""
        return self.engine.policy

    @property
    def event_stats(self) -> EventStats:
        """Counts of the decisions and rewards in the log."""
        return self._backfill.event_stats

    @property
    def backfilling(self) -> bool:
        """Whether ``event_stats`` does not count the whole log yet."""
        return self._backfill.running

    @property
    def rebuilding(self) -> bool:
        """Whether the policy still depends on erased users and is being rebuilt without these users."""
        return bool(self.engine.pending_erasure)

    def _check_log(self, damage: Sequence[Damage]) -> None:
        """Refuse to start with a damaged log."""
        if damage:
            seq, description = min(damage)
            advice = "restore the store from a backup; locb store check reports all damage"
            raise DamagedLogError(f"the log is damaged: event {seq}: {description}; {advice}")

    def _recover(self, store_id: str) -> ServiceEngine:
        """Load the newest snapshot, check and replay the events after it, and return the engine."""
        damage = self.log.track_position(store_id)
        self._check_log([] if damage is None else [damage])
        last = self.log.last_seq()
        rebuilt_at = self.log.settings()["rebuilt_at"]
        snapshot = self.snapshots.load_newest(last + 1 if rebuilt_at is None else rebuilt_at, last)
        policy, seq = snapshot or (self.model.build(), 0)
        self._check_log(self.log.check_sequence(seq, True) or self.log.check_recent(CHECKED_EVENTS))
        _log.info("preparing the policy and reading the log; if kernels must be compiled, this takes up to a minute")
        warm_up(self.model)
        start = time.perf_counter()
        for _ in replay(self.log, policy, seq):
            pass
        self.snapshots.reserve(policy)
        self.snapshots.schedule(last)
        seconds = time.perf_counter() - start
        _log.info("ready: %d events in the log, replayed from event %d in %.2f s", last, seq, seconds)
        if rebuilt_at is None:  # the replay has rebuilt the policy
            self.log.write_settings({"rebuilt_at": last})
        names = [(user_index, name.decode()) for user_index, _, name in self.log.users() if name is not None]
        default_rewards = DefaultRewards(self.config.default_reward, self.config.reward_wait)
        if default_rewards.reward is not None:
            default_rewards.load(unrewarded_decisions(self.log, self.model.dim), time.time())
        return ServiceEngine(
            policy,
            UserIndex(policy.n_users, names),
            last,
            default_rewards=default_rewards,
            cache_size=self.config.decision_cache,
        )

    # Running

    async def start(self) -> None:
        """Start the background tasks and the handling of commands."""
        self.committer = GroupCommitter(
            self.engine,
            self.log,
            after_commit=self._after_commit,
            give_up=self._give_up,
            max_queue=self.config.max_queue,
        )
        self._loop = asyncio.get_running_loop()
        self.eraser = Eraser(self.committer, self.model, self.snapshots, self.background, lambda: self._stopping)
        self.committer.start(self.background)
        self._watchdog = asyncio.create_task(
            self.background.supervise("store-watchdog", lambda: watch_store(self.committer))
        )
        self.background.start("wal-checkpoint", lambda: checkpoint_periodically(self.committer))
        if self.config.retain is not None:
            self.background.start("retention", lambda: self.retention.run(self.committer))
        self.background.start("snapshot-memory", lambda: self.snapshots.reserve_periodically(lambda: self.policy))
        self._backfill.restart(self.engine.seq)

    async def stop(self) -> None:
        """Handle the queued commands, write a snapshot, and close the store."""
        _log.info("stopping")
        self._stopping = True
        self.background.cancel()
        self.exports.stop()
        await self.eraser.stop()
        await self.committer.stop()
        self._watchdog.cancel()
        if self.committer.store_error is not None:
            self.log.interrupt()  # no read must delay the shutdown
        await self._backfill.stop()
        if not self.rebuilding and self.fatal_error is None and self.engine.is_logged:
            self.snapshots.write_final(self.policy, self.engine.seq)
        await asyncio.to_thread(self.snapshots.wait)
        self.log.close()

    async def erase_user(self, user: str) -> int:
        """Erase a user and everything learned from that user, and return the number of erased decisions.

        Raises
        ------
        ProblemError
            404 for an unknown user; 503 if the store is unavailable, or the service is stopping.
        """
        return await self.eraser.erase(user)

    def _after_commit(self, batch: Batch) -> None:
        self._counted_seq = batch.last_seq
        self.eraser.after_commit(batch)  # first, because requests wait for it
        self.erasure_count += len(batch.erased)
        if batch.rebuilt is not None:  # the statistics count the erased events until then
            self._backfill.restart(self.engine.seq)
        else:
            grouped = [uses_group(evidence) for evidence in batch.evidence]
            self.event_stats.add(batch.records, grouped, batch.first_reward_times)
        if self._snapshot is not None and not self._snapshot.done():
            return
        if not self._stopping and (batch.rebuilt is not None or self.snapshots.is_due(self.engine.seq)):
            self._snapshot = self.background.start("snapshot", self._write_snapshot)

    async def _write_snapshot(self) -> None:
        """Write a snapshot. The writer thread copies the policy, which cannot change while the commit lock is held."""
        async with self.committer.commit_lock:
            # A snapshot must not contain erased users, nor user indices that are not in the log.
            if not self.rebuilding and self.engine.is_logged:
                await self.committer.write_slow(self.snapshots.write_if_supported, self.policy, self.engine.seq)

    def _on_fenced(self, reason: str) -> None:
        """Stop handling commands; called in another thread."""
        if self._loop is not None:  # before ``start``, the first write detects the other process
            with suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self.committer.fail, reason)

    def _give_up(self, reason: str) -> None:
        """Report that the service cannot continue, because its state in memory does not match the log."""
        if self.fatal_error is None:
            self.fatal_error = reason
            _log.critical("the service cannot continue: %s", reason)
            if self._on_fatal_error is not None:
                self._on_fatal_error(reason)

    # Queries

    def require_index(self, user: str) -> int:
        """Return the index of a user, or raise a 404 problem if the user is unknown."""
        user_index = self.engine.users.index_of(user)
        if user_index is None:
            raise errors.unknown_user(user)
        return user_index

    async def certify(self, members: Ints, exact: bool) -> tuple[float | None, bool]:
        """Return the certificate of users, and whether it compares all pairs of users.

        The certificate is an upper bound on the distance between the preferences of any two of the users. It is None if
        the policy has no certificates, or if there are no users. The users are copied in parts, between which requests
        are served; threads compute the certificate.

        Parameters
        ----------
        members : (m,) ints
            Indices of the users, in ascending order.
        exact : bool
            Whether to compare all pairs of users.
        """
        if not isinstance(self.policy, SupportsCertificates) or not len(members):
            return None, False
        try:
            if not isinstance(self.policy, CertificateMixin):  # a custom policy
                return await asyncio.to_thread(self.policy.certifier(members), exact), exact
            dim, parts = self.policy.dim, []
            size = max(1, CERTIFIED_FLOATS // (dim * (dim + 3) // 2))
            for start in range(0, len(members), size):
                compute = self.policy.certified_estimates(members[start : start + size])
                parts.append(await asyncio.to_thread(compute))
        except UnavailableError:
            return None, False
        return await asyncio.to_thread(_certify_parts, parts, exact), exact


def _certify_parts(parts: Sequence[tuple[Floats, Floats]], exact: bool) -> float:
    theta, radii = (np.concatenate(column) for column in zip(*parts, strict=True))
    return certify(theta, radii, exact)

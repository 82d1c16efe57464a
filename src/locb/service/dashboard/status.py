"""Status view: the current state of the service."""

from __future__ import annotations

import math
import time

from locb.common.arrays import Bools
from locb.policies import CompiledPolicy
from locb.service.core.service import Service
from locb.service.dashboard.schemas import ClusterCounts, SnapshotStatus, Status, StoreStatus
from locb.service.dashboard.state_view import StateView
from locb.service.stats.event_stats import SECOND, TEN_SECONDS, Counts
from locb.service.store.database import StoreError

RATE_SECONDS = 10  # period over which rates are computed
SHARE_SECONDS = 3600  # period over which the share of decisions that used a cluster is computed


def status(service: Service, state: StateView | None, returned: Bools, store_bytes: int | None, version: str) -> Status:
    """Return the current state of the service.

    Parameters
    ----------
    service : Service
        The service.
    state : StateView or None
        Captured state. With None, the number of users with rewards is too low during a backfill.
    returned : (K,) bools
        Whether each cluster is final. Duplicates of other clusters are omitted.
    store_bytes : int or None
        Size of the store in bytes; None if unknown.
    version : str
        Version of locb.
    """
    policy = service.policy
    event_stats, engine, committer, now = service.event_stats, service.engine, service.committer, time.time()
    # Before the backfill is complete, the statistics do not count all users from whose rewards the policy has learned.
    backfilling = service.backfilling
    rewarded_users = state.n_estimates if backfilling and state is not None else event_stats.rewarded_users
    recent = _total([counts for _, counts in event_stats.buckets(SECOND, now - RATE_SECONDS, math.inf)])
    # The period starts at a full second, or at the time when counting started.
    seconds = max(1.0, now - max(math.floor(now - RATE_SECONDS), event_stats.started_at))
    hour = _total([counts for _, counts in event_stats.buckets(TEN_SECONDS, now - SHARE_SECONDS, math.inf)])
    n_returned = int(returned.sum())
    snapshot = service.snapshots.newest_seq
    return Status(
        time=now,
        policy=service.model.policy,
        version=version,
        started_at=service.started_at,
        status="ok" if committer.store_error is None else "unavailable",
        detail=committer.store_error,
        users=len(engine.users),
        rewarded_users=rewarded_users,
        decisions=event_stats.decisions,
        rewards=event_stats.rewards,
        pending_rewards=event_stats.pending_rewards(now),
        decisions_per_second=recent.decisions / seconds,
        rewards_per_second=recent.rewards / seconds,
        cluster_based_share=hour.grouped / hour.classified if hour.classified else None,
        clusters=ClusterCounts(n_returned, len(returned) - n_returned),
        sure_users=None if state is None else state.sure_users,
        backfilling=backfilling,
        rebuilding=service.rebuilding,
        reward_scale_problem=policy.reward_scale_problem if isinstance(policy, CompiledPolicy) else None,
        store=StoreStatus(service.log.backend, engine.seq, store_bytes, committer.queue_length, committer.store_error),
        snapshot=None
        if snapshot is None
        else SnapshotStatus(snapshot, service.snapshots.newest_time, max(0, engine.seq - snapshot)),
    )


def store_size(service: Service) -> int | None:
    """Return the size of the store in bytes, or None if the store is unavailable."""
    try:
        return service.log.size_bytes()
    except (StoreError, OSError):
        return None


def _total(counts: list[Counts]) -> Counts:
    return Counts(*(sum(column) for column in zip(*counts, strict=True))) if counts else Counts()

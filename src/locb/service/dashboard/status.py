"""How the service does at this moment."""

from __future__ import annotations

import math
import time

from locb.service.core.service import Service
from locb.service.dashboard.schemas import ClusterCounts, SnapshotStatus, Status, StoreStatus
from locb.service.dashboard.state_view import StateView
from locb.service.stats.event_stats import FINE, SECOND, Counts
from locb.service.store.database import StoreError

RATE_SECONDS, SHARE_SECONDS = 10, 3600


def status(service: Service, picture: StateView | None, size: int | None, version: str) -> Status:
    """All figures; some of them are less exact while there is no picture."""
    event_stats, engine, committer, at = service.event_stats, service.engine, service.committer, time.time()
    # While the past is being read, those whom the policy knows.
    learned = picture.known if service.reading_history and picture is not None else event_stats.learned_users
    last = _together([counts for _, counts in event_stats.steps(SECOND, at - RATE_SECONDS, math.inf)])
    # The seconds that are looked at begin with a whole one; before the tally was begun it counts none.
    seconds = max(1.0, at - max(math.floor(at - RATE_SECONDS), event_stats.begun))
    hour = _together([counts for _, counts in event_stats.steps(FINE, at - SHARE_SECONDS, math.inf)])
    complete = service.policy.group_summary().returned if picture is None else picture.returned
    returned = int(complete.sum())
    newest = service.snapshots.newest
    return Status(
        time=at,
        policy=service.model.policy,
        version=version,
        started_at=service.started,
        status="ok" if committer.failure is None else "unavailable",
        detail=committer.failure,
        users=len(engine.user_index),
        rewarded_users=learned,
        decisions=event_stats.decisions,
        rewards=event_stats.rewards,
        pending_rewards=max(0, event_stats.decisions - event_stats.rewards),
        decisions_per_second=last.decisions / seconds,
        rewards_per_second=last.rewards / seconds,
        cluster_based_share=hour.grouped / hour.told if hour.told else None,
        clusters=ClusterCounts(returned, len(complete) - returned),
        backfilling=service.reading_history,
        rebuilding=service.renewing,
        store=StoreStatus(service.log.kind, engine.seq, size, committer.waiting, committer.failure),
        snapshot=None
        if newest is None
        else SnapshotStatus(newest, service.snapshots.newest_time, max(0, engine.seq - newest)),
    )


def store_size(service: Service) -> int | None:
    """Bytes of the store; None if it cannot be asked now."""
    try:
        return service.log.size()
    except (StoreError, OSError):
        return None


def _together(some: list[Counts]) -> Counts:
    return Counts(*(sum(column) for column in zip(*some, strict=True))) if some else Counts()

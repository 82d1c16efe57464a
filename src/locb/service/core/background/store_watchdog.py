"""Watchdog of the store: it reports a store that does not respond."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from locb.service.core.background.queues import WorkerThread

if TYPE_CHECKING:
    from locb.service.core.group_commit import GroupCommitter

WATCH_INTERVAL = 0.5  # seconds between checks that the store responds
STORE_TIMEOUT = 4.0  # seconds for a response of the store; longer than a statement waits for a lock


async def watch_store(committer: GroupCommitter) -> None:
    """Report a store that does not respond within ``STORE_TIMEOUT``. PostgreSQL is checked even without requests."""
    log, thread = committer.log, WorkerThread("locb-watchdog")
    try:
        while True:
            await asyncio.sleep(WATCH_INTERVAL)
            if log.backend == "postgresql" and not thread.busy_seconds:
                # Errors of ``ping`` are ignored, because a failed commit reports them.
                thread.run(log.ping).add_done_callback(asyncio.Future.exception)
            seconds = max(committer.blocked_seconds, thread.busy_seconds)
            if seconds > STORE_TIMEOUT:
                committer.report_hang(seconds)
    finally:
        thread.stop(wait=False)

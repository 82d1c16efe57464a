"""Periodic checkpoints of SQLite's write-ahead log (WAL)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from locb.service.core.background.queues import WorkerThread
from locb.service.store.database import StoreError

if TYPE_CHECKING:
    from locb.service.core.group_commit import GroupCommitter

CHECKPOINT_INTERVAL = 0.5  # seconds between WAL checkpoints: short, so that each checkpoint is small
_log = logging.getLogger("locb.service")


async def checkpoint_periodically(committer: GroupCommitter) -> None:
    """Move the content of SQLite's WAL file into the database file every 0.5 s, if there were new events."""
    log, engine, thread = committer.log, committer.engine, WorkerThread("locb-checkpoint")
    checkpointed = 0
    try:
        while True:
            await asyncio.sleep(CHECKPOINT_INTERVAL)
            if engine.seq == checkpointed and not log.wal_pending:
                continue
            try:
                await thread.run(log.wal_checkpoint)
                async with committer.commit_lock:
                    # After a second checkpoint, without writers, the next commit starts at the beginning of the WAL
                    # file. Overwriting allocated blocks is much faster than allocating new blocks.
                    await committer.write_slow(log.wal_checkpoint, log.wal_pending)
                    checkpointed = engine.seq
            except StoreError as error:
                _log.warning("the checkpoint of the WAL file failed and is tried again later: %s", error)
    finally:
        thread.stop(wait=False)

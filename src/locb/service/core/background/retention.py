"""Retention: dropping the payloads (requests and responses) of old decisions."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from locb.service.store.database import FencedError, StoreError
from locb.service.store.locks import AlreadyOpenError

if TYPE_CHECKING:
    from locb.service.core.group_commit import GroupCommitter

RETENTION_INTERVAL = 60.0  # seconds between searches for decisions whose payloads are due to be dropped
DROPPED_PER_STEP = 200  # decisions per step, during which requests wait
DROP_PAUSE = 0.05  # seconds between steps
_log = logging.getLogger("locb.service")


class Retention:
    """Dropping of the payloads (requests and responses) of old decisions, in the background.

    Parameters
    ----------
    span : float
        Age in seconds from which a payload is dropped.
    position : int
        Sequence number of the last event whose payload was dropped; 0 if there is none.
    """

    def __init__(self, span: float, position: int) -> None:
        self.span = span
        self.position = position

    async def run(self, committer: GroupCommitter) -> None:
        """Drop payloads in steps, between which requests are served, until the service stops."""
        while True:
            dropped = 0
            try:
                while count := await self._drop_step(committer):
                    dropped += count
                    await asyncio.sleep(DROP_PAUSE)
            except FencedError as error:
                committer.to_problem(error)
                return
            except (StoreError, AlreadyOpenError) as error:
                _log.warning("dropping old requests and responses failed and is tried again later: %s", error)
            if dropped:
                _log.info("dropped the requests and responses of %d decisions, up to event %d", dropped, self.position)
            await asyncio.sleep(RETENTION_INTERVAL)

    async def _drop_step(self, committer: GroupCommitter) -> int:
        log, has_defaults = committer.log, committer.engine.default_rewards.reward is not None
        async with committer.commit_lock:
            await committer.resolve_in_doubt()
            before = time.time() - self.span
            count = await committer.write_slow(log.drop_payloads, before, DROPPED_PER_STEP, has_defaults)
            self.position = await committer.write(log.dropped_until)
        return int(count)

"""Snapshots of the policy. At startup only the events after the newest snapshot are replayed."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from locb.policies import CompiledPolicy, Policy, load
from locb.policies.base.capabilities import SupportsSnapshot
from locb.policies.base.checkpoints import BufferPool
from locb.policies.base.policy import ServablePolicy
from locb.service.store.permissions import PRIVATE_FILE

KEPT_SNAPSHOTS = 2
RESERVE_INTERVAL = 0.5  # seconds between checks that enough memory is reserved for the next snapshot
_NAME = re.compile(r"([0-9a-f]{8})-(\d{16})\.locb")
_log = logging.getLogger("locb.service")


class Snapshots:
    """Snapshots of one store in a folder. The file name contains ``seq``, the sequence number of the last event.

    Parameters
    ----------
    folder : Path
        Folder of the snapshots, created if needed.
    store_id : str
        Id of the store. Snapshots of other stores are ignored.
    interval : int
        Number of events between snapshots.
    """

    def __init__(self, folder: Path, store_id: str, interval: int) -> None:
        self._folder = folder
        self._store_id = store_id
        self._interval = interval
        folder.mkdir(parents=True, exist_ok=True)
        for unfinished in folder.glob(".*.part"):
            unfinished.unlink(missing_ok=True)
        self._thread: threading.Thread | None = None
        self._buffers = BufferPool()
        self._last_attempt = 0  # seq of the last snapshot that was started
        self.newest_seq: int | None = max(self._paths(), default=None)
        self.newest_time: float | None = None  # Unix time at which the newest snapshot was written
        self.write_seconds = 0.0  # time to write the last snapshot
        self.blocked_seconds = 0.0  # time for which decisions and rewards waited for the last snapshot

    def _paths(self) -> dict[int, Path]:
        """Return the path of each snapshot of this store by its seq."""
        found = ((_NAME.fullmatch(path.name), path) for path in self._folder.iterdir())
        return {int(match[2]): path for match, path in found if match and match[1] == self._store_id}

    @property
    def writing(self) -> bool:
        """Whether a snapshot is being written."""
        return self._thread is not None and self._thread.is_alive()

    def load_newest(self, first: int, last: int) -> tuple[ServablePolicy, int] | None:
        """Return the policy and the seq of the newest readable snapshot with ``first`` ≤ seq ≤ ``last``, or None.

        Snapshots outside this range do not match the log and are deleted. Unreadable snapshots, for example those of
        another version of locb, are skipped.
        """
        for seq, path in sorted(self._paths().items(), reverse=True):
            if not first <= seq <= last:
                _log.warning(
                    "deleted snapshot %s: it ends at event %d, which is not in the log or precedes an erasure; no "
                    "action is needed: the service uses another snapshot or replays the log",
                    path.name,
                    seq,
                )
                path.unlink()
                continue
            try:
                policy = cast(ServablePolicy, load(path))  # the model that wrote it accepts new users
            except (ValueError, OSError) as error:
                _log.warning("snapshot %s ignored; the service replays more of the log instead: %s", path.name, error)
                continue
            self.newest_seq, self.newest_time = seq, path.stat().st_mtime
            return policy, seq
        self.newest_seq = None
        return None

    # When snapshots are written

    def schedule(self, seq: int) -> None:
        """Count the interval until the next snapshot from the event ``seq``."""
        self._last_attempt = seq

    def is_due(self, seq: int) -> bool:
        """Return whether the interval has passed at the event ``seq``, and no snapshot is being written."""
        return seq - self._last_attempt >= self._interval and not self.writing

    def write_final(self, policy: Policy, seq: int) -> None:
        """Write a snapshot at shutdown if there are events after the newest snapshot."""
        if seq > (self.newest_seq or 0):
            self.write_if_supported(policy, seq)

    def write_if_supported(self, policy: Policy, seq: int) -> None:
        """Write a snapshot if the policy can be saved. An error is only logged, because the log contains all events."""
        self._last_attempt = seq
        if isinstance(policy, SupportsSnapshot):
            try:
                self.write(policy, seq)
            except Exception:  # a custom policy may raise any exception
                _log.exception("cannot write the snapshot of event %d; the service tries again later", seq)

    def write(self, policy: SupportsSnapshot, seq: int, done: Callable[[], None] | None = None) -> None:
        """Copy the policy, and write the copy to a file in a thread. The thread calls ``done`` at its end."""
        self.wait()
        start = time.perf_counter()
        checkpoint = policy.checkpoint(self._buffers) if isinstance(policy, CompiledPolicy) else policy.checkpoint()
        self.blocked_seconds = time.perf_counter() - start

        def save() -> None:
            try:
                path = self._folder / f"{self._store_id}-{seq:016d}.locb"
                checkpoint.save(path)
                path.chmod(PRIVATE_FILE)
            except OSError as error:
                _log.warning("cannot write the snapshot of event %d: %s; the service tries again later", seq, error)
            else:
                self.newest_seq, self.newest_time = seq, time.time()
                self.write_seconds = time.perf_counter() - start
                self._prune()
                _log.info("snapshot of event %d written in %.2f s", seq, self.write_seconds)
            if done is not None:
                done()

        self._thread = threading.Thread(target=save, name="locb-snapshot")
        self._thread.start()

    # Memory for the copy of the policy

    def reserve(self, policy: Policy) -> None:
        """Reserve memory for the copy of the policy, so that no request waits for the allocation."""
        if isinstance(policy, CompiledPolicy):
            policy.reserve(self._buffers)

    async def reserve_periodically(self, policy: Callable[[], Policy]) -> None:
        """Call ``reserve`` at intervals, because the policy grows with the number of users."""
        while True:
            await asyncio.sleep(RESERVE_INTERVAL)
            await asyncio.to_thread(self.reserve, policy())

    # Completion and deletion

    def wait(self) -> None:
        """Wait until the snapshot in progress, if any, is written."""
        if self._thread is not None:
            self._thread.join()

    def remove_all(self) -> None:
        """Delete all snapshots of this store."""
        self.wait()
        for path in self._paths().values():
            path.unlink(missing_ok=True)
        self.newest_seq = None

    def _prune(self) -> None:
        for _, path in sorted(self._paths().items(), reverse=True)[KEPT_SNAPSHOTS:]:
            path.unlink(missing_ok=True)

"""The policy in files beside the log, so that a start need not replay everything."""

from __future__ import annotations

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

KEPT = 2
_NAME = re.compile(r"([0-9a-f]{8})-(\d{16})\.locb")
_log = logging.getLogger("locb.service")


class Snapshots:
    """Snapshots in a folder, each under the place in the log up to which it knows.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    store : str
        Names the log, so that snapshots of another one are told from its own.
    """

    def __init__(self, folder: Path, store: str) -> None:
        self._folder = folder
        self._store = store
        folder.mkdir(parents=True, exist_ok=True)
        for unfinished in folder.glob(".*.part"):
            unfinished.unlink(missing_ok=True)
        self._writing: threading.Thread | None = None
        self._room = BufferPool()
        self.newest_seq: int | None = max(self._places(), default=None)
        self.newest_time: float | None = None  # when it was written
        self.write_seconds = 0.0  # that the last one took
        self.blocked_seconds = 0.0  # seconds of it in which nothing else was done

    def _places(self) -> dict[int, Path]:
        found = ((_NAME.fullmatch(path.name), path) for path in self._folder.iterdir())
        return {int(name[2]): path for name, path in found if name and name[1] == self._store}

    @property
    def busy(self) -> bool:
        """Whether one is being written."""
        return self._writing is not None and self._writing.is_alive()

    def newest_good(self, since: int, until: int) -> tuple[ServablePolicy, int] | None:
        """The newest policy that can be read, of those from ``since`` to ``until``; others do not belong to the log."""
        for seq, path in sorted(self._places().items(), reverse=True):
            if not since <= seq <= until:
                _log.warning(
                    "snapshot %s does not belong to the log, which goes from %d to %d", path.name, since, until
                )
                path.unlink()
                continue
            try:
                policy = cast(ServablePolicy, load(path))  # the model that wrote it accepts new users
            except (ValueError, OSError) as error:
                _log.warning("snapshot %s is skipped: %s", path.name, error)
                continue
            self.newest_seq, self.newest_time = seq, path.stat().st_mtime
            return policy, seq
        self.newest_seq = None
        return None

    def write(self, policy: SupportsSnapshot, seq: int, done: Callable[[], None] | None = None) -> None:
        """Copy the policy now, and write the copy from a thread of its own."""
        self.wait()
        start = time.perf_counter()
        checkpoint = policy.checkpoint(self._room) if isinstance(policy, CompiledPolicy) else policy.checkpoint()
        self.blocked_seconds = time.perf_counter() - start

        def save() -> None:
            try:
                checkpoint.save(self._folder / f"{self._store}-{seq:016d}.locb")
            except OSError as error:
                _log.warning("no snapshot at %d: %s", seq, error)
            else:
                self.newest_seq, self.newest_time = seq, time.time()
                self.write_seconds = time.perf_counter() - start
                self._prune()
                _log.info("snapshot at %d in %.2f s", seq, self.write_seconds)
            if done is not None:
                done()

        self._writing = threading.Thread(target=save, name="locb-snapshot")
        self._writing.start()

    def make_room(self, policy: Policy) -> None:
        """Have memory ready for the next one, so that no request waits for that."""
        if isinstance(policy, CompiledPolicy):
            policy.reserve(self._room)

    def wait(self) -> None:
        """Wait for the one that is being written."""
        if self._writing is not None:
            self._writing.join()

    def remove_all(self) -> None:
        """Leave none."""
        self.wait()
        for path in self._places().values():
            path.unlink(missing_ok=True)
        self.newest_seq = None

    def _prune(self) -> None:
        for _, path in sorted(self._places().items(), reverse=True)[KEPT:]:
            path.unlink(missing_ok=True)

"""Locks of the data folder and the database."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from locb.service.store.database import StoreError
from locb.service.store.locks import AlreadyOpenError
from locb.service.store.log import EventLog

HOLD = """
import sys
from pathlib import Path
from locb.service.store.log import EventLog
log = EventLog(Path(sys.argv[1]), sys.argv[2] or None)
print("open", flush=True)
sys.stdin.read()
log.close()
"""


@contextmanager
def lock_in_another_process(folder: Path, url: str | None) -> Iterator[subprocess.Popen[str]]:
    """Open the log in another process."""
    command = [sys.executable, "-c", HOLD, str(folder), url or ""]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.communicate()


def test_folder_is_locked(store: Any) -> None:
    with lock_in_another_process(store.folder, store.url) as holder:
        for _ in range(2):
            with pytest.raises(AlreadyOpenError) as caught:
                EventLog(store.folder, store.url)
            assert f"another process (PID {holder.pid}) uses {store.folder}" in str(caught.value)
            assert "stop that process, or choose another --data-dir" in str(caught.value)
    EventLog(store.folder, store.url).close()


def test_database_is_locked(postgres: Any, tmp_path: Path) -> None:
    url = postgres.create_database()
    with lock_in_another_process(tmp_path / "one", url):
        with pytest.raises(AlreadyOpenError, match="another process uses this database: stop that process"):
            EventLog(tmp_path / "two", url)
        other = EventLog(tmp_path / "two", postgres.create_database())  # the refused log has unlocked the folder
        other.close()
    EventLog(tmp_path / "two", url).close()


def test_lock_of_a_killed_process_is_released(store: Any) -> None:
    with lock_in_another_process(store.folder, store.url) as holder:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        EventLog(store.folder, store.url).close()


def test_lost_lock_of_a_database_is_not_taken_back(postgres: Any, tmp_path: Path) -> None:
    url = postgres.create_database()
    first = EventLog(tmp_path / "one", url)
    try:
        postgres.restart()
        with lock_in_another_process(tmp_path / "two", url):
            with pytest.raises(StoreError):
                first.last_seq()
            with pytest.raises(AlreadyOpenError):
                first.last_seq()
        assert first.last_seq() == 0
    finally:
        first.close()

"""Locks of the data folder and the database."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from locb.service.store import locks
from locb.service.store.database import FencedError, StoreError, pooled_connection
from locb.service.store.locks import AlreadyOpenError
from locb.service.store.log import EventLog
from service.store.sample_rows import sample_records
from serving import wait_for

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


def terminate_connections(url: str) -> None:
    """Terminate all other connections to a database, as a failover or an administrator does."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        others = f"{query} AND pid <> pg_backend_pid()"
        wait_for(lambda: connection.execute(others).fetchall() == [])  # until the server has ended them


def test_folder_is_locked(store: Any) -> None:
    with lock_in_another_process(store.folder, store.url) as holder:
        for _ in range(2):
            with pytest.raises(AlreadyOpenError) as caught:
                EventLog(store.folder, store.url)
            assert f"another process (PID {holder.pid}) uses {store.folder}" in str(caught.value)
            assert "stop that process, or choose another --data-dir" in str(caught.value)
    EventLog(store.folder, store.url).close()


def test_closed_log_has_released_the_lock(postgres: Any, tmp_path: Path) -> None:
    """A service that restarts must not find the lock of the process that it replaces."""
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(20):
            EventLog(tmp_path, url).close()
            query = "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database WHERE locktype = 'advisory'"
            assert connection.execute(f"{query} AND datname = current_database()").fetchone() == (0,)


def test_database_is_locked(postgres: Any, tmp_path: Path) -> None:
    url = postgres.create_database()
    with lock_in_another_process(tmp_path / "one", url):
        with pytest.raises(
            AlreadyOpenError,
            match="another process, last alive .* s ago, uses this database: stop that process",
        ):
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
        terminate_connections(url)
        with lock_in_another_process(tmp_path / "two", url):
            with pytest.raises(StoreError, match="terminating connection"):
                first.last_seq()
            with pytest.raises(FencedError, match=r"has taken over the log \(epoch 2 instead of 1\)"):
                first.last_seq()
        for write in (first.last_seq, lambda: first.commit(sample_records()), lambda: first.write_settings({"a": 1})):
            with pytest.raises(FencedError, match=r"has taken over the log \(epoch 2 instead of 1\)"):
                write()
        assert first.settings() == {}
    finally:
        first.close()


def test_lock_is_taken_back_after_lost_connections(postgres: Any, tmp_path: Path) -> None:
    url = postgres.create_database()
    log = EventLog(tmp_path, url)
    terminate_connections(url)
    with pytest.raises(StoreError, match="terminating connection"):
        log.last_seq()
    log.commit(sample_records())
    assert log.last_seq() == 6
    log.close()


def test_database_of_a_suspended_process_is_taken_over(
    postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.create_database()
    with lock_in_another_process(tmp_path / "one", url) as holder:
        os.kill(holder.pid, signal.SIGSTOP)
        try:
            with pytest.raises(AlreadyOpenError, match="a process that has not been alive for 15 s is replaced"):
                EventLog(tmp_path / "two", url)
            with psycopg.connect(url) as connection:  # 20 seconds pass
                connection.execute("UPDATE locb_lease SET alive_at = alive_at - 20")
            log = EventLog(tmp_path / "two", url)
        finally:
            os.kill(holder.pid, signal.SIGCONT)
    log.commit(sample_records())
    log.close()


def test_lease_is_extended_and_its_loss_is_reported(
    postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "HEARTBEAT_INTERVAL", 0.01)
    url = postgres.create_database()
    reasons: list[str] = []
    log = EventLog(tmp_path, url, reasons.append)

    def alive_at() -> float:
        with psycopg.connect(url) as connection:
            return float(connection.execute("SELECT alive_at FROM locb_lease").fetchall()[0][0])

    start = alive_at()
    wait_for(lambda: alive_at() > start)
    assert reasons == []
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE locb_lease SET epoch = epoch + 1")
    wait_for(lambda: reasons)
    assert "another process has taken over the log" in reasons[0]
    log.close()


@pytest.mark.parametrize("path", ["state/log.db", "link.db"])
def test_sqlite_file_is_locked_for_other_folders(tmp_path: Path, path: str) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "state" / "log.db")
    with lock_in_another_process(tmp_path / "state", None) as holder:
        with pytest.raises(AlreadyOpenError) as caught:
            EventLog(tmp_path / "other", f"sqlite:///{tmp_path / path}")
        database = tmp_path / "state" / "log.db"
        assert f"another process (PID {holder.pid}) uses the database {database}: stop" in str(caught.value)
    log = EventLog(tmp_path / "other", f"sqlite:///{tmp_path / path}")
    with pytest.raises(AlreadyOpenError, match="uses the database"):
        EventLog(tmp_path / "state")
    log.close()


def test_lease_is_extended_after_an_unexpected_error(
    postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(locks, "HEARTBEAT_INTERVAL", 0.01)
    calls: list[Engine] = []

    def fail_once(engine: Engine) -> Any:
        calls.append(engine)
        if len(calls) == 1:
            raise MemoryError("cannot allocate a connection")
        return pooled_connection(engine)

    monkeypatch.setattr(locks, "pooled_connection", fail_once)
    log = EventLog(tmp_path, postgres.create_database())
    wait_for(lambda: len(calls) > 3)
    assert log._lease is not None
    assert log._lease._thread.is_alive()
    assert log.failures == {"lease": 1}
    assert "extending the lease of the database failed" in caplog.text
    log.close()

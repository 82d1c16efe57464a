"""Locks that allow only one service per data folder and per database, and the lease of a PostgreSQL database."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from sqlalchemy import URL, Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from locb.service.store.database import pooled_connection
from locb.service.store.permissions import PRIVATE_FILE

LEASE_SECONDS = 15.0  # a process that has not extended its lease for this time can be replaced
HEARTBEAT_INTERVAL = 3.0  # seconds between extensions of the lease
RELEASE_TIMEOUT = 2.0  # seconds within which the server releases the lock of a process that has ended
TERMINATION_TIMEOUT = 5.0  # seconds within which the server ends the connection of a process that is replaced
_ADVISORY_LOCK = 0x6C6F6362  # key of the advisory lock in PostgreSQL: "locb" in ASCII
_LEASE_AGE = "SELECT extract(epoch FROM clock_timestamp()) - max(alive_at) FROM locb_lease"
_TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND classid = 0 AND objid = :key AND pid <> pg_backend_pid()"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_HEARTBEAT = "UPDATE locb_lease SET alive_at = extract(epoch FROM clock_timestamp()) WHERE epoch = :epoch"
_log = logging.getLogger("locb.service")


class AlreadyOpenError(Exception):
    """Another process has locked the data folder or the database."""


# Files


def lock_folder(folder: Path) -> IO[str]:
    """Create the folder if needed, and lock it until the returned file is closed or the process ends.

    Raises
    ------
    AlreadyOpenError
        If another process holds the lock.
    ValueError
        If the folder cannot be created or written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # private, because it contains personal data
        return _lock(folder / "lock", str(folder), "--data-dir")
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"--data-dir: cannot use {folder}: {reason}; choose a folder that you can write to") from None


def lock_sqlite(url: URL) -> IO[str] | None:
    """Lock a SQLite database file until the returned file is closed. All symbolic links to it have the same lock.

    Return None if the folder of the database cannot be written; SQLite reports that itself.

    Raises
    ------
    AlreadyOpenError
        If another process holds the lock.
    """
    # A separate file: closing the database file itself would release the locks that SQLite holds on it.
    database = Path(str(url.database)).resolve()
    try:
        return _lock(database.with_name(f"{database.name}.lock"), f"the database {database}", "--store")
    except OSError:
        return None


def _lock(path: Path, used: str, option: str) -> IO[str]:
    handle = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE), "r+", encoding="utf-8")
    try:
        _lock_file(handle)
    except OSError as error:
        handle.seek(0)
        owner = handle.read().strip()
        handle.close()
        owned = f" (PID {owner})" if owner else ""
        message = f"another process{owned} uses {used}: stop that process, or choose another {option}"
        raise AlreadyOpenError(message) from error
    handle.truncate(0)
    handle.write(f"{os.getpid()}\n")
    handle.flush()
    return handle


def _lock_file(handle: IO[str]) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


# PostgreSQL


def lock_database(connection: Connection) -> None:
    """Lock a PostgreSQL database until the connection is closed. With SQLite, do nothing: see ``lock_sqlite``.

    If another process holds the lock, wait up to ``RELEASE_TIMEOUT``, because the server needs some time to notice that
    a process has ended. If that process has not extended its lease for ``LEASE_SECONDS``, terminate its connection.

    Raises
    ------
    AlreadyOpenError
        If another process holds the lock and extends its lease, or if its connection does not end.
    """
    if connection.dialect.name != "postgresql" or _wait_for_lock(connection, RELEASE_TIMEOUT):
        return
    age = _lease_age(connection)
    if age is None or age < LEASE_SECONDS:
        last = "" if age is None else f", last alive {max(age, 0):.0f} s ago,"
        wait = f"a process that has not been alive for {LEASE_SECONDS:g} s is replaced"
        advice = f"stop that process, or choose another --store; {wait}"
        raise AlreadyOpenError(f"another process{last} uses this database: {advice}")
    _log.warning("the process that uses the database was last alive %.0f s ago: taking over", age)
    with connection.begin():
        connection.execute(text(_TERMINATE), {"key": _ADVISORY_LOCK})
    if not _wait_for_lock(connection, TERMINATION_TIMEOUT):
        reason = f"its connection did not end within {TERMINATION_TIMEOUT:g} s"
        raise AlreadyOpenError(f"cannot take over the database from another process: {reason}; stop that process")


def unlock_database(connection: Connection) -> None:
    """Unlock a PostgreSQL database at once, and not only when the server has ended the connection."""
    if connection.dialect.name == "postgresql":
        with suppress(SQLAlchemyError), connection.begin():
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _ADVISORY_LOCK})


def _wait_for_lock(connection: Connection, timeout: float) -> bool:
    """Try to get the lock for ``timeout`` seconds, and return whether this succeeded."""
    end = time.monotonic() + timeout
    while True:
        with connection.begin():
            query = text("SELECT pg_try_advisory_lock(:key)")
            if connection.execute(query, {"key": _ADVISORY_LOCK}).scalar():
                return True
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)


def _lease_age(connection: Connection) -> float | None:
    """Return the number of seconds since the lease was extended, or None if there is no lease."""
    with connection.begin():
        if connection.execute(text("SELECT to_regclass('locb_lease')")).scalar() is None:
            return None  # the other process is creating the tables
        age = connection.execute(text(_LEASE_AGE)).scalar()
    return None if age is None else float(age)


class Heartbeat:
    """Thread that extends the lease of a PostgreSQL database every ``HEARTBEAT_INTERVAL`` seconds.

    Parameters
    ----------
    engine : Engine
        Engine of the database. Each extension takes a connection from its pool: the writer's connection may be busy.
    epoch : int
        Epoch of this process.
    on_lost : callable
        Called with the new epoch, in the thread, if another process has taken over. The thread then ends.
    failures : Counter
        Number of failures by task. Failures of the thread, after which it continues, are counted as "lease".
    """

    def __init__(self, engine: Engine, epoch: int, on_lost: Callable[[int], None], failures: Counter[str]) -> None:
        self._engine, self._epoch, self._on_lost = engine, epoch, on_lost
        self._failures = failures
        failures["lease"] += 0  # the metric has a value from the start
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="locb-lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(HEARTBEAT_INTERVAL):
            try:
                with pooled_connection(self._engine) as connection, connection.begin():
                    extended = connection.execute(text(_HEARTBEAT), {"epoch": self._epoch}).rowcount
                    epoch = 0 if extended else connection.execute(text("SELECT max(epoch) FROM locb_lease")).scalar()
                if not extended:
                    self._on_lost(int(epoch or 0))
                    return
            except SQLAlchemyError as error:
                _log.debug("the lease of the database was not extended: %s", error)
            except Exception:  # without the thread, another process would replace this one
                self._failures["lease"] += 1
                _log.exception(
                    "extending the lease of the database failed, and is tried again in %g s", HEARTBEAT_INTERVAL
                )

"""Locks that allow only one service per data folder and per database."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, text

_ADVISORY_LOCK = 0x6C6F6362  # key of the advisory lock in PostgreSQL: "locb" in ASCII


class AlreadyOpenError(Exception):
    """Another process has locked the data folder or the database."""


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
        handle = (folder / "lock").open("a+", encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"--data-dir: cannot use {folder}: {reason}; choose a folder that can be written") from None
    try:
        _lock_file(handle)
    except OSError as error:
        handle.seek(0)
        owner = handle.read().strip()
        handle.close()
        owned = f" (PID {owner})" if owner else ""
        message = f"another process{owned} uses {folder}: stop that process, or choose another --data-dir"
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


def lock_database(connection: Connection) -> None:
    """Lock a PostgreSQL database until the connection is closed. For SQLite, ``lock_folder`` is sufficient.

    Raises
    ------
    AlreadyOpenError
        If another process holds the lock.
    """
    if connection.dialect.name != "postgresql":
        return
    with connection.begin():
        locked = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY_LOCK}).scalar()
    if not locked:
        raise AlreadyOpenError("another process uses this database: stop that process, or choose another --store")

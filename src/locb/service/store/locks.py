"""One writer: a second service on the same folder or database is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, text

# The number under which PostgreSQL keeps the claim: "locb" in ASCII.
_CLAIM = 0x6C6F6362


class AlreadyOpenError(Exception):
    """Another process serves from here."""


def claim_folder(folder: Path) -> IO[str]:
    """Hold the folder until the file given back is closed, or the process ends."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it will hold what people did
    path = folder / "lock"
    handle = path.open("a+", encoding="utf-8")
    try:
        _lock(handle)
    except OSError as error:
        handle.seek(0)
        owner = handle.read().strip()
        handle.close()
        who = f" (process {owner})" if owner else ""
        told = f"another service{who} works in {folder}: stop it, or give this one a folder of its own"
        raise AlreadyOpenError(told) from error
    handle.truncate(0)
    handle.write(f"{os.getpid()}\n")
    handle.flush()
    return handle


def _lock(handle: IO[str]) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def claim_database(connection: Connection) -> None:
    """Hold the database for as long as the connection lives. A file is held by its folder's claim."""
    if connection.dialect.name != "postgresql":
        return
    with connection.begin():
        got = connection.execute(text("SELECT pg_try_advisory_lock(:claim)"), {"claim": _CLAIM}).scalar()
    if not got:
        raise AlreadyOpenError(
            "another service works on this database: stop it, or give this one a database of its own"
        )

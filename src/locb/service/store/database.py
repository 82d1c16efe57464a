"""Where a log is kept, how it is reached, and what can go wrong there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

BUSY_SECONDS = 5  # that a connection to SQLite waits for another


class StoreError(Exception):
    """The store cannot be reached or written now; it may be again later."""


class NameTakenError(Exception):
    """A decision of that name is in the log already."""


def database_url(folder: Path, url: str | None) -> URL:
    """Where the log is kept, or a ValueError that says what is wrong with ``url``."""
    if url is None:
        return URL.create("sqlite", database=str(folder / "log.db"))
    try:
        made = make_url(url)
        if made.get_backend_name() == "postgresql":
            made = made.set(drivername="postgresql+psycopg")
        elif made.drivername != "sqlite" or not made.database:
            raise ValueError(f"--store must be postgresql://… or sqlite:///file, not {made.drivername}://…")
    except (ArgumentError, NoSuchModuleError):
        raise ValueError("--store must be an address such as postgresql://user@host/name") from None
    return made


def connect(url: URL) -> Engine:
    """What opens connections to a database."""
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": float(BUSY_SECONDS)})
        event.listen(engine, "connect", _prepare_sqlite)
        return engine
    # Positional parameters, so that rows go to the driver as they are.
    return create_engine(url, paramstyle="format", connect_args={"connect_timeout": 5})


def _prepare_sqlite(connection: Any, _: Any) -> None:
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",  # a commit returns when it is on disk
        "wal_autocheckpoint=0",  # `tidy` does it, beside the requests
        "secure_delete=ON",  # what is erased is overwritten
        "cache_size=-65536",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def reason(error: SQLAlchemyError) -> str:
    """The database's own words, in one line, without the statement and its values."""
    words = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(words.split())[:300]

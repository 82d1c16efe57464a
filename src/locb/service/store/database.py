"""Where a log is kept, how it is reached, and what can go wrong there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from locb.service.store import sqlite
from locb.service.store.rows import Records

BUSY_SECONDS = 5  # that a connection to SQLite waits for another
_WELCOME = text(
    "INSERT INTO locb_users (place, seq, id) VALUES (:place, :seq, :id)"
    " ON CONFLICT (place) DO UPDATE SET id = excluded.id"
)
_ACTIVATE = text("UPDATE locb_decisions SET active_at = :active_at WHERE seq = :seq")


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
        event.listen(engine, "connect", sqlite.prepare)
        return engine
    # Positional parameters, so that rows go to the driver as they are.
    return create_engine(url, paramstyle="format", connect_args={"connect_timeout": 5})


class Writer(Protocol):
    """Writes rows the way a database takes them fastest, over a connection of its driver's."""

    at_once: bool  # whether writing takes no time, but for the commit

    def write(self, connection: Any, records: Records) -> None:
        """``commit`` or ``roll_back`` must follow."""

    def commit(self, connection: Any) -> None:
        """Bring what was written to disk."""

    def roll_back(self, connection: Any) -> None:
        """Have nothing of it written."""


def writer_for(engine: Engine) -> Writer:
    """The writer for a database."""
    assign, activate = (str(statement.compile(dialect=engine.dialect)) for statement in (_WELCOME, _ACTIVATE))
    if engine.dialect.name == "sqlite":
        return sqlite.Writer(assign, activate)
    from locb.service.store import postgresql  # whoever has no use for it need not be able to load its driver

    return postgresql.Writer(assign, activate)


def driver(connection: Connection) -> Any:
    """The connection of the database's driver beneath one of SQLAlchemy's."""
    return connection.connection.driver_connection


def reason(error: Exception) -> str:
    """The database's own words, in one line, without the statement and its values."""
    words = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(words.split())[:300]

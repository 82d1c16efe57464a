"""Connections to the database of the event log, and the exceptions of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from locb.service.store import sqlite
from locb.service.store.schema import Records

BUSY_TIMEOUT = 5  # seconds that a connection to SQLite waits for a lock
CONNECT_TIMEOUT = 5  # seconds to connect to PostgreSQL
_UPSERT_USER = text(
    "INSERT INTO locb_users (user_index, seq, id) VALUES (:user_index, :seq, :id)"
    " ON CONFLICT (user_index) DO UPDATE SET id = excluded.id"
)
_ACTIVATE = text("UPDATE locb_decisions SET active_at = :active_at WHERE seq = :seq")


class StoreError(Exception):
    """The store cannot be read or written now; a later attempt may succeed."""


class OutcomeUnknownError(StoreError):
    """A commit failed, and the store cannot be read to learn whether the rows were written."""


class DuplicateDecisionError(Exception):
    """The log already has a decision with this id, or the same observation of a decision."""


def database_url(folder: Path, url: str | None) -> URL:
    """Return the address of the database.

    Parameters
    ----------
    folder : Path
        The data folder. Without ``url``, the database is the SQLite file ``log.db`` in this folder.
    url : str or None
        The value of ``--store``.

    Raises
    ------
    ValueError
        If ``url`` is not the address of a SQLite or PostgreSQL database.
    """
    if url is None:
        return URL.create("sqlite", database=str(folder / "log.db"))
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        elif parsed.drivername != "sqlite":
            allowed = "postgresql://user@host/name or sqlite:///path"
            raise ValueError(f"--store has the unsupported scheme {parsed.drivername!r}: use {allowed}")
        elif not parsed.database:
            raise ValueError("--store has no file name: use sqlite:///path, with three slashes before a relative path")
    except (ArgumentError, NoSuchModuleError):
        # The message does not repeat the value, because an address can contain a password.
        raise ValueError("--store must be an address such as postgresql://user@host/name or sqlite:///path") from None
    return parsed


def describe_url(url: URL, option: str | None) -> str:
    """Return the address of the database for error messages, without the password.

    Parameters
    ----------
    url : URL
        The address.
    option : str or None
        The value of ``--store``, or None if the database is a file in the data folder.
    """
    if option is None:
        return str(url.database)
    shown = url.set(drivername=url.get_backend_name(), query={})  # the query may contain a password too
    return f"--store {shown.render_as_string(hide_password=True)}"


def connect(url: URL) -> Engine:
    """Return a SQLAlchemy engine for the database at an address."""
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": float(BUSY_TIMEOUT)})
        event.listen(engine, "connect", sqlite.configure)
        return engine
    # Positional parameters let rows pass to the driver without conversion.
    return create_engine(url, paramstyle="format", connect_args={"connect_timeout": CONNECT_TIMEOUT})


class RowWriter(Protocol):
    """Writer of rows over a connection of the database driver."""

    stages_inline: bool  # whether ``write`` is fast enough to be called in the event loop

    def write(self, connection: Any, records: Records) -> None:
        """Write rows; ``commit`` or ``roll_back`` must follow."""

    def commit(self, connection: Any) -> None:
        """Make the written rows durable."""

    def roll_back(self, connection: Any) -> None:
        """Discard the written rows."""


def make_row_writer(engine: Engine) -> RowWriter:
    """Return the row writer for the database system of a SQLAlchemy engine."""
    upsert_user, activate = (str(statement.compile(dialect=engine.dialect)) for statement in (_UPSERT_USER, _ACTIVATE))
    if engine.dialect.name == "sqlite":
        return sqlite.SqliteWriter(upsert_user, activate)
    from locb.service.store import postgresql  # imported on use: SQLite must work without the driver of PostgreSQL

    return postgresql.PostgresqlWriter(upsert_user, activate)


def summarize_error(error: Exception) -> str:
    """Return the database's error message in one line, without the statement and its values."""
    message = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(message.split())[:300]

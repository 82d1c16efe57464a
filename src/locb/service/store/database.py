"""Connections to the database of the event log, and the exceptions of the store."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote
from weakref import WeakKeyDictionary, WeakSet

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from locb.recommender.events import DecisionRow, ObservationRow
from locb.service.store import sqlite
from locb.service.store.schema import CommitRow, Head, UserRow

# An index can only be assigned to a user while no user has it. Nothing is overwritten.
_ASSIGN_USER = text(
    "INSERT INTO locb_users (user_index, seq, assigned_seq, id, salt)"
    " VALUES (:user_index, :seq, :assigned_seq, :id, :salt)"
    " ON CONFLICT (user_index) DO UPDATE"
    " SET assigned_seq = excluded.assigned_seq, id = excluded.id, salt = excluded.salt WHERE locb_users.id IS NULL"
)
_opened: WeakKeyDictionary[Engine, WeakSet[Any]] = WeakKeyDictionary()  # connections to PostgreSQL
_opened_lock = Lock()  # held to add a connection, and to copy the set: any thread can open a connection
_ACTIVATE = text("UPDATE locb_decisions SET active_at = :active_at WHERE seq = :seq")


class StoreError(Exception):
    """The store cannot be read or written.

    After a FencedError or a DamagedLogError, a later attempt fails, too.
    """


class OutcomeUnknownError(StoreError):
    """A commit failed, and the store cannot be read to learn whether the rows were written."""


class FencedError(StoreError):
    """Another process has taken over the log, or has written to it. This process must not write any more."""


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
        engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": float(sqlite.BUSY_TIMEOUT)})
        event.listen(engine, "connect", sqlite.configure)
        return engine
    from locb.service.store import postgresql  # imported on use: SQLite must work without the driver of PostgreSQL

    settings = {name: value for name, value in postgresql.CONNECTION_SETTINGS.items() if name not in url.query}
    # Positional parameters let rows pass to the driver without conversion.
    engine = create_engine(url, paramstyle="format", connect_args=settings)
    opened = _opened.setdefault(engine, WeakSet())
    event.listen(engine, "connect", lambda connection, _: _add_connection(opened, connection))
    event.listen(engine, "connect", postgresql.configure)
    return engine


def connect_read_only(url: URL) -> Engine:
    """Return a SQLAlchemy engine that only reads the database at an address, and takes no lock of a service."""
    if url.get_backend_name() != "sqlite":
        from locb.service.store import postgresql

        engine = connect(url)
        event.listen(engine, "connect", postgresql.set_read_only)
        return engine
    file = f"file:{quote(str(Path(str(url.database)).absolute()))}"
    read_only = URL.create("sqlite", database=file, query={"mode": "ro", "uri": "true"})
    return create_engine(read_only, connect_args={"check_same_thread": False, "timeout": float(sqlite.BUSY_TIMEOUT)})


@contextmanager
def pooled_connection(engine: Engine) -> Iterator[Connection]:
    """Open a connection that returns to the pool, or is closed if ``close_pool`` was called in the meantime."""
    pool = engine.pool
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        if engine.pool is not pool:
            pool.dispose()


def close_pool(engine: Engine) -> None:
    """Close all connections in the pool, and replace the pool."""
    pool = engine.pool
    engine.dispose()
    pool.dispose()  # connections that another thread has returned while the pool was being replaced


def interrupt(engine: Engine) -> None:
    """Shut down the sockets of all connections to PostgreSQL, so that threads no longer wait for the server.

    This is necessary because a server that hangs does not enforce its own timeouts.
    """
    with _opened_lock:
        connections = list(_opened.get(engine, ()))
    for connection in connections:
        # An exception means that the connection is closed.
        with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)


def _add_connection(opened: WeakSet[Any], connection: Any) -> None:
    with _opened_lock:
        opened.add(connection)


class Writes(NamedTuple):
    """Rows that one transaction writes, with the end of the log before and after it."""

    users: Sequence[UserRow]
    decisions: Sequence[DecisionRow]
    observations: Sequence[ObservationRow]
    activations: Sequence[tuple[float, int]]  # Unix time, seq of the decision
    commit: CommitRow | None
    before: Head
    after: Head


class RowWriter(Protocol):
    """Writer of rows over a connection of the database driver."""

    def try_begin(self, connection: Any) -> bool:
        """Start a transaction without waiting, and return whether ``write`` can be called in the event loop."""

    def write(self, connection: Any, writes: Writes) -> bool:
        """Write rows, and return whether the end of the log was as expected.

        Call ``commit`` if it was, otherwise ``roll_back``.
        """

    def commit(self, connection: Any) -> None:
        """Make the written rows durable."""

    def roll_back(self, connection: Any) -> None:
        """Discard the written rows."""


def make_row_writer(engine: Engine) -> RowWriter:
    """Return the row writer for the database system of a SQLAlchemy engine."""
    assign_user, activate = (str(statement.compile(dialect=engine.dialect)) for statement in (_ASSIGN_USER, _ACTIVATE))
    if engine.dialect.name == "sqlite":
        return sqlite.SqliteWriter(assign_user, activate)
    from locb.service.store import postgresql

    return postgresql.PostgresqlWriter(assign_user, activate)


def summarize_error(error: Exception) -> str:
    """Return the database's error message in one line, without the statement and its values."""
    message = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(message.split())[:300]

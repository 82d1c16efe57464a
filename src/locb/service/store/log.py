"""Event log: the durable record of users, decisions and observations, with a single writer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, inspect, select, text, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from locb.service.store import schema as tables
from locb.service.store import user_decisions
from locb.service.store.database import (
    BUSY_TIMEOUT,
    DuplicateDecisionError,
    StoreError,
    connect,
    database_url,
    describe_url,
    make_row_writer,
    summarize_error,
)
from locb.service.store.locks import AlreadyOpenError, lock_database, lock_folder
from locb.service.store.reader import LogReader
from locb.service.store.schema import Records

MAX_WAL_BYTES = 1 << 26  # a larger WAL file is truncated
MAX_UNINDEXED_EVENTS = 2_000  # events that the table of user decisions may lack; queries by user scan these events
CLOSE_TIMEOUT = 5.0  # seconds that ``close`` waits for running reads and writes
CHECKPOINT_TIMEOUT_MS = 100  # milliseconds that a truncating WAL checkpoint waits for readers
_log = logging.getLogger("locb.service")
_REDACT = {
    "sqlite": "UPDATE locb_decisions SET response = CAST(replace(CAST(response AS TEXT), :old, :new) AS BLOB)"
    " WHERE seq > :after AND seq <= :until AND instr(response, :sought) > 0",
    "postgresql": "UPDATE locb_decisions SET response ="
    " convert_to(replace(convert_from(response, 'UTF8'), CAST(:old AS TEXT), CAST(:new AS TEXT)), 'UTF8')"
    " WHERE seq > :after AND seq <= :until AND position(CAST(:sought AS BYTEA) IN response) > 0",
}


class StoreFormatError(ValueError):
    """The store was written by another version of locb, in a format that this version does not support."""


class Redaction(NamedTuple):
    """Replacement of a text in the stored responses with ``after`` < seq ≤ ``until``."""

    old: str
    new: str
    after: int
    until: int


class EventLog(LogReader):
    """Event log of one service.

    Call methods that write from one thread at a time. Queries can be called from any thread.

    Parameters
    ----------
    folder : Path
        The data folder. It is locked until the log is closed.
    url : str or None, default None
        Address of a SQLite or PostgreSQL database; None means the SQLite file ``log.db`` in the folder.

    Raises
    ------
    AlreadyOpenError
        If another process uses the folder or the database.
    StoreFormatError
        If the tables have a format that is not supported.
    StoreError
        If the database cannot be opened.
    """

    def __init__(self, folder: Path, url: str | None = None) -> None:
        super().__init__()
        self._url = database_url(folder, url)
        self._folder_lock = lock_folder(folder)
        self._sqlite = self._url.get_backend_name() == "sqlite"
        self._engine = connect(self._url)
        self._writer: Connection | None = None
        self._last_decision = 0
        self._erased_in_wal = False  # whether the WAL file may still contain erased data
        self._row_writer = make_row_writer(self._engine)
        dbapi = self._engine.dialect.loaded_dbapi
        self._integrity_errors = IntegrityError, dbapi.IntegrityError
        self._database_errors = SQLAlchemyError, dbapi.Error
        try:
            with self._writing() as connection:
                _check_format(connection)
                tables.metadata.create_all(connection)
                self._user_decisions_end = user_decisions.extend(connection)
            self._erased_in_wal = self._sqlite  # a killed process may have left erased data in the WAL file
            with suppress(StoreError):  # for example on a full disk
                self.wal_checkpoint(True)
        except BaseException as error:
            self.close()
            if isinstance(error, StoreError):
                raise StoreError(f"cannot open {describe_url(self._url, url)}: {error}") from error
            raise

    def close(self) -> None:
        """Wait for running reads and writes, then close the database and unlock the folder.

        A closed log refuses reads and writes with ``StoreError``.
        """
        self._refuse_operations(CLOSE_TIMEOUT)
        self._drop_writer()
        self._engine.dispose()
        self._folder_lock.close()

    @property
    def backend(self) -> str:
        """Name of the database system: "sqlite" or "postgresql"."""
        return self._url.get_backend_name()

    def size_bytes(self) -> int | None:
        """Return the size in bytes of the database file and its WAL file, or of the tables in PostgreSQL."""
        if self._sqlite:
            files = [Path(f"{self._url.database}{suffix}") for suffix in ("", "-wal")]
            return sum(file.stat().st_size for file in files if file.exists())
        with self._reading() as connection:
            sizes = [func.pg_total_relation_size(table.name) for table in tables.metadata.sorted_tables]
            return sum(int(size) for size in connection.execute(select(*sizes)).one())

    # Writing

    def commit(self, records: Records) -> None:
        """Write rows in one transaction and make them durable.

        Raises
        ------
        DuplicateDecisionError
            If the log already has a decision with one of the ids.
        StoreError
            If the store is unavailable. The rows may have been written; ``last_seq`` shows whether they were.
        """
        self.stage(records)
        self.commit_staged()

    @property
    def stages_inline(self) -> bool:
        """Whether ``stage`` is fast enough to be called from the event loop."""
        return self._row_writer.stages_inline

    def stage(self, records: Records) -> None:
        """Write rows without making them durable; ``commit_staged`` must follow."""
        with self._translating_errors():
            connection = self._locked_writer().connection.driver_connection
            try:
                self._row_writer.write(connection, records)
            except self._integrity_errors:
                self._row_writer.roll_back(connection)
                raise
        if records.decisions:
            self._last_decision = records.decisions[-1].seq

    def commit_staged(self) -> None:
        """Make the staged rows durable."""
        with self._translating_errors():
            if self._writer is None:
                raise StoreError("the connection to the database was lost before the commit")
            self._row_writer.commit(self._writer.connection.driver_connection)
        if self._last_decision - self._user_decisions_end >= MAX_UNINDEXED_EVENTS:
            with suppress(StoreError), self._writing() as connection:  # the next commit tries again
                self._user_decisions_end = user_decisions.extend(connection)

    def write_settings(self, values: dict[str, Any]) -> None:
        """Write these settings. All other settings keep their values."""
        with self._writing() as connection:
            _set(connection, values)

    def redact(self, redaction: Redaction) -> None:
        """Replace a text in the stored responses of a range of events."""
        with self._writing() as connection:
            _redact(connection, redaction)

    def erase(self, user_index: int, settings: dict[str, Any], redaction: Redaction | None = None) -> int:
        """Erase a user's name, decisions and observations in one transaction.

        Parameters
        ----------
        user_index : int
            Index of the user to erase.
        settings : dict
            Settings to write in the same transaction.
        redaction : Redaction or None, default None
            Replacement that removes the user's name from responses to other users.

        Returns
        -------
        int
            Number of erased decisions.
        """
        with self._writing() as connection:
            if redaction is not None:
                _redact(connection, redaction)
            connection.execute(delete(tables.observations).where(tables.observations.c.user_index == user_index))
            count = user_decisions.erase(connection, user_index)
            connection.execute(update(tables.users).where(tables.users.c.user_index == user_index).values(id=None))
            _set(connection, settings)
        if self._sqlite:  # the WAL file must not keep the erased data
            self.wal_checkpoint(True)
        return count

    def last_seq(self) -> int:
        """Return the sequence number of the last event, or 0 if the log is empty."""
        with self._writing() as connection:  # on the writer's connection, which is opened again if it was lost
            found = [
                connection.execute(select(func.max(table.c.seq))).scalar()
                for table in (tables.users, tables.decisions, tables.observations)
            ]
            setting = _read_setting(connection, "seq")
        return max(0, int(setting or 0), *(int(seq) for seq in found if seq is not None))

    # The write-ahead log of SQLite

    def wal_checkpoint(self, truncate: bool = False) -> None:
        """Move the content of SQLite's WAL file into the database file.

        With ``truncate``, also empty the WAL file; writers wait in the meantime. With PostgreSQL, do nothing.
        """
        if not self._sqlite:
            return
        with self._reading() as connection:
            if truncate:  # an active reader can prevent the truncation; ``wal_pending`` then stays true
                connection.exec_driver_sql(f"PRAGMA busy_timeout={CHECKPOINT_TIMEOUT_MS}")
                try:
                    blocked = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
                    self._erased_in_wal = bool(blocked)
                finally:
                    connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_TIMEOUT * 1000}")
            else:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    @property
    def wal_pending(self) -> bool:
        """Whether the WAL file must be truncated, because it may contain erased data or is too large."""
        file = Path(f"{self._url.database}-wal")
        return self._sqlite and (self._erased_in_wal or (file.exists() and file.stat().st_size > MAX_WAL_BYTES))

    # The writer's connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Open a transaction on the writer's connection."""
        with self._translating_errors():
            connection = self._locked_writer()
            with connection.begin():
                yield connection

    def _locked_writer(self) -> Connection:
        """Return the writer's connection. A lost connection is opened and locked again."""
        connection = self._writer
        if connection is None:
            self._writer = connection = self._engine.connect()
            lock_database(connection)
        return connection

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Convert errors of the database to ``StoreError`` or ``DuplicateDecisionError``.

        After a ``StoreError``, the writer's connection is dropped with its open transaction.
        """
        try:
            with self._operation():
                try:
                    yield
                finally:
                    if self._closed:  # ``close`` did not wait for this write, so it may have missed the connection
                        self._drop_writer()
        except AlreadyOpenError:
            self._drop_writer()
            raise
        except self._integrity_errors as error:
            raise DuplicateDecisionError(summarize_error(error)) from error
        except self._database_errors as error:
            self._drop_writer()
            self._engine.dispose()  # the other connections in the pool are probably lost, too
            raise StoreError(summarize_error(error)) from error

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                if self._sqlite:  # a closed connection keeps its locks while an exception refers to a cursor
                    self._row_writer.roll_back(writer.connection.driver_connection)
                writer.invalidate()
                writer.close()
            except self._database_errors as error:
                _log.debug("cannot close a lost connection: %s", error)


def _check_format(connection: Connection) -> None:
    """Raise ``StoreFormatError`` unless the store is new or has the supported format."""
    if not inspect(connection).has_table(tables.settings.name):
        return
    found = _read_setting(connection, "format")
    if found is None or found == tables.FORMAT:
        return
    advice = (
        "install the version of locb that wrote it"
        if found > tables.FORMAT
        else "keep the version of locb that wrote it, or start a new store with another --data-dir or --store"
    )
    raise StoreFormatError(
        f"the store has format {found}, but this version of locb supports only format {tables.FORMAT}: {advice}"
    )


def _redact(connection: Connection, redaction: Redaction) -> None:
    values = redaction._asdict() | {"sought": redaction.old.encode()}
    connection.execute(text(_REDACT[connection.dialect.name]), values)


def _read_setting(connection: Connection, name: str) -> Any:
    value = connection.execute(select(tables.settings.c.value).where(tables.settings.c.name == name)).scalar()
    return None if value is None else json.loads(value)


def _set(connection: Connection, values: dict[str, Any]) -> None:
    for name, value in values.items():
        connection.execute(delete(tables.settings).where(tables.settings.c.name == name))
        connection.execute(insert(tables.settings).values(name=name, value=json.dumps(value)))

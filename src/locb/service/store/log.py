"""Event log: the durable record of users, decisions and observations, with a single writer."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from locb.recommender.events import Records
from locb.service.store import fencing, locks, sqlite, user_decisions
from locb.service.store import schema as tables
from locb.service.store.chain import Chain, Damage, PositionFile, drop_payloads
from locb.service.store.database import (
    DuplicateDecisionError,
    FencedError,
    StoreError,
    close_pool,
    connect,
    database_url,
    describe_url,
    make_row_writer,
    summarize_error,
)
from locb.service.store.reader import LogReader
from locb.service.store.schema import Head

MAX_UNINDEXED_EVENTS = 2_000  # events that the table of user decisions may lack; queries by user scan these events
CLOSE_TIMEOUT = 5.0  # seconds that ``close`` waits for running reads and writes
_log = logging.getLogger("locb.service")


class EventLog(LogReader):
    """Event log of one service.

    Call methods that write from one thread at a time. Queries can be called from any thread.

    Parameters
    ----------
    folder : Path
        The data folder. It is locked until the log is closed.
    url : str or None, default None
        Address of a SQLite or PostgreSQL database; None means the SQLite file ``log.db`` in the folder.
    on_fenced : callable, optional
        Called with the reason, in another thread, if another process has taken over the log while this log is idle.

    Raises
    ------
    AlreadyOpenError
        If another process uses the folder or the database.
    StoreFormatError
        If the tables have a format that is not supported.
    StoreError
        If the database cannot be opened.
    """

    def __init__(self, folder: Path, url: str | None = None, on_fenced: Callable[[str], None] | None = None) -> None:
        self.failures: Counter[str] = Counter()  # failures of background threads, by task
        self._operations, self._operations_changed = 0, Condition()  # number of running reads and writes
        self._closed = self._claimed = False  # claimed: this process may write
        self._url = database_url(folder, url)
        self._sqlite = self._url.get_backend_name() == "sqlite"
        self._locks = [locks.lock_folder(folder)]
        self._chain: Chain
        self._lease: locks.Heartbeat | None = None
        self._position: PositionFile | None = None
        self._folder, self._on_fenced, self._engine = folder, on_fenced, connect(self._url)
        self._writer: Connection | None = None
        self._last_decision = self._user_decisions_end = 0
        self._erased_in_wal = False  # whether the WAL file may still contain erased data
        self._row_writer, dbapi = make_row_writer(self._engine), self._engine.dialect.loaded_dbapi
        self._integrity_errors = IntegrityError, dbapi.IntegrityError
        self._database_errors = SQLAlchemyError, dbapi.Error
        try:
            if self._sqlite and (lock := locks.lock_sqlite(self._url)) is not None:
                self._locks.append(lock)
            with self._translating_errors(), self._locked_writer().begin() as transaction:
                self._claim(transaction.connection)
            if not self._sqlite:
                self._lease = locks.Heartbeat(self._engine, self._chain.head.epoch, self._lose, self.failures)
            self._erased_in_wal = self._sqlite  # a killed process may have left erased data in the WAL file
            with suppress(StoreError):  # for example on a full disk
                self.wal_checkpoint(True)
        except BaseException as error:
            self.close()
            if isinstance(error, StoreError):
                raise StoreError(f"cannot open {describe_url(self._url, url)}: {error}") from error
            raise

    def close(self) -> None:
        """Wait for running reads and writes, then close and unlock the database. Later reads and writes are refused."""
        with self._operations_changed:
            self._closed = True
            self._operations_changed.wait_for(lambda: self._operations == 0, CLOSE_TIMEOUT)
        if self._lease is not None:
            self._lease.stop()
        if self._writer is not None and not self._operations:
            locks.unlock_database(self._writer)
        self._drop_writer()
        close_pool(self._engine)
        if self._position is not None:
            self._position.close()
        for lock in self._locks:
            lock.close()

    def track_position(self, store_id: str) -> Damage | None:
        """Compare the end of the log with the position file of the data folder, which each commit updates from now on.

        Return the damage if events are missing. The file is not updated in this case.
        """
        self._position = PositionFile(self._folder / "position", store_id)
        with self._reading() as connection:
            damage = self._position.check(connection, self._chain.head)
        if damage is not None:
            self._position.close()
        return damage

    # Writing

    def commit(self, records: Records) -> None:
        """Write rows in one transaction and make them durable.

        Raises
        ------
        DuplicateDecisionError
            If the log already has a decision with one of the ids.
        FencedError
            If another process has taken over the log, or has written to it.
        StoreError
            If the store is unavailable. The rows may have been written; ``last_seq`` shows whether they were.
        """
        self.stage(records)
        self.commit_staged()

    def try_begin(self) -> bool:
        """Start a transaction without waiting, and return whether ``stage`` can now be called from the event loop."""
        return self._writer is not None and self._row_writer.try_begin(self._writer.connection.driver_connection)

    def stage(self, records: Records) -> None:
        """Write rows without making them durable; ``commit_staged`` must follow."""
        with self._translating_errors():
            connection = self._locked_writer().connection.driver_connection
            writes = self._chain.link(records)
            try:
                if not self._row_writer.write(connection, writes):
                    self._row_writer.roll_back(connection)
                    raise fencing.explain_refusal(self._locked_writer(), writes.before, records)
            except self._integrity_errors:
                self._row_writer.roll_back(connection)
                raise
        self._staged = writes.after
        if records.decisions:
            self._last_decision = records.decisions[-1].seq

    def commit_staged(self, extend: bool = True) -> None:
        """Make the staged rows durable. Without ``extend``, a later commit extends the table of user decisions."""
        with self._translating_errors():
            if self._writer is None:
                raise StoreError("the connection to the database was lost before the commit")
            self._row_writer.commit(self._writer.connection.driver_connection)
            self._set_head(self._staged)
        if extend and self._last_decision - self._user_decisions_end >= MAX_UNINDEXED_EVENTS:
            with suppress(StoreError), self._writing() as connection:  # the next commit tries again
                self._user_decisions_end = user_decisions.extend(connection)

    def write_settings(self, values: dict[str, Any], base_policy: bytes = b"") -> None:
        """Write these settings, and the file of a saved policy. All other settings keep their values."""
        with self._writing() as connection:
            tables.write_settings(connection, values)
            tables.write_base_policy(connection, base_policy)

    def clear(self) -> None:
        """Delete all events and settings, which an unfinished import has left."""
        with self._writing() as connection:
            head = fencing.clear(connection, self._chain.head)
        self._chain, self._last_decision, self._user_decisions_end = Chain(head, {}), 0, 0

    def record_rebuild(self, complete: bool = True) -> None:
        """Append the event that the policy was rebuilt. ``complete``: whether no erased user influences the policy."""
        with self._writing() as connection:
            commit, head = self._chain.link_rebuild()
            fencing.advance(connection, [commit], head)
            if complete:
                tables.write_settings(connection, {"rebuilt_at": head.last_seq})
        self._set_head(head)

    def drop_payloads(self, before: float, limit: int, keep_unrewarded: bool) -> int:
        """Replace the payloads of the oldest decisions by their digests, as ``chain.drop_payloads`` does."""
        with self._writing() as connection:
            return drop_payloads(connection, before, limit, keep_unrewarded)

    def erase(self, indices: Sequence[int]) -> list[int]:
        """Erase the names, decisions and observations of users in one transaction. Each erasure is one event.

        The setting ``rebuilt_at`` is null until ``record_rebuild`` records a complete rebuild.

        Parameters
        ----------
        indices : sequence of int
            Different indices of the users to erase.

        Returns
        -------
        list of int
            Number of erased decisions of each user.
        """
        with self._writing() as connection:
            counts, erased = user_decisions.erase(connection, indices, self._chain.head.last_seq + 1)
            commits, head = self._chain.link_erasures(erased)
            tables.write_settings(connection, {"rebuilt_at": None})
            fencing.advance(connection, commits, head)
        self._set_head(head)
        if self._sqlite:  # the WAL file must not keep the erased data
            self.wal_checkpoint(True)
        return counts

    def last_seq(self) -> int:
        """Return the sequence number of the last event, or 0 if the log is empty.

        After a commit with an unknown outcome, this method must be called before the next commit.

        Raises
        ------
        FencedError
            If another process has taken over the log.
        """
        with self._translating_errors():
            # The writer's connection is opened again if it was lost.
            found = fencing.check_epoch(self._locked_writer(), self._chain.head)
        self._set_head(found)
        return found.last_seq

    # The write-ahead log of SQLite

    def wal_checkpoint(self, truncate: bool = False) -> None:
        """Move the content of SQLite's WAL file into the database file.

        With ``truncate``, also empty the WAL file; writers wait in the meantime. With PostgreSQL, do nothing.
        """
        if not self._sqlite:
            return
        with self._reading() as connection:
            if truncate:  # an active reader can prevent the truncation; ``wal_pending`` then stays true
                self._erased_in_wal = not sqlite.truncate_wal(connection)
            else:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    @property
    def wal_pending(self) -> bool:
        """Whether the WAL file must be truncated, because it may contain erased data or is too large."""
        return self._sqlite and (self._erased_in_wal or sqlite.is_wal_large(str(self._url.database)))

    # Connections

    def _claim(self, connection: Connection) -> None:
        """Create the tables if needed, and become the only process that can write."""
        tables.check_format(connection)
        tables.metadata.create_all(connection)
        head = fencing.claim(connection)
        self._chain, self._claimed = Chain.load(connection, head), True
        self._staged = head
        self._user_decisions_end = user_decisions.extend(connection)

    def _set_head(self, head: Head) -> None:
        """Continue after this end of the log, which is durable."""
        self._chain.head = head
        if self._position is not None:
            self._position.write(head)

    def _lose(self, epoch: int) -> None:
        if self._on_fenced is not None:
            self._on_fenced(str(fencing.describe_difference(self._chain.head, self._chain.head._replace(epoch=epoch))))

    @contextmanager
    def _operation(self) -> Iterator[None]:
        """Count a read or write while it is running; raise ``StoreError`` if the log is closed."""
        with self._operations_changed:
            if self._closed:
                raise StoreError("the event log is closed: open it again to read or write")
            self._operations += 1
        try:
            yield
        finally:
            with self._operations_changed:
                self._operations -= 1
                self._operations_changed.notify_all()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._operation(), super()._reading() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Open a transaction on the writer's connection, and check the end of the log."""
        with self._translating_errors():
            connection = self._locked_writer()
            with connection.begin():
                fencing.check(connection, self._chain.head)
                yield connection

    def _locked_writer(self) -> Connection:
        """Return the writer's connection. A lost connection is opened and locked again."""
        connection = self._writer
        if connection is None:
            self._writer = connection = self._engine.connect()
            if self._claimed:  # another process may have taken over, even if its lock is released again
                fencing.check_epoch(connection, self._chain.head)
            locks.lock_database(connection)
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
        except (locks.AlreadyOpenError, FencedError):
            self._drop_writer()
            raise
        except self._integrity_errors as error:
            raise DuplicateDecisionError(summarize_error(error)) from error
        except self._database_errors as error:
            self._drop_writer()
            close_pool(self._engine)  # the other connections in the pool are probably lost, too
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

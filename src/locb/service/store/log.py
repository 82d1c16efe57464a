"""The log in a database: one writer, everything on disk before it is answered."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from locb.service.store import schema as tables
from locb.service.store import user_decisions as decided
from locb.service.store.database import (
    BUSY_SECONDS,
    NameTakenError,
    StoreError,
    connect,
    database_url,
    driver,
    reason,
    writer_for,
)
from locb.service.store.locks import AlreadyOpenError, claim_database, claim_folder
from locb.service.store.reader import Reader
from locb.service.store.rows import Records

LARGEST_WAL = 1 << 26  # bytes
BEHIND = 2_000  # events: as many decisions, at most, are looked through to find a user's own
READ_SECONDS = 5.0  # that a log which is closed waits for those who read from it
TIDY_MILLISECONDS = 100  # that writers wait, at most, for readers who keep SQLite's log file from being emptied
_log = logging.getLogger("locb.service")
_REWORD = {
    "sqlite": "UPDATE locb_decisions SET answer = CAST(replace(CAST(answer AS TEXT), :old, :new) AS BLOB)"
    " WHERE seq > :after AND seq <= :until AND instr(answer, :sought) > 0",
    "postgresql": "UPDATE locb_decisions SET answer ="
    " convert_to(replace(convert_from(answer, 'UTF8'), CAST(:old AS TEXT), CAST(:new AS TEXT)), 'UTF8')"
    " WHERE seq > :after AND seq <= :until AND position(CAST(:sought AS BYTEA) IN answer) > 0",
}


class Redaction(NamedTuple):
    """What answers say, what they are to say instead, and where: after a place in the log up to another."""

    old: str
    new: str
    after: int
    until: int


class Log(Reader):
    """The log of one service. Its methods are called from one thread at a time, but for those that only read.

    Parameters
    ----------
    folder : Path
        The data folder; the database is a file in it unless ``url`` names another.
    url : str
        A database as SQLAlchemy names them: sqlite or postgresql.
    """

    def __init__(self, folder: Path, url: str | None = None) -> None:
        super().__init__()
        self._url = database_url(folder, url)
        self._folder_claim = claim_folder(folder)
        self._sqlite = self._url.get_backend_name() == "sqlite"
        self._engine = connect(self._url)
        self._writer: Connection | None = None
        self._last_decision = 0
        self._owed = False  # SQLite's log file may still hold what was erased
        self._rows = writer_for(self._engine)
        database = self._engine.dialect.loaded_dbapi
        self._taken = IntegrityError, database.IntegrityError
        self._failed = SQLAlchemyError, database.Error
        try:
            with self._writing() as connection:
                tables.metadata.create_all(connection)
                self._decided = decided.bring_up(connection)
            self._owed = self._sqlite  # a process that was killed may have left there what was erased
            with suppress(StoreError):  # a disk that is full
                self.wal_checkpoint(True)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the database and of the folder, once nobody reads any more."""
        self._wait_for_readers(READ_SECONDS)
        self._drop_writer()
        self._engine.dispose()
        self._folder_claim.close()

    @property
    def kind(self) -> str:
        """What keeps it: sqlite or postgresql."""
        return self._url.get_backend_name()

    def size(self) -> int | None:
        """Bytes that it takes; None where that is not known."""
        if self._sqlite:
            files = [Path(f"{self._url.database}{more}") for more in ("", "-wal")]
            return sum(file.stat().st_size for file in files if file.exists())
        with self._reading() as connection:
            sizes = [func.pg_total_relation_size(table.name) for table in tables.metadata.sorted_tables]
            return sum(int(size) for size in connection.execute(select(*sizes)).one())

    def commit(self, records: Records) -> None:
        """Bring these to disk, all or none.

        Raises
        ------
        NameTakenError
            If a decision's name is in the log already.
        StoreError
            If the store cannot take them now. Whether it did can be told by ``last_seq`` once it answers again.
        """
        self.stage(records)
        self.finish()

    @property
    def stages_at_once(self) -> bool:
        """Whether ``stage`` takes so little that no other thread need do it."""
        return self._rows.at_once

    def stage(self, records: Records) -> None:
        """Write these, but not yet to disk: ``finish`` must follow."""
        with self._guarded():
            connection = driver(self._claimed())
            try:
                self._rows.write(connection, records)
            except self._taken:
                self._rows.roll_back(connection)
                raise
        if records.decisions:
            self._last_decision = records.decisions[-1].seq

    def finish(self) -> None:
        """Bring what was staged to disk."""
        if self._writer is None:
            raise StoreError("what was staged was lost with its connection")
        with self._guarded():
            self._rows.commit(driver(self._writer))
        if self._last_decision - self._decided >= BEHIND:
            with suppress(StoreError), self._writing() as connection:  # if not now, then after the next
                self._decided = decided.bring_up(connection)

    def write_settings(self, values: dict[str, Any]) -> None:
        """Keep these settings; others stay as they are."""
        with self._writing() as connection:
            _set(connection, values)

    def redact(self, words: Redaction) -> None:
        """Have stored answers say something else."""
        with self._writing() as connection:
            _redact(connection, words)

    def erase(self, place: int, values: dict[str, Any], words: Redaction | None = None) -> int:
        """Erase a user's name, decisions and lessons for good, and keep these settings; the number of decisions.

        ``words``, if given, are those in which answers to others tell of the user.
        """
        with self._writing() as connection:
            if words is not None:
                _redact(connection, words)
            connection.execute(delete(tables.observations).where(tables.observations.c.place == place))
            count = decided.erase(connection, place)
            connection.execute(update(tables.users).where(tables.users.c.place == place).values(id=None))
            _set(connection, values)
        if self._sqlite:  # what was erased must not live on in the file beside the database
            self.wal_checkpoint(True)
        return count

    def wal_checkpoint(self, truncate: bool = False) -> None:
        """Move what is in SQLite's log file into its database; without ``truncate`` no writer waits for it."""
        if not self._sqlite:
            return
        with self._reading() as connection:
            if truncate:  # who reads now may go on reading: then it is done later
                connection.exec_driver_sql(f"PRAGMA busy_timeout={TIDY_MILLISECONDS}")
                try:
                    self._owed = bool(connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar())
                finally:
                    connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
            else:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    @property
    def wal_pending(self) -> bool:
        """Whether SQLite's log file holds what was erased, or has grown so much that writers should wait for it."""
        file = Path(f"{self._url.database}-wal")
        return self._sqlite and (self._owed or (file.exists() and file.stat().st_size > LARGEST_WAL))

    def last_seq(self) -> int:
        """The place of the last event in the log; 0 if there is none."""
        with self._writing() as connection:  # the writer's own connection: a lost one is replaced here
            found = [
                connection.execute(select(func.max(table.c.seq))).scalar()
                for table in (tables.users, tables.decisions, tables.observations)
            ]
            turned = connection.execute(select(tables.settings.c.value).where(tables.settings.c.name == "seq")).scalar()
        return max(0, int(json.loads(turned)) if turned else 0, *(int(seq) for seq in found if seq is not None))

    # The writer's connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """The writer's connection in a transaction."""
        with self._guarded():
            connection = self._claimed()
            with connection.begin():
                yield connection

    def _claimed(self) -> Connection:
        """The writer's connection; opened anew if it was lost, and claimed again."""
        if self._writer is None:
            self._writer = self._engine.connect()
            claim_database(self._writer)
        return self._writer

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Nothing half-written stays behind a failure, which is told in our own terms."""
        try:
            yield
        except AlreadyOpenError:
            self._drop_writer()
            raise
        except self._taken as error:
            raise NameTakenError(reason(error)) from error
        except self._failed as error:
            self._drop_writer()
            self._engine.dispose()  # if this connection is lost, so are those that wait for readers
            raise StoreError(reason(error)) from error

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.invalidate()
                writer.close()
            except SQLAlchemyError as error:
                _log.debug("a lost connection did not close: %s", error)


def _redact(connection: Connection, words: Redaction) -> None:
    change = words._asdict() | {"sought": words.old.encode()}
    connection.execute(text(_REWORD[connection.dialect.name]), change)


def _set(connection: Connection, values: dict[str, Any]) -> None:
    for name, value in values.items():
        connection.execute(delete(tables.settings).where(tables.settings.c.name == name))
        connection.execute(insert(tables.settings).values(name=name, value=json.dumps(value)))

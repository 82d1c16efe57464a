"""The log in a database: one writer, everything on disk before it is answered."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    RootTransaction,
    create_engine,
    delete,
    event,
    func,
    insert,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from locb.service.store import tables
from locb.service.store.locks import AlreadyOpenError, claim_database, claim_folder

CHUNK = 20_000  # rows read at a time
LARGEST_WAL = 1 << 26  # bytes
BUSY_SECONDS = 5  # that a connection to SQLite waits for another
TIDY_MILLISECONDS = 100  # that writers wait, at most, for readers who keep SQLite's log file from being emptied
_log = logging.getLogger("locb.service")


class StoreError(Exception):
    """The store cannot be reached or written now; it may be again later."""


class NameTakenError(Exception):
    """A decision of that name is in the log already."""


class DecisionRow(NamedTuple):
    """A decision as it is written."""

    seq: int
    id: bytes
    place: int
    time: float
    active_at: float | None
    chosen: int
    context: bytes
    request: bytes
    answer: bytes


class LessonRow(NamedTuple):
    """A lesson as it is written."""

    seq: int
    decision: int
    place: int
    kind: int
    learned: float
    reward: float
    time: float
    context: bytes


class FoundDecision(NamedTuple):
    """A decision with what it earned so far: the kind and reward of its last lesson, if there was one."""

    decision: DecisionRow
    kind: int | None
    reward: float | None


@dataclass(slots=True)
class Records:
    """What is committed at once."""

    users: list[tuple[int, int, bytes | None]] = field(default_factory=list)  # place, seq, id
    decisions: list[DecisionRow] = field(default_factory=list)
    lessons: list[LessonRow] = field(default_factory=list)
    activations: list[tuple[float, int]] = field(default_factory=list)  # when, seq of the decision

    def __bool__(self) -> bool:
        return bool(self.users or self.decisions or self.lessons or self.activations)


class Log:
    """The log of one service. Its methods are called from one thread at a time, but for those that only read.

    Parameters
    ----------
    folder : Path
        The data folder; the database is a file in it unless ``url`` names another.
    url : str
        A database as SQLAlchemy names them: sqlite or postgresql.
    """

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self._url = database_url(folder, url)
        self._folder_claim = claim_folder(folder)
        self._sqlite = self._url.get_backend_name() == "sqlite"
        # A file is written to at once, and a thread that hands every row over to another would wait longer for its turn
        # than that takes; only to bring it to disk is slow. A server takes its time for all.
        self.stages_at_once = self._sqlite
        self._engine = _engine(self._url)
        self._writer: Connection | None = None
        self._staged: RootTransaction | None = None
        self._owed = False  # SQLite's log file may still hold what was erased
        compiled = {
            table: insert(table).compile(dialect=self._engine.dialect) for table in tables.metadata.sorted_tables
        }
        self._insert = {table.name: str(statement) for table, statement in compiled.items()}
        self._insert["locb_users"] += " ON CONFLICT (place) DO UPDATE SET id = excluded.id"
        self._activate = str(
            text("UPDATE locb_decisions SET active_at = :active_at WHERE seq = :seq").compile(
                dialect=self._engine.dialect
            )
        )
        try:
            with self._writing() as connection:
                tables.metadata.create_all(connection)
            self._owed = self._sqlite  # a process that was killed may have left there what was erased
            with suppress(StoreError):  # a disk that is full
                self.tidy(True)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the database and of the folder."""
        self._drop_writer()
        self._engine.dispose()
        self._folder_claim.close()

    # Writing

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

    def stage(self, records: Records) -> None:
        """Write these, but not yet to disk: ``finish`` must follow."""
        with self._guarded():
            connection = self._claimed()
            self._staged = connection.begin()
            self._write_rows(connection, tables.users.name, records.users)
            self._write_rows(connection, tables.decisions.name, records.decisions)
            self._write_rows(connection, tables.lessons.name, records.lessons)
            if records.activations:
                connection.exec_driver_sql(self._activate, records.activations)

    def finish(self) -> None:
        """Bring what was staged to disk."""
        with self._guarded():
            staged, self._staged = self._staged, None
            if staged is not None:
                staged.commit()

    def write_settings(self, values: dict[str, Any]) -> None:
        """Keep these settings; others stay as they are."""
        with self._writing() as connection:
            _set(connection, values)

    def erase(self, place: int, values: dict[str, Any]) -> int:
        """Erase a user's name, decisions and lessons for good, and keep these settings; the number of decisions."""
        with self._writing() as connection:
            connection.execute(delete(tables.lessons).where(tables.lessons.c.place == place))
            count = connection.execute(delete(tables.decisions).where(tables.decisions.c.place == place)).rowcount
            connection.execute(update(tables.users).where(tables.users.c.place == place).values(id=None))
            _set(connection, values)
        if self._sqlite:  # what was erased must not live on in the file beside the database
            self.tidy(True)
        return int(count)

    def tidy(self, truncate: bool = False) -> None:
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
    def untidy(self) -> bool:
        """Whether SQLite's log file holds what was erased, or has grown so much that writers should wait for it."""
        file = Path(f"{self._url.database}-wal")
        return self._sqlite and (self._owed or (file.exists() and file.stat().st_size > LARGEST_WAL))

    # Reading

    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        with self._reading() as connection:
            return {name: json.loads(value) for name, value in connection.execute(select(tables.settings))}

    def last_seq(self) -> int:
        """The place of the last event in the log; 0 if there is none."""
        with self._writing() as connection:  # the writer's own connection: a lost one is replaced here
            found = [
                connection.execute(select(func.max(table.c.seq))).scalar()
                for table in (tables.users, tables.decisions, tables.lessons)
            ]
            turned = connection.execute(select(tables.settings.c.value).where(tables.settings.c.name == "seq")).scalar()
        return max(0, int(json.loads(turned)) if turned else 0, *(int(seq) for seq in found if seq is not None))

    def find(self, names: Sequence[bytes]) -> list[FoundDecision]:
        """The decisions of these names that are in the log."""
        found: list[FoundDecision] = []
        with self._reading() as connection:
            for start in range(0, len(names), 500):  # SQLite bounds how many values a statement takes
                wanted = tables.decisions.c.id.in_(names[start : start + 500])
                rows = [DecisionRow(*row) for row in connection.execute(select(tables.decisions).where(wanted))]
                last = tables.lessons
                chosen = select(last.c.decision, last.c.kind, last.c.reward).order_by(last.c.seq)
                lessons = {
                    decision: (kind, reward)
                    for decision, kind, reward in connection.execute(
                        chosen.where(last.c.decision.in_([row.seq for row in rows]))
                    )
                }
                found += [FoundDecision(row, *lessons.get(row.seq, (None, None))) for row in rows]
        return found

    def users(self) -> list[tuple[int, int, bytes | None]]:
        """Place, seq and name of every place."""
        with self._reading() as connection:
            chosen = select(tables.users.c.place, tables.users.c.seq, tables.users.c.id).order_by(tables.users.c.place)
            return [(place, seq, name) for place, seq, name in connection.execute(chosen)]

    def lessons(self, after: int, until: int | None = None) -> Iterator[list[Any]]:
        """Chunks of (seq, place, kind, learned, reward, context) in the order of the log."""
        table = tables.lessons
        chosen = select(table.c.seq, table.c.place, table.c.kind, table.c.learned, table.c.reward, table.c.context)
        return self._chunks(chosen, table.c.seq, after, until)

    def decisions(self, after: int = 0, until: int | None = None) -> Iterator[list[Any]]:
        """Chunks of decisions in the order of the log, each as a ``DecisionRow``."""
        return self._chunks(select(tables.decisions), tables.decisions.c.seq, after, until)

    def decisions_of(self, place: int, limit: int) -> list[FoundDecision]:
        """The last decisions for one user, the newest first."""
        table = tables.decisions
        with self._reading() as connection:
            newest = select(table.c.id).where(table.c.place == place).order_by(table.c.seq.desc()).limit(limit)
            names = [name for (name,) in connection.execute(newest)]
        return sorted(self.find(names), key=lambda found: -found.decision.seq)

    def unrewarded(self) -> Iterator[list[Any]]:
        """Chunks of (seq, id, place, active_at, context) of active decisions from which nothing was learned yet."""
        table, lessons = tables.decisions, tables.lessons
        chosen = (
            select(table.c.seq, table.c.id, table.c.place, table.c.active_at, table.c.context)
            .outerjoin(lessons, lessons.c.decision == table.c.seq)
            .where(lessons.c.seq.is_(None), table.c.active_at.is_not(None))
        )
        return self._chunks(chosen, table.c.seq, 0, None)

    def records(self) -> Iterator[list[Any]]:
        """Chunks of decisions, each once, with user, request, answer, the default and the reward learned from them."""
        table, people = tables.decisions, tables.users
        default, real = tables.lessons.alias(), tables.lessons.alias()
        chosen = (
            select(
                table.c.seq, table.c.id, people.c.id.label("user"), table.c.time, table.c.context, table.c.request,
                table.c.answer, default.c.reward.label("default"), default.c.time.label("default_time"),
                real.c.reward.label("reward"), real.c.time.label("reward_time"),
            )
            .join(people, people.c.place == table.c.place)
            .outerjoin(default, (default.c.decision == table.c.seq) & (default.c.kind == tables.DEFAULT))
            .outerjoin(real, (real.c.decision == table.c.seq) & (real.c.kind != tables.DEFAULT))
        )  # fmt: skip
        return self._chunks(chosen, table.c.seq, 0, None)

    # Connections

    def _chunks(self, chosen: Any, seq: Any, after: int, until: int | None) -> Iterator[list[Any]]:
        chosen = chosen.where(seq > after).order_by(seq)
        if until is not None:
            chosen = chosen.where(seq <= until)
        with self._reading() as connection:
            result = connection.execution_options(yield_per=CHUNK).execute(chosen)
            for rows in result.partitions():
                yield list(rows)

    def _write_rows(self, connection: Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            connection.exec_driver_sql(self._insert[table], [tuple(row) for row in rows])

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A connection of one's own."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(reason(error)) from error

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
        except IntegrityError as error:
            staged, self._staged = self._staged, None
            if staged is not None:
                staged.rollback()
            raise NameTakenError(reason(error)) from error
        except AlreadyOpenError:
            self._drop_writer()
            raise
        except SQLAlchemyError as error:
            self._drop_writer()
            raise StoreError(reason(error)) from error

    def _drop_writer(self) -> None:
        writer, self._writer, self._staged = self._writer, None, None
        if writer is not None:
            try:
                writer.invalidate()
                writer.close()
            except SQLAlchemyError as error:
                _log.debug("a lost connection did not close: %s", error)


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


def _engine(url: URL) -> Engine:
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


def _set(connection: Connection, values: dict[str, Any]) -> None:
    for name, value in values.items():
        connection.execute(delete(tables.settings).where(tables.settings.c.name == name))
        connection.execute(insert(tables.settings).values(name=name, value=json.dumps(value)))


def reason(error: SQLAlchemyError) -> str:
    """The database's own words, in one line, without the statement and its values."""
    words = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(words.split())[:300]

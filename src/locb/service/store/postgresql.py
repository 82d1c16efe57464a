"""PostgreSQL: connection settings with their timeouts, and a fast writer of rows."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format
from sqlalchemy import BigInteger, Double, Integer, LargeBinary, SmallInteger, Table

from locb.service.store import schema as tables

if TYPE_CHECKING:
    from locb.service.store.database import Writes

LOCK_TIMEOUT = 3.0  # seconds that a statement waits for a lock
STATEMENT_TIMEOUT = 60.0  # seconds per statement
# Seconds after which a lost peer is noticed: the client notices a lost server, and the server a lost client.
KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_COUNT = 5, 2, 3
CONNECTION_SETTINGS = {
    "connect_timeout": 5,  # seconds
    "keepalives_idle": KEEPALIVE_IDLE,
    "keepalives_interval": KEEPALIVE_INTERVAL,
    "keepalives_count": KEEPALIVE_COUNT,
}
# SQL name of the array type, OID of the element type, and binary format of an element with its length prefix.
_ARRAY_TYPES: dict[type, tuple[str, int, Struct | None]] = {
    BigInteger: ("bigint[]", 20, Struct("!iq")),
    Integer: ("integer[]", 23, Struct("!ii")),
    SmallInteger: ("smallint[]", 21, Struct("!ih")),
    Double: ("float8[]", 701, Struct("!id")),
    LargeBinary: ("bytea[]", 17, None),
}
_ARRAY_HEADER = Struct("!iiIii")  # dimensions, has nulls, OID of the element type, length, lower bound
# The row lock of this update makes a process that takes over wait for the end of the transaction.
_ADVANCE = (
    "UPDATE locb_head SET last_seq = %s::bigint, hash = %s::bytea"
    " WHERE epoch = %s::bigint AND last_seq = %s::bigint RETURNING 1"
)
_LENGTH = Struct("!i")
_NULL = _LENGTH.pack(-1)


def configure(connection: Any, _: Any) -> None:
    """Limit the time of statements, and let the server end this connection soon after this machine is lost."""
    connection.execute(
        f"SET lock_timeout = {round(1000 * LOCK_TIMEOUT)}; SET statement_timeout = {round(1000 * STATEMENT_TIMEOUT)};"
        f" SET tcp_keepalives_idle = {KEEPALIVE_IDLE}; SET tcp_keepalives_interval = {KEEPALIVE_INTERVAL};"
        f" SET tcp_keepalives_count = {KEEPALIVE_COUNT}"
    )
    connection.commit()


def set_read_only(connection: Any, _: Any) -> None:
    """Let a new driver connection only read."""
    connection.execute("SET default_transaction_read_only = on")
    connection.commit()


class _BinaryArray:
    """Column of values in PostgreSQL's binary array format."""

    __slots__ = ("packed",)

    def __init__(self, values: Sequence[Any], element_type: type) -> None:
        _, oid, element = _ARRAY_TYPES[element_type]
        parts = [_ARRAY_HEADER.pack(1, None in values, oid, len(values), 1)]
        if element is None:
            for value in values:
                parts += (_LENGTH.pack(len(value)), value)
        else:
            pack, size = element.pack, element.size - _LENGTH.size
            parts += [_NULL if value is None else pack(size, value) for value in values]
        self.packed = b"".join(parts)


class _BinaryArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: _BinaryArray) -> bytes:
        return obj.packed


class PostgresqlWriter:
    """Row writer for PostgreSQL. It inserts all decisions and observations of a batch with one statement.

    The same statement checks the end of the log: it inserts nothing if another process has written or taken over.

    Parameters
    ----------
    assign_user, activate : str
        SQL statements that write a user, and the activation time of a decision.
    """

    def __init__(self, assign_user: str, activate: str) -> None:
        self._assign_user, self._activate = assign_user, activate
        inserts = [
            f"{table.name}_rows AS ({_insert_statement(table)})"
            for table in (tables.commits, tables.decisions, tables.observations)
        ]
        self._insert = f"WITH head AS ({_ADVANCE}), {', '.join(inserts)} SELECT count(*) FROM head"  # noqa: S608 - no input

    def try_begin(self, connection: Connection[Any]) -> bool:  # noqa: ARG002 - as for other databases
        """Return False: each statement waits for the server."""
        return False

    def write(self, connection: Connection[Any], writes: Writes) -> bool:
        """Write rows over a driver connection; the rows are durable after ``commit`` at the latest."""
        before, after = writes.before, writes.after
        # A single statement is a transaction by itself, which saves the round trips for BEGIN and COMMIT.
        connection.autocommit = not (writes.users or writes.activations)
        parameters = [after.last_seq, after.hash, before.epoch, before.last_seq]
        parameters += _columns(tables.commits, [] if writes.commit is None else [writes.commit])
        parameters += _columns(tables.decisions, writes.decisions)
        parameters += _columns(tables.observations, writes.observations)
        with connection.cursor() as cursor:
            cursor.adapters.register_dumper(_BinaryArray, _BinaryArrayDumper)
            cursor.execute(self._insert, parameters, prepare=True)
            if cursor.fetchone() != (1,):
                return False
            if writes.users:
                cursor.executemany(self._assign_user, writes.users)
                if cursor.rowcount != len(writes.users):
                    return False
            if writes.activations:  # in a later statement, because the statement above may insert the decision
                cursor.executemany(self._activate, writes.activations)
        return True

    def commit(self, connection: Connection[Any]) -> None:
        """Make the written rows durable."""
        connection.commit()
        connection.autocommit = False

    def roll_back(self, connection: Connection[Any]) -> None:
        """Discard the written rows."""
        connection.rollback()
        connection.autocommit = False


def _column_types(table: Table) -> list[type]:
    return [type(column.type) for column in table.columns]


def _insert_statement(table: Table) -> str:
    arrays = ", ".join(f"%b::{_ARRAY_TYPES[column_type][0]}" for column_type in _column_types(table))
    rows = f"SELECT * FROM unnest({arrays}) WHERE EXISTS (SELECT FROM head)"  # noqa: S608 - no input
    return f"INSERT INTO {table.name} {rows}"


def _columns(table: Table, rows: Sequence[tuple[Any, ...]]) -> list[_BinaryArray]:
    types = _column_types(table)
    values = zip(*rows, strict=True) if rows else [()] * len(types)
    return [_BinaryArray(column, column_type) for column, column_type in zip(values, types, strict=True)]

"""What is PostgreSQL's own: how rows are written fast."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format
from sqlalchemy import BigInteger, Double, Integer, LargeBinary, SmallInteger, Table

from locb.service.store import schema as tables
from locb.service.store.rows import Records

# The name of an array, the number of its elements' type, and how an element is written, with its length before it.
_KINDS: dict[type, tuple[str, int, Struct | None]] = {
    BigInteger: ("bigint[]", 20, Struct("!iq")),
    Integer: ("integer[]", 23, Struct("!ii")),
    SmallInteger: ("smallint[]", 21, Struct("!ih")),
    Double: ("float8[]", 701, Struct("!id")),
    LargeBinary: ("bytea[]", 17, None),
}
_HEAD = Struct("!iiIii")  # dimensions, whether an element is missing, type, length, first index
_LENGTH = Struct("!i")
_MISSING = _LENGTH.pack(-1)


class _Column:
    """An array as it is sent."""

    __slots__ = ("packed",)

    def __init__(self, values: Sequence[Any], kind: type) -> None:
        _, number, form = _KINDS[kind]
        parts = [_HEAD.pack(1, None in values, number, len(values), 1)]
        if form is None:
            for value in values:
                parts += (_LENGTH.pack(len(value)), value)
        else:
            pack, size = form.pack, form.size - _LENGTH.size
            parts += [_MISSING if value is None else pack(size, value) for value in values]
        self.packed = b"".join(parts)


class _ColumnDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: _Column) -> bytes:
        return obj.packed


class Writer:
    """Writes rows, all decisions and lessons by one statement, which goes to the server and comes back once.

    Parameters
    ----------
    welcome, activate : str
        The statements that write a user, and when a decision was activated.
    """

    at_once = False  # each statement waits for the server

    def __init__(self, assign: str, activate: str) -> None:
        self._welcome, self._activate = assign, activate
        self._insert = (
            f"WITH decisions AS ({_statement(tables.decisions)}), lessons AS ({_statement(tables.observations)}) SELECT"
        )

    def write(self, connection: Connection[Any], records: Records) -> None:
        """Write these over a connection of the driver's; on disk they are for sure after ``commit``."""
        # One statement is a transaction by itself, without a way to the server for its beginning and one for its end.
        connection.autocommit = not (records.users or records.activations)
        columns = [*_columns(tables.decisions, records.decisions), *_columns(tables.observations, records.observations)]
        with connection.cursor() as cursor:
            cursor.adapters.register_dumper(_Column, _ColumnDumper)
            if records.users:
                cursor.executemany(self._welcome, records.users)
            cursor.execute(self._insert, columns, prepare=True)
            if (
                records.activations
            ):  # of decisions in the same batch too, which the statement that writes them cannot see
                cursor.executemany(self._activate, records.activations)

    def commit(self, connection: Connection[Any]) -> None:
        """Bring to disk what was written."""
        connection.commit()
        connection.autocommit = False

    def roll_back(self, connection: Connection[Any]) -> None:
        """Have nothing of it written."""
        connection.rollback()
        connection.autocommit = False


def _kinds(table: Table) -> list[type]:
    return [type(column.type) for column in table.columns]


def _statement(table: Table) -> str:
    arrays = ", ".join(f"%b::{_KINDS[kind][0]}" for kind in _kinds(table))
    return f"INSERT INTO {table.name} SELECT * FROM unnest({arrays})"  # noqa: S608 - all of it is ours


def _columns(table: Table, rows: Sequence[tuple[Any, ...]]) -> list[_Column]:
    kinds = _kinds(table)
    values = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return [_Column(column, kind) for column, kind in zip(values, kinds, strict=True)]

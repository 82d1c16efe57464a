"""What is SQLite's own: how a connection is set up, and how rows are written fast."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Table

from locb.service.store import schema as tables
from locb.service.store.rows import Records

ROWS = (1, 4, 16, 64, 256)  # that a statement has room for: it is prepared once, and room that is left stays empty


def prepare(connection: Any, _: Any) -> None:
    """Set up a new connection of the driver's."""
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",  # a commit returns when it is on disk
        "wal_autocheckpoint=0",  # `Log.tidy` does it, beside the requests
        "secure_delete=ON",  # what is erased is overwritten
        "cache_size=-65536",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


class Writer:
    """Writes rows, decisions and lessons many by one statement; a row at a time took a fifth longer.

    Parameters
    ----------
    welcome, activate : str
        The statements that write a user, and when a decision was activated.
    """

    at_once = True  # a file is written to in no time; only to bring it to disk is slow

    def __init__(self, assign: str, activate: str) -> None:
        self._welcome, self._activate = assign, activate
        self._insert = {
            (table, room): _statement(table, room) for table in (tables.decisions, tables.observations) for room in ROWS
        }

    def write(self, connection: Any, records: Records) -> None:
        """Write these over a connection of the driver's; they are not on disk yet."""
        cursor = connection.cursor()
        if records.users:
            cursor.executemany(self._welcome, records.users)
        self._write(cursor, tables.decisions, records.decisions)
        self._write(cursor, tables.observations, records.observations)
        if records.activations:
            cursor.executemany(self._activate, records.activations)

    def _write(self, cursor: Any, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        for start in range(0, len(rows), ROWS[-1]):
            some = rows[start : start + ROWS[-1]]
            room = next(room for room in ROWS if room >= len(some))
            left = [None] * (len(table.columns) * (room - len(some)))
            cursor.execute(self._insert[table, room], [*chain.from_iterable(some), *left])

    def commit(self, connection: Any) -> None:
        """Bring to disk what was written."""
        connection.commit()

    def roll_back(self, connection: Any) -> None:
        """Have nothing of it written."""
        connection.rollback()


def _statement(table: Table, room: int) -> str:
    row = f"({', '.join('?' * len(table.columns))})"
    values = ", ".join([row] * room)
    return f"INSERT INTO {table.name} SELECT * FROM (VALUES {values}) WHERE column1 IS NOT NULL"  # noqa: S608 - ours

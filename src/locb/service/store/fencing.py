"""Fencing: only the process that has opened the log last can write to it.

The table ``locb_head`` has one row: the end of the log, and an epoch, which a process increments when it opens the log.
Every transaction that writes checks the epoch and the last sequence number, and locks the row until the transaction
ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, insert, select, text, update

from locb.recommender.events import Records
from locb.service.store import schema as tables
from locb.service.store.chain import EMPTY
from locb.service.store.database import FencedError
from locb.service.store.schema import CommitRow, Head

_HEAD = tables.head


def claim(connection: Connection) -> Head:
    """Increment the epoch in the current transaction, and return the end of the log.

    With PostgreSQL, also replace the lease of the previous process.
    """
    if connection.execute(update(_HEAD).values(epoch=_HEAD.c.epoch + 1)).rowcount == 0:
        connection.execute(insert(_HEAD).values(id=0, epoch=1, last_seq=0, hash=EMPTY))
    found = read_head(connection)
    if connection.dialect.name == "postgresql":
        connection.execute(delete(tables.lease))
        now = text("extract(epoch FROM clock_timestamp())")
        connection.execute(insert(tables.lease).values(epoch=found.epoch, alive_at=now))
    return found


def read_head(connection: Connection) -> Head:
    """Return the end of the log."""
    return Head(*connection.execute(select(_HEAD.c.epoch, _HEAD.c.last_seq, _HEAD.c.hash)).one())


def check_epoch(connection: Connection, expected: Head) -> Head:
    """Read the end of the log in a new transaction, and return it.

    Raises
    ------
    FencedError
        If the epoch is not as expected, because another process has taken over the log.
    """
    with connection.begin():
        found = read_head(connection)
    if found.epoch != expected.epoch:
        raise describe_difference(expected, found)
    return found


def check(connection: Connection, expected: Head) -> None:
    """Check the end of the log, and lock it until the current transaction ends.

    Raises
    ------
    FencedError
        If the epoch or the last sequence number is not as expected.
    """
    matching = (_HEAD.c.epoch == expected.epoch) & (_HEAD.c.last_seq == expected.last_seq)
    # An update, not a query: it also locks the row in SQLite.
    if connection.execute(update(_HEAD).where(matching).values(epoch=expected.epoch)).rowcount != 1:
        raise describe_difference(expected, read_head(connection))


def advance(connection: Connection, commits: Iterable[CommitRow], head: Head) -> None:
    """Append commits in the current transaction, in which ``check`` was called."""
    connection.execute(insert(tables.commits), [commit._asdict() for commit in commits])
    connection.execute(update(_HEAD).values(last_seq=head.last_seq, hash=head.hash))


def clear(connection: Connection, head: Head) -> Head:
    """Delete all events and settings in the current transaction, in which ``check`` was called; return the new end."""
    for table in reversed(tables.metadata.sorted_tables):
        if table not in (_HEAD, tables.lease):
            truncate = connection.dialect.name == "postgresql"
            connection.execute(text(f"TRUNCATE {table.name}") if truncate else delete(table))
    connection.execute(update(_HEAD).values(last_seq=0, hash=EMPTY))
    return Head(head.epoch, 0, EMPTY)


def describe_difference(expected: Head, found: Head) -> FencedError:
    """Return the error that another process has taken over the log or has written to it."""
    if found.epoch != expected.epoch:
        epochs = f"epoch {found.epoch} instead of {expected.epoch}"
        return FencedError(f"another process has taken over the log ({epochs}): this process must stop")
    cause = f"the log ends at event {found.last_seq} instead of {expected.last_seq}"
    return FencedError(f"{cause}: another process has written to the log; this process must stop")


def explain_refusal(connection: Connection, expected: Head, records: Records) -> FencedError:
    """Return the error for rows that the database did not write, with the reason."""
    with connection.begin():
        found = read_head(connection)
    if found[:2] != expected[:2]:
        return describe_difference(expected, found)
    indices = ", ".join(str(user_index) for user_index, *_ in records.users)
    cause = f"one of the user indices {indices} already has a user"
    return FencedError(f"{cause}: another process has written to the log; this process must stop")

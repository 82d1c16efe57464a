"""Events of the store of another service, as the rows of the event log that a new store starts with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from locb.common.arrays import Ints
from locb.recommender.events import DecisionRow, ObservationRow, Records
from locb.service.store import schema as tables
from locb.service.store.export import StoredLog


class StoreEvents:
    """Events of the store of a service, which may be running: users, decisions without requests, observations.

    All events are read in one transaction, so they are those up to one point in time. Erased events, erasures and
    rebuilds are omitted, and the remaining events are numbered without gaps. Indices of users do not change, so the
    policy that learns the events is the same, bit for bit.

    Parameters
    ----------
    log : StoredLog
        The store.
    """

    def __init__(self, log: StoredLog) -> None:
        self._log = log

    def batches(self, size: int) -> Iterator[Records]:
        """Yield the events in batches of up to ``size`` events, with sequence numbers from 1 without gaps."""
        with self._log.snapshot() as connection:
            last = connection.execute(select(tables.head.c.last_seq)).scalar_one()
            users = _user_events(connection)
            omitted = np.zeros(0, np.int64)  # sequence numbers of the source that are not imported, in ascending order
            for after in range(0, last, size):
                until = min(after + size, last)
                decisions = _rows(connection, _DECISIONS, after, until)
                observations = _rows(connection, _OBSERVATIONS, after, until)
                new_users = [users[seq] for seq in range(after + 1, until + 1) if seq in users] if users else []
                found = [row[0] for row in chain(decisions, observations)] + [seq for _, seq, _ in new_users]
                missing = np.setdiff1d(np.arange(after + 1, until + 1), found)
                omitted = np.concatenate([omitted, missing])
                if found:
                    yield _renumber(new_users, decisions, observations, omitted)


_DECISIONS = [tables.decisions.c[name] for name in ("seq", "id", "user_index", "time", "active_at", "chosen")]
_OBSERVATIONS = [tables.observations.c[name] for name in ObservationRow._fields]


def _rows(connection: Connection, columns: list[Any], after: int, until: int) -> list[Any]:
    seq = columns[0]
    return [*connection.execute(select(*columns).where(seq > after, seq <= until).order_by(seq))]


def _user_events(connection: Connection) -> dict[int, tuple[int, int, bytes | None]]:
    """Return (user index, seq, name) of each event that adds or assigns a user index, by seq."""
    c = tables.users.c
    found: dict[int, tuple[int, int, bytes | None]] = {}
    for user_index, seq, assigned_seq, name in connection.execute(select(c.user_index, c.seq, c.assigned_seq, c.id)):
        found[seq] = user_index, seq, None
        if name is not None:
            found[assigned_seq] = user_index, assigned_seq, name
    return found


def _renumber(users: list[Any], decisions: list[Any], observations: list[Any], omitted: Ints) -> Records:
    def number(seqs: list[int]) -> list[int]:
        array = np.array(seqs, np.int64)
        renumbered: list[int] = (array - np.searchsorted(omitted, array)).tolist()
        return renumbered

    seqs = number([seq for _, seq, _ in users])
    return Records(
        [(index, seq, name) for seq, (index, _, name) in zip(seqs, users, strict=True)],
        [
            DecisionRow._make((seq, *row[1:], b"", b""))
            for seq, row in zip(number([row[0] for row in decisions]), decisions, strict=True)
        ],
        [
            ObservationRow._make((seq, decision_seq, *row[2:]))
            for seq, decision_seq, row in zip(
                number([row[0] for row in observations]),
                number([row[1] for row in observations]),
                observations,
                strict=True,
            )
        ],
    )

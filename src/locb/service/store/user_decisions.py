"""Decisions of each user: the table that lists them, and their erasure.

A database index on the user of each decision would double the cost of a commit, because users arrive in random order.
The table ``locb_user_decisions`` is extended in batches instead. A scan of the end of the log finds the decisions that
the table does not list yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from locb.service.store import schema as tables

MAX_PARAMETERS = 500  # values per IN clause
END_SETTING = "user_decisions_end"  # the setting that holds the seq up to which the table is complete


def extend(connection: Connection) -> int:
    """Add the missing decisions in the current transaction, and return the seq up to which the table is complete."""
    decisions, user_decisions = tables.decisions, tables.user_decisions
    last = connection.execute(select(func.max(decisions.c.seq))).scalar() or 0
    end = _read_end(connection)
    if last <= end:
        return end
    missing = select(decisions.c.user_index, decisions.c.seq).where(decisions.c.seq > end, decisions.c.seq <= last)
    columns = ["user_index", "seq"]
    connection.execute(insert(user_decisions).from_select(columns, missing.order_by(*columns)))
    tables.write_settings(connection, {END_SETTING: last})
    return int(last)


def recent(connection: Connection, user_index: int, limit: int) -> list[int]:
    """Return the sequence numbers of the last ``limit`` decisions of a user, newest first."""
    decisions, table = tables.decisions, tables.user_decisions
    # The end of the log is read first. A concurrent ``extend`` then causes duplicates, which the set removes, not gaps.
    late = select(decisions.c.seq).where(decisions.c.seq > _read_end(connection), decisions.c.user_index == user_index)
    found = set(connection.execute(late).scalars())
    early = select(table.c.seq).where(table.c.user_index == user_index).order_by(table.c.seq.desc()).limit(limit)
    found.update(connection.execute(early).scalars())
    return sorted(found, reverse=True)[:limit]


def erase(connection: Connection, indices: Sequence[int], first_seq: int) -> tuple[list[int], list[list[int]]]:
    """Delete users with all decisions and observations in the current transaction.

    Return, for each user, the number of deleted decisions and the sequence numbers of all deleted events. The table of
    erasures lists these events with the sequence number of the erasure: ``first_seq`` for the first user, and so on.
    """
    extend(connection)
    table, users = tables.user_decisions, tables.users
    is_own, is_user = table.c.user_index.in_(indices), users.c.user_index.in_(indices)
    erased: dict[int, list[int]] = {user_index: [] for user_index in indices}
    for user_index, seq in connection.execute(select(table.c.user_index, table.c.seq).where(is_own)):
        erased[user_index].append(int(seq))
    counts = [len(seqs) for seqs in erased.values()]
    own = [seq for seqs in erased.values() for seq in seqs]
    named = select(users.c.user_index, users.c.assigned_seq).where(is_user, users.c.id.is_not(None))
    for user_index, seq in connection.execute(named):
        erased[user_index].append(int(seq))
    for start in range(0, len(own), MAX_PARAMETERS):
        for user_index, seq in _delete_decisions(connection, own[start : start + MAX_PARAMETERS]):
            erased[user_index].append(int(seq))
    connection.execute(delete(table).where(is_own))
    connection.execute(update(users).where(is_user).values(id=None, salt=None))
    rows = [
        {"seq": seq, "erasure_seq": erasure_seq}
        for erasure_seq, seqs in enumerate(erased.values(), first_seq)
        for seq in seqs
    ]
    if rows:
        connection.execute(insert(tables.erasures), rows)
    return counts, list(erased.values())


def _delete_decisions(connection: Connection, seqs: Sequence[int]) -> Sequence[Any]:
    """Delete decisions with their observations, and return the user index and the seq of each observation.

    Every observation, also a default reward or a correction, belongs to a decision of its user. There is an index on
    the decision of an observation, but not on the user. With PostgreSQL, a list of values ensures that it is used.
    """
    decisions, observations = tables.decisions, tables.observations
    is_observed = observations.c.decision_seq.in_(seqs)
    observed = connection.execute(select(observations.c.user_index, observations.c.seq).where(is_observed)).all()
    connection.execute(delete(observations).where(is_observed))
    connection.execute(delete(decisions).where(decisions.c.seq.in_(seqs)))
    return observed


def _read_end(connection: Connection) -> int:
    return tables.read_setting(connection, END_SETTING) or 0

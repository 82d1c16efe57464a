"""Decisions of each user: the table that lists them, and their erasure.

A database index on the user of each decision would double the cost of a commit, because users arrive in random order.
The table ``locb_user_decisions`` is extended in batches instead. A scan of the end of the log finds the decisions that
the table does not list yet.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, insert, select, update

from locb.service.store import schema as tables

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


def erase(connection: Connection, user_index: int, erasure_seq: int) -> tuple[int, list[int]]:
    """Delete a user with all decisions and observations in the current transaction.

    Return the number of deleted decisions, and the sequence numbers of all deleted events. The table of erasures lists
    these events with ``erasure_seq``, the sequence number of the erasure.
    """
    extend(connection)
    table, decisions, observations, users = tables.user_decisions, tables.decisions, tables.observations, tables.users
    own = select(table.c.seq).where(table.c.user_index == user_index)
    is_own = users.c.user_index == user_index
    named = select(users.c.assigned_seq).where(is_own, users.c.id.is_not(None))
    observed = observations.c.user_index == user_index
    erased = [int(seq) for query in (own, named) for seq in connection.execute(query).scalars()]
    erased += [int(seq) for seq in connection.execute(select(observations.c.seq).where(observed)).scalars()]
    count = connection.execute(delete(decisions).where(decisions.c.seq.in_(own))).rowcount
    connection.execute(delete(observations).where(observed))
    connection.execute(delete(table).where(table.c.user_index == user_index))
    connection.execute(update(users).where(is_own).values(id=None, salt=None))
    if erased:
        rows = [{"seq": seq, "erasure_seq": erasure_seq} for seq in erased]
        connection.execute(insert(tables.erasures), rows)
    return int(count), erased


def _read_end(connection: Connection) -> int:
    return tables.read_setting(connection, END_SETTING) or 0

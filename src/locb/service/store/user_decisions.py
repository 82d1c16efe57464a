"""Table that lists the decisions of each user.

A database index on the user of each decision would double the cost of a commit, because users arrive in random order.
This table is extended in batches instead. A scan of the end of the log finds the decisions that it does not list yet.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection, delete, func, insert, select

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
    connection.execute(delete(tables.settings).where(tables.settings.c.name == END_SETTING))
    connection.execute(insert(tables.settings).values(name=END_SETTING, value=json.dumps(last)))
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


def erase(connection: Connection, user_index: int) -> int:
    """Delete all decisions of a user in the current transaction, and return the number of deleted decisions."""
    extend(connection)
    table = tables.user_decisions
    own = select(table.c.seq).where(table.c.user_index == user_index)
    count = connection.execute(delete(tables.decisions).where(tables.decisions.c.seq.in_(own))).rowcount
    connection.execute(delete(table).where(table.c.user_index == user_index))
    return int(count)


def _read_end(connection: Connection) -> int:
    found = connection.execute(select(tables.settings.c.value).where(tables.settings.c.name == END_SETTING)).scalar()
    return 0 if found is None else int(json.loads(found))

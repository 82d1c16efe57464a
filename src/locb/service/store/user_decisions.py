"""Which decisions were made for a user.

An index over the decisions, kept up with every commit, was as much to write as the decisions themselves, since users
come in no order. This one takes in many decisions at once; those that it does not have yet are the last of the log.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection, delete, func, insert, select

from locb.service.store import schema as tables

MARK = "decided"  # the setting that says up to which place in the log it goes


def bring_up(connection: Connection) -> int:
    """Take in the decisions that are missing, in the transaction that the connection is in; up to where it now goes."""
    decisions, decided = tables.decisions, tables.decided
    last = connection.execute(select(func.max(decisions.c.seq))).scalar() or 0
    mark = _mark(connection)
    if last <= mark:
        return mark
    missing = select(decisions.c.place, decisions.c.seq).where(decisions.c.seq > mark, decisions.c.seq <= last)
    connection.execute(insert(decided).from_select(["place", "seq"], missing.order_by("place", "seq")))
    connection.execute(delete(tables.settings).where(tables.settings.c.name == MARK))
    connection.execute(insert(tables.settings).values(name=MARK, value=json.dumps(last)))
    return int(last)


def last_of(connection: Connection, place: int, limit: int) -> list[int]:
    """Places in the log of the last decisions for a user, the newest first."""
    decisions, decided = tables.decisions, tables.decided
    # In this order: what is taken in meanwhile is then found twice rather than not at all.
    late = select(decisions.c.seq).where(decisions.c.seq > _mark(connection), decisions.c.place == place)
    found = set(connection.execute(late).scalars())
    early = select(decided.c.seq).where(decided.c.place == place).order_by(decided.c.seq.desc()).limit(limit)
    found.update(connection.execute(early).scalars())
    return sorted(found, reverse=True)[:limit]


def erase(connection: Connection, place: int) -> int:
    """Erase all decisions for a user, in the transaction that the connection is in; how many there were."""
    bring_up(connection)
    own = select(tables.decided.c.seq).where(tables.decided.c.place == place)
    count = connection.execute(delete(tables.decisions).where(tables.decisions.c.seq.in_(own))).rowcount
    connection.execute(delete(tables.decided).where(tables.decided.c.place == place))
    return int(count)


def _mark(connection: Connection) -> int:
    found = connection.execute(select(tables.settings.c.value).where(tables.settings.c.name == MARK)).scalar()
    return 0 if found is None else int(json.loads(found))

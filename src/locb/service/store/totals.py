"""Totals of a part of the event log per time bucket and per user, aggregated by the database.

Aggregation in the database is faster than reading the rows, and requests do not wait for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import BigInteger, Connection, case, cast, func, literal_column, select

from locb.common.arrays import Floats, Ints
from locb.recommender.events import CORRECTION
from locb.service.store import schema as tables

BUCKET_SECONDS = 10


class Totals(NamedTuple):
    """Totals of a part of the log.

    The number of a time bucket is the Unix time divided by ``BUCKET_SECONDS``, rounded down. A correction counts in the
    bucket of the first reward of its decision. Each array has one row per time bucket, or per user.

    Attributes
    ----------
    decisions : ints with 3 columns
        Bucket, number of decisions, number of decisions without a reward or default reward.
    rewards : floats with 4 columns
        Bucket, number of rewards including default rewards, sum of the rewards, sum of the squared rewards.
    corrections : floats with 3 columns
        Bucket, change of the sum of the rewards, change of the sum of the squared rewards.
    users : floats with 3 columns
        User index, number of rewards, sum of the rewards.
    """

    decisions: Ints
    rewards: Floats
    corrections: Floats
    users: Floats


def compute_totals(connection: Connection, after: int, until: int, last: int) -> Totals:
    """Return the totals of the events with ``after`` < seq ≤ ``until``.

    A decision has no reward if it has none with seq ≤ ``last``.
    """

    def bucket_of(time: Any) -> Any:
        # A literal, not a parameter: GROUP BY must repeat the selected expression exactly.
        quotient = time / literal_column(f"{BUCKET_SECONDS}.0")
        return cast(quotient if connection.dialect.name == "sqlite" else func.floor(quotient), BigInteger)

    def rows(query: Any, table: Any, by: Any, width: int) -> Any:
        grouped = query.where(table.c.seq > after, table.c.seq <= until).group_by(by)
        found = [tuple(row) for row in connection.execute(grouped)]
        return np.array(found, np.float64).reshape(-1, width)

    decisions, observations, first = tables.decisions, tables.observations, tables.observations.alias()
    is_correction = observations.c.kind >= CORRECTION
    reward, previous = observations.c.reward, observations.c.previous_reward
    decision_bucket, reward_bucket = bucket_of(decisions.c.time), bucket_of(observations.c.time)
    first_bucket = bucket_of(first.c.time)
    user_index = observations.c.user_index
    is_rewarded = (
        select(observations.c.seq)
        .where(observations.c.decision_seq == decisions.c.seq, observations.c.seq <= last)
        .correlate(decisions)
        .exists()
    )
    counted = select(decision_bucket, func.count(), func.sum(case((is_rewarded, 0), else_=1)))
    rewarded = select(reward_bucket, func.count(), func.sum(reward), func.sum(reward * reward)).where(~is_correction)
    corrected = (
        select(first_bucket, func.sum(reward - previous), func.sum(reward * reward - previous * previous))
        .join(first, (first.c.decision_seq == observations.c.decision_seq) & (first.c.kind < CORRECTION))
        .where(is_correction)
    )
    by_user = select(
        user_index,
        func.sum(case((is_correction, 0), else_=1)),
        func.sum(case((is_correction, reward - previous), else_=reward)),
    )
    return Totals(
        rows(counted, decisions, decision_bucket, 3).astype(np.int64),
        rows(rewarded, observations, reward_bucket, 4),
        rows(corrected, observations, first_bucket, 3),
        rows(by_user, observations, user_index, 3),
    )

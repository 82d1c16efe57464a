"""Content of the event log after a history, read from the tables without the code of the service."""

from __future__ import annotations

from sqlalchemy import Connection, select

from locb.service.packed_responses import stored_arm
from locb.service.store import schema as tables
from locb.service.store.database import connect, database_url
from locb.service.store.log import EventLog
from stress.checks import compare_with_replay
from stress.histories.record import Logged, LoggedDecision, LoggedObservation, LoggedUser
from stress.stores import StoreLocation


def read_log(location: StoreLocation) -> Logged:
    """Return the content of the log, compared with a replay. The service must have been stopped with SIGTERM."""
    log = EventLog(location.folder, location.url)
    try:
        differences = compare_with_replay(log, location.folder)
    finally:
        log.close()
    engine = connect(database_url(location.folder, location.url))
    try:
        with engine.connect() as connection:
            return _read(connection, differences)
    finally:
        engine.dispose()


def _read(connection: Connection, differences: dict[str, int]) -> Logged:
    users = {row.user_index: row for row in connection.execute(select(tables.users))}
    names = {index: None if row.id is None else row.id.decode() for index, row in users.items()}
    return Logged(
        [LoggedUser(row.seq, row.assigned_seq, names[index]) for index, row in users.items()],
        [
            LoggedDecision(
                row.seq,
                row.id.decode(),
                names[row.user_index],
                stored_arm(row.request, row.response),
                row.active_at is not None,
            )
            for row in connection.execute(select(tables.decisions))
        ],
        [
            LoggedObservation(row.seq, row.decision_seq, row.kind, row.reward, row.previous_reward)
            for row in connection.execute(select(tables.observations))
        ],
        [(row.previous_seq, row.epoch) for row in connection.execute(select(tables.commits))],
        differences,
    )


def count_waiting(location: StoreLocation) -> int:
    """Return the number of active decisions without a reward or default reward, while the service is running."""
    engine = connect(database_url(location.folder, location.url))
    decisions, observations = tables.decisions, tables.observations
    query = (
        select(decisions.c.seq)
        .outerjoin(observations, observations.c.decision_seq == decisions.c.seq)
        .where(observations.c.seq.is_(None), decisions.c.active_at.is_not(None))
    )
    try:
        with engine.connect() as connection:
            return len(connection.execute(query).all())
    finally:
        engine.dispose()

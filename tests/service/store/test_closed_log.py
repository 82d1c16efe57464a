"""A closed event log: it refuses to open connections, and none stays open."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from locb.recommender.events import Records
from locb.service.store import locks
from locb.service.store import log as log_module
from locb.service.store.database import StoreError, close_pool
from locb.service.store.log import EventLog
from service.store.sample_rows import decision, sample_records

Opener = Callable[[Any], EventLog]


@pytest.fixture
def connections() -> Iterator[set[int]]:
    """Ids of the open connections to databases."""
    opened: set[int] = set()

    def add(connection: Any, _: Any) -> None:
        opened.add(id(connection))

    def remove(connection: Any, _: Any) -> None:
        opened.discard(id(connection))

    event.listen(Pool, "connect", add)
    event.listen(Pool, "close", remove)
    yield opened
    event.remove(Pool, "connect", add)
    event.remove(Pool, "close", remove)


def all_reads(log: EventLog) -> dict[str, Callable[[], Any]]:
    return {
        "settings": log.settings,
        "find": lambda: log.find([b"a"]),
        "users": log.users,
        "observations": lambda: list(log.observations(0)),
        "decisions": lambda: list(log.decisions()),
        "recent_decisions": lambda: log.recent_decisions(0, 10),
        "totals": lambda: log.totals(0, 6, 6),
        "counts": lambda: log.counts(6),
        "decisions_with_rewards": lambda: list(log.decisions_with_rewards()),
    }


def all_writes(log: EventLog) -> dict[str, Callable[[], Any]]:
    records = Records(decisions=[decision(7, "later")])
    return {
        "commit": lambda: log.commit(records),
        "stage": lambda: log.stage(records),
        "commit_staged": log.commit_staged,
        "write_settings": lambda: log.write_settings({"a": 1}),
        "erase": lambda: log.erase([0]),
        "last_seq": log.last_seq,
    }


def test_closed_log_refuses_reads_and_writes(store: Any, open_log: Opener, connections: set[int]) -> None:
    log = open_log(store)
    log.commit(sample_records())
    log.users()
    assert connections
    log.close()
    assert not connections
    for name, operation in (all_reads(log) | all_writes(log)).items():
        with pytest.raises(StoreError, match="the event log is closed"):
            operation()
        assert not connections, name
    if log.backend == "sqlite":
        with pytest.raises(StoreError, match="the event log is closed"):
            log.wal_checkpoint()
        assert not connections
    assert open_log(store).last_seq() == 6


def test_log_can_be_closed_twice(store: Any, open_log: Opener) -> None:
    log = open_log(store)
    log.close()
    log.close()
    with pytest.raises(StoreError, match="closed"):
        log.users()


def test_query_that_outlives_the_log_closes_its_connection(
    store: Any, open_log: Opener, connections: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "CLOSE_TIMEOUT", 0.0)
    log = open_log(store)
    log.commit(sample_records())
    query = log.decisions()
    assert next(query)
    log.close()
    assert list(query) == []
    assert not connections


def test_write_that_outlives_the_log_closes_its_connection(
    store: Any, open_log: Opener, connections: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is closed by another thread while the writer connects again."""
    monkeypatch.setattr(log_module, "CLOSE_TIMEOUT", 0.0)
    log = open_log(store)
    log.commit(sample_records())
    log._drop_writer()
    with monkeypatch.context() as patched:
        patched.setattr(locks, "lock_database", lambda *_: log.close())
        with pytest.raises(StoreError):
            log.commit(Records(decisions=[decision(7, "later")]))
    assert not connections


def test_query_that_outlives_the_pool_closes_its_connection(postgres: Any, tmp_path: Path) -> None:
    log = EventLog(tmp_path, postgres.create_database())
    with log._reading() as connection:
        driver_connection = connection.connection.driver_connection
        assert driver_connection is not None
        close_pool(log._engine)  # as another thread does after a failed write
    assert driver_connection.closed
    log.close()

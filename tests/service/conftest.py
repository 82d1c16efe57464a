"""Stores for tests: SQLite in a folder, PostgreSQL in a cluster of the test run's own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from locb.service.store.log import EventLog
from stress.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One a test process, started when the first test asks for it."""
    try:
        cluster = PostgresServer()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    with cluster:
        yield cluster


@dataclass(frozen=True)
class Store:
    """Where a service keeps its log."""

    folder: Path
    url: str | None
    cluster: PostgresServer | None


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store, of either kind."""
    if request.param == "sqlite":
        return Store(tmp_path / "state", None, None)
    cluster = request.getfixturevalue("postgres")
    return Store(tmp_path / "state", cluster.create_database(), cluster)


@pytest.fixture
def open_log() -> Iterator[Callable[[Store], EventLog]]:
    """Opens logs, which are closed in the end."""
    with ExitStack() as opened:

        def open_one(store: Store) -> EventLog:
            log = EventLog(store.folder, store.url)
            opened.callback(log.close)
            return log

        yield open_one


@pytest.fixture
def log(store: Store, open_log: Callable[[Store], EventLog]) -> EventLog:
    """An empty log."""
    return open_log(store)

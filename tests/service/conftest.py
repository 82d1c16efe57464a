"""Fixtures of stores: SQLite in a folder, PostgreSQL on a temporary server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from locb.service.store.log import EventLog
from stress.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, started by the first test that needs it."""
    try:
        cluster = PostgresServer(fsync=False)  # tests crash the server, not the machine
    except FileNotFoundError as error:
        pytest.skip(str(error))
    with cluster:
        yield cluster


@dataclass(frozen=True)
class Store:
    """A data folder, and the address of the database if it is not in the folder."""

    folder: Path
    url: str | None
    cluster: PostgresServer | None


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store, once per database system."""
    if request.param == "sqlite":
        return Store(tmp_path / "state", None, None)
    cluster = request.getfixturevalue("postgres")
    return Store(tmp_path / "state", cluster.create_database(), cluster)


@pytest.fixture
def open_log() -> Iterator[Callable[[Store], EventLog]]:
    """Return a function that opens logs, which are closed at the end."""
    with ExitStack() as opened:

        def open_store(store: Store) -> EventLog:
            log = EventLog(store.folder, store.url)
            opened.callback(log.close)
            return log

        yield open_store


@pytest.fixture
def log(store: Store, open_log: Callable[[Store], EventLog]) -> EventLog:
    """An empty log."""
    return open_log(store)

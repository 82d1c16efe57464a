"""Temporary stores for the tests: SQLite and PostgreSQL."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from stress.postgres import PostgresServer

KINDS = ("sqlite", "postgresql")


@dataclass(frozen=True)
class StoreLocation:
    """Location of the data of a service: a data folder, and optionally a PostgreSQL database for the event log."""

    folder: Path
    url: str | None  # address of the database; None if the event log is a SQLite file in the folder
    cluster: PostgresServer | None  # server of the database


@contextmanager
def new_store(kind: str) -> Iterator[StoreLocation]:
    """Create an empty store of the kind "sqlite" or "postgresql", and remove it at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="locb-stress-") as parent:
        if kind == "sqlite":
            yield StoreLocation(Path(parent) / "state", None, None)
        else:
            with PostgresServer() as cluster:
                yield StoreLocation(Path(parent) / "state", cluster.create_database(), cluster)


@contextmanager
def new_stores(kind: str, fsync: bool = False) -> Iterator[Callable[[], StoreLocation]]:
    """Provide a function that creates empty stores of the kind "sqlite" or "postgresql" on the same server.

    Without ``fsync``, PostgreSQL does not wait for the disk.
    """
    with tempfile.TemporaryDirectory(prefix="locb-stress-") as parent, ExitStack() as stack:
        cluster = stack.enter_context(PostgresServer(fsync=fsync)) if kind == "postgresql" else None
        numbers = count()

        def create() -> StoreLocation:
            folder = Path(parent) / str(next(numbers)) / "state"
            folder.parent.mkdir()  # for the messages of the service, which are written beside its data folder
            return StoreLocation(folder, None if cluster is None else cluster.create_database(), cluster)

        yield create

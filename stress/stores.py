"""Temporary stores for the tests: SQLite and PostgreSQL."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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

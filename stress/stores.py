"""Stores for fault injection: SQLite and PostgreSQL."""

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
    """A data folder, and the PostgreSQL database if the log is not a SQLite file in the folder."""

    folder: Path
    url: str | None
    cluster: PostgresServer | None


@contextmanager
def new_store(kind: str) -> Iterator[StoreLocation]:
    """Provide an empty store, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="locb-stress-") as parent:
        if kind == "sqlite":
            yield StoreLocation(Path(parent) / "state", None, None)
        else:
            with PostgresServer() as cluster:
                yield StoreLocation(Path(parent) / "state", cluster.create_database(), cluster)

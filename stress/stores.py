"""The stores that faults are tried on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stress.postgres import Cluster

KINDS = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Place:
    """A folder, and a database if it is not a file in it."""

    folder: Path
    url: str | None
    cluster: Cluster | None


@contextmanager
def new_store(kind: str) -> Iterator[Place]:
    """An empty store that goes away in the end."""
    with tempfile.TemporaryDirectory(prefix="locb-stress-") as room:
        if kind == "sqlite":
            yield Place(Path(room) / "state", None, None)
        else:
            with Cluster() as cluster:
                yield Place(Path(room) / "state", cluster.create(), cluster)

"""Short fault injection tests under load; ``make stress`` runs the same tests for longer."""

from pathlib import Path
from typing import Any

import pytest

from stress.checks import violations
from stress.disk_full import disk_full
from stress.disks import KINDS, new_disk
from stress.kill import kill
from stress.outage import outage
from stress.stores import StoreLocation

CLIENTS = 20


def check_invariants(found: dict[str, Any]) -> None:
    assert violations(found) == []
    assert found["given up"] == 0
    assert found["acknowledged decisions"] > 0
    assert found["acknowledged rewards"] > 0


def test_sigkill_under_load(store: Any) -> None:
    found = kill(StoreLocation(store.folder, store.url, store.cluster), 2, CLIENTS, before=0.4, after=0.1)
    check_invariants(found)
    assert found["attempts without a response"] > 0
    assert found["not erased"] == 0


def test_database_outage_under_load(postgres: Any, tmp_path: Path) -> None:
    found = outage(
        StoreLocation(tmp_path / "state", postgres.create_database(), postgres), 1, CLIENTS, down=0.5, up=0.5
    )
    check_invariants(found)
    assert found["health checks with 503"] > 0
    assert found["responses with 503"] > 0
    assert found["other errors"] == 0
    assert found["starts of the service"] == 1


def test_full_disk_under_load() -> None:
    found = fill_disk()
    check_invariants(found)
    assert found["responses with 503"] > 0
    assert found["other errors"] == 0
    assert found["starts of the service"] == 1
    assert found["reasons"]
    # SQLite reports a file size limit as an I/O error.
    assert {reason.removeprefix("the store is unavailable: ") for reason in found["reasons"]} <= {
        "database or disk is full",
        "disk I/O error",
    }


def fill_disk() -> dict[str, Any]:
    """Return the figures for a full tmpfs, or for a file size limit where tmpfs cannot be mounted."""
    for kind in KINDS:
        try:
            with new_disk(kind) as disk:
                return disk_full(disk, 1, CLIENTS, seconds=1.0)
        except PermissionError as error:
            reason = str(error)
    pytest.skip(reason)

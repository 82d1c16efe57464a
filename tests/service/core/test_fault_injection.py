"""Short fault injection tests under load; ``make stress`` runs the same tests for longer."""

from pathlib import Path
from typing import Any

import pytest

from stress.checks import violations
from stress.clients.hostile import hostile_clients
from stress.faults.clock_steps import clock_steps
from stress.faults.disk_full import disk_full
from stress.faults.disks import KINDS, new_disk
from stress.faults.kill import kill
from stress.faults.outage import outage
from stress.faults.two_writers import two_writers
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


def test_two_services_on_one_store(store: Any) -> None:
    found = two_writers(StoreLocation(store.folder, store.url, store.cluster), 1, 5)
    assert violations(found) == []
    assert found["acknowledged decisions"] == found["acknowledged rewards"] == (15 if store.url else 20)
    assert found["requests that got another response"] == 0
    assert found["processes that did not exit with status 1"] == 0
    assert found["refused decisions in the log"] == 0


def test_steps_of_the_system_time_under_load(tmp_path: Path) -> None:
    found = clock_steps(StoreLocation(tmp_path / "state", None, None), 4, seconds=0.2)
    assert violations(found) == []
    assert found["acknowledged rewards"] > 0
    assert found["errors"] == {}
    assert found["decisions without a default reward"] == 0


def test_hostile_clients(tmp_path: Path) -> None:
    attacks = dict(hostile_clients(StoreLocation(tmp_path / "state", None, None), 20, 0.3, 200))
    assert sum(found["requests of other clients"] for found in attacks.values()) > 0
    assert sum(found["failed"] for found in attacks.values()) == 0
    forged, erasures = attacks["forged requests"], attacks["a stream of erasures"]
    assert (forged["forged requests refused"] > 0, forged["forged requests not refused"]) == (True, 0)
    for found in (erasures, attacks["abandoned exports and an erasure"]):
        assert (found["erasures"] > 0, found["failed erasures"]) == (True, 0)


def test_full_disk_under_load() -> None:
    found = fill_disk()
    check_invariants(found)
    assert found["exports with another error"] == 0
    assert found["responses with 503"] > 0
    assert found["other errors"] == 0
    assert found["starts of the service"] == 1
    assert found["reasons"]
    # SQLite reports a file size limit as an I/O error.
    assert {
        reason.removeprefix("the store is unavailable: ").removesuffix("; retry later") for reason in found["reasons"]
    } <= {
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

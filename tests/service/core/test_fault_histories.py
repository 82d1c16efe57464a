"""Short histories with random faults; ``make stress`` runs many longer ones."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stress.histories.checker import find_violations
from stress.histories.forks import Forks
from stress.histories.log_content import read_log
from stress.histories.plan import FAULTS, draw_plan
from stress.histories.run import run_history
from stress.stores import StoreLocation

SECONDS = 0.4  # of requests per history


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as forks:
        yield forks


@pytest.mark.parametrize("kind", FAULTS)
def test_seed_selects_the_faults(kind: str) -> None:
    plans = [draw_plan(kind, seed) for seed in range(60)]
    assert plans == [draw_plan(kind, seed) for seed in range(60)]
    assert {fault.name for plan in plans for fault in plan.faults} == set(FAULTS[kind])
    assert len(set(plans)) == 60


@pytest.mark.parametrize("seed", [14, 40])
def test_history_on_sqlite(forks: Forks, tmp_path: Path, seed: int) -> None:
    location = StoreLocation(tmp_path / "state", None, None)
    history, logged, violations = run_history(forks, location, draw_plan("sqlite", seed, SECONDS))
    assert violations == []
    assert logged.decisions
    assert any(request.outcome == "acknowledged" for request in history.requests)
    with sqlite3.connect(location.folder / "log.db") as database:
        database.execute("DELETE FROM locb_observations WHERE seq = (SELECT max(seq) FROM locb_observations)")
    database.close()
    assert find_violations(history, read_log(location))


def test_history_on_postgresql(forks: Forks, postgres: Any, tmp_path: Path) -> None:
    location = StoreLocation(tmp_path / "state", postgres.create_database(), postgres)
    history, logged, violations = run_history(forks, location, draw_plan("postgresql", 54, SECONDS))
    assert violations == []
    assert logged.decisions
    assert history.effects["responses of commits lost"] > 0

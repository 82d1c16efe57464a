"""Finished runs stay finished, and no folder takes the runs of another."""

import json
from pathlib import Path
from typing import Any

import pytest

from locb.experiments.jobs import Job, Ledger, run_jobs
from locb.experiments.parallel import Workers
from locb.report.terminal.run_view import read_progress

CALLS: list[int] = []


def play(*, world: dict[str, Any], seed: int, alpha: float, parameters: dict[str, Any]) -> dict[str, Any]:
    CALLS.append(seed)
    return {"value": seed * alpha + world["n"], "pair": (1, 0.1)}


def stops(*, world: dict[str, Any], seed: int) -> dict[str, Any]:
    if seed == 3:
        raise KeyboardInterrupt
    return {"value": seed}


def job(seed: int, alpha: float = 0.5, n: int = 1) -> Job:
    return Job(play, {"n": n}, seed, {"alpha": alpha, "parameters": {"gamma": 0.2}}, cost=1.0)


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


def test_what_is_finished_is_not_played_again(tmp_path: Path) -> None:
    told: list[tuple[float, float]] = []
    with Workers(jobs=1) as workers:
        first = run_jobs([job(1), job(2)], Ledger(tmp_path, {}), workers, lambda *done: told.append(done))
        assert [outcome["value"] for outcome in first] == [1.5, 2.0]
        assert told == [(1.0, 2.0), (2.0, 2.0)]
        again = run_jobs([job(3), job(2), job(1)], Ledger(tmp_path, {}), workers)
    assert [outcome["value"] for outcome in again] == [2.5, 2.0, 1.5]
    assert CALLS == [1, 2, 3]
    assert first[0] == again[2] == {"value": 1.5, "pair": [1, 0.1]}  # as JSON has it, in both


def test_a_stopped_run_keeps_what_it_finished(tmp_path: Path) -> None:
    tasks = [Job(stops, {}, seed, {}, cost=1.0) for seed in (1, 2, 3, 4)]
    with Workers(jobs=1) as workers, pytest.raises(KeyboardInterrupt):
        run_jobs(tasks, Ledger(tmp_path, {}), workers)
    ledger = Ledger(tmp_path, {})
    assert [ledger.get(task) for task in tasks] == [{"value": 1}, {"value": 2}, None, None]
    assert not list(tmp_path.rglob("*.part"))


def test_what_is_planned_is_written_down_for_who_watches(tmp_path: Path) -> None:
    tasks = [Job(stops, {}, seed, {}, cost=float(seed)) for seed in (1, 2, 3)]
    with Workers(jobs=1) as workers, pytest.raises(KeyboardInterrupt):
        run_jobs(tasks, Ledger(tmp_path, {"kind": "verify"}), workers)
    progress = read_progress(tmp_path)
    assert progress.plan is not None
    assert progress.plan.costs == {task.name: task.cost for task in tasks}
    assert progress.plan.is_running
    assert progress.done < 3  # the longest first, at which it was stopped
    assert progress.work(progress.plan.started - 5.0) == progress.work()


def test_a_damaged_outcome_is_played_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, {})
    with Workers(jobs=1) as workers:
        run_jobs([job(1)], ledger, workers)
        path = tmp_path / "runs" / job(1).name
        for damage in ("", "{", "[]", '{"outcome": {}}', path.read_text().replace('"seed": 1', '"seed": 2')):
            path.write_text(damage)
            assert ledger.get(job(1)) is None
            assert run_jobs([job(1)], ledger, workers)[0]["value"] == 1.5
    assert len(CALLS) == 6


def test_names_tell_jobs_apart() -> None:
    names = {one.name for one in (job(1), job(2), job(1, alpha=0.6), job(1, n=2))}
    assert len(names) == 4
    assert job(1).name.startswith("synthetic-play-alpha=0.5-gamma=0.2-seed=1-")
    assert "/" not in Job(play, {}, 1, {"path": "../../etc/x"}, 1.0).name


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    Ledger(tmp_path, {"rounds": 100, "data": {"synthetic": "a"}})
    Ledger(tmp_path, {"rounds": 100, "data": {"movielens": "b"}})  # data may be added
    with pytest.raises(ValueError, match="holds another run .rounds was 100 there and is 200 now.*new folder"):
        Ledger(tmp_path, {"rounds": 200})
    with pytest.raises(ValueError, match="movielens was 'b' there and is 'c' now"):
        Ledger(tmp_path, {"rounds": 100, "data": {"movielens": "c"}})
    kept = json.loads((tmp_path / "settings.json").read_text())
    assert kept["data"] == {"synthetic": "a", "movielens": "b"}
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(ValueError, match="settings.json cannot be read"):
        Ledger(tmp_path, {"rounds": 100})


def test_a_folder_that_cannot_be_written_to_is_named() -> None:
    with pytest.raises(ValueError, match="--output: /dev/null/out cannot be written to .Not a directory"):
        Ledger(Path("/dev/null/out"), {})


def test_what_a_folder_tells_is_remembered(tmp_path: Path) -> None:
    Ledger(tmp_path, {"rounds": 1}).remember(targets=["a"])
    ledger = Ledger(tmp_path, {"rounds": 1})
    assert ledger.told == {"targets": ["a"]}
    ledger.remember(repeats=3)
    assert Ledger(tmp_path, {"rounds": 1}).told == {"targets": ["a"], "repeats": 3}


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match="holds other files"):
        Ledger(tmp_path, {})
    with pytest.raises(ValueError, match="is a file, not a folder"):
        Ledger(tmp_path / "thesis.tex", {})

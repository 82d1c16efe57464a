"""Resumable jobs and run folders."""

import json
from pathlib import Path
from typing import Any

import pytest

from locb.experiments.jobs import Job, Ledger, run_jobs
from locb.parallel.workers import Workers
from locb.report.terminal.run_view import read_progress

CALLS: list[int] = []


def compute(*, environment: dict[str, Any], seed: int, alpha: float, parameters: dict[str, Any]) -> dict[str, Any]:
    CALLS.append(seed)
    return {"value": seed * alpha + environment["n"], "pair": (1, 0.1)}


def interrupt_at_3(*, environment: dict[str, Any], seed: int) -> dict[str, Any]:
    if seed == 3:
        raise KeyboardInterrupt
    return {"value": seed}


def job(seed: int, alpha: float = 0.5, n: int = 1) -> Job:
    return Job(compute, {"n": n}, seed, {"alpha": alpha, "parameters": {"gamma": 0.2}}, cost=1.0)


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


def test_finished_jobs_are_not_run_again(tmp_path: Path) -> None:
    reported: list[tuple[float, float]] = []
    with Workers(jobs=1) as workers:
        first = run_jobs([job(1), job(2)], Ledger(tmp_path, {}), workers, lambda *done: reported.append(done))
        assert [outcome["value"] for outcome in first] == [1.5, 2.0]
        assert reported == [(1.0, 2.0), (2.0, 2.0)]
        again = run_jobs([job(3), job(2), job(1)], Ledger(tmp_path, {}), workers)
    assert [outcome["value"] for outcome in again] == [2.5, 2.0, 1.5]
    assert CALLS == [1, 2, 3]
    assert first[0] == again[2] == {"value": 1.5, "pair": [1, 0.1]}  # both are read from JSON


def test_interrupted_run_keeps_finished_jobs(tmp_path: Path) -> None:
    tasks = [Job(interrupt_at_3, {}, seed, {}, cost=1.0) for seed in (1, 2, 3, 4)]
    with Workers(jobs=1) as workers, pytest.raises(KeyboardInterrupt):
        run_jobs(tasks, Ledger(tmp_path, {}), workers)
    ledger = Ledger(tmp_path, {})
    assert [ledger.get(task) for task in tasks] == [{"value": 1}, {"value": 2}, None, None]
    assert not list(tmp_path.rglob("*.part"))


def test_plan_is_written_for_locb_watch(tmp_path: Path) -> None:
    tasks = [Job(interrupt_at_3, {}, seed, {}, cost=float(seed)) for seed in (1, 2, 3)]
    with Workers(jobs=1) as workers, pytest.raises(KeyboardInterrupt):
        run_jobs(tasks, Ledger(tmp_path, {"kind": "verify"}), workers)
    progress = read_progress(tmp_path)
    assert progress.plan is not None
    assert progress.plan.costs == {task.name: task.cost for task in tasks}
    assert progress.plan.is_running
    assert progress.done < 3  # the longest job runs first, and is interrupted
    assert progress.work_share(progress.plan.started - 5.0) == progress.work_share()


def test_damaged_outcome_is_run_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, {})
    with Workers(jobs=1) as workers:
        run_jobs([job(1)], ledger, workers)
        path = tmp_path / "runs" / job(1).name
        for damage in ("", "{", "[]", '{"outcome": {}}', path.read_text().replace('"seed": 1', '"seed": 2')):
            path.write_text(damage)
            assert ledger.get(job(1)) is None
            assert run_jobs([job(1)], ledger, workers)[0]["value"] == 1.5
    assert len(CALLS) == 6


def test_job_names_are_unique() -> None:
    names = {item.name for item in (job(1), job(2), job(1, alpha=0.6), job(1, n=2))}
    assert len(names) == 4
    assert job(1).name.startswith("synthetic-compute-alpha=0.5-gamma=0.2-seed=1-")
    assert "/" not in Job(compute, {}, 1, {"path": "../../etc/x"}, 1.0).name


def test_folder_with_other_settings_is_refused(tmp_path: Path) -> None:
    Ledger(tmp_path, {"rounds": 100, "data": {"synthetic": "a"}})
    Ledger(tmp_path, {"rounds": 100, "data": {"movielens": "b"}})  # adding a data set is allowed
    with pytest.raises(ValueError, match="has runs with other settings .rounds was 100 and is now 200.*new folder"):
        Ledger(tmp_path, {"rounds": 200})
    with pytest.raises(ValueError, match="digest of movielens was 'b' and is now 'c'"):
        Ledger(tmp_path, {"rounds": 100, "data": {"movielens": "c"}})
    kept = json.loads((tmp_path / "settings.json").read_text())
    assert kept["data"] == {"synthetic": "a", "movielens": "b"}
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(ValueError, match="cannot read .*settings.json"):
        Ledger(tmp_path, {"rounds": 100})


def test_folder_of_an_older_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"format": 1, "rounds": 100}')
    with pytest.raises(ValueError, match="has runs in format 1, but this version of locb uses format 2; choose a new"):
        Ledger(tmp_path, {"rounds": 100})


def test_read_only_folder_is_refused() -> None:
    with pytest.raises(ValueError, match="folder: cannot write to /dev/null/out .Not a directory"):
        Ledger(Path("/dev/null/out"), {})


def test_report_scope_is_kept(tmp_path: Path) -> None:
    Ledger(tmp_path, {"rounds": 1}).extend_scope(targets=["a"])
    ledger = Ledger(tmp_path, {"rounds": 1})
    assert ledger.report_scope == {"targets": ["a"]}
    ledger.extend_scope(repeats=3)
    assert Ledger(tmp_path, {"rounds": 1}).report_scope == {"targets": ["a"], "repeats": 3}


def test_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match="is not empty and has no settings.json"):
        Ledger(tmp_path, {})
    with pytest.raises(ValueError, match="is a file, not a folder"):
        Ledger(tmp_path / "thesis.tex", {})

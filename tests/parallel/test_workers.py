"""Parallel execution: results do not depend on the backend, and failed workers lose no task."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from locb.experiments.jobs import Job, Ledger, run_jobs
from locb.experiments.reproduce.data_set import open_data_set
from locb.experiments.reproduce.regret import plan_regret
from locb.experiments.reproduce.target import Sizes
from locb.parallel.workers import Workers


def square(number: int) -> int:
    return number * number


def exit_once(task: tuple[int, str]) -> int:
    """Exit the process when number 5 is run for the first time."""
    number, marker = task
    if number == 5 and not Path(marker).exists():
        Path(marker).touch()
        os._exit(1)
    time.sleep(0.02)
    return number


def always_exit(number: int) -> int:
    if number == 1:
        os._exit(1)
    return number


def fail(number: int) -> int:
    raise ValueError(f"number {number} is invalid")


def jobs() -> list[Job]:
    environment = {"n_users": 12, "n_clusters": 2, "n_arms": 3}
    return plan_regret(open_data_set("synthetic", environment, 0), Sizes(repeats=2, rounds=300, seed=0))


def run_files(folder: Path, workers: Workers) -> dict[str, bytes]:
    """Return the files of all runs."""
    with workers:
        run_jobs(jobs(), Ledger(folder, {}), workers)
    return {path.name: path.read_bytes() for path in (folder / "runs").iterdir()}


def test_results_have_indices() -> None:
    with Workers(jobs=2) as workers:
        assert sorted(workers.run(square, range(9))) == [(n, n * n) for n in range(9)]
        assert list(workers.run(square, [])) == []


def test_failed_worker_loses_no_task(tmp_path: Path) -> None:
    tasks = [(number, str(tmp_path / "exited")) for number in range(12)]
    with Workers(jobs=2) as workers, pytest.warns(UserWarning, match="repeating [0-9]+ unfinished runs"):
        assert sorted(workers.run(exit_once, tasks)) == [(number, number) for number in range(12)]


def test_repeated_failure_raises() -> None:
    given_up = pytest.raises(OSError, match="workers failed 4 times in a row with [0-9]+ runs left")
    with Workers(jobs=2) as workers, pytest.warns(UserWarning, match="a worker failed"), given_up:
        list(workers.run(always_exit, range(4)))


def test_error_in_a_task_is_not_retried() -> None:
    with Workers(jobs=2) as workers, pytest.raises(ValueError, match="is invalid"):
        list(workers.run(fail, range(4)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dask_gives_the_same_files_and_survives_a_failure(tmp_path: Path, dask_address: str) -> None:
    here = run_files(tmp_path / "loky", Workers(jobs=1))
    workers = Workers(backend="dask", address=dask_address)
    assert run_files(tmp_path / "dask", workers) == here
    assert workers.jobs == 2
    tasks = [(number, str(tmp_path / "exited")) for number in range(12)]
    with Workers(backend="dask", address=dask_address) as again:
        assert sorted(again.run(exit_once, tasks)) == [(number, number) for number in range(12)]
        with pytest.raises(ValueError, match="is invalid"):
            list(again.run(fail, range(3)))


@pytest.mark.filterwarnings("ignore")  # warnings of Ray itself
def test_ray_gives_the_same_files_and_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    # Workers of Ray import this file.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    here = run_files(tmp_path / "loky", Workers(jobs=2))
    tasks = [(number, str(tmp_path / "exited")) for number in range(12)]
    with Workers(jobs=2, backend="ray") as workers:
        run_jobs(jobs(), Ledger(tmp_path / "ray", {}), workers)
        assert {path.name: path.read_bytes() for path in (tmp_path / "ray" / "runs").iterdir()} == here
        assert sorted(workers.run(exit_once, tasks)) == [(number, number) for number in range(12)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, "jobs must be -1 or at least 1, not 0"),
        ({"backend": "slurm"}, "backend must be one of loky, dask, ray, not 'slurm'"),
        ({"address": "localhost:1"}, "address 'localhost:1' requires backend 'dask' or 'ray'"),
    ],
)
def test_invalid_settings(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workers(**arguments)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("backend", "what"), [("dask", "Dask scheduler"), ("ray", "Ray head")])
def test_unreachable_cluster_is_reported_quickly(backend: str, what: str) -> None:
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    began = time.monotonic()
    with pytest.raises(ValueError, match=f"no {what} answers at '127.0.0.1:9'.*start it with"):
        Workers(backend=backend, address="127.0.0.1:9").__enter__()
    assert time.monotonic() - began < 15.0
    with pytest.raises(ValueError, match=f"address must be HOST:PORT of the {what}, not 'nowhere'"):
        Workers(backend=backend, address="nowhere").__enter__()

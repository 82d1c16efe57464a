"""The same results wherever runs are played, and no run lost with a worker."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from locb.experiments.jobs import Job, Ledger, run_jobs
from locb.experiments.parallel import Workers
from locb.experiments.reproduce.regret import plan_regret
from locb.experiments.reproduce.targets import Sizes, open_data_set


def square(number: int) -> int:
    return number * number


def dies_once(task: tuple[int, str]) -> int:
    """Kills its process the first time that number 5 comes."""
    number, mark = task
    if number == 5 and not Path(mark).exists():
        Path(mark).touch()
        os._exit(1)
    time.sleep(0.02)
    return number


def always_dies(number: int) -> int:
    if number == 1:
        os._exit(1)
    return number


def fails(number: int) -> int:
    raise ValueError(f"number {number} is no good")


@pytest.fixture
def dask_address() -> Iterator[str]:
    """A real cluster of two worker processes, in which this folder's modules can be imported."""
    distributed = pytest.importorskip("dask.distributed", reason="Dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address


def jobs() -> list[Job]:
    world = {"n_users": 12, "n_clusters": 2, "n_arms": 3}
    return plan_regret(open_data_set("synthetic", world, 0), Sizes(repeats=2, rounds=300, seed=0))


def kept(folder: Path, workers: Workers) -> dict[str, bytes]:
    """The files of all runs."""
    with workers:
        run_jobs(jobs(), Ledger(folder, {}), workers)
    return {path.name: path.read_bytes() for path in (folder / "runs").iterdir()}


def test_results_come_with_their_places() -> None:
    with Workers(jobs=2) as workers:
        assert sorted(workers.run(square, range(9))) == [(n, n * n) for n in range(9)]
        assert list(workers.run(square, [])) == []


def test_a_worker_that_dies_takes_no_run_with_it(tmp_path: Path) -> None:
    tasks = [(number, str(tmp_path / "died")) for number in range(12)]
    with Workers(jobs=2) as workers, pytest.warns(UserWarning, match="a worker died; [0-9]+ runs go on"):
        assert sorted(workers.run(dies_once, tasks)) == [(number, number) for number in range(12)]


def test_a_run_that_always_kills_its_worker_is_given_up() -> None:
    given_up = pytest.raises(OSError, match="workers died 4 times in a row with [0-9]+ runs left")
    with Workers(jobs=2) as workers, pytest.warns(UserWarning, match="a worker died"), given_up:
        list(workers.run(always_dies, range(4)))


def test_an_error_in_a_run_is_not_retried() -> None:
    with Workers(jobs=2) as workers, pytest.raises(ValueError, match="is no good"):
        list(workers.run(fails, range(4)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dask_gives_the_same_bytes_and_survives_a_death(tmp_path: Path, dask_address: str) -> None:
    here = kept(tmp_path / "loky", Workers(jobs=1))
    workers = Workers(backend="dask", address=dask_address)
    assert kept(tmp_path / "dask", workers) == here
    assert workers.jobs == 2
    tasks = [(number, str(tmp_path / "died")) for number in range(12)]
    with Workers(backend="dask", address=dask_address) as again:
        assert sorted(again.run(dies_once, tasks)) == [(number, number) for number in range(12)]
        with pytest.raises(ValueError, match="is no good"):
            list(again.run(fails, range(3)))


@pytest.mark.filterwarnings("ignore")  # Ray's own, about its sockets and its future
def test_ray_gives_the_same_bytes_and_survives_a_death(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # where Ray's workers find this file
    here = kept(tmp_path / "loky", Workers(jobs=2))
    tasks = [(number, str(tmp_path / "died")) for number in range(12)]
    with Workers(jobs=2, backend="ray") as workers:
        run_jobs(jobs(), Ledger(tmp_path / "ray", {}), workers)
        assert {path.name: path.read_bytes() for path in (tmp_path / "ray" / "runs").iterdir()} == here
        assert sorted(workers.run(dies_once, tasks)) == [(number, number) for number in range(12)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, "jobs must be -1 or at least 1, not 0"),
        ({"backend": "slurm"}, "backend must be one of loky, dask, ray, not 'slurm'"),
        ({"address": "localhost:1"}, "address goes with --backend dask or ray"),
    ],
)
def test_bad_settings(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workers(**arguments)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("backend", "what"), [("dask", "Dask scheduler"), ("ray", "Ray head")])
def test_an_unreachable_cluster_is_named_at_once(backend: str, what: str) -> None:
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    began = time.monotonic()
    with pytest.raises(ValueError, match=f"no {what} answers at '127.0.0.1:9'.*start one with"):
        Workers(backend=backend, address="127.0.0.1:9").__enter__()
    assert time.monotonic() - began < 15.0
    with pytest.raises(ValueError, match=f"address must be HOST:PORT of the {what}, not 'nowhere'"):
        Workers(backend=backend, address="nowhere").__enter__()

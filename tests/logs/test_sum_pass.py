"""The pass over a log on a cluster gives the same bits as in one process, also if a worker is killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import locb
from locb.logs.groups import sum_pass
from locb.logs.groups.row_source import Table, TableRows, open_rows
from locb.logs.groups.sum_pass import sum_by_user
from locb.logs.groups.user_sums import UserSums
from locb.parallel.task_graphs import TaskGraph, open_tasks

ROWS, PARTITION = 2000, 150  # 14 partitions, of which some have rows of two files


def write_log(folder: Path) -> Path:
    """Write three files: one has quoted line breaks, and all have rows that cannot be used."""
    rng = np.random.default_rng(3)
    reward = [f"{value:.3f}" for value in 90 + 20 * rng.random(ROWS)]
    for row in (700, 701, 1500, 1999):
        reward[row] = "many"
    for row in (3, 900, 1700):
        reward[row] = "9000"
    frame = pl.DataFrame(
        {
            "user": [f"u{user}" if user else None for user in rng.integers(80, size=ROWS)],
            "price": rng.random(ROWS) / 3,
            "kind": [f"{kind}\nkind" for kind in rng.integers(3, size=ROWS)],
            "reward": reward,
        }
    )
    folder.mkdir()
    frame[:160].write_csv(folder / "a.csv")
    frame[160:1400].write_csv(folder / "b.csv.gz", compression="gzip")
    frame[1400:].write_parquet(folder / "c.parquet")
    return folder


def bits(sums: UserSums) -> tuple[Any, ...]:
    arrays = (sums.counts, sums.rows, sums.squares, sums.rewards, sums.basis, sums.effects, sums.offsets)
    return sums.ids.to_list(), sums.names, sums.sigma, sums.limits, *(array.tobytes() for array in arrays)


def scan_or_exit(scan: Callable[[], Any], marker: Path, owner: int) -> Any:
    """Scan a file. The first other process that does so is killed."""
    if os.getpid() != owner and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return scan()


def scan_elsewhere(scan: Callable[[], Any], path: Path, owner: int) -> Any:
    """Scan a file, and in other processes the file ``path``."""
    return scan() if os.getpid() == owner else pl.scan_parquet(path)


def open_log(folder: Path, scan: Callable[..., Any] | None = None, path: Path | None = None) -> TableRows:
    """Open the log. ``scan`` reads the last file, whose partitions are in a late window."""
    source = open_rows(folder, "auto", {"features": ["price", "kind"]})
    assert isinstance(source, TableRows)
    if scan is not None:
        last = source.tables[-1]
        source.tables = [*source.tables[:-1], Table(last.name, partial(scan, last.scan, path, os.getpid()))]
    return source


def check_cluster(tasks: TaskGraph, folder: Path) -> None:
    """Compare the sums of two workers, of which one is killed, with those of this process."""
    marker, progress = folder.parent / "killed", list[int]()
    here, there = open_log(folder), open_log(folder, scan_or_exit, marker)
    expected = sum_by_user(here, batch_rows=64, partition_rows=PARTITION, robust=True)
    assert expected.limits is not None
    assert tasks.workers == 2
    options: dict[str, Any] = {"partition_rows": PARTITION, "robust": True}
    found = sum_by_user(there, batch_rows=70, progress=progress.append, tasks=tasks, **options)
    assert marker.exists()  # a worker was killed
    assert bits(found) == bits(expected)
    assert there.skipped == here.skipped
    assert progress == 2 * sorted(set(progress))  # the log is read twice, because it has outliers
    assert progress[-1] == expected.counts.sum()
    absent = open_log(folder, scan_elsewhere, folder / "no.parquet")
    with pytest.raises(ValueError, match=r"^worker .+ cannot read .+no\.parquet; every worker needs the files"):
        sum_by_user(absent, partition_rows=PARTITION, tasks=tasks)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dask_gives_the_same_bits_if_a_worker_is_killed(
    tmp_path: Path, dask_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, on = write_log(tmp_path / "log"), dask_address.replace("tcp", "dask")
    with open_tasks(on) as tasks:
        check_cluster(tasks, folder)
    options: dict[str, Any] = {"features": ["price"], "method": "off-club", "replicates": 0}
    here, there = locb.find_groups(folder, **options), locb.find_groups(folder, on=on, **options)
    assert there.users.equals(here.users)
    assert there.settings == here.settings
    monkeypatch.setattr(sum_pass, "_versions", lambda: ["locb 9"])  # of this process, not of the workers
    with pytest.raises(ValueError, match=r"^worker .+ has locb .+, numpy .+, but this process has locb 9; install the"):
        locb.find_groups(folder, on=on, **options)


@pytest.mark.filterwarnings("ignore")  # warnings of Ray itself
def test_ray_gives_the_same_bits_if_a_worker_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # workers import this file
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    with open_tasks("ray") as tasks:
        check_cluster(tasks, write_log(tmp_path / "log"))


def test_partitions_are_the_same_for_one_file_and_several(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "log")
    source = open_log(folder)
    parts = source.partitions(PARTITION)
    rows = [sum(table.rows or 0 for table in tables) for tables in parts]
    assert rows == [150] * 13 + [50]
    assert [(table.name, table.start, table.rows) for table in parts[1]] == [("a.csv", 150, 10), ("b.csv.gz", 0, 140)]
    # Each partition, read on its own, has the rows of the pass over the whole log.
    whole = [
        (batch.partition, *pair)
        for batch in source.batches(7, PARTITION)
        for pair in zip(batch.users, batch.rewards, strict=True)
    ]
    alone = [
        (number, *pair)
        for number, tables in enumerate(parts)
        for batch in source.part(tables).batches(64, PARTITION)
        for pair in zip(batch.users, batch.rewards, strict=True)
    ]
    assert alone == whole
    users, rewards = source.skipped
    assert rewards.reason == "the reward (reward) is not a number"
    assert rewards.examples[0] == "b.csv.gz row 541: 'many'"
    assert users.examples[-1].startswith("b.csv.gz row")  # the row in its file, not in the partition


def test_order_of_partitions_is_kept_and_matters(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "log")
    expected, whole = sum_by_user(open_log(folder), partition_rows=PARTITION), sum_by_user(open_log(folder))
    assert expected.ids.to_list() == whole.ids.to_list()
    np.testing.assert_allclose(expected.rows, whole.rows, rtol=1e-9, atol=1e-9)
    assert bits(expected) != bits(whole)  # so a wrong order of partitions would be noticed


def test_cluster_reads_only_tables_in_files() -> None:
    frame = {"user": [1, 2], "reward": [0.0, 1.0], "x": [0.1, 0.2]}
    with pytest.raises(
        ValueError, match=r"^on requires a table in files \(CSV, JSON lines or Parquet\) that all workers"
    ):
        locb.find_groups(frame, features=["x"], on="dask")

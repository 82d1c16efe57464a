"""Cache of prepared data: concurrent processes, damaged entries and older versions."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import locb
from datasets import files

CODE = """
import sys, locb
env = locb.datasets.movielens(sys.argv[1], n_users=8, n_arms=3, dim=4, features_from="all", cache_dir=sys.argv[2])
print(env.theta.sum())
"""


def test_concurrent_processes(tmp_path: Path) -> None:
    folder = files.movielens_csv(tmp_path / "ml")
    command = [sys.executable, "-W", "error", "-c", CODE, str(folder), str(tmp_path / "cache")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(5)]
    outputs = [process.communicate(timeout=120) for process in running]
    assert all(process.returncode == 0 for process in running), outputs
    assert len({out for out, _ in outputs}) == 1
    (entry,) = (tmp_path / "cache").iterdir()  # one entry and no temporary folder
    assert sorted(file.name for file in entry.iterdir()) == [
        "facts.json",
        "features.npy",
        "items.npy",
        "liked.npy",
        "user_names.npy",
        "users.npy",
    ]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("items.npy", b""),
        ("facts.json", b"[]"),
        ("facts.json", b"{}"),
        ("facts.json", b'{"arrays": {}, "facts": {}}'),
        ("users.npy", None),
        ("features.npy", None),
    ],
)
def test_damaged_entry_is_prepared_again(file: str, content: bytes | None, tmp_path: Path) -> None:
    folder = files.movielens_csv(tmp_path / "ml")
    arguments = {"n_users": 8, "n_arms": 3, "dim": 4, "features_from": "all", "cache_dir": tmp_path / "cache"}
    expected = locb.datasets.movielens(folder, **arguments).theta
    (entry,) = (tmp_path / "cache").iterdir()
    if content is None:  # flip one bit of the last number
        content = bytearray((entry / file).read_bytes())
        content[-3] ^= 16
    (entry / file).write_bytes(content)
    with pytest.warns(UserWarning, match="cannot use cache entry .* preparing the data again"):
        again = locb.datasets.movielens(folder, **arguments)
    assert np.array_equal(again.theta, expected)
    assert np.array_equal(locb.datasets.movielens(folder, **arguments).theta, expected)


def test_entry_of_another_version_is_prepared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = files.movielens_csv(tmp_path / "ml")
    arguments = {"n_users": 8, "n_arms": 3, "dim": 4, "features_from": "all", "cache_dir": tmp_path / "cache"}
    monkeypatch.setattr("locb.datasets.dataset_cache.VERSION", 1)
    older = locb.datasets.movielens(folder, **arguments)
    monkeypatch.undo()
    assert np.array_equal(locb.datasets.movielens(folder, **arguments).theta, older.theta)
    assert len(list((tmp_path / "cache").iterdir())) == 2

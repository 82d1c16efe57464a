"""Finished replays are kept: evaluations and searches continue after an interruption, with the same result."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from commandline import call, surroundings
from locb.logs import replay
from locb.logs.saved_replays import SavedReplays

SETTINGS: dict[str, Any] = {"folds": 3, "replays": 2, "replicates": 20, "grid": {"alpha": [0.1, 1.0]}}

# While the file "pipe" exists, the policy with seed 2 writes to the named pipe "pipe", for which the test waits, and
# waits for the interruption. Each policy adds its seed to the file "seeds".
POLICY = """
import os
import time

import locb


class Waiting(locb.Policy):
    def __init__(self, *, n_users, dim, seed):
        super().__init__(n_users=n_users, dim=dim)
        with open("seeds", "a") as file:
            file.write(f"{seed}\\n")
        if seed == 2 and os.path.exists("pipe"):
            with open("pipe", "w") as pipe:
                pipe.write("started")
            while True:
                time.sleep(0.01)

    def recommend(self, user, contexts):
        return user % len(contexts)

    def update(self, user, context, reward):
        pass
"""


def make_log(seed: int = 0) -> locb.Log:
    rng = np.random.default_rng(seed)
    arm = rng.integers(2, size=300)
    reward = 1.0 * (rng.random(300) < 0.2 + 0.4 * arm)
    return locb.Log.read({"user": rng.integers(20, size=300), "arm": arm, "reward": reward}, propensity="uniform")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds of the replays that were computed, and not read from a folder."""
    seeds: list[int] = []
    compute = replay._compute_replay

    def count(log: Any, target: Any, seed: int, *others: Any) -> Any:
        seeds.append(seed)
        return compute(log, target, seed, *others)

    monkeypatch.setattr(replay, "_compute_replay", count)
    return seeds


def test_search_computes_each_replay_once(tmp_path: Path, computed: list[int]) -> None:
    plain = locb.tune(make_log(), ["linucb-one", "arm:1"], **SETTINGS)
    assert len(computed) == 2 * 3 * 2  # settings, folds, replays
    first = locb.tune(make_log(), ["linucb-one", "arm:1"], folder=tmp_path, **SETTINGS)
    assert len(computed) == 24
    again = locb.tune(make_log(), ["linucb-one", "arm:1"], folder=tmp_path, **SETTINGS)
    assert len(computed) == 24
    assert plain == first == again


def test_evaluation_computes_each_replay_once(tmp_path: Path, computed: list[int]) -> None:
    options: dict[str, Any] = {"replicates": 100, "replays": 5}
    plain = locb.evaluate(make_log(), ["linucb-one"], **options)
    first = locb.evaluate(make_log(), ["linucb-one"], folder=tmp_path, **options)
    assert len(computed) == 12
    again = locb.evaluate(make_log(), ["linucb-one"], folder=tmp_path, **options)
    assert len(computed) == 12
    assert str(plain["linucb-one"]) == str(first["linucb-one"]) == str(again["linucb-one"])


@pytest.mark.parametrize("change", ["log", "seed", "parameters"])
def test_replays_with_other_settings_are_not_reused(tmp_path: Path, computed: list[int], change: str) -> None:
    options: dict[str, Any] = {"replicates": 100, "replays": 5, "folder": tmp_path}
    locb.evaluate(make_log(), ["linucb-one"], **options)
    log = make_log(1) if change == "log" else make_log()
    changed = {"seed": {"seed": 100}, "parameters": {"parameters": {"alpha": 0.7}}}.get(change, {})
    locb.evaluate(log, ["linucb-one"], **options | changed)
    assert len(computed) == 12


def test_damaged_file_is_computed_again(tmp_path: Path, computed: list[int]) -> None:
    options: dict[str, Any] = {"replicates": 100, "replays": 5, "folder": tmp_path}
    before = locb.evaluate(make_log(), ["linucb-one"], **options)
    files = sorted(tmp_path.iterdir())
    files[0].write_bytes(b"")
    files[1].write_bytes(files[1].read_bytes()[:-8])
    after = locb.evaluate(make_log(), ["linucb-one"], **options)
    assert len(computed) == 8
    assert str(before["linucb-one"]) == str(after["linucb-one"])


def test_policies_that_are_objects_are_computed_again(tmp_path: Path, computed: list[int]) -> None:
    log = make_log()
    policy = locb.LinUCB(n_users=log.n_users, dim=log.dim)
    for _ in range(2):
        locb.evaluate(log, policy, replicates=100, replays=5, folder=tmp_path)
    assert len(computed) == 12
    assert not list(tmp_path.iterdir())


def test_folder_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file is a file, not a folder; choose a new folder"):
        SavedReplays(tmp_path / "file", make_log())


def test_interrupted_command_continues(tmp_path: Path) -> None:
    """The result after Ctrl-C and the same command equals that of an uninterrupted command."""
    (tmp_path / "mine.py").write_text(POLICY)
    rng = np.random.default_rng(0)
    rows = [f"u{rng.integers(20)},{'AB'[rng.integers(2)]},{rng.integers(2)}" for _ in range(200)]
    (tmp_path / "log.csv").write_text("\n".join(["user,arm,reward", *rows]) + "\n")
    command = ["evaluate", "log.csv", "--propensity", "uniform", "--policy", "mine.py:Waiting", "--replays", "5"]
    done = call(*command, "--output", "plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seeds").read_text().split() == ["0", "1", "2", "3", "4", "5"]
    assert not (tmp_path / "plain" / "unfinished").exists()

    (tmp_path / "seeds").unlink()
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen(
        [sys.executable, "-c", "from locb.cli import main; main()", *command, "--output", "out"],
        cwd=tmp_path,
        env=os.environ | surroundings(tmp_path, 200) | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert select.select([pipe], [], [], 240.0)[0], "the replay with seed 2 did not start"
    finally:
        os.close(pipe)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert re.search("locb: interrupted; finished replays in out/unfinished: 2; run the same command to", errors), (
        errors
    )

    (tmp_path / "pipe").unlink()
    again = call(*command, "--output", "out", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "Found 2 finished replays in out/unfinished." in again.stdout
    assert (tmp_path / "seeds").read_text().split() == ["0", "1", "2", "2", "3", "4", "5"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["evaluation.json", "report.html"]
    records = [json.loads((tmp_path / name / "evaluation.json").read_text()) for name in ("plain", "out")]
    assert records[0] == records[1]

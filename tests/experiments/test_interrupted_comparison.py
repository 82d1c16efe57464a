"""``locb compare`` and ``locb verify`` after Ctrl-C: finished runs are kept, and the same command continues."""

import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commandline import call, run, surroundings
from locb.experiments import verify
from locb.experiments.jobs import Job, Ledger
from locb.experiments.verify import Verification

# Records every run. While the file "pipe" exists, the run with seed 2 waits for another finished run, writes to the
# named pipe "pipe", for which the test waits, and waits for the interruption.
POLICY = """
import glob
import os
import time

import locb


class Waiting(locb.Policy):
    def __init__(self, *, n_users, dim, seed):
        super().__init__(n_users=n_users, dim=dim)
        self.seed, self.started = seed, False

    def recommend(self, user, contexts):
        if not self.started:
            self.started = True
            with open("started", "a") as file:
                file.write(f"{self.seed}\\n")
            if self.seed == 2 and os.path.exists("pipe"):
                while not glob.glob("runs/*/unfinished/runs/*.json"):
                    time.sleep(0.01)
                with open("pipe", "w") as pipe:
                    pipe.write("started")
                while True:
                    time.sleep(0.01)
        return user % len(contexts)

    def update(self, user, context, reward):
        pass
"""
SIZE = ["--rounds", "200", "--repeats", "4", "--users", "6", "--clusters", "2", "--arms", "3"]
COMMAND = ["compare", "--policies", "mine.py:Waiting,club", *SIZE]


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """Return the content of run.json without computation times."""
    for result in record["results"]:
        del result["microseconds_per_round"]
    return record


VERIFICATION = {"coverage_rounds": 100, "theory_rounds": 100, "users": 4, "gammas": (6.0, 5.0), "repeats": 2}
SCENARIOS = ["compare", "--scenarios", "two-clusters", "--policies", "linucb-one,linucb-ind", "--alphas", "0.3"]


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        (["verify", "--quick"], "verify-quick"),
        ([*SCENARIOS, "--rounds", "100", "--repeats", "1"], "scenarios"),
    ],
    ids=["verify", "scenarios"],
)
def test_interrupted_verification_and_scenarios_continue(
    command: list[str], folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command continues with the runs that were finished before each interruption."""
    stored: list[str] = []
    put = Ledger.put

    def interrupt_after(ledger: Ledger, job: Job, outcome: dict[str, Any]) -> None:
        put(ledger, job, outcome)
        stored.append(job.name)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Ledger, "put", interrupt_after)
    monkeypatch.setattr(
        verify, "QUICK", Verification(**VERIFICATION, user_counts=(10, 12), rounds=100, safety_rounds=100)
    )
    for finished in (1, 2):
        done = call(*command, "--jobs", "1", cwd=tmp_path)
        assert done.returncode == 130
        kept = f"finished runs in runs/{folder}: {finished}"
        assert done.stderr == f"locb: interrupted; {kept}; to continue, run: locb {shlex.join(command)} --jobs 1\n"
    assert len(set(stored)) == 2


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return run.json of a command that is not interrupted, without computation times."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    (folder / "mine.py").write_text(POLICY)
    done = call(*COMMAND, "--jobs", "1", "--output", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    return comparable(json.loads((folder / "out" / "run.json").read_text()))


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupted_comparison_continues(jobs: str, tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    """The result after an interruption and the command in the message equals that of an uninterrupted command."""
    (tmp_path / "mine.py").write_text(POLICY)
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    command = [*COMMAND, "--jobs", jobs]
    process = subprocess.Popen(
        [sys.executable, "-c", "from locb.cli import main; main()", *command],
        cwd=tmp_path,
        env=os.environ | surroundings(tmp_path, 200) | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert select.select([pipe], [], [], 240.0)[0], "the run with seed 2 did not start"
    finally:
        os.close(pipe)
    os.killpg(process.pid, signal.SIGINT)  # like a terminal, which interrupts worker processes too
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    (folder,) = (tmp_path / "runs").iterdir()
    kept = {path: path.stat().st_mtime_ns for path in (folder / "unfinished" / "runs").glob("*.json")}
    assert 1 <= len(kept) < 8
    assert jobs == "2" or "Traceback" not in errors  # a worker that is still starting can print one
    count = f"finished runs in runs/{folder.name}/unfinished: {len(kept)}"
    message = re.search(f"locb: interrupted; {count}; to continue, run: locb (compare --policies .*)", errors)
    assert message is not None, errors

    (tmp_path / "pipe").unlink()
    (tmp_path / "started").unlink()
    again = run(*shlex.split(message[1]), cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert f"Reused {len(kept)} of 8 runs from runs/{folder.name}/unfinished." in again.stdout
    waiting = sum("policy=Waiting" in path.name for path in kept)
    assert len((tmp_path / "started").read_text().split()) == 4 - waiting  # finished runs are not run again
    assert sorted(path.name for path in folder.iterdir()) == ["regret.png", "report.html", "run.json", "users.png"]
    assert comparable(json.loads((folder / "run.json").read_text())) == uninterrupted

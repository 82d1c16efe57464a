"""The command line as a person meets it: real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SMALL = ["--rounds", "400", "--repeats", "2", "--users", "12", "--clusters", "2", "--arms", "4"]


def run(*arguments: str, cwd: Path, width: int = 200) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": str(width), "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-c", "from locb.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def test_compare_prints_a_table_and_writes_a_folder(tmp_path: Path) -> None:
    done = run("compare", *SMALL, "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for name in ("locb", "linucb-one", "linucb-ind", "club", "sclub"):
        assert name in done.stdout
    assert "has the lowest regret" in done.stdout
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "regret.png",
        "report.html",
        "run.json",
        "users.png",
    ]
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["settings"]["world"]["noise"] == "bernoulli"


def test_the_default_folder_is_a_new_one_under_runs(tmp_path: Path) -> None:
    done = run("compare", *SMALL, "--policies", "linucb-one", "--noise", "0.1", "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("compare-")
    assert json.loads((folder / "run.json").read_text())["settings"]["world"]["noise"] == 0.1


def test_a_narrow_terminal_shows_every_figure(tmp_path: Path) -> None:
    done = run("compare", *SMALL, "--output", "out", cwd=tmp_path, width=80)
    assert "…" not in done.stdout.split("Playing")[-1], done.stdout


def test_a_policy_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import locb\n"
        "class Mine(locb.Policy):\n"
        "    def recommend(self, user, contexts):\n"
        "        return 0\n"
        "    def update(self, user, context, reward):\n"
        "        pass\n"
    )
    done = run("compare", *SMALL, "--policies", "mine.py:Mine,linucb-one", "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Mine" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policies", "ucb"], "locb: policies must be among"),
        (["--policies", ","], "locb: --policies must name at least one"),
        (["--policies", "none.py:X"], "locb: policies: there is no file 'none.py'"),
        (["--alphas", "much"], "locb: --alphas must be a number, not 'much'"),
        (["--noise", "loud"], "locb: --noise must be 'bernoulli' or a number, not 'loud'"),
        (["--noise", "-1"], "locb: noise must be 'bernoulli' or a deviation"),
        (["--arrivals", "never"], "locb: arrivals must be one of"),
        (["--clusters", "50"], "locb: --clusters must be at most --users = 12, not 50"),
        (["--rounds", "0"], "locb: rounds must be at least 1"),
        (["--gamma", "-1"], "locb: gamma must be strictly between 0"),
        (["--output", "file/below"], "locb: "),
        (["--output", "file"], "locb: --output: file is a file, not a folder"),
        (["--jobs", "0"], "locb: jobs must be -1 or at least 1, not 0"),
        (["--alphas", "1,1"], "locb: alphas must differ, not 1.0, 1.0"),
    ],
)
def test_a_mistake_is_one_clear_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = run("compare", *SMALL, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "has no class 'Mine' that is a locb.Policy"),
        ("class Mine: pass", "has no class 'Mine' that is a locb.Policy"),
        ("import nowhere", "does not load: ModuleNotFoundError"),
    ],
)
def test_a_file_without_a_policy(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(text)
    done = run("compare", "--policies", "mine.py:Mine", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_help_teaches_and_version_is_told(tmp_path: Path) -> None:
    shown = run("compare", "--help", cwd=tmp_path)
    assert shown.returncode == 0
    for word in ("--alphas", "--n-seeds", "Examples", "report.html", "bernoulli"):
        assert word in shown.stdout
    assert run("--version", cwd=tmp_path).stdout.startswith("locb 0.")
    assert "compare" in run("--help", cwd=tmp_path).stdout

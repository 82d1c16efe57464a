"""Terminal views of run folders: progress and results."""

import io
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import locb
from locb.evaluation.findings import Claim, Criterion, Findings, Measurement
from locb.evaluation.results import Comparison
from locb.evaluation.run_folder import PLAN_FILE, RunPlan
from locb.report.comparison_folder import comparison_to_json
from locb.report.curves import CURVES
from locb.report.findings_folder import write_findings
from locb.report.run_record import CurveMeans, read_run
from locb.report.terminal.run_view import read_progress, render_curves, render_run

NOW = 10_000.0


def printed(folder: Path, width: int = 200, *, plain: bool = False, now: float = NOW) -> tuple[str, bool]:
    view, complete = render_run(folder, width, now, plain=plain)
    console = Console(width=width, file=io.StringIO(), no_color=True, highlight=False)
    console.print(view)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return " ".join(text.split()), complete


def unfinished_run(folder: Path, done: int, *, plan: RunPlan | None, kind: str = "reproduce") -> Path:
    """Write a folder of four runs with 1, 2, 3 and 4 units of work. The first runs are done, one per minute."""
    (folder / "runs").mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"kind": kind, "format": 1}))
    for index in range(done):
        path = folder / "runs" / f"run-{index}.json"
        path.write_text("{}")
        os.utime(path, (NOW - 240 + 60 * (index + 1),) * 2)
    if plan is not None:
        plan.write(folder)
    return folder


def plan(process: int = os.getpid(), host: str | None = None, started: float = NOW - 240) -> RunPlan:
    return RunPlan(started, {f"run-{i}.json": i + 1.0 for i in range(4)}, host or socket.gethostname(), process)


def ended() -> int:
    """Return the id of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_progress_and_remaining_time(tmp_path: Path) -> None:
    text, complete = printed(unfinished_run(tmp_path / "run", 2, plan=plan()))
    # Three of ten units took four minutes, so the other seven take nine minutes and twenty seconds.
    assert "2 of 4 runs, 30% of the work ██████░░░░░░░░░░░░░░" in text
    assert "running for 4 min; about 9 min 20 s left" in text
    assert "Last run-1, 2 min ago" in text
    assert not complete


def test_earlier_runs_do_not_count_for_the_speed(tmp_path: Path) -> None:
    # The first run finished before the command started: two units took 140 seconds, and seven are left.
    text, _ = printed(unfinished_run(tmp_path / "run", 2, plan=plan(started=NOW - 140)))
    assert "about 8 min 10 s left" in text


@pytest.mark.parametrize(
    ("done", "planned", "sentence"),
    [
        (0, plan(), "no estimate before the first run finishes"),
        (1, plan(process=ended()), "stopped; run the same command again to continue"),
        (1, plan(process=ended(), host="elsewhere"), "about 36 min left"),
        (4, plan(), "all runs are finished, writing tables and figures"),
        (3, None, "3 runs State not finished; the total number of runs is unknown"),
    ],
)
def test_state_is_described(tmp_path: Path, done: int, planned: RunPlan | None, sentence: str) -> None:
    text, complete = printed(unfinished_run(tmp_path / "run", done, plan=planned))
    assert sentence in text
    assert not complete


def test_verdicts_of_a_finished_run(tmp_path: Path) -> None:
    folder = unfinished_run(tmp_path / "run", 4, plan=plan(), kind="verify")
    criteria = [Criterion("a above b", Measurement(2.0, 1.0)), Criterion("a above c", Measurement(-5.0, 1.0))]
    claims = [
        Claim("s", "synthetic", "a is best", "Figure 1", criteria, explanation="c was lucky"),
        Claim("s", "synthetic", "b is second", "Figure 1", criteria[:1]),
    ]
    write_findings(Findings("T", [], [], claims, {"s": "S"}), folder)
    os.utime(folder / "index.html", (NOW - 1,) * 2)
    text, complete = printed(folder)
    assert complete
    assert "check of the paper's theorems" in text
    assert "finished at" in text
    assert "a above b: by 2.000 ± 1.000" in text
    assert "c was lucky" in text
    assert "Claims: 1 hold, 1 do not hold, 0 are undecided." in text
    os.utime(folder / "index.html", (NOW - 9_000,) * 2)  # written by an earlier process; this one still runs
    assert not printed(folder)[1]
    plan(process=ended()).write(folder)
    assert printed(folder)[1], "everything is written, and the process has ended"


def test_progress_of_a_comparison_is_shown_until_it_is_complete(folder: Path) -> None:
    """The folder also has an earlier comparison, which the new one replaces."""
    unfinished_run(folder / "unfinished", 3, plan=plan(), kind="compare")
    text, complete = printed(folder)
    assert not complete
    assert "comparison of policies (" in text
    assert "3 of 4 runs" in text
    plan(process=ended()).write(folder / "unfinished")
    stopped = printed(folder)[0]
    assert f"stopped; run the same command again with --output {folder} to continue" in stopped
    shutil.rmtree(folder / "unfinished")
    assert printed(folder)[1]


def test_unreadable_plan_is_ignored(tmp_path: Path) -> None:
    folder = unfinished_run(tmp_path / "run", 1, plan=plan())
    for content in ("{", "{}", "[]", '{"started": "x", "costs": {}, "host": "h", "process": 1}'):
        (folder / PLAN_FILE).write_text(content)
        assert read_progress(folder).plan is None


@pytest.fixture(scope="module")
def result() -> Comparison:
    policies = ["linucb-one", "linucb-ind", "locb"]
    environment = {"n_users": 8, "n_clusters": 2, "n_arms": 4}
    return locb.compare(policies, alphas=[0.3, 1.0], rounds=300, repeats=2, environment=environment, jobs=1)


@pytest.fixture
def folder(result: Comparison, tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_text(json.dumps(comparison_to_json(result)))
    return tmp_path


def test_comparison_round_trip(result: Comparison, folder: Path) -> None:
    record = read_run(folder)
    again = record.comparison
    assert again.verdict() == result.verdict()
    for before, after in zip(result.results, again.results, strict=True):
        assert (after.policy, after.alpha) == (before.policy, before.alpha)
        for name in ("reward", "n_clusters", "f1", "microseconds_per_round", "final_regret"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
        np.testing.assert_allclose(after.regret, before.regret, rtol=1e-5)
    np.testing.assert_array_equal(again.checkpoints, result.checkpoints)
    assert [means.curve.name for means in record.curves] == ["regret", "reward", "clusters", "f1"]
    regret, _, clusters, _ = record.curves
    assert list(clusters.means) == ["locb"]
    for entry in result.best_per_policy():
        np.testing.assert_allclose(regret.means[entry.policy], entry.regret.mean(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(clusters.rounds, result.cluster_checkpoints)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_comparison_view(result: Comparison, folder: Path, width: int) -> None:
    text, complete = printed(folder, width)
    assert complete
    assert " ".join(result.verdict().split()) in text
    for expected in ("linucb-ind", "µs/round", "Regret", "Reward", "Clusters", "F1 of the clusters"):
        assert expected in text
    assert "F1 of the clusters" not in printed(folder, width, plain=True)[0]


def test_record_without_curves(result: Comparison, folder: Path) -> None:
    kept = comparison_to_json(result)
    for name in ("rounds", "cluster_rounds"):
        del kept[name]
    for result_json in kept["results"]:
        del result_json["curves"]
    (folder / "run.json").write_text(json.dumps(kept))
    text, _ = printed(folder)
    assert " ".join(result.verdict().split()) in text
    assert "F1 of the clusters" not in text


def test_outlier_is_omitted_from_the_chart_and_named() -> None:
    means = {name: np.array([0.0, last]) for name, last in (("first", 100.0), ("worst", 900.0), ("second", 300.0))}
    chart = render_curves(CurveMeans(CURVES[0], np.array([1, 50]), means), 70, {}).plain
    assert chart.startswith("Regret (worst is off the scale and omitted)\n")
    assert chart.splitlines()[1].startswith("300 ┤")
    names = [row.split()[-1] for row in chart.splitlines()[1:-1] if row.split()[-1].isalpha()]
    assert names == ["second", "first"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"run has no run: expected run\.json or unfinished \(written by locb compare\) or settings\.json"),
        ({"run.json": "{"}, r"run\.json is not a record of locb compare: not valid JSON"),
        ({"run.json": "{}"}, r"run\.json is not a record of locb compare: missing or invalid field 'results'"),
        ({"settings.json": "{"}, r"settings\.json is not valid JSON"),
        ({"settings.json": '{"kind": "holiday"}'}, r"settings\.json does not describe a run: kind must be one of"),
    ],
)
def test_folder_without_a_run(tmp_path: Path, files: dict[str, str], message: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        render_run(folder, 80, NOW)
    with pytest.raises(ValueError, match="folder .*gone does not exist; to watch a service, pass its address"):
        render_run(tmp_path / "gone", 80, NOW)

"""The runs behind the paper's tables: they stop where they should, and claims are told from them alone."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from commandline import call
from locb.evaluation.findings import FAILS, HOLDS
from locb.experiments import paper_values as paper
from locb.experiments.parallel import Workers
from locb.experiments.reproduce import TARGETS, plan_reproduction, runs
from locb.experiments.reproduce.targets import peak_inside

SMALL = {"n_users": 12, "n_clusters": 3, "n_arms": 4}
SHARED = Path(__file__).parents[3] / "shared" / "data" / "ml-latest-small"


def club(env: locb.Synthetic) -> locb.CLUB:
    return locb.CLUB(n_users=env.n_users, dim=env.dim)


def test_play_to_stops_at_the_rounds_it_was_given() -> None:
    env = locb.Synthetic(**SMALL, seed=1)
    policy, stops = club(env), [3, 10, 4096, 5000]
    seen = []
    for stop in runs.play_to(policy, env, 7, stops):
        other = club(env)
        other.play(env.rounds(stop, seed=7))
        assert np.array_equal(policy.theta, other.theta)
        seen.append(stop)
    assert seen == stops
    assert policy.served.sum() == 5000


@pytest.mark.parametrize("name", ["club", "locb"])
def test_quiet_rounds_are_counted_as_the_rule_says(name: str) -> None:
    env = locb.Synthetic(**SMALL, noise=0.05, seed=2)

    def make() -> Any:
        return club(env) if name == "club" else locb.LOCB(n_users=12, dim=env.dim, n_seeds=12)

    found = list(runs.until_quiet(make(), env, 3, 40, 4000))
    policy = make()
    rounds = env.rounds(4000, seed=3)
    history = [sorted(len(cluster) for cluster in policy.clusters())]
    for t in range(4000):
        policy.update(int(rounds.users[t]), *_shown(policy, rounds, t))
        history.append([len(cluster) for cluster in policy.clusters()])
    quiet = [t for t in range(40, 4001) if all(history[t - s] == history[t] for s in range(41))]
    first_change = next(t for t in range(1, 4001) if history[t] != history[t - 1])
    assert first_change > 40
    assert found == [("start", 40), ("change", next(t for t in quiet if t > first_change))]


def _shown(policy: Any, rounds: locb.Rounds, t: int) -> tuple[Any, float]:
    arm = policy.recommend(int(rounds.users[t]), rounds.contexts[t])
    return rounds.contexts[t, arm], float(rounds.rewards[t, arm])


def test_quiet_that_never_comes_ends_with_the_rounds() -> None:
    env = locb.Synthetic(**SMALL, seed=2)
    assert list(runs.until_quiet(club(env), env, 3, 9000, 500)) == [("start", 500), ("change", 500)]


def test_st_baselines_stop_in_locbs_last_returning_round() -> None:
    settings = {"gamma": 0.2, "judged_at": [0.2], "taus": [8.0, 12.0], "alphas": [1.0], "n_seeds": 100}
    settings |= {"sigma": 0.5, "delta": 0.1, "quiet": 100, "most_rounds": 300_000}
    records = runs.accuracy(world=SMALL, seed=4, **settings)["records"]
    for tau in (8.0, 12.0):
        mine = {record["method"]: record for record in records if record.get("tau") == tau}
        env = locb.Synthetic(**SMALL, seed=4)
        policy = locb.LOCB(n_users=12, dim=env.dim, gamma=0.2, tau=tau, n_seeds=12, radius="clustering", seed=4)
        policy.play(env.rounds(300_000, seed=4))
        returns = {cluster.returned_at for cluster in policy.clusters()}
        assert len(returns) > 1  # else the last would be the first
        last = max(returns)
        assert [mine[name]["ended"] for name in ("LOCB", "ST-CLUB", "ST-SCLUB")] == [last] * 3
        assert mine["LOCB"]["f1"] == locb.match_clusters(policy.clusters(), env.true_clusters()).f1
        alone = club(env)
        alone.play(env.rounds(last, seed=4))
        assert mine["ST-CLUB"]["f1"] == locb.match_clusters(alone.clusters(), env.true_clusters()).f1
    assert {record["method"] for record in records} == set(paper.METHODS)


def test_a_peak_inside() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (5, 4))
    hill, slope = np.array([0.2, 0.8, 0.7, 0.3]) + noise, np.array([0.2, 0.4, 0.6, 0.9]) + noise
    assert [part.verdict for part in peak_inside("l", "r", hill)] == [HOLDS, HOLDS]
    assert [part.verdict for part in peak_inside("l", "r", slope)] == [HOLDS, FAILS]
    assert [part.verdict for part in peak_inside("l", "r", -hill, best="lowest")] == [HOLDS, HOLDS]


def test_the_choice_of_the_peak_favours_nothing() -> None:
    """In pure noise the best inner setting must not come out above the ends."""
    rng = np.random.default_rng(1)
    wins = [peak_inside("", "", rng.normal(size=(5, 5)))[0].difference.mean for _ in range(400)]
    assert abs(np.mean(wins)) < 0.12
    assert np.mean([w > 0 for w in wins]) == pytest.approx(0.5, abs=0.1)


def test_papers_figures_are_complete() -> None:
    for methods in paper.ACCURACY.values():
        assert tuple(methods) == paper.METHODS
        for f1, precision, recall in methods.values():
            assert f1 == pytest.approx(2 * precision * recall / (precision + recall), abs=0.011)
    assert paper.ACCURACY.keys() == paper.DATA.keys()


def test_unknown_targets_and_sizes() -> None:
    with pytest.raises(ValueError, match="there is no target 'regrets'; there are users, accuracy, .* and all"):
        plan_reproduction(["regrets"])
    with pytest.raises(ValueError, match="repeats must be at least 1, not 0"):
        plan_reproduction(["regret"], repeats=0)
    with pytest.raises(ValueError, match="rounds must be at least 100, not 7"):
        plan_reproduction(["regret"], rounds=7)
    assert plan_reproduction(["seeds", "users"]).targets == ["users", "seeds"]


def test_the_whole_on_synthetic_and_on_records(tmp_path: Path) -> None:
    """Every target, with a data set whose gamma 0.2 leaves no groups: two kinds of everything."""
    from datasets import files

    path = files.movielens_csv(tmp_path / "ml")
    world = {"data": "movielens", "path": str(path), "n_users": 30, "cache_dir": str(tmp_path / "cache")}
    with pytest.warns(UserWarning, match="users"):
        planned = plan_reproduction(["all"], data={"movielens": world}, repeats=2, rounds=400)
    assert planned.data_sets[1].scaled is not None
    planned, ledger = planned.open_folder(tmp_path / "out")
    with Workers(jobs=2) as workers:
        findings = planned.run(ledger, workers)
    assert list(findings.sections) == list(TARGETS)
    assert {claim.section for claim in findings.claims} == set(TARGETS)
    names = [table.name for table in findings.tables]
    assert len(set(names)) == len(names)
    assert {claim.evidence for claim in findings.claims} <= set(names)
    scaled = f"{planned.data_sets[1].scaled:g}"
    assert {"accuracy-movielens", f"accuracy-movielens-judged-{scaled}", f"accuracy-movielens-gamma-{scaled}"} <= set(
        names
    )
    assert findings.notes[0].startswith("Played: 2 repeats, 400 rounds a regret run, seed 0. Few rounds")
    assert "ground truth" in findings.notes[1]
    accuracy = next(table for table in findings.tables if table.name == "accuracy-synthetic")
    (ours,) = [row for row in accuracy.rows if row["method"] == "LOCB"]
    assert ours["setting"] == "tau 10"
    assert ours["paper's F1"] == 0.880
    assert ours["F1 less paper's"] == pytest.approx(ours["F1"].mean - 0.880)
    regret = next(table for table in findings.tables if table.name == "regret-synthetic")
    assert [row["policy"] for row in regret.rows if row["regret less LOCB's"] is None] == ["LOCB"]


def test_a_folder_tells_all_that_was_put_into_it(tmp_path: Path) -> None:
    def told(targets: list[str], repeats: int) -> Any:
        planned, ledger = plan_reproduction(targets, repeats=repeats, rounds=200).open_folder(tmp_path)
        with Workers(jobs=1) as workers:
            return planned.run(ledger, workers), ledger

    first, _ = told(["regret-by-seeds"], 3)
    both, ledger = told(["users"], 2)
    assert list(first.sections) == ["regret-by-seeds"]
    assert list(both.sections) == ["users", "regret-by-seeds"]
    assert both.settings["repeats"] == 3
    assert (ledger.reused, ledger.total) == (15, 15)
    assert [claim for claim in both.claims if claim.section == "regret-by-seeds"] == first.claims


def test_locb_finds_the_synthetic_clusters_at_tau_10() -> None:
    f1 = []
    for seed in range(5):
        settings = {"gamma": 0.2, "judged_at": [0.2], "tau": 10.0, "n_seeds": 100, "sigma": 1.0, "delta": 0.1}
        f1.append(runs.clusters(world={}, seed=seed, most_rounds=300_000, **settings)["records"][0]["f1"])
    assert np.mean(f1) >= 0.95


def test_the_command_stops_and_goes_on(tmp_path: Path) -> None:
    """Ctrl-C in the middle, then the same command again: the same tables as without a stop."""
    command = ["reproduce", "regret", "--repeats", "3", "--rounds", "20000", "--jobs", "1"]
    called = [sys.executable, "-c", "from locb.cli import main; main()", *command, "--output", "stopped"]
    process = subprocess.Popen(called, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240.0
    while len(list((tmp_path / "stopped" / "runs").glob("*.json"))) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "what is finished is kept in stopped" in errors
    assert "Traceback" not in errors
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "stopped" / "runs").iterdir()}
    assert 2 <= len(kept) < 45
    again = call(*command, "--output", "stopped", cwd=tmp_path)
    done = call(*command, "--output", "straight", cwd=tmp_path)
    assert again.returncode == done.returncode == 0, done.stderr
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    for table in (tmp_path / "straight" / "tables").iterdir():
        assert table.read_bytes() == (tmp_path / "stopped" / "tables" / table.name).read_bytes()
    assert "of 45 runs were there already" in again.stdout
    assert "there already" not in done.stdout
    refused = call("reproduce", "regret", "--rounds", "40000", "--output", "stopped", cwd=tmp_path)
    assert refused.returncode == 2
    assert "holds another run (rounds was 20000 there and is 40000 now)" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["everything"], "there is no target 'everything'"),
        (["users", "--movielens", "nowhere"], "--movielens: there is no nowhere"),
        (["users", "--backend", "dask", "--address", "127.0.0.1:9"], "no Dask scheduler answers at '127.0.0.1:9'"),
        (["users", "--output", "taken"], "taken holds other files"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").touch()
    done = call("reproduce", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()  # nothing claims a folder before it can be filled


def test_real_movielens(tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("needs ml-latest-small in ../shared/data")
    sizes = ["--repeats", "2", "--rounds", "1000", "--output", "out"]
    done = call("reproduce", "users", "regret", "--movielens", str(SHARED), *sizes, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "at gamma 0.992 for half of them" in done.stdout
    table = (tmp_path / "out" / "tables" / "regret-movielens.md").read_text()
    assert re.search(r"\| LOCB, gamma 0.992 \| 0.800 \|", table) or "LOCB, gamma 0.992" in table

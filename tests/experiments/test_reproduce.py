"""Reproduction of the paper: stopping rules, targets, run folders and the command."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from commandline import call
from locb.evaluation.findings import FAILS, HOLDS
from locb.evaluation.run_folder import code_digest
from locb.experiments import paper_values as paper
from locb.experiments.reproduce import TARGETS, open_settings, plan_reproduction, regret, runs
from locb.experiments.reproduce import accuracy_by_setting as by_setting
from locb.experiments.reproduce.data_set import DataSet
from locb.experiments.reproduce.target import Sizes, choose_by_other_repeats, inner_optimum
from locb.parallel.workers import Workers

SMALL = {"n_users": 12, "n_clusters": 3, "n_arms": 4}
SHARED = Path(__file__).parents[3] / "shared" / "data" / "ml-latest-small"


def club(env: locb.Synthetic) -> locb.CLUB:
    return locb.CLUB(n_users=env.n_users, dim=env.dim)


def test_play_with_stops() -> None:
    env = locb.Synthetic(**SMALL, seed=1)
    policy, stops = club(env), [3, 10, 4096, 5000]
    seen = []
    for stop in runs.play_with_stops(policy, env, 7, stops):
        other = club(env)
        other.play(env.rounds(stop, seed=7))
        assert np.array_equal(policy.theta, other.theta)
        seen.append(stop)
    assert seen == stops
    assert policy.served.sum() == 5000


@pytest.mark.parametrize("name", ["club", "locb"])
def test_stable_rounds_are_counted_in_two_ways(name: str) -> None:
    env = locb.Synthetic(**SMALL, noise=0.05, seed=2)

    def make() -> Any:
        return club(env) if name == "club" else locb.LOCB(n_users=12, dim=env.dim, n_seeds=12)

    found = list(runs.play_until_stable(make(), env, 3, 40, 4000))
    policy = make()
    rounds = env.rounds(4000, seed=3)
    history = [sorted(len(cluster) for cluster in policy.clusters())]
    for t in range(4000):
        policy.update(int(rounds.users[t]), *_play_round(policy, rounds, t))
        history.append([len(cluster) for cluster in policy.clusters()])
    stable = [t for t in range(40, 4001) if all(history[t - s] == history[t] for s in range(41))]
    first_change = next(t for t in range(1, 4001) if history[t] != history[t - 1])
    assert first_change > 40
    assert found == [("start", 40), ("change", next(t for t in stable if t > first_change))]


def _play_round(policy: Any, rounds: locb.Rounds, t: int) -> tuple[Any, float]:
    arm = policy.recommend(int(rounds.users[t]), rounds.contexts[t])
    return rounds.contexts[t, arm], float(rounds.rewards[t, arm])


def test_unstable_clusters_end_with_the_rounds() -> None:
    env = locb.Synthetic(**SMALL, seed=2)
    assert list(runs.play_until_stable(club(env), env, 3, 9000, 500)) == [("start", 500), ("change", 500)]


def test_st_baselines_stop_with_the_last_cluster_of_locb() -> None:
    settings = {"gamma": 0.2, "truth_gammas": [0.2], "taus": [8.0, 12.0], "alphas": [1.0], "n_seeds": 100}
    settings |= {"sigma": 0.5, "delta": 0.1, "stable_rounds": 100, "max_rounds": 300_000, "max_stable_rounds": 9_000}
    settings["thresholds"] = {"alpha2": [1.0], "alpha_theta": [1.5]}
    records = runs.accuracy(environment=SMALL, seed=4, **settings)["records"]
    for tau in (8.0, 12.0):
        by_method = {record["method"]: record for record in records if record.get("tau") == tau}
        env = locb.Synthetic(**SMALL, seed=4)
        policy = locb.LOCB(n_users=12, dim=env.dim, gamma=0.2, tau=tau, n_seeds=12, radius="clustering", seed=4)
        policy.play(env.rounds(300_000, seed=4))
        final_rounds = {cluster.returned_at for cluster in policy.clusters()}
        assert len(final_rounds) > 1  # clusters become final in different rounds
        last = max(final_rounds)
        assert [by_method[name]["rounds"] for name in ("LOCB", "ST-CLUB", "ST-SCLUB", "ST-ELOC")] == [last] * 4
        assert by_method["LOCB"]["f1"] == locb.match_clusters(policy.clusters(), env.true_clusters()).f1
        alone = club(env)
        alone.play(env.rounds(last, seed=4))
        assert by_method["ST-CLUB"]["f1"] == locb.match_clusters(alone.clusters(), env.true_clusters()).f1
        printed = locb.LOCB(
            n_users=12, dim=env.dim, gamma=0.2, tau=tau, n_seeds=12, radius="clustering", seed=4, stop="published"
        )
        printed.play(env.rounds(300_000, seed=4))
        found = locb.match_clusters(printed.clusters(), env.true_clusters())
        assert by_method["LOCB as printed"]["f1"] == found.f1
    assert {record["method"] for record in records} == {*paper.METHODS, "LOCB as printed", "ST-ELOC"}


def test_limitation_names_the_data_set_and_the_consequence() -> None:
    note = "MovieLens: At gamma 0.2, 0 of 100 users are in true groups of two or more users, so F1 is not informative."
    limitation = DataSet("movielens", {}, 0.992, note, "digest").limitation
    assert limitation.startswith("At gamma 0.2, 0 of 100 users of MovieLens are in true groups of two or more users. ")
    assert limitation.endswith("claims about the accuracy at this gamma are not counted.")
    assert DataSet("synthetic", {}, None, None, "digest").limitation == ""


def test_setting_of_the_highest_f1_is_chosen_by_the_other_repeats() -> None:
    settings = {
        "alpha 1": {0: {"f1": 0.9}, 1: {"f1": 0.2}, 2: {"f1": 0.2}},
        "alpha 2": {0: {"f1": 0.5}, 1: {"f1": 0.5}, 2: {"f1": 0.5}},
    }
    chosen = choose_by_other_repeats(settings)
    assert {seed: record["f1"] for seed, record in chosen.items()} == {0: 0.5, 1: 0.2, 2: 0.2}
    assert choose_by_other_repeats({"a": {7: {"f1": 0.1}}, "b": {7: {"f1": 0.3}}}) == {7: {"f1": 0.3}}


def test_regret_of_club_is_that_of_its_tuned_threshold() -> None:
    """The other repeats choose alpha and the threshold; the regret of a repeat does not influence its own choice."""
    data = DataSet("synthetic", {}, None, None, "digest")
    jobs = regret.plan_regret(data, Sizes(repeats=3, rounds=100, seed=0))
    outcomes = []
    for job in jobs:
        parameters = job.settings["parameters"]
        final = 100.0 + 10.0 * abs(parameters.get("alpha2", 0.5) - 0.5) + parameters["alpha"]
        if parameters.get("alpha2") == 2.0 and job.seed == 1:
            final = 1.0  # a lucky repeat of a bad setting
        outcomes.append((job, {"rounds": [50, 100], "regret": [final / 2, final]}))
    found = regret.summarize_regret(data, Sizes(repeats=3, rounds=100, seed=0), outcomes)
    rows = {row["policy"]: row for row in found.tables[0].rows}
    # Repeats 0 and 2 choose the setting of the lucky repeat 1, and repeat 1 chooses the setting of the others.
    assert rows["CLUB"]["regret"].mean == pytest.approx((115.8 + 100.8 + 115.8) / 3)
    assert rows["LinUCB-IND"]["setting"] == "alpha 0.8"
    assert len([row for row in found.tables[1].rows if row["policy"] == "SCLUB"]) == 3 * 6


def test_claims_about_seeds_and_gamma_can_hold_and_fail() -> None:
    """Claims of Section 6.3 from records that follow them, and from records that contradict them."""
    data = DataSet("synthetic", {}, None, None, "digest")
    sizes = Sizes(repeats=3, rounds=100, seed=0)

    def verdicts(plan: Any, summarize: Any, record: Any) -> dict[str, str]:
        outcomes = [(job, {"records": [record(job)]}) for job in plan(data, sizes)]
        return {claim.statement: claim.verdict for claim in summarize(data, sizes, outcomes).claims}

    def record(job: Any, **values: float) -> dict[str, float]:
        shared = dict.fromkeys(("precision", "recall", "one_to_one_f1", "ari", "nmi", "clusters", "recovered"), 0.5)
        noise = 0.001 * job.seed
        return {"truth_gamma": job.settings["gamma"], "rounds": 9, "f1": 0.5} | shared | {
            name: value + noise for name, value in values.items()
        }  # fmt: skip

    def by_seeds(job: Any, few: float) -> dict[str, float]:
        return record(job, recovered=few if job.settings["n_seeds"] == 5 else 5.0)

    statement = "With 5 seeds, LOCB recovers 2 of the 5 clusters; with 20 seeds, it recovers almost all 5."
    for few, verdict in ((2.0, HOLDS), (3.0, FAILS), (1.0, FAILS)):
        found = verdicts(by_setting.plan_seeds, by_setting.summarize_seeds, lambda job, few=few: by_seeds(job, few))
        assert found[statement] == verdict

    def by_gamma(job: Any, sign: float) -> dict[str, float]:
        gamma = sign * job.settings["gamma"]
        return record(job, precision=0.5 - gamma * (1 + 0.01 * job.seed), recall=0.5 + gamma * (1 + 0.01 * job.seed))

    for sign, verdict in ((1.0, HOLDS), (-1.0, FAILS)):
        found = verdicts(by_setting.plan_gamma, by_setting.summarize_gamma, lambda job, sign=sign: by_gamma(job, sign))
        assert found["A large gamma lowers the precision."] == verdict
        assert found["A small gamma raises the precision and lowers the recall."] == verdict


def test_open_settings_are_compared_with_those_of_the_project() -> None:
    data, sizes = DataSet("synthetic", {}, None, None, "digest"), Sizes(repeats=3, rounds=100, seed=4)
    outcomes = []
    for job in open_settings.plan(data, sizes):
        settings = job.settings.get("parameters", job.settings)
        value = job.seed + 10.0 * settings["tau"] + 100.0 * settings["alpha"] + 5.0 * (settings.get("sigma") == 0.5)
        value += 7.0 * (settings.get("ties") == "random")
        outcomes.append((job, {"regret": [0.0, value], "records": [{"f1": value}]}))
    (table,) = open_settings.summarize(data, sizes, outcomes).tables
    differences = [(row["measure"], row["setting"], row["difference"] and row["difference"].mean) for row in table.rows]
    assert differences == [
        ("regret", "tau 8, ties first", None),
        ("regret", "tau 10", pytest.approx(20.0)),
        ("regret", "tau 12", pytest.approx(40.0)),
        ("regret", "ties random", pytest.approx(7.0)),
        ("F1", "sigma 1, alpha 1", None),
        ("F1", "sigma 0.5", pytest.approx(5.0)),
        ("F1", "alpha 0.8", pytest.approx(-20.0)),
        ("F1", "alpha 1.2", pytest.approx(20.0)),
    ]
    assert table.rows[0]["mean"].mean == pytest.approx(5.0 + 80.0 + 100.0)


def test_recovered_clusters_have_a_high_f1() -> None:
    env = locb.Synthetic(**SMALL, noise=0.05, seed=2)
    policy = locb.LOCB(n_users=12, dim=env.dim, n_seeds=12, seed=2)
    policy.play(env.rounds(3_000, seed=2))
    truth = env.true_clusters()
    (score,) = runs._scores(policy, [(0.2, truth)])
    f1 = []
    for cluster in truth:
        members = set(cluster.tolist())
        found = [set(other.members.tolist()) for other in policy.clusters()]
        f1.append(max(2 * len(members & other) / (len(members) + len(other)) for other in found))
    assert score["f1"] == pytest.approx(np.mean(f1))
    assert score["recovered"] == sum(value >= 0.8 for value in f1)


def test_early_regret_of_club_is_compared_with_both_limits() -> None:
    data = DataSet("synthetic", {}, None, None, "digest")

    def verdict(factor: float) -> str:
        outcomes = []
        for job in regret.plan_regret(data, Sizes(repeats=3, rounds=1_000, seed=0)):
            final = (100.0 + job.seed) * (factor if job.settings["policy"] == "club" else 1.0)
            outcomes.append((job, {"rounds": [1_000], "regret": [final]}))
        claims = regret.summarize_regret(data, Sizes(repeats=3, rounds=1_000, seed=0), outcomes).claims
        return next(claim.verdict for claim in claims if "within 10%" in claim.statement)

    assert [verdict(factor) for factor in (1.0, 0.8, 1.2)] == [HOLDS, FAILS, FAILS]


def test_inner_optimum() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (5, 4))
    hill, slope = np.array([0.2, 0.8, 0.7, 0.3]) + noise, np.array([0.2, 0.4, 0.6, 0.9]) + noise
    assert [criterion.verdict for criterion in inner_optimum("l", "r", hill)] == [HOLDS, HOLDS]
    assert [criterion.verdict for criterion in inner_optimum("l", "r", slope)] == [HOLDS, FAILS]
    assert [criterion.verdict for criterion in inner_optimum("l", "r", -hill, best="lowest")] == [HOLDS, HOLDS]


def test_selection_of_the_best_inner_setting_is_unbiased() -> None:
    """In pure noise, the best inner setting must not be better than the outer settings on average."""
    rng = np.random.default_rng(1)
    wins = [inner_optimum("", "", rng.normal(size=(5, 5)))[0].difference.mean for _ in range(400)]
    assert abs(np.mean(wins)) < 0.12
    assert np.mean([w > 0 for w in wins]) == pytest.approx(0.5, abs=0.1)


def test_values_of_the_paper_are_complete() -> None:
    for methods in paper.ACCURACY.values():
        assert tuple(methods) == paper.METHODS
        for f1, precision, recall in methods.values():
            assert f1 == pytest.approx(2 * precision * recall / (precision + recall), abs=0.011)
    assert set(paper.ACCURACY) == {DataSet(name, {}, None, None, "").paper_name for name in paper.DATA}
    assert set(paper.NOISES) <= set(paper.DATA)


def test_invalid_targets_and_sizes() -> None:
    with pytest.raises(ValueError, match="unknown target 'regrets'; choose from users, accuracy, .* and all"):
        plan_reproduction(["regrets"])
    with pytest.raises(ValueError, match="repeats must be at least 1, not 0"):
        plan_reproduction(["regret"], repeats=0)
    with pytest.raises(ValueError, match="rounds must be at least 100, not 7"):
        plan_reproduction(["regret"], rounds=7)
    assert plan_reproduction(["seeds", "users"]).targets == ["users", "seeds"]


def test_all_targets_on_synthetic_and_real_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of all targets with a data set that has no groups at gamma 0.2, so that both gammas are used."""
    from datasets import files
    from locb.experiments.reproduce import accuracy

    monkeypatch.setattr(accuracy, "MAX_STABLE_ROUNDS", 300)
    monkeypatch.setattr(paper, "ALPHA2S", paper.ALPHA2S[:2])
    monkeypatch.setattr(paper, "ALPHA_THETAS", paper.ALPHA_THETAS[:2])
    monkeypatch.setattr(paper, "TAUS", (paper.TAU,))
    monkeypatch.setattr(paper, "GAMMAS", (0.4, 0.3, 0.2, 0.19, 0.18))  # small gammas take long
    monkeypatch.setattr(paper, "ALPHAS", paper.ALPHAS[:2])
    monkeypatch.setattr(paper, "NOISES", {"synthetic": "bernoulli", "synthetic-gaussian-0.2": 0.2})
    path = files.movielens_csv(tmp_path / "ml")
    environment = {"data": "movielens", "path": str(path), "n_users": 30, "cache_dir": str(tmp_path / "cache")}
    with pytest.warns(UserWarning, match="n_users is 30, but the number of eligible users is 8"):
        plan = plan_reproduction(["all"], data={"movielens": environment}, repeats=2, rounds=400)
    assert plan.data_sets[2].scaled is not None
    few = {"n_users": 30}  # so that all clusters are final after fewer rounds
    smaller = [replace(data, environment=data.environment | (few if data.rewards else {})) for data in plan.data_sets]
    plan, ledger = replace(plan, data_sets=smaller).open_folder(tmp_path / "out")
    with Workers(jobs=1) as workers:
        findings = plan.run(ledger, workers)
    assert list(findings.sections) == list(TARGETS)
    assert {claim.section for claim in findings.claims} == set(TARGETS) - {"open-settings"}
    figures = {(claim.section, claim.source) for claim in findings.claims if "Figure" in claim.source}
    assert figures == {
        ("users", "Cluster structure, Figure 1"),
        ("rounds", "Varying accuracy, Figure 2"),
        ("regret", "Regret comparison, Figure 3"),
        ("regret", "Regret comparison, Figure 4"),
        ("regret-by-seeds", "Regret by seeds, Figure 5"),
    }
    names = [table.name for table in findings.tables]
    assert len(set(names)) == len(names)
    assert {claim.evidence for claim in findings.claims} <= set(names)
    scaled = f"{plan.data_sets[2].scaled:g}"
    assert {"accuracy-movielens", f"accuracy-movielens-truth-{scaled}", f"accuracy-movielens-gamma-{scaled}"} <= set(
        names
    )
    assert findings.notes[0].startswith(
        "2 repeats, 400 rounds per regret run, first random seed 0. With fewer than 50,000 rounds"
    )
    assert "true groups" in findings.notes[1]
    assert "Gaussian noise of standard deviation 0.1 and 0.2" in findings.notes[-1]
    by_name = {table.name: table for table in findings.tables}
    rewards = ["rewards of 0 or 1", "Gaussian noise 0.2"]
    for name, table in by_name.items():
        if "synthetic" in name and name != "users-synthetic":
            assert list(dict.fromkeys(row["rewards"] for row in table.rows)) == rewards
            assert "rewards of 0 or 1" not in table.title
    for target in set(TARGETS) - {"users", "accuracy", "open-settings"}:
        charts = [figure.name for figure in findings.figures if figure.section == target]
        assert charts[:2] == [f"{target}-synthetic", f"{target}-synthetic-gaussian-0.2"]
    accurate = by_name["accuracy-synthetic"]
    binary, gaussian = (row for row in accurate.rows if row["method"] == "LOCB")  # adjacent rows of one table
    assert [binary["rewards"], gaussian["rewards"]] == rewards
    assert accurate.rows.index(gaussian) == accurate.rows.index(binary) + 1
    assert binary["F1"] != gaussian["F1"]
    measured = binary
    assert measured["setting"] == "tau 10"
    assert measured["paper's F1"] == 0.880
    assert measured["F1 difference"] == pytest.approx(measured["F1"].mean - 0.880)
    rounds = {row["method"]: row["rounds"].mean for row in accurate.rows if row["rewards"] == rewards[0]}
    assert rounds["ST-CLUB"] == rounds["ST-SCLUB"] == rounds["ST-ELOC"] == rounds["LOCB"]
    assert [row["method"] for row in accurate.rows][-6::2] == ["LOCB as printed", "LOCB", "ST-ELOC"]
    assert {"one-to-one F1", "ARI", "NMI", "distinct clusters"} <= set(measured)
    by_seeds = next(table for table in findings.tables if table.name == "seeds-synthetic")
    assert "F1 of LOCB as printed" in by_seeds.rows[0]
    counted = [claim for claim in findings.claims if not claim.vacuous]
    assert {claim.family for claim in counted} == {"Synthetic", "MovieLens"}
    assert all(claim.adjusted is not None for claim in counted)
    assert not any(claim.section == "users" for claim in counted)
    assert findings.provenance["seeds"] == "0 to 1"
    assert "movielens" in findings.provenance["digest of the data"]
    assert plan.data_sets[2].environment["features_from"] == "all"
    table = next(table for table in findings.tables if table.name == "regret-synthetic")
    assert [row["policy"] for row in table.rows if row["regret difference from LOCB"] is None] == ["LOCB", "LOCB"]


def test_report_covers_all_runs_of_a_folder(tmp_path: Path) -> None:
    def run(targets: list[str], repeats: int) -> Any:
        plan, ledger = plan_reproduction(targets, repeats=repeats, rounds=200).open_folder(tmp_path)
        with Workers(jobs=1) as workers:
            return plan.run(ledger, workers), ledger

    first, _ = run(["regret-by-seeds"], 3)
    both, ledger = run(["users"], 2)
    assert list(first.sections) == ["regret-by-seeds"]
    assert list(both.sections) == ["users", "regret-by-seeds"]
    assert both.settings["repeats"] == 3
    assert (ledger.reused, ledger.total) == (45, 45)
    assert [claim for claim in both.claims if claim.section == "regret-by-seeds"] == first.claims


def test_folder_with_runs_of_other_code_is_refused(tmp_path: Path) -> None:
    """The commit in the CSV files must be that of all runs."""
    plan = plan_reproduction(["users"], rounds=200)
    plan.open_folder(tmp_path)
    settings = tmp_path / "settings.json"
    settings.write_text(settings.read_text().replace(code_digest(), "0" * 16))
    with pytest.raises(ValueError, match=r"has runs with other settings \(digest of the source code was '0000"):
        plan.open_folder(tmp_path)


def test_locb_finds_the_synthetic_clusters_at_tau_10() -> None:
    f1 = []
    for seed in range(5):
        settings = {"gamma": 0.2, "truth_gammas": [0.2], "tau": 10.0, "n_seeds": 100, "sigma": 1.0, "delta": 0.1}
        settings["stop"] = "radius"
        f1.append(runs.final_clusters(environment={}, seed=seed, max_rounds=300_000, **settings)["records"][0]["f1"])
    assert np.mean(f1) >= 0.95


def test_interrupted_command_continues(tmp_path: Path) -> None:
    """The tables after an interruption with Ctrl-C and a second call equal those of an uninterrupted run."""
    command = ["reproduce", "regret-by-seeds", "--repeats", "3", "--rounds", "20000", "--jobs", "1"]
    called = [sys.executable, "-c", "from locb.cli import main; main()", *command, "--output", "stopped"]
    process = subprocess.Popen(called, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240.0
    while len(list((tmp_path / "stopped" / "runs").glob("*.json"))) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(r"locb: interrupted; finished runs in stopped: \d+; to continue, run: locb reproduce ", errors)
    assert "Traceback" not in errors
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "stopped" / "runs").iterdir()}
    assert 2 <= len(kept) < 45
    again = call(*command, "--output", "stopped", cwd=tmp_path)
    done = call(*command, "--output", "straight", cwd=tmp_path)
    assert again.returncode == done.returncode == 0, done.stderr
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    for table in (tmp_path / "straight" / "tables").iterdir():
        assert table.read_bytes() == (tmp_path / "stopped" / "tables" / table.name).read_bytes()
    assert "of 45 runs from stopped" in again.stdout
    assert "Reused" not in done.stdout
    refused = call("reproduce", "users", "--rounds", "40000", "--output", "stopped", cwd=tmp_path)
    assert refused.returncode == 2
    assert "has runs with other settings (rounds was 20000 and is now 40000)" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["everything"], "unknown target 'everything'"),
        (["users", "--movielens", "nowhere"], "--movielens: nowhere does not exist"),
        (["users", "--backend", "dask", "--address", "127.0.0.1:9"], "no Dask scheduler answers at '127.0.0.1:9'"),
        (["users", "--output", "taken"], "taken is not empty and has no settings.json"),
    ],
)
def test_invalid_input_gives_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").touch()
    done = call("reproduce", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()  # no folder is created before the first run


def test_real_movielens(tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("needs ml-latest-small in ../shared/data")
    sizes = ["--repeats", "2", "--rounds", "1000", "--output", "out"]
    done = call("reproduce", "users", "regret", "--movielens", str(SHARED), *sizes, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "At gamma 0.992, half of the users are in such groups." in done.stdout
    table = (tmp_path / "out" / "tables" / "regret-movielens.md").read_text()
    assert re.search(r"\| LOCB, gamma 0.992 \| alpha [\d.]+ \|", table)

"""Policies × worlds: ratios and intervals from paired runs, claims from ratios, and runs that go on."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import locb
from commandline import run
from datasets import files
from locb.cli import app
from locb.evaluation.findings import FAILS, HOLDS, UNDECIDED, Findings, Measurement
from locb.experiments.matrix import code_digest, plan_matrix
from locb.experiments.matrix.claims import claims
from locb.experiments.matrix.standings import Standing, WorldResult, geometric_mean, ratio
from locb.experiments.matrix.tables import tell
from locb.experiments.parallel import Workers
from locb.experiments.scenarios import SCENARIOS
from locb.report.findings_folder import write_findings
from locb.report.tables.scenario_matrix import make_matrix_table, make_policy_table

SETTINGS = {"rounds": None, "repeats": 3, "alphas": [0.1, 1.0], "command": "locb compare"}


def world_result(name: str, noise: float = 0.0, **regrets: float) -> WorldResult:
    """A world in which policies have these regrets on average; repeats differ in hardness, and by chance for eloc."""
    hard = np.array([0.8, 1.0, 1.2])
    tried = []
    for policy, mean in regrets.items():
        regret = mean * hard + (noise * mean * np.array([1.0, -2.0, 1.0]) if policy == "eloc" else 0.0)
        tried += [
            Standing(policy, 0.1, regret, Measurement(0.9, 0.01), 2.0),
            Standing(policy, 1.0, 3 * regret, None, 2.0),
        ]
    baselines = tuple(policy for policy in regrets if policy != "eloc")
    return WorldResult(SCENARIOS[name], tried, baselines)


def played(folder: Path, policies: list[str], worlds: list[str], progress: Any = None, **more: Any) -> Findings:
    planned = plan_matrix(policies, worlds, **{"rounds": 300, "repeats": 2, "alphas": [0.1, 1.0], **more})
    ledger = planned.open_folder(folder)
    with Workers(jobs=1) as workers:
        findings = planned.run(ledger, workers, progress)
    findings.settings["reused"] = ledger.reused
    return findings


def test_a_ratio_and_its_paired_interval() -> None:
    found = ratio([8.0, 9.0, 16.0], [10.0, 20.0, 30.0])
    assert found.mean == pytest.approx(0.55)
    errors = np.array([8.0 - 5.5, 9.0 - 11.0, 16.0 - 16.5])
    assert found.margin == pytest.approx(4.303 * errors.std(ddof=1) / np.sqrt(3) / 20.0)
    assert np.isnan(ratio([1.0], [2.0]).margin)
    both = geometric_mean([Measurement(0.5, 0.1), Measurement(2.0, 0.2)])
    assert both.mean == pytest.approx(1.0)
    assert both.margin == pytest.approx(np.sqrt(0.2**2 + 0.1**2) / 2)


def test_the_interval_of_a_ratio_covers_it() -> None:
    rng = np.random.default_rng(0)
    hit = 0
    for _ in range(400):
        hard = rng.uniform(80, 120, size=5)
        found = ratio(0.7 * hard + rng.normal(0, 3, 5), hard + rng.normal(0, 3, 5))
        hit += abs(found.mean - 0.7) < found.margin
    assert 0.91 < hit / 400 < 0.99


def test_the_best_baseline_is_chosen_without_the_contender() -> None:
    result = world_result("overlap", locb=100.0, club=90.0, eloc=60.0)
    assert (result.best_baseline.policy, result.best_baseline.alpha) == ("club", 0.1)
    assert result.ratio("eloc").mean == pytest.approx(60 / 90)
    assert result.ratio("eloc").margin == pytest.approx(0.0, abs=1e-12)  # the same hard worlds
    assert result.ratio("club") == Measurement(1.0, 0.0)


@pytest.mark.parametrize(
    ("results", "verdicts"),
    [
        ([world_result("bernoulli-100", club=100.0, eloc=60.0)], [HOLDS, HOLDS, HOLDS]),
        ([world_result("bernoulli-100", club=100.0, eloc=70.0)], [HOLDS, HOLDS, FAILS]),
        ([world_result("zipf-300", 0.2, club=100.0, eloc=64.0)], [HOLDS, UNDECIDED, UNDECIDED]),
        ([world_result("one-cluster", club=100.0, eloc=104.0)], [HOLDS]),
        ([world_result("one-cluster", club=100.0, eloc=106.0)], [FAILS]),
        (
            [world_result("overlap", club=100.0, eloc=90.0), world_result("arms-3", club=90.0, eloc=30.0)],
            [HOLDS, HOLDS],
        ),
        ([world_result("overlap", club=100.0, eloc=90.0)], [HOLDS, FAILS]),
    ],
)
def test_claims_are_judged_by_ratios(results: list[WorldResult], verdicts: list[str]) -> None:
    assert [claim.verdict for claim in claims(results, "matrix", "matrix")] == verdicts


def test_claims_keep_development_and_judging_apart() -> None:
    results = [world_result("dev-zipf-300", club=100.0, eloc=50.0), world_result("zipf-300", club=100.0, eloc=200.0)]
    found = claims(results, "matrix", "matrix")
    assert [(claim.data, claim.verdict) for claim in found] == [
        *[("1 judging world", FAILS)] * 3,
        *[("1 development world", HOLDS)] * 3,
    ]
    assert "worse in zipf-300 (2.000 ± 0.000)" in found[0].criteria[0].detail


def test_the_page_says_where_the_contender_loses(tmp_path: Path) -> None:
    results = [world_result("one-cluster", club=100.0, eloc=120.0), world_result("arms-3", club=100.0, eloc=50.0)]
    found = tell(results, ["club", "eloc"], SETTINGS)
    assert "Where ELOC loses to a baseline: one-cluster (1.200 ± 0.000 of club's)." in found.notes
    assert list(found.tables[0].rows[0])[-2:] == ["eloc", "club"]  # the contender first
    index, tables, figures = write_findings(found, tmp_path)
    assert "Where ELOC loses" in index.read_text()
    rows = list(csv.DictReader((tables / "matrix.csv").read_text().splitlines()))
    assert [(row["world"], row["best baseline"], row["eloc"], row["club"]) for row in rows] == [
        ("one-cluster", "club", "1.2", "1"),
        ("arms-3", "club", "0.5", "1"),
    ]
    assert (figures / "matrix.svg").exists()
    alone = tell(results, ["club"], SETTINGS)
    assert alone.claims == []


def test_a_matrix_from_real_runs(tmp_path: Path) -> None:
    names = ["linucb-one", "linucb-ind", "sclub"]
    found = played(tmp_path / "out", names, ["one-cluster", "drift-users"])
    rows = found.tables[0].rows
    assert [row["world"] for row in rows] == ["one-cluster", "drift-users"]
    for row in rows:
        world = SCENARIOS[row["world"]]
        regret = {}
        for name in names:
            for alpha in (0.1, 1.0):
                final = []
                for repeat in (0, 1):
                    env = locb.Synthetic(**world.settings, seed=world.seed(repeat))
                    policy = locb.make_policy(name, n_users=100, dim=env.dim, alpha=alpha, seed=world.seed(repeat))
                    final.append(locb.simulate(policy, env, rounds=300, seed=world.seed(repeat)).regret[-1])
                if name not in regret or np.mean(final) < np.mean(regret[name]):
                    regret[name] = final
        best = min(names, key=lambda name: np.mean(regret[name]))
        assert row["best baseline"] == best
        assert row["its regret"].mean == pytest.approx(np.mean(regret[best]))
        for name in names:
            value = row[name] if name == best else row[name].mean
            assert value == pytest.approx(np.mean(regret[name]) / np.mean(regret[best]))
    shown = Console(width=80, file=StringIO())
    shown.print(make_matrix_table(found), make_policy_table(found))
    assert "…" not in shown.file.getvalue()
    assert "drift-users" in shown.file.getvalue()
    write_findings(found, tmp_path / "out")
    assert "Claims" not in (tmp_path / "out" / "index.html").read_text().split("<script>")[0]


def test_a_stopped_matrix_goes_on(tmp_path: Path) -> None:
    def stop(done: float, total: float) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    names, worlds = ["linucb-one", "linucb-ind"], ["one-cluster", "two-clusters"]
    with pytest.raises(KeyboardInterrupt):
        played(tmp_path / "a", names, worlds, stop)
    kept = len(list((tmp_path / "a" / "runs").iterdir()))
    assert 0 < kept < 16
    went_on = played(tmp_path / "a", names, worlds)
    assert went_on.settings["reused"] == kept
    assert went_on.tables[0].rows == played(tmp_path / "b", names, worlds).tables[0].rows
    more = played(tmp_path / "a", names, worlds, repeats=3)
    assert more.settings["reused"] == 16
    assert len(code_digest()) == 16


class Lucky(locb.Policy):
    """Has no alpha."""

    def __init__(self, *, n_users: int, dim: int) -> None:
        super().__init__(n_users=n_users, dim=dim)

    def recommend(self, user: int, contexts: Any) -> int:
        return 0

    def update(self, user: int, context: Any, reward: float) -> None:
        pass


def test_a_policy_without_alpha_runs_once_and_the_contender_is_no_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(locb.POLICIES, "eloc", Lucky)
    found = played(tmp_path, ["eloc", "linucb-ind"], ["two-clusters"])
    assert len(list((tmp_path / "runs").iterdir())) == 2 + 4
    assert found.tables[0].rows[0]["best baseline"] == "linucb-ind"
    assert found.settings["baselines"] == ["linucb-ind"]
    assert found.claims[0].data == "1 judging world"
    assert {row["policy"]: row["alpha"] for row in found.tables[2].rows}["eloc"] is None


def test_real_data_are_added_to_the_worlds(tmp_path: Path) -> None:
    data = {
        "data": "movielens",
        "path": str(files.movielens_csv(tmp_path / "ml")),
        "cache_dir": str(tmp_path / "cache"),
    }
    with pytest.warns(UserWarning, match="only 8 can be played"):
        found = played(tmp_path / "out", ["linucb-one", "linucb-ind"], ["dev-one-cluster"], data=data | {"n_arms": 3})
    rows = found.tables[0].rows
    assert [(row["world"], row["groups"]) for row in rows] == [
        ("dev-one-cluster", "no"),
        ("movielens-rated", "not known"),
        ("movielens-any", "not known"),
    ]
    assert [row["for"] for row in found.tables[-1].rows] == ["development"] * 3  # no judging world was asked for
    assert rows[1]["its regret"] != rows[2]["its regret"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"worlds": ["mars"]}, "there is no world 'mars'"),
        ({"policies": ["ucb"]}, "policies must be among"),
        ({"alphas": [-1.0]}, "alpha must be between 0"),
        ({"rounds": 20}, "rounds must be at least 100, not 20"),
        ({"repeats": 0}, "repeats must be at least 1, not 0"),
        ({"seed": 998, "repeats": 3}, "seed and repeats must give repeats from 0 to 999, not 1000"),
        ({"seed": -1}, "seed and repeats must give repeats from 0 to 999, not -1"),
    ],
)
def test_bad_settings_fail_before_any_work(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_matrix(**{"policies": ["linucb-one"], "worlds": ["overlap"], **change})


def test_the_command_plays_also_a_policy_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "Mine", Lucky)  # taken out again, whatever the command puts there
    (tmp_path / "mine.py").write_text(
        "import locb\n"
        "class Mine(locb.Policy):\n"
        "    def recommend(self, user, contexts):\n"
        "        return 0\n"
        "    def update(self, user, context, reward):\n"
        "        pass\n"
    )
    asked = ["compare", "--worlds", "overlap,one-cluster", "--policies", "linucb-one,linucb-ind,mine.py:Mine"]
    asked += ["--rounds", "200", "--repeats", "2", "--output", "out"]
    done = run(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in ("overlap", "one-cluster", "Mine", "worst world", "index.html"):
        assert text in done.stdout
    assert f"Command: locb {' '.join(asked)}" in done.stdout.replace("\n", " ").replace("  ", " ")
    assert (tmp_path / "out" / "figures" / "matrix.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.chdir(tmp_path)
    again = CliRunner().invoke(app, [*asked, "--jobs", "1"])
    assert "28 of 28 runs were there already." in again.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--worlds", "moon"], "there is no world 'moon'; there are all, judging, development, bernoulli-100, "),
        (["--worlds", ","], "--worlds must name at least one"),
        (["--worlds", "all", "--users", "9"], "--users does not go with --worlds"),
        (["--worlds", "all", "--noise", "1"], "--noise does not go with --worlds"),
        (["--worlds", "all", "--gamma", "1"], "--gamma does not go with --worlds"),
        (["--worlds", "all", "--n-seeds", "1"], "--n-seeds does not go with --worlds"),
        (["--worlds", "all", "--data", "movielens"], "--path must name the files of movielens"),
        (["--worlds", "all", "--path", "x"], "--path goes with --data"),
    ],
)
def test_a_mistake_is_told_before_any_work(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compare", *arguments, "--output", str(tmp_path / "out")])
    assert isinstance(done.exception, ValueError)
    assert str(done.exception).startswith(message)
    assert not (tmp_path / "out").exists()

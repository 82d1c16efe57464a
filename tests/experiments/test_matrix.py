"""Scenario matrix: ratios and paired intervals, claims, and interrupted runs."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import locb
from commandline import CUSTOM_POLICY, call, run
from datasets import files
from locb.cli import app
from locb.evaluation.findings import FAILS, HOLDS, UNDECIDED, Findings, Measurement
from locb.experiments.jobs import code_digest
from locb.experiments.matrix import plan_matrix
from locb.experiments.matrix.claims import build_claims
from locb.experiments.matrix.scenario_result import AlphaResult, ScenarioResult, geometric_mean, regret_ratio
from locb.experiments.matrix.summary import summarize
from locb.experiments.parallel import Workers
from locb.experiments.scenarios import SCENARIOS
from locb.policies.registry import REGISTRY, PolicySpec
from locb.report.findings_folder import write_findings
from locb.report.tables.scenario_matrix import make_matrix_table, make_policy_table

SETTINGS = {"rounds": None, "repeats": 3, "alphas": [0.1, 1.0], "command": "locb compare"}


def scenario_result(name: str, noise: float = 0.0, **regrets: float) -> ScenarioResult:
    """Return a scenario with these mean regrets. Repeats differ in difficulty, and for eloc also by noise."""
    difficulty = np.array([0.8, 1.0, 1.2])
    results = []
    for policy, mean in regrets.items():
        regret = mean * difficulty + (noise * mean * np.array([1.0, -2.0, 1.0]) if policy == "eloc" else 0.0)
        results += [
            AlphaResult(policy, 0.1, regret, Measurement(0.9, 0.01), 2.0),
            AlphaResult(policy, 1.0, 3 * regret, None, 2.0),
        ]
    baselines = tuple(policy for policy in regrets if policy != "eloc")
    return ScenarioResult(SCENARIOS[name], results, baselines)


def run_matrix(
    folder: Path, policies: list[str], scenarios: list[str], progress: Any = None, **options: Any
) -> Findings:
    plan = plan_matrix(policies, scenarios, **{"rounds": 300, "repeats": 2, "alphas": [0.1, 1.0], **options})
    ledger = plan.open_folder(folder)
    with Workers(jobs=1) as workers:
        findings = plan.run(ledger, workers, progress)
    findings.settings["reused"] = ledger.reused
    return findings


def test_ratio_and_paired_interval() -> None:
    found = regret_ratio([8.0, 9.0, 16.0], [10.0, 20.0, 30.0])
    assert found.mean == pytest.approx(0.55)
    errors = np.array([8.0 - 5.5, 9.0 - 11.0, 16.0 - 16.5])
    assert found.margin == pytest.approx(4.30265273 * errors.std(ddof=1) / np.sqrt(3) / 20.0)
    assert np.isnan(regret_ratio([1.0], [2.0]).margin)
    both = geometric_mean([Measurement(0.5, 0.1), Measurement(2.0, 0.2)])
    assert both.mean == pytest.approx(1.0)
    assert both.margin == pytest.approx(np.sqrt(0.2**2 + 0.1**2) / 2)


def test_interval_of_a_ratio_covers_the_true_ratio() -> None:
    rng = np.random.default_rng(0)
    hit = 0
    for _ in range(400):
        base = rng.uniform(80, 120, size=5)
        found = regret_ratio(0.7 * base + rng.normal(0, 3, 5), base + rng.normal(0, 3, 5))
        hit += abs(found.mean - 0.7) < found.margin
    assert 0.91 < hit / 400 < 0.99


def test_best_baseline_excludes_eloc() -> None:
    result = scenario_result("overlap", locb=100.0, club=90.0, eloc=60.0)
    assert (result.best_baseline.policy, result.best_baseline.alpha) == ("club", 0.1)
    assert result.ratio("eloc").mean == pytest.approx(60 / 90)
    assert result.ratio("eloc").margin == pytest.approx(0.0, abs=1e-12)  # variation that both policies share cancels
    assert result.ratio("club") == Measurement(1.0, 0.0)


@pytest.mark.parametrize(
    ("results", "verdicts"),
    [
        ([scenario_result("bernoulli-100", club=100.0, eloc=60.0)], [HOLDS, HOLDS, HOLDS]),
        ([scenario_result("bernoulli-100", club=100.0, eloc=70.0)], [HOLDS, HOLDS, FAILS]),
        ([scenario_result("zipf-300", 0.2, club=100.0, eloc=64.0)], [HOLDS, UNDECIDED, UNDECIDED]),
        ([scenario_result("one-cluster", club=100.0, eloc=104.0)], [HOLDS]),
        ([scenario_result("one-cluster", club=100.0, eloc=106.0)], [FAILS]),
        (
            [scenario_result("overlap", club=100.0, eloc=90.0), scenario_result("arms-3", club=90.0, eloc=30.0)],
            [HOLDS, HOLDS],
        ),
        ([scenario_result("overlap", club=100.0, eloc=90.0)], [HOLDS, FAILS]),
    ],
)
def test_claims_follow_from_ratios(results: list[ScenarioResult], verdicts: list[str]) -> None:
    assert [claim.verdict for claim in build_claims(results, "matrix", "matrix")] == verdicts


def test_claims_separate_development_and_evaluation() -> None:
    results = [
        scenario_result("dev-zipf-300", club=100.0, eloc=50.0),
        scenario_result("zipf-300", club=100.0, eloc=200.0),
    ]
    found = build_claims(results, "matrix", "matrix")
    assert [(claim.data, claim.verdict) for claim in found] == [
        *[("1 evaluation scenario", FAILS)] * 3,
        *[("1 development scenario", HOLDS)] * 3,
    ]
    assert "exceeded in zipf-300 (2.000 ± 0.000)" in found[0].criteria[0].detail


def test_report_names_scenarios_in_which_eloc_is_worse(tmp_path: Path) -> None:
    results = [scenario_result("one-cluster", club=100.0, eloc=120.0), scenario_result("arms-3", club=100.0, eloc=50.0)]
    found = summarize(results, ["club", "eloc"], SETTINGS)
    assert (
        "Scenarios in which a baseline has lower mean regret than ELOC, and the regret of ELOC: one-cluster "
        "(1.200 ± 0.000 times the regret of club)." in found.notes
    )
    assert list(found.tables[0].rows[0])[-2:] == ["eloc", "club"]  # ELOC first
    index, tables, figures = write_findings(found, tmp_path)
    assert "lower mean regret than ELOC" in index.read_text()
    rows = list(csv.DictReader((tables / "matrix.csv").read_text().splitlines()))
    assert [(row["scenario"], row["best baseline"], row["eloc"], row["club"]) for row in rows] == [
        ("one-cluster", "club", "1.2", "1"),
        ("arms-3", "club", "0.5", "1"),
    ]
    assert (figures / "matrix.svg").exists()
    alone = summarize(results, ["club"], SETTINGS)
    assert alone.claims == []


def test_scaled_copies_do_not_count_in_means() -> None:
    results = [
        scenario_result("bernoulli-100", club=100.0, eloc=60.0),
        scenario_result("scaled-bernoulli", club=25_000.0, eloc=50_000.0),
        scenario_result("three-categories", club=100.0, eloc=15.0),
    ]
    found = summarize(results, ["club", "eloc"], SETTINGS)
    tables = {table.name: table.rows for table in found.tables}
    assert tables["policies"][0]["mean ratio, evaluation"].mean == pytest.approx(0.3)
    assert tables["policies"][0]["worst scenario"] == "scaled-bernoulli"
    assert [claim.verdict for claim in found.claims[:2]] == [FAILS, HOLDS]
    developed = {row["scenario"]: row["development"] for row in tables["scenarios"]}
    assert developed == {
        "bernoulli-100": "dev-bernoulli-100",
        "scaled-bernoulli": "dev-scaled-bernoulli",
        "three-categories": None,
    }


def test_matrix_matches_simulations(tmp_path: Path) -> None:
    names = ["linucb-one", "linucb-ind", "sclub"]
    found = run_matrix(tmp_path / "out", names, ["one-cluster", "drift-users"])
    rows = found.tables[0].rows
    assert [row["scenario"] for row in rows] == ["one-cluster", "drift-users"]
    for row in rows:
        scenario = SCENARIOS[row["scenario"]]
        regret = {}
        for name in names:
            for alpha in (0.1, 1.0):
                final = []
                for repeat in (0, 1):
                    env = locb.Synthetic(**scenario.settings, seed=scenario.seed(repeat))
                    policy = locb.make_policy(name, n_users=100, dim=env.dim, alpha=alpha, seed=scenario.seed(repeat))
                    final.append(locb.simulate(policy, env, rounds=300, seed=scenario.seed(repeat)).regret[-1])
                if name not in regret or np.mean(final) < np.mean(regret[name]):
                    regret[name] = final
        best = min(names, key=lambda name: np.mean(regret[name]))
        assert row["best baseline"] == best
        assert row["baseline regret"].mean == pytest.approx(np.mean(regret[best]))
        for name in names:
            value = row[name] if name == best else row[name].mean
            assert value == pytest.approx(np.mean(regret[name]) / np.mean(regret[best]))
    shown = Console(width=80, file=StringIO())
    shown.print(make_matrix_table(found), make_policy_table(found))
    assert "…" not in shown.file.getvalue()
    assert "drift-users" in shown.file.getvalue()
    write_findings(found, tmp_path / "out")
    assert "Claims" not in (tmp_path / "out" / "index.html").read_text().split("<script>")[0]


def test_interrupted_matrix_continues(tmp_path: Path) -> None:
    def stop(done: float, total: float) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    names, scenarios = ["linucb-one", "linucb-ind"], ["one-cluster", "two-clusters"]
    with pytest.raises(KeyboardInterrupt):
        run_matrix(tmp_path / "a", names, scenarios, stop)
    kept = len(list((tmp_path / "a" / "runs").iterdir()))
    assert 0 < kept < 16
    resumed = run_matrix(tmp_path / "a", names, scenarios)
    assert resumed.settings["reused"] == kept
    assert resumed.tables[0].rows == run_matrix(tmp_path / "b", names, scenarios).tables[0].rows
    more = run_matrix(tmp_path / "a", names, scenarios, repeats=3)
    assert more.settings["reused"] == 16
    assert len(code_digest()) == 16


class WithoutAlpha(locb.Policy):
    def __init__(self, *, n_users: int, dim: int) -> None:
        super().__init__(n_users=n_users, dim=dim)

    def recommend(self, user: int, contexts: Any) -> int:
        return 0

    def update(self, user: int, context: Any, reward: float) -> None:
        pass


def test_policy_without_alpha_runs_once_and_eloc_is_not_a_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REGISTRY, "eloc", PolicySpec("eloc", WithoutAlpha))
    found = run_matrix(tmp_path, ["eloc", "linucb-ind"], ["two-clusters"])
    assert len(list((tmp_path / "runs").iterdir())) == 2 + 4
    assert found.tables[0].rows[0]["best baseline"] == "linucb-ind"
    assert found.settings["baselines"] == ["linucb-ind"]
    assert found.claims[0].data == "1 evaluation scenario"
    assert {row["policy"]: row["alpha"] for row in found.tables[2].rows}["eloc"] is None


def test_real_data_is_added_to_the_scenarios(tmp_path: Path) -> None:
    data = {
        "data": "movielens",
        "path": str(files.movielens_csv(tmp_path / "ml")),
        "cache_dir": str(tmp_path / "cache"),
    }
    with pytest.warns(UserWarning, match="number of eligible users is 8"):
        found = run_matrix(
            tmp_path / "out", ["linucb-one", "linucb-ind"], ["dev-one-cluster"], data=data | {"n_arms": 3}
        )
    rows = found.tables[0].rows
    assert [(row["scenario"], row["groups"]) for row in rows] == [
        ("dev-one-cluster", "no"),
        ("movielens-rated", "unknown"),
        ("movielens-any", "unknown"),
    ]
    assert [row["role"] for row in found.tables[-1].rows] == ["development"] * 3  # no evaluation scenario is selected
    assert rows[1]["baseline regret"] != rows[2]["baseline regret"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scenarios": ["mars"]}, "unknown scenario 'mars'"),
        ({"policies": ["ucb"]}, "unknown policy 'ucb'"),
        ({"alphas": [-1.0]}, "alpha must be at least 0, not -1.0"),
        ({"rounds": 20}, "rounds must be at least 100, not 20"),
        ({"repeats": 0}, "repeats must be at least 1, not 0"),
        ({"seed": 998, "repeats": 3}, r"seed \+ repeats at most 1000, .* repeat 1000 is out of range"),
        ({"seed": -1}, "seed must be at least 0 .* repeat -1 is out of range"),
    ],
)
def test_invalid_settings_fail_before_any_run(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_matrix(**{"policies": ["linucb-one"], "scenarios": ["overlap"], **change})


def test_command_runs_a_policy_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "Mine", WithoutAlpha)  # removes the entry of the command afterwards
    (tmp_path / "mine.py").write_text(CUSTOM_POLICY)
    arguments = ["compare", "--scenarios", "overlap,one-cluster", "--policies", "linucb-one,linucb-ind,mine.py:Mine"]
    arguments += ["--rounds", "200", "--repeats", "2", "--output", "out"]
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in ("overlap", "one-cluster", "Mine", "worst scenario", "index.html"):
        assert text in done.stdout
    assert f"Command: locb {' '.join(arguments)}" in done.stdout.replace("\n", " ").replace("  ", " ")
    assert (tmp_path / "out" / "figures" / "matrix.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.chdir(tmp_path)
    again = CliRunner().invoke(app, [*arguments, "--jobs", "1"])
    assert "Reused 28 of 28 runs from out." in again.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scenarios", "moon"], "--scenarios: unknown scenario 'moon'; choose from all, evaluation, "),
        (["--scenarios", ","], "--scenarios must have at least one element"),
        (["--scenarios", "all", "--users", "9"], "--users cannot be used with --scenarios"),
        (["--scenarios", "all", "--noise", "1"], "--noise cannot be used with --scenarios"),
        (["--scenarios", "all", "--gamma", "1"], "--gamma cannot be used with --scenarios"),
        (["--scenarios", "all", "--n-seeds", "1"], "--n-seeds cannot be used with --scenarios"),
        (["--scenarios", "all", "--data", "movielens"], "--path is required with --data movielens"),
        (["--scenarios", "all", "--path", "x"], "--path requires --data"),
    ],
)
def test_invalid_options_fail_before_any_run(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = call("compare", *arguments, "--output", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"locb: {message}")
    assert not (tmp_path / "out").exists()

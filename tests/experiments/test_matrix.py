"""Scenario matrix: ratios and paired intervals, claims, and interrupted runs."""

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import locb
from commandline import CUSTOM_POLICY, call
from datasets import files
from locb.cli import app
from locb.cli.comparison.compare_scenarios import hide_folders
from locb.evaluation.findings import FAILS, HOLDS, UNDECIDED, Findings, Measurement
from locb.evaluation.run_folder import code_digest
from locb.experiments.matrix import plan_matrix
from locb.experiments.matrix.claims import build_claims, non_inferiority_table
from locb.experiments.matrix.scenario_result import (
    ScenarioResult,
    SettingResult,
    geometric_mean,
    leave_one_out,
    regret_ratio,
    repeats_needed,
    scenario_interval,
)
from locb.experiments.matrix.summary import summarize
from locb.experiments.scenarios import SCENARIOS
from locb.parallel.workers import Workers
from locb.policies.registry import REGISTRY, PolicySpec
from locb.report.findings_folder import write_findings
from locb.report.tables.result_table import read_rows
from locb.report.tables.scenario_matrix import make_matrix_table, make_policy_table

SETTINGS = {
    "rounds": None,
    "repeats": 3,
    "tuning_repeats": 0,
    "grids": {"club": {"alpha": (0.1, 1.0)}, "eloc": {}},
    "command": "locb compare",
}


def scenario_result(name: str, noise: float = 0.0, **regrets: float) -> ScenarioResult:
    """Return a scenario with these mean regrets. Repeats differ in difficulty, and for eloc also by noise."""
    difficulty = np.array([0.95, 1.0, 1.05])
    results = []
    for policy, mean in regrets.items():
        regret = mean * difficulty + (noise * mean * np.array([1.0, -2.0, 1.0]) if policy == "eloc" else 0.0)
        results += [
            SettingResult(policy, {"alpha": 0.1}, regret, Measurement(0.9, 0.01), 2.0),
            SettingResult(policy, {"alpha": 1.0}, 3 * regret, None, 2.0),
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
    assert (result.best_baseline.policy, result.best_baseline.label) == ("club", "alpha 0.1")
    assert result.ratio("eloc").mean == pytest.approx(60 / 90)
    assert result.ratio("eloc").margin == pytest.approx(0.0, abs=1e-12)  # variation that both policies share cancels
    assert result.ratio("club") == Measurement(1.0, 0.0)


@pytest.mark.parametrize(
    ("results", "verdicts"),
    [
        ([scenario_result("bernoulli-100", club=100.0, eloc=60.0)], [HOLDS, HOLDS, HOLDS]),
        ([scenario_result("bernoulli-100", club=100.0, eloc=70.0)], [HOLDS, HOLDS, FAILS]),
        ([scenario_result("zipf-300", 0.1, club=100.0, eloc=64.0)], [HOLDS, UNDECIDED, UNDECIDED]),
        ([scenario_result("one-cluster", club=100.0, eloc=104.0)], [HOLDS]),
        ([scenario_result("one-cluster", club=100.0, eloc=106.0)], [FAILS]),
        # Noise makes the non-inferiority undecided, and does not help it to pass.
        ([scenario_result("one-cluster", 0.2, club=100.0, eloc=104.0)], [UNDECIDED]),
        ([scenario_result("one-cluster", 0.2, club=100.0, eloc=106.0)], [UNDECIDED]),
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
    assert "non-inferior: 0 of 1; inferior: zipf-300 (2.000 ± 0.000)" in found[0].criteria[0].detail


def test_inferiority_in_one_of_many_scenarios_is_corrected_for_their_number() -> None:
    clear = [scenario_result(name, club=100.0, eloc=50.0) for name in ("overlap", "arms-3", "hierarchy")]
    barely = scenario_result("one-cluster", 0.05, club=100.0, eloc=136.0)  # lower end of the interval: 1.07
    assert 1.05 < barely.interval("eloc")[0] < 1.09
    assert build_claims([barely], "matrix", "matrix")[0].verdict == FAILS
    assert build_claims([barely, *clear], "matrix", "matrix")[0].verdict == UNDECIDED


def test_non_inferiority_table_names_undecided_scenarios_and_the_repeats_that_they_need() -> None:
    results = [
        scenario_result("overlap", club=100.0, eloc=50.0),
        scenario_result("one-cluster", club=100.0, eloc=120.0),
        scenario_result("arms-3", 0.1, club=100.0, eloc=95.0),
    ]
    rows = non_inferiority_table(results, "matrix").rows
    assert [row["ELOC"] for row in rows] == ["non-inferior", "inferior", "undecided"]
    assert [row["repeats needed"] is None for row in rows] == [True, True, False]
    assert rows[2]["lower end"] < 0.95 < 1.05 < rows[2]["upper end"]
    # Standard deviation 2 and mean 1: about (2 · 2 / 1)² repeats.
    values = np.array([3.0, -1.0] * 50)
    assert repeats_needed(Measurement.from_values(values)) == 100


def test_other_repeats_choose_the_setting() -> None:
    regret = np.array([[1.0, 9.0, 9.0], [5.0, 5.0, 6.0]])
    assert leave_one_out(regret).tolist() == [5.0, 9.0, 9.0]
    assert leave_one_out(regret[:, :1]).tolist() == [1.0]
    # Of many settings that differ by noise only, the lowest mean is too low, but the chosen regret is not.
    noise = np.random.default_rng(0).normal(100.0, 10.0, (50, 5))
    chosen = [leave_one_out(np.random.default_rng(seed).normal(100.0, 10.0, (50, 5))).mean() for seed in range(200)]
    assert noise.mean(axis=1).min() < 95.0
    assert np.mean(chosen) == pytest.approx(100.0, abs=1.0)


def test_bootstrap_interval_over_scenarios_grows_with_their_differences() -> None:
    alike = scenario_interval([Measurement(0.6, 0.1)] * 10)
    assert alike == pytest.approx((0.6, 0.6))
    low, high = scenario_interval([Measurement(value, 0.0) for value in (0.2, 0.4, 0.8, 1.6)])
    assert 0.2 < low < 0.4 < 0.8 < high < 1.6
    assert np.isnan(scenario_interval([Measurement(0.6, 0.1)])[0])


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
    rows = read_rows((tables / "matrix.csv").read_text())
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


def simulate(scenario: str, policy: str, repeat: int, **parameters: float) -> float:
    seed = SCENARIOS[scenario].seed(repeat)
    env = locb.Synthetic(**SCENARIOS[scenario].settings, seed=seed)
    played = locb.make_policy(policy, n_users=100, dim=env.dim, seed=seed, **parameters)
    return float(locb.simulate(played, env, rounds=300, seed=seed).regret[-1])


def test_matrix_matches_simulations(tmp_path: Path) -> None:
    names = ["linucb-one", "linucb-ind", "sclub"]
    found = run_matrix(tmp_path / "out", names, ["one-cluster", "drift-users"], alphas=[0.5])
    tables = {table.name: table.rows for table in found.tables}
    for row in tables["matrix"]:
        regret: dict[tuple[str, float | None], Any] = {}
        for name in names:
            listed = [
                one for one in tables["all-settings"] if (one["scenario"], one["policy"]) == (row["scenario"], name)
            ]
            for setting in listed:
                threshold = float(setting["setting"].split()[-1]) if name == "sclub" else None
                more = {} if threshold is None else {"alpha_theta": threshold}
                regret[name, threshold] = [simulate(row["scenario"], name, r, alpha=0.5, **more) for r in (0, 1)]
                assert setting["regret"].mean == pytest.approx(np.mean(regret[name, threshold]))
        # With two repeats, each repeat uses the choice of the other one.
        other = [min(regret, key=lambda key: regret[key][1 - r]) for r in (0, 1)]
        assert row["baseline regret"].mean == pytest.approx(np.mean([regret[other[r]][r] for r in (0, 1)]))
        for name in names:
            own = {key: values for key, values in regret.items() if key[0] == name}
            chosen = [own[min(own, key=lambda key: own[key][1 - r])][r] for r in (0, 1)]
            assert row[name].mean == pytest.approx(np.mean(chosen) / row["baseline regret"].mean)
    shown = Console(width=80, file=StringIO())
    shown.print(make_matrix_table(found), make_policy_table(found))
    assert "…" not in shown.file.getvalue()
    assert "drift-users" in shown.file.getvalue()
    write_findings(found, tmp_path / "out")
    assert "Claims" not in (tmp_path / "out" / "index.html").read_text().split("<script>")[0]


def test_tuning_repeats_choose_and_are_not_measured(tmp_path: Path) -> None:
    """Oracle: every setting is simulated alone, and the rules of the choice are applied to the regrets."""
    works: list[tuple[float, float]] = []
    options: dict[str, Any] = {"alphas": [0.5], "repeats": 5, "tuning_repeats": 2}
    found = run_matrix(tmp_path, ["sclub"], ["two-clusters"], lambda *work: works.append(work), **options)
    tables = {table.name: table.rows for table in found.tables}
    regret, listed = {}, tables["all-settings"]
    for row in listed:
        more = {"alpha": 0.5, "alpha_theta": float(row["setting"].split()[-1])}
        repeats = range(row["repeats"])
        regret[row["setting"]] = [simulate("two-clusters", "sclub", repeat, **more) for repeat in repeats]
        assert row["regret"].mean == pytest.approx(np.mean(regret[row["setting"]]))
    best = sorted(regret, key=lambda name: sum(regret[name][:2]))[:3]
    assert {row["setting"]: row["repeats"] for row in listed} == {name: 5 if name in best else 2 for name in regret}
    measured = []
    for repeat in (2, 3, 4):
        others = {name: sum(regret[name]) - regret[name][repeat] for name in best}
        measured.append(regret[min(others, key=lambda name: others[name])][repeat])
    assert tables["matrix"][0]["baseline regret"].mean == pytest.approx(np.mean(measured))
    assert tables["matrix"][0]["baseline regret"].degrees == 2
    assert "The first 2 repeats run all settings. The other repeats run the 3 settings" in found.notes[0]
    done, totals = zip(*works, strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == totals[-1]
    again = run_matrix(tmp_path, ["sclub"], ["two-clusters"], **options)
    assert again.settings["reused"] == len(list((tmp_path / "runs").iterdir()))
    assert again.tables[0].rows == found.tables[0].rows


def test_grid_is_extended_at_an_edge(tmp_path: Path) -> None:
    """CLUB with alpha2 at 4 and above never deletes an edge, so the best setting is inside the grid, or reported."""
    found = run_matrix(tmp_path, ["club"], ["no-structure"], alphas=[0.3], rounds=3_000)
    tables = {table.name: table.rows for table in found.tables}
    values = [float(row["setting"].split()[-1]) for row in tables["all-settings"]]
    assert values[0] < 0.25  # without groups, the graph should lose its edges early
    best = min(tables["all-settings"], key=lambda row: row["regret"].mean)["setting"]
    at_edge = best in (tables["all-settings"][0]["setting"], tables["all-settings"][-1]["setting"])
    assert at_edge == ("edges-settings" in tables)
    assert all("alpha " not in row["best value at an edge of the grid"] for row in tables.get("edges-settings", []))
    assert tables["policies"][0]["at the edge"] == f"{int(at_edge)} of 1"


def test_interrupted_matrix_continues(tmp_path: Path) -> None:
    def stop(done: float, total: float) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    names, scenarios = ["linucb-one", "linucb-ind"], ["one-cluster", "two-clusters"]
    with pytest.raises(KeyboardInterrupt):
        run_matrix(tmp_path / "a", names, scenarios, stop)
    kept = len(list((tmp_path / "a" / "runs").iterdir()))
    assert 0 < kept < 8  # a run plays all settings of a policy
    resumed = run_matrix(tmp_path / "a", names, scenarios)
    assert resumed.settings["reused"] == kept
    assert resumed.tables[0].rows == run_matrix(tmp_path / "b", names, scenarios).tables[0].rows
    more = run_matrix(tmp_path / "a", names, scenarios, repeats=3)
    assert 8 <= more.settings["reused"] < len(list((tmp_path / "a" / "runs").iterdir()))
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
    found = run_matrix(tmp_path, ["eloc", "linucb-ind"], ["two-clusters"], alphas=[0.3])
    assert len(list((tmp_path / "runs").iterdir())) == 2 + 2
    assert found.tables[0].rows[0]["best baseline"] == "linucb-ind"
    assert found.settings["baselines"] == ["linucb-ind"]
    assert found.claims[0].data == "1 evaluation scenario"
    settings = {row["policy"]: row["setting"] for row in found.tables[-2].rows}
    assert settings["eloc"] == "defaults"


def test_real_data_is_added_to_the_scenarios(tmp_path: Path) -> None:
    data = {
        "data": "movielens",
        "path": str(files.movielens_csv(tmp_path / "ml")),
        "cache_dir": str(tmp_path / "cache"),
        "features_from": "all",
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
        ({"tuning_repeats": 5}, r"tuning_repeats must be at least 0 and below repeats \(5\), not 5"),
        ({"seed": 998, "repeats": 3}, r"seed \+ repeats at most 1000, .* repeat 1000 is out of range"),
        ({"seed": -1}, "seed must be at least 0 .* repeat -1 is out of range"),
    ],
)
def test_invalid_settings_fail_before_any_run(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_matrix(**{"policies": ["linucb-one"], "scenarios": ["overlap"], **change})


def test_report_has_the_name_and_not_the_folder_of_the_data() -> None:
    command = ["compare", "--scenarios", "all", "--path", "/home/ann/ml-latest-small", "--output", "runs/a"]
    expected = [*command[:4], "ml-latest-small", *command[5:]]
    assert hide_folders(command) == expected


def test_command_runs_a_policy_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "Mine", WithoutAlpha)  # removes the entry of the command afterwards
    (tmp_path / "mine.py").write_text(CUSTOM_POLICY)
    arguments = ["compare", "--scenarios", "overlap,one-cluster", "--policies", "linucb-one,linucb-ind,mine.py:Mine"]
    arguments += ["--rounds", "200", "--repeats", "2", "--jobs", "1", "--output", "out"]
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in ("overlap", "one-cluster", "Mine", "worst scenario", "index.html"):
        assert text in done.stdout
    assert f"Command: locb {' '.join(arguments)}" in done.stdout.replace("\n", " ").replace("  ", " ")
    assert (tmp_path / "out" / "figures" / "matrix.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.chdir(tmp_path)
    again = CliRunner().invoke(app, arguments)
    kept = len(list((tmp_path / "out" / "runs").iterdir()))
    assert f"Reused {kept} of {kept} runs from out." in again.stdout


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
        (["--tuning-repeats", "2"], "--tuning-repeats requires --scenarios"),
        (["--scenarios", "all", "--tuning-repeats", "9"], "--tuning-repeats must be at least 0 and below repeats (5)"),
    ],
)
def test_invalid_options_fail_before_any_run(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = call("compare", *arguments, "--output", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"locb: {message}")
    assert not (tmp_path / "out").exists()

"""Tables, heat map and claims of the scenario matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locb.evaluation.findings import Findings, HeatMap, Measurement, ResultTable
from locb.experiments.matrix.claims import CONTENDER, build_claims, format_ratio
from locb.experiments.matrix.scenario_result import AlphaResult, ScenarioResult, geometric_mean
from locb.experiments.scenarios import DEVELOPMENT, EVALUATION

MATRIX, POLICIES = "matrix", "policies"
SECTION = "matrix"
TITLE = "Regret relative to the best baseline"
MATRIX_NOTE = (
    "Each ratio is the regret of the policy divided by the regret of the best baseline of the scenario; smaller is "
    "better. Each policy uses its best alpha in the scenario. ±: half of the 95% interval (Student's t) of the paired "
    "values regret − ratio × baseline regret, divided by the mean regret of the baseline. The best baseline and the "
    "alphas are chosen from the same runs, which favours the baselines."
)
POLICIES_NOTE = (
    "Mean ratio: geometric mean of the ratios over the scenarios with groups, without copies of scenarios with scaled "
    "rewards. Intervals of different scenarios are independent, because no two of these scenarios share a random seed. "
    "F1: mean over the same scenarios."
)
SCENARIOS_NOTE = (
    "The constants of ELOC were tuned on development scenarios. Evaluation scenarios have other random seeds, and most "
    "of them have settings that were never used for tuning. Development: the development scenario of the same kind as "
    "an evaluation scenario, or – if its kind was never used for tuning. Real data has the same users in both roles; "
    "only the rounds differ. First seed: the random seed of the first repeat."
)
GROUPS = {True: "yes", False: "no", None: "unknown"}


def summarize(results: Sequence[ScenarioResult], policies: Sequence[str], settings: dict[str, Any]) -> Findings:
    """Return the tables, the heat map and the claims of the scenario matrix.

    Parameters
    ----------
    results : sequence of ScenarioResult
        Results, one element per scenario.
    policies : sequence of str
        Names of all policies, in the order of the columns. ELOC comes first if it is one of them.
    settings : dict
        Settings of the matrix, shown in the report.
    """
    names = [name for name in policies if name == CONTENDER] + [name for name in policies if name != CONTENDER]
    has_contender = CONTENDER in names and len(names) > 1
    return Findings(
        title="Policies in many scenarios",
        tables=[
            _matrix_table(results, names),
            _policies_table(results, names),
            _best_alpha_table(results),
            _alphas_table(results),
            _scenarios_table(results),
        ],
        figures=[_heat_map(results, names)],
        claims=build_claims(results, SECTION, MATRIX) if has_contender else [],
        sections={SECTION: TITLE, "scenarios": "Scenarios"},
        notes=[_run_note(settings), *_contender_note(results, has_contender)],
        settings=settings,
    )


def _ratio(result: ScenarioResult, name: str) -> Measurement | float:
    return 1.0 if name == result.best_baseline.policy else result.ratio(name)


def _matrix_table(results: Sequence[ScenarioResult], names: Sequence[str]) -> ResultTable:
    rows = []
    for result in results:
        best = result.best_baseline
        row: dict[str, Any] = {"scenario": result.scenario.name, "groups": GROUPS[result.scenario.groups]}
        row |= {"best baseline": best.policy, "baseline regret": Measurement.from_values(best.regret)}
        rows.append(row | {name: _ratio(result, name) for name in names})
    return ResultTable(MATRIX, SECTION, TITLE, rows, MATRIX_NOTE)


def _policies_table(results: Sequence[ScenarioResult], names: Sequence[str]) -> ResultTable:
    rows = []
    grouped = [result for result in results if result.scenario.counts_in_means]
    for name in names:
        row: dict[str, Any] = {"policy": name}
        for role in (EVALUATION, DEVELOPMENT):
            ratios = [result.ratio(name) for result in grouped if result.scenario.role == role]
            if ratios:
                row[f"mean ratio, {role}"] = geometric_mean(ratios)
        worst = max(results, key=lambda result: result.ratio(name).mean)
        row |= {"worst scenario": worst.scenario.name, "worst ratio": _ratio(worst, name)}
        scores = [result.best_per_policy[name].f1 for result in grouped]
        known = [score.mean for score in scores if score is not None]
        row["F1"] = sum(known) / len(known) if known else None
        times = [result.best_per_policy[name].microseconds_per_round for result in results]
        row["µs per round"] = sum(times) / len(results)
        rows.append(row)
    return ResultTable(POLICIES, SECTION, "All policies over the scenarios", rows, POLICIES_NOTE)


def _row(result: ScenarioResult, entry: AlphaResult) -> dict[str, Any]:
    row = {"scenario": result.scenario.name, "policy": entry.policy, "alpha": entry.alpha}
    return row | {"regret": Measurement.from_values(entry.regret)}


def _best_alpha_table(results: Sequence[ScenarioResult]) -> ResultTable:
    """Return a table of the regret and F1 of each policy at its best alpha in each scenario.

    The name of the table ends in "-settings", because reports collapse tables with such names.
    """
    rows = []
    for result in results:
        for name, entry in result.best_per_policy.items():
            details = {"ratio": _ratio(result, name), "F1": entry.f1, "µs per round": entry.microseconds_per_round}
            rows.append(_row(result, entry) | details)
    return ResultTable("best-alpha-settings", SECTION, "Regret and F1 of every policy in every scenario", rows)


def _alphas_table(results: Sequence[ScenarioResult]) -> ResultTable:
    rows = [_row(result, entry) for result in results for entry in result.results]
    return ResultTable("alphas-settings", SECTION, "All alphas", rows)


def _scenarios_table(results: Sequence[ScenarioResult]) -> ResultTable:
    rows = [
        {
            "scenario": result.scenario.name,
            "role": result.scenario.role,
            "description": result.scenario.description,
            "groups": GROUPS[result.scenario.groups],
            "development": result.scenario.development,
            "first seed": str(result.scenario.first_seed),
        }
        for result in results
    ]
    return ResultTable("scenarios", "scenarios", "Scenarios", rows, SCENARIOS_NOTE)


def _heat_map(results: Sequence[ScenarioResult], names: Sequence[str]) -> HeatMap:
    rows = []
    for result in results:
        for name in names:
            found = result.ratio(name)
            best = name == result.best_baseline.policy
            margin = None if best or found.margin != found.margin else found.margin
            row = {"panel": f"{result.scenario.role} scenarios", "scenario": result.scenario.name, "policy": name}
            rows.append(row | {"ratio": found.mean, "margin": margin, "best": best})
    subtitle = "1: best baseline of the scenario; ±: half of the paired 95% interval"
    return HeatMap(MATRIX, SECTION, TITLE, subtitle, "policy", "scenario", rows)


def _run_note(settings: dict[str, Any]) -> str:
    rounds = "the default rounds" if settings["rounds"] is None else f"{settings['rounds']:,} rounds"
    alphas = ", ".join(f"{alpha:g}" for alpha in settings["alphas"])
    runs = f"{settings['repeats']} repeats of {rounds} per scenario; each policy at its best alpha of {alphas}."
    return f"{runs} Command: {settings['command']}"


def _contender_note(results: Sequence[ScenarioResult], has_contender: bool) -> list[str]:
    if not has_contender:
        return []
    above = [result for result in results if result.ratio(CONTENDER).mean > 1.0]
    if not above:
        return ["In no scenario does a baseline have a lower mean regret than ELOC."]
    names = ", ".join(
        f"{result.scenario.name} ({format_ratio(result.ratio(CONTENDER))} times the regret of "
        f"{result.best_baseline.policy})"
        for result in above
    )
    return [f"Scenarios in which a baseline has lower mean regret than ELOC, and the regret of ELOC: {names}."]

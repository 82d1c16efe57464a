"""Tables, heat map and claims of the scenario matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locb.evaluation.findings import Findings, HeatMap, Measurement, ResultTable
from locb.experiments.matrix.claims import CONTENDER, build_claims, format_ratio, non_inferiority_table
from locb.experiments.matrix.scenario_result import ScenarioResult, SettingResult, geometric_mean, scenario_interval
from locb.experiments.matrix.sweep import FINALISTS
from locb.experiments.scenarios import DEVELOPMENT, EVALUATION

MATRIX, POLICIES = "matrix", "policies"
SECTION = "matrix"
TITLE = "Regret relative to the best baseline"
MATRIX_NOTE = (
    "Each ratio is the regret of the policy divided by the regret of the best baseline of the scenario; smaller is "
    "better. For each repeat, the other repeats choose the baseline and the setting of every policy, so that the "
    "choice does not bias the regret. ±: half the width of the 95% interval (Student's t) of the paired values regret "
    "− ratio × baseline regret, divided by the mean regret of the baseline. Best baseline: the baseline with the "
    "lowest mean regret over all repeats. Its ratio is above 1 if some repeats choose another baseline."
)
POLICIES_NOTE = (
    "Mean ratio: geometric mean of the ratios over the scenarios with groups, without copies of scenarios with "
    "scaled rewards. ±: uncertainty from the random seeds within these scenarios. No two of them share a random "
    "seed, so their intervals are independent. Over scenarios: 95% bootstrap interval over the scenarios, drawn with "
    "replacement; it states how much the mean depends on the choice of scenarios. F1: mean over the same scenarios, "
    "at the setting with the lowest regret. At the edge: number of scenarios in which the best setting is at the "
    "edge of the grid."
)
EDGES_NOTE = (
    "The grid of a scenario is extended up to two times if its best setting is at an edge. These parameters are "
    "still at an edge, so that a wider grid could reduce the regret of the policy."
)
SCENARIOS_NOTE = (
    "The constants of ELOC were tuned on development scenarios. Evaluation scenarios have other random seeds, and most "
    "of them have settings that were never used for tuning. Development: the development scenario of the same kind as "
    "an evaluation scenario, or – if its kind was never used for tuning. Real data has the same users in both roles; "
    "only the rounds differ. First random seed: that of the first repeat."
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
            *([non_inferiority_table(results, SECTION)] if has_contender else []),
            *_edges_tables(results),
            _best_setting_table(results),
            _all_settings_table(results),
            _scenarios_table(results),
        ],
        figures=[_heat_map(results, names)],
        claims=build_claims(results, SECTION, MATRIX) if has_contender else [],
        sections={SECTION: TITLE, "scenarios": "Scenarios"},
        notes=[_run_note(settings), *_contender_note(results, has_contender)],
        settings=settings,
    )


def _matrix_table(results: Sequence[ScenarioResult], names: Sequence[str]) -> ResultTable:
    rows = []
    for result in results:
        best = result.best_baseline
        row: dict[str, Any] = {"scenario": result.scenario.name, "groups": GROUPS[result.scenario.groups]}
        regret = Measurement.from_values(result.tuned_regret(*result.baselines))
        row |= {"best baseline": best.policy, "baseline regret": regret}
        rows.append(row | {name: result.ratio(name) for name in names})
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
                low, high = scenario_interval(ratios)
                row[f"over scenarios, {role}"] = None if low != low else f"{low:.3f} to {high:.3f}"
        worst = max(results, key=lambda result: result.ratio(name).mean)
        row |= {"worst scenario": worst.scenario.name, "worst ratio": worst.ratio(name)}
        scores = [result.best_per_policy[name].f1 for result in grouped]
        known = [score.mean for score in scores if score is not None]
        row["F1"] = sum(known) / len(known) if known else None
        times = [result.best_per_policy[name].microseconds_per_round for result in results]
        row["µs per round"] = sum(times) / len(results)
        row["at the edge"] = f"{sum(name in result.edges for result in results)} of {len(results)}"
        rows.append(row)
    return ResultTable(POLICIES, SECTION, "All policies over the scenarios", rows, POLICIES_NOTE)


def _row(result: ScenarioResult, entry: SettingResult) -> dict[str, Any]:
    row = {"scenario": result.scenario.name, "policy": entry.policy, "setting": entry.label or "defaults"}
    return row | {"regret": Measurement.from_values(entry.regret)}


def _best_setting_table(results: Sequence[ScenarioResult]) -> ResultTable:
    """Return a table of the regret and F1 of each policy in each scenario.

    The name of the table ends in "-settings", because reports collapse tables with such names.
    """
    rows = []
    for result in results:
        for name, entry in result.best_per_policy.items():
            row = _row(result, entry)
            row["regret"] = Measurement.from_values(result.tuned_regret(name))
            details = {"ratio": result.ratio(name), "F1": entry.f1, "µs per round": entry.microseconds_per_round}
            rows.append(row | details | {"at the edge": "; ".join(map(str, result.edges.get(name, []))) or None})
    note = "Setting: the setting with the lowest mean regret over all repeats. Regret: chosen as in the matrix."
    return ResultTable("best-settings", SECTION, "Regret and F1 of every policy in every scenario", rows, note)


def _all_settings_table(results: Sequence[ScenarioResult]) -> ResultTable:
    rows = [
        _row(result, entry) | {"repeats": len(entry.regret)}
        for result in results
        for entry in [*result.results, *result.dropped]
    ]
    return ResultTable("all-settings", SECTION, "All settings", rows)


def _edges_tables(results: Sequence[ScenarioResult]) -> list[ResultTable]:
    rows = [
        {"scenario": result.scenario.name, "policy": name, "best value at an edge of the grid": str(edge)}
        for result in results
        for name, edges in result.edges.items()
        for edge in edges
    ]
    return (
        [ResultTable("edges-settings", SECTION, "Settings at the edge of the grid", rows, EDGES_NOTE)] if rows else []
    )


def _scenarios_table(results: Sequence[ScenarioResult]) -> ResultTable:
    rows = [
        {
            "scenario": result.scenario.name,
            "role": result.scenario.role,
            "description": result.scenario.description,
            "groups": GROUPS[result.scenario.groups],
            "development": result.scenario.development,
            "first random seed": str(result.scenario.first_seed),
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
            margin = None if found.margin != found.margin else found.margin
            row = {"panel": f"{result.scenario.role} scenarios", "scenario": result.scenario.name, "policy": name}
            rows.append(row | {"ratio": found.mean, "margin": margin, "best": best})
    subtitle = "1: best baseline of the scenario; ±: half the width of the paired 95% interval"
    return HeatMap(MATRIX, SECTION, TITLE, subtitle, "policy", "scenario", rows)


def _run_note(settings: dict[str, Any]) -> str:
    rounds = "the default number of" if settings["rounds"] is None else f"{settings['rounds']:,}"
    grids = "; ".join(
        f"{name}: {' × '.join(_format_values(*axis) for axis in grid.items())}"
        for name, grid in settings["grids"].items()
        if grid
    )
    defaults = ", ".join(name for name, grid in settings["grids"].items() if not grid)
    runs = f"{settings['repeats']} repeats per scenario, with {rounds} rounds. Grids before their extension: {grids}."
    if tuning := settings["tuning_repeats"]:
        runs += (
            f" The first {tuning} repeats run all settings. The other repeats run the {FINALISTS} "
            "settings of each policy with the lowest mean regret in the first, and only they are measured. The setting "
            "of each measured repeat is chosen by all other repeats."
        )
    runs += f" With default parameters: {defaults}." if defaults else ""
    return f"{runs} Command: {settings['command']}"


def _format_values(name: str, values: Sequence[float]) -> str:
    return f"{name} {', '.join(f'{value:g}' for value in values)}"


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

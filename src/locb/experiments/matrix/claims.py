"""Design goals of the policy ELOC as claims, which the results of the scenario matrix confirm or refute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locb.evaluation.confidence_intervals import holm
from locb.evaluation.findings import FAILS, HOLDS, UNDECIDED, Claim, Criterion, Measurement, ResultTable
from locb.experiments.matrix.scenario_result import ScenarioResult, geometric_mean, repeats_needed
from locb.experiments.scenarios import DEVELOPMENT, EVALUATION

CONTENDER = "eloc"
# Limits of the regret of ELOC divided by the regret of the best baseline.
MAX_RATIO = 1.05  # margin of non-inferiority: limit of the upper end of the 95% interval in every scenario
MAX_MEAN_RATIO = 0.75  # geometric mean over the scenarios with groups
MAX_BASIC_RATIO = 0.65  # in each of the basic scenarios
BASIC_SCENARIOS = ("bernoulli-100", "bernoulli-500", "zipf-300")
SOURCE = "not in the paper: design goal of ELOC"
NON_INFERIOR = "In every scenario, the regret of ELOC is below 1.05 times the regret of the best baseline."
LABELS = {HOLDS: "non-inferior", FAILS: "inferior", UNDECIDED: "undecided"}
NON_INFERIORITY_NOTE = (
    "ELOC is non-inferior in a scenario if the upper end of the 95% interval of its ratio is below 1.05, inferior if "
    "the lower end is above 1.05, and undecided otherwise. Interval: Fieller's interval of the ratio of two means, "
    "paired by repeat. Holm's correction of these tests is part of the claim, not of this table. Repeats needed: "
    "estimated number of repeats that would decide an undecided scenario."
)


def build_claims(results: Sequence[ScenarioResult], section: str, evidence: str) -> list[Claim]:
    """Return the design goals of ELOC as claims, first for the evaluation scenarios, then for development scenarios.

    Parameters
    ----------
    results : sequence of ScenarioResult
        Results that decide the claims.
    section : str
        Section of the report.
    evidence : str
        Name of the table that shows the results.
    """
    claims: list[Claim] = []
    for role in (EVALUATION, DEVELOPMENT):
        selected = [result for result in results if result.scenario.role == role]
        if not selected:
            continue
        data = _count(selected, f"{role} scenario")
        goals = {NON_INFERIOR: [_non_inferior(selected)]}
        grouped = [result for result in selected if result.scenario.counts_in_means]
        if grouped:
            limit = MAX_MEAN_RATIO
            statement = (
                f"In the geometric mean over the scenarios with groups, ELOC has at most {limit:g} times the regret of "
                "the best baseline."
            )
            mean = geometric_mean(result.ratio(CONTENDER) for result in grouped)
            goals[statement] = [_limit_criterion(f"geometric mean over {_count(grouped, 'scenario')}", mean, limit)]
        basic = [result for result in selected if result.scenario.name.removeprefix("dev-") in BASIC_SCENARIOS]
        if basic:
            limit = MAX_BASIC_RATIO
            names = " and ".join(", ".join(result.scenario.name for result in basic).rsplit(", ", 1))
            goals[f"In each of {names}, ELOC has at most {limit:g} times the regret of the best baseline."] = [
                _limit_criterion(result.scenario.name, result.ratio(CONTENDER), limit) for result in basic
            ]
        claims += [
            Claim(section, data, statement, SOURCE, criteria, evidence=evidence, family=role)
            for statement, criteria in goals.items()
        ]
    return claims


def non_inferiority_table(results: Sequence[ScenarioResult], section: str) -> ResultTable:
    """Return a table with the interval of the ratio of ELOC in each scenario, and whether ELOC is non-inferior."""
    rows: list[dict[str, Any]] = []
    for result in results:
        low, high = result.interval(CONTENDER)
        reserve = result.reserve(CONTENDER, MAX_RATIO)
        verdict = Criterion("", reserve).verdict
        row: dict[str, Any] = {"scenario": result.scenario.name, "role": result.scenario.role}
        row |= {"ratio": result.ratio(CONTENDER).mean, "lower end": low, "upper end": high, "ELOC": LABELS[verdict]}
        rows.append(row | {"repeats needed": repeats_needed(reserve) if verdict == UNDECIDED else None})
    return ResultTable("non-inferiority", section, "Non-inferiority of ELOC", rows, NON_INFERIORITY_NOTE)


def format_ratio(ratio: Measurement) -> str:
    """Return a ratio as text, followed by ± and half the width of its 95% interval if there is one."""
    return f"{ratio.mean:.3f}" + ("" if ratio.margin != ratio.margin else f" ± {ratio.margin:.3f}")


def _non_inferior(results: Sequence[ScenarioResult]) -> Criterion:
    """Return the criterion that ELOC is non-inferior in each scenario.

    All scenarios must pass, so the p-value of the criterion is the largest p-value of the scenarios. One scenario in
    which ELOC is inferior refutes the criterion, so the p-values of inferiority are corrected for the number of
    scenarios.
    """
    tests = [Criterion(result.scenario.name, result.reserve(CONTENDER, MAX_RATIO)) for result in results]
    p_inferior = holm([test.p_fails for test in tests])
    found: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNDECIDED: []}
    for result, test in zip(results, tests, strict=True):
        found[test.verdict].append(f"{result.scenario.name} ({format_ratio(result.ratio(CONTENDER))})")
    statement = "scenarios in which ELOC is non-inferior"
    detail = f"{statement}: {len(found[HOLDS])} of {len(results)}"
    for verdict in (FAILS, UNDECIDED):
        detail += f"; {LABELS[verdict]}: {', '.join(found[verdict])}" if found[verdict] else ""
    closest = min(tests, key=lambda test: test.difference.mean).difference
    return Criterion(statement, closest, detail, (max(test.p_holds for test in tests), min(p_inferior)))


def _limit_criterion(statement: str, found: Measurement, limit: float) -> Criterion:
    detail = f"{statement}: {format_ratio(found)} (goal: at most {limit:g})"
    return Criterion(statement, Measurement(limit - found.mean, found.margin, found.degrees), detail)


def _count(results: Sequence[ScenarioResult], noun: str) -> str:
    return f"{len(results)} {noun}{'' if len(results) == 1 else 's'}"

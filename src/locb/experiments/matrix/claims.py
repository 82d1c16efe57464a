"""Design goals of the policy ELOC as claims, which the results of the scenario matrix confirm or refute."""

from __future__ import annotations

from collections.abc import Sequence

from locb.evaluation.findings import Claim, Criterion, Measurement
from locb.experiments.matrix.scenario_result import ScenarioResult, geometric_mean
from locb.experiments.scenarios import DEVELOPMENT, EVALUATION

CONTENDER = "eloc"
# Limits of the regret of ELOC divided by the regret of the best baseline.
MAX_RATIO = 1.05  # in every scenario, after half the width of the 95% interval is subtracted from the ratio
MAX_MEAN_RATIO = 0.75  # geometric mean over the scenarios with groups
MAX_BASIC_RATIO = 0.65  # in each of the basic scenarios
BASIC_SCENARIOS = ("bernoulli-100", "bernoulli-500", "zipf-300")
SOURCE = "not in the paper: design goal of ELOC"
NEVER_WORSE = "In no scenario is the regret of ELOC significantly above 1.05 times the regret of the best baseline."


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
        goals = {NEVER_WORSE: [_never_worse(selected)]}
        grouped = [result for result in selected if result.scenario.counts_in_means]
        if grouped:
            limit = MAX_MEAN_RATIO
            statement = f"In scenarios with groups, ELOC has at most {limit:g} times the regret of the best baseline."
            mean = geometric_mean(result.ratio(CONTENDER) for result in grouped)
            goals[statement] = [_limit_criterion(f"geometric mean over {_count(grouped, 'scenario')}", mean, limit)]
        basic = [result for result in selected if result.scenario.name.removeprefix("dev-") in BASIC_SCENARIOS]
        if basic:
            limit = MAX_BASIC_RATIO
            names = ", ".join(result.scenario.name for result in basic)
            goals[f"In {names}, ELOC has at most {limit:g} times the regret of the best baseline."] = [
                _limit_criterion(result.scenario.name, result.ratio(CONTENDER), limit) for result in basic
            ]
        claims += [
            Claim(section, data, statement, SOURCE, criteria, evidence=evidence)
            for statement, criteria in goals.items()
        ]
    return claims


def exceeds_limit(result: ScenarioResult) -> bool:
    """Return whether the lower end of the 95% interval of the regret ratio of ELOC is above MAX_RATIO in a scenario.

    With a single repeat there is no interval, and the ratio itself is compared with MAX_RATIO.
    """
    ratio = result.ratio(CONTENDER)
    margin = 0.0 if ratio.margin != ratio.margin else ratio.margin
    return ratio.mean - margin > MAX_RATIO


def format_ratio(ratio: Measurement) -> str:
    """Return a ratio as text, followed by ± and half the width of its 95% interval if there is one."""
    return f"{ratio.mean:.3f}" + ("" if ratio.margin != ratio.margin else f" ± {ratio.margin:.3f}")


def _never_worse(results: Sequence[ScenarioResult]) -> Criterion:
    worse = [result for result in results if exceeds_limit(result)]
    within = Criterion.always("scenarios within the limit", len(results) - len(worse), len(results))
    names = ", ".join(f"{result.scenario.name} ({format_ratio(result.ratio(CONTENDER))})" for result in worse)
    return Criterion(within.statement, within.difference, within.detail + (f"; exceeded in {names}" if names else ""))


def _limit_criterion(statement: str, found: Measurement, limit: float) -> Criterion:
    detail = f"{statement}: {format_ratio(found)} (goal: at most {limit:g})"
    return Criterion(statement, Measurement(limit - found.mean, found.margin), detail)


def _count(results: Sequence[ScenarioResult], noun: str) -> str:
    return f"{len(results)} {noun}{'' if len(results) == 1 else 's'}"

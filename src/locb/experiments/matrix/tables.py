"""From where policies stand to tables, a heat map and claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locb.evaluation.findings import Findings, HeatMap, Measurement, ResultTable
from locb.experiments.matrix.claims import CONTENDER, claims, told
from locb.experiments.matrix.standings import WorldResult, geometric_mean
from locb.experiments.scenarios import DEVELOPMENT, JUDGING

MATRIX, POLICIES = "matrix", "policies"
SECTION = "matrix"
HOW = (
    "Regret over that of the best baseline of the world (1; below it is better), each policy at its best alpha there. "
    "±: half of the 95% interval (Student's) of regret less ratio times the best baseline's regret, taken repeat by "
    "repeat, over that baseline's mean. Baseline and alphas are chosen by the same runs, which favours them."
)
AVERAGED = (
    "Geometric means of the ratios over the worlds that have groups; intervals of different worlds are independent, as "
    "no two share a seed."
)
GROUPS = {True: "yes", False: "no", None: "not known"}


def tell(results: Sequence[WorldResult], policies: Sequence[str], settings: dict[str, Any]) -> Findings:
    """All that the matrix shows."""
    names = [name for name in policies if name == CONTENDER] + [name for name in policies if name != CONTENDER]
    contends = CONTENDER in names and len(names) > 1
    notes = [_played(settings), *_where_it_loses(results, contends)]
    return Findings(
        title="Policies in many worlds",
        tables=[_matrix(results, names), _policies(results, names), _each(results), _alphas(results), _worlds(results)],
        figures=[_heat_map(results, names)],
        claims=claims(results, SECTION, MATRIX) if contends else [],
        sections={SECTION: "Regret against the best baseline", "worlds": "The worlds"},
        notes=notes,
        settings=settings,
    )


def _ratio(result: WorldResult, name: str) -> Measurement | float:
    return 1.0 if name == result.best_baseline.policy else result.ratio(name)


def _matrix(results: Sequence[WorldResult], names: Sequence[str]) -> ResultTable:
    rows = []
    for result in results:
        best = result.best_baseline
        row: dict[str, Any] = {"world": result.world.name, "groups": GROUPS[result.world.groups]}
        row |= {"best baseline": best.policy, "its regret": Measurement.from_values(best.regret)}
        rows.append(row | {name: _ratio(result, name) for name in names})
    return ResultTable(MATRIX, SECTION, "Regret relative to the best baseline", rows, HOW)


def _policies(results: Sequence[WorldResult], names: Sequence[str]) -> ResultTable:
    rows = []
    for name in names:
        row: dict[str, Any] = {"policy": name}
        for role in (JUDGING, DEVELOPMENT):
            ratios = [r.ratio(name) for r in results if r.world.role == role and r.world.groups]
            if ratios:
                row[f"mean ratio, {role}"] = geometric_mean(ratios)
        worst = max(results, key=lambda result: result.ratio(name).mean)
        row |= {"worst world": worst.world.name, "ratio there": _ratio(worst, name)}
        scores = [r.best_per_policy[name].f1 for r in results if r.world.groups]
        known = [score.mean for score in scores if score is not None]
        row["F1"] = sum(known) / len(known) if known else None
        row["µs a round"] = sum(r.best_per_policy[name].microseconds_per_round for r in results) / len(results)
        rows.append(row)
    note = f"{AVERAGED} F1: mean over the same worlds."
    return ResultTable(POLICIES, SECTION, "Every policy over the worlds", rows, note)


def _row(result: WorldResult, standing: Any) -> dict[str, Any]:
    row = {"world": result.world.name, "policy": standing.policy, "alpha": standing.alpha}
    return row | {"regret": Measurement.from_values(standing.regret)}


def _each(results: Sequence[WorldResult]) -> ResultTable:
    """Regret and F1 of each policy at its best alpha. The name keeps it folded on the page."""
    rows = []
    for result in results:
        for name, standing in result.best_per_policy.items():
            more = {"ratio": _ratio(result, name), "F1": standing.f1, "µs a round": standing.microseconds_per_round}
            rows.append(_row(result, standing) | more)
    return ResultTable("each-settings", SECTION, "Regret and F1 of every policy in every world", rows)


def _alphas(results: Sequence[WorldResult]) -> ResultTable:
    rows = [_row(result, standing) for result in results for standing in result.tried]
    return ResultTable("alphas-settings", SECTION, "Every alpha", rows)


def _worlds(results: Sequence[WorldResult]) -> ResultTable:
    rows = [
        {
            "world": result.world.name,
            "for": result.world.role,
            "what it is": result.world.says,
            "groups": GROUPS[result.world.groups],
            "first seed": str(result.world.first_seed),
        }
        for result in results
    ]
    note = (
        "Constants were set on development worlds; judging worlds have other seeds, and most are of kinds that were "
        "never looked at. Real data are the same for both, and only their rounds differ."
    )
    return ResultTable("worlds", "worlds", "Worlds", rows, note)


def _heat_map(results: Sequence[WorldResult], names: Sequence[str]) -> HeatMap:
    rows = []
    for result in results:
        for name in names:
            found = result.ratio(name)
            best = name == result.best_baseline.policy
            margin = None if best or found.margin != found.margin else found.margin
            row = {"panel": f"{result.world.role} worlds", "world": result.world.name, "policy": name}
            rows.append(row | {"ratio": found.mean, "margin": margin, "best": best})
    subtitle = "1: the best baseline of the world; ±: half of the 95% interval, paired"
    return HeatMap(MATRIX, SECTION, "Regret relative to the best baseline", subtitle, "policy", "world", rows)


def _played(settings: dict[str, Any]) -> str:
    rounds = "the worlds' own numbers of" if settings["rounds"] is None else f"{settings['rounds']:,}"
    told = f"Played: {settings['repeats']} repeats of {rounds} rounds, baselines at their best alpha of "
    return told + ", ".join(f"{alpha:g}" for alpha in settings["alphas"]) + f". Command: {settings['command']}"


def _where_it_loses(results: Sequence[WorldResult], contends: bool) -> list[str]:
    if not contends:
        return []
    above = [result for result in results if result.ratio(CONTENDER).mean > 1.0]
    if not above:
        return ["ELOC has the lowest regret in every world."]
    where = ", ".join(f"{r.world.name} ({told(r.ratio(CONTENDER))} of {r.best_baseline.policy}'s)" for r in above)
    return [f"Where ELOC loses to a baseline: {where}."]

"""Reproduction of Figures 3 to 5: cumulative regret of all policies, and of LOCB by number of seed users and gamma."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.evaluation.findings import FAILS, Claim, Criterion, LineChart, Measurement, ResultTable, line_points
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.accuracy_by_setting import gamma_ranges
from locb.experiments.reproduce.data_set import DataSet
from locb.experiments.reproduce.target import JobOutcomes, Sizes, TargetFindings, inner_optimum, lowest_in_other_repeats
from locb.policies import policy_spec

BASELINES = {name: policy_spec(name).label for name in ("linucb-one", "linucb-ind", "club", "sclub")}
EARLY_ROUNDS_PER_USER = 10


def _job(data: DataSet, sizes: Sizes, repeat: int, policy: str, **parameters: Any) -> Job:
    settings = {"policy": policy, "rounds": sizes.rounds, "parameters": parameters}
    return Job(runs.regret, data.environment, sizes.seed + repeat, settings, cost=2.0 * sizes.rounds, data=data.name)


def plan_regret(data: DataSet, sizes: Sizes) -> list[Job]:
    """Return the jobs of the regret comparison for a data set: one job per policy, setting and repeat.

    LOCB has one job per gamma of the data set, alpha and repeat.
    """
    return [
        _job(data, sizes, repeat, name, **(fixed | setting))
        for repeat in range(sizes.repeats)
        for name, fixed in _policies(data).values()
        for setting in _settings(name)
    ]


def _policies(data: DataSet) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the compared policies: label → name and parameters that are not tuned."""
    policies: dict[str, tuple[str, dict[str, Any]]] = {
        "LOCB" if gamma == paper.GAMMA else f"LOCB, gamma {gamma:g}": (
            "locb",
            {"gamma": gamma, "n_seeds": paper.REGRET_SEEDS},
        )
        for gamma in data.gammas
    }
    return policies | {label: (name, {}) for name, label in BASELINES.items()}


def _settings(name: str) -> list[dict[str, float]]:
    """Return the settings with which a policy runs: all values of alpha and, for CLUB and SCLUB, of the threshold."""
    if name not in paper.REGRET_THRESHOLDS:
        return [{"alpha": alpha} for alpha in paper.ALPHAS]
    threshold, values = paper.REGRET_THRESHOLDS[name]
    return [{"alpha": alpha, threshold: value} for alpha in paper.ALPHAS for value in values]


def plan_by_seeds(data: DataSet, sizes: Sizes) -> list[Job]:
    """Return the jobs of the regret of LOCB by the number of seed users: one job per number and repeat."""
    return [
        _job(data, sizes, repeat, "locb", alpha=1.0, gamma=paper.GAMMA, n_seeds=n_seeds)
        for n_seeds in paper.SEED_COUNTS
        for repeat in range(sizes.repeats)
    ]


def plan_by_gamma(data: DataSet, sizes: Sizes) -> list[Job]:
    """Return the jobs of the regret of LOCB by gamma: one job per gamma and repeat."""
    return [
        _job(data, sizes, repeat, "locb", alpha=1.0, gamma=gamma, n_seeds=paper.REGRET_SEEDS)
        for _, gammas in gamma_ranges(data)
        for gamma in gammas
        for repeat in range(sizes.repeats)
    ]


def _curves(outcomes: JobOutcomes, policy: str, **wanted: Any) -> Any:
    """Return the cumulative regret of the runs of a policy with the parameters ``wanted``: array (repeats, points)."""
    found = {}
    for job, outcome in outcomes:
        parameters = job.settings["parameters"]
        if job.settings["policy"] == policy and all(parameters.get(name) == value for name, value in wanted.items()):
            found[job.seed] = outcome["regret"]
    return np.array([found[seed] for seed in sorted(found)])


def summarize_regret(data: DataSet, sizes: Sizes, outcomes: JobOutcomes) -> TargetFindings:
    """Return the tables and the chart of the regret of all policies, and the claims about their order."""
    rounds = outcomes[0][1]["rounds"]
    best: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    points, all_rows = [], []
    for label, (name, fixed) in _policies(data).items():
        curves = {
            ", ".join(f"{key} {value:g}" for key, value in setting.items()): _curves(outcomes, name, **fixed, **setting)
            for setting in _settings(name)
        }
        table = np.array(list(curves.values()))  # (settings, repeats, points)
        chosen = lowest_in_other_repeats(table[:, :, -1])
        best[label] = table[chosen, np.arange(table.shape[1])]
        points += line_points(label, "round", rounds, "regret", best[label])
        setting = min(curves, key=lambda key: float(curves[key][:, -1].mean()))
        rows.append({"policy": label, "setting": setting, "regret": Measurement.from_values(best[label][:, -1])})
        all_rows += [
            {"policy": label, "setting": key, "regret": Measurement.from_values(values[:, -1])}
            for key, values in curves.items()
        ]
    for row in rows:
        difference = Criterion.paired("", best[row["policy"]][:, -1], best["LOCB"][:, -1]).difference
        row["regret difference from LOCB"] = None if row["policy"] == "LOCB" else difference
    rows.sort(key=lambda row: float(row["regret"].mean))
    tuned = (
        f"{sizes.rounds:,} rounds; for each repeat, the other repeats choose alpha, and the threshold of CLUB and SCLUB"
    )
    note = f"{tuned}. Column setting: the best setting over all repeats. The paper shows curves without numbers."
    if data.scaled is not None:
        note += f" At gamma {data.scaled:g}, half of the users are in true groups of two or more users."
    name, title = f"regret-{data.name}", f"Regret: {data.label}"
    tables = [
        ResultTable(name, "regret", title, rows, note),
        ResultTable(f"{name}-settings", "regret", f"All settings: {data.label}", all_rows),
    ]
    figure = LineChart(name, "regret", title, f"{tuned}; shaded: 95% interval", "round", "regret", points)
    untuned = _curves(outcomes, "club", alpha=1.0, alpha2=1.0), _curves(outcomes, "linucb-one", alpha=1.0)
    return TargetFindings(tables, [figure], _order_claims(data, rounds, best, untuned, name))


def _order_claims(
    data: DataSet, rounds: list[int], best: dict[str, Any], untuned: tuple[Any, Any], evidence: str
) -> list[Claim]:
    """Return the claims about the order of the policies.

    Parameters
    ----------
    data : DataSet
        Data set of the runs.
    rounds : list of int
        Rounds of the points of the curves.
    best : dict
        Regret of each policy with its tuned settings: array (repeats, points).
    untuned : tuple
        Regret of CLUB and of LinUCB-ONE with alpha 1 and the default threshold. A tuned threshold can be so small that
        CLUB separates all users at once, and the paper describes CLUB with one group at the start.
    evidence : str
        Name of the table.
    """
    final = {label: curves[:, -1] for label, curves in best.items()}
    source = f"Regret comparison, Figure {3 if data.paper_name in ('synthetic', 'yelp') else 4}"

    def lower(better: str, worse: str) -> Criterion:
        return Criterion.paired(f"regret of {worse} above regret of {better}", final[worse], final[better])

    early = int(np.searchsorted(rounds, min(rounds[-1], EARLY_ROUNDS_PER_USER * 100)))
    individual, shared = best["LinUCB-IND"][:, early], best["LinUCB-ONE"][:, early]
    after = f"after {rounds[early]:,} rounds"
    club, one = (curves[:, early] for curves in untuned)
    statement = f"regret of LinUCB-IND above regret of LinUCB-ONE {after}"
    similar = [
        Criterion.paired(
            f"regret of CLUB (alpha 1, alpha2 1) above 0.9 times that of LinUCB-ONE {after}", club, 0.9 * one
        ),
        Criterion.paired(f"1.1 times the regret of LinUCB-ONE above that of CLUB {after}", 1.1 * one, club),
    ]
    criteria = {
        "LOCB has the lowest regret.": [lower("LOCB", label) for label in BASELINES.values()],
        "At the end LinUCB-IND has lower regret than LinUCB-ONE.": [lower("LinUCB-IND", "LinUCB-ONE")],
        "At the start LinUCB-ONE has lower regret than LinUCB-IND.": [Criterion.paired(statement, individual, shared)],
        "At the start the regret of CLUB is within 10% of that of LinUCB-ONE.": similar,
        "CLUB has lower regret than LinUCB-ONE.": [lower("CLUB", "LinUCB-ONE")],
        "SCLUB has lower regret than CLUB.": [lower("SCLUB", "CLUB")],
    }
    return [Claim("regret", data.label, claim, source, tests, evidence=evidence) for claim, tests in criteria.items()]


def _by_setting(x: str, values: dict[float, Any], name: str, section: str, title: str, setting: str) -> TargetFindings:
    """Return a table and a chart of the regret after the last round by the value of a setting.

    Parameters
    ----------
    x : str
        Name of the setting that varies.
    values : dict
        Regret of each repeat, by the value of the setting.
    name, section, title : str
        Name of the table and the chart, section of the report, and heading.
    setting : str
        Description of the settings that are constant.
    """
    rows = [{x: value, "regret": Measurement.from_values(final)} for value, final in values.items()]
    points = line_points("LOCB", x, list(values), "regret", np.array(list(values.values())).T)
    subtitle = f"{setting}; shaded: 95% interval"
    figure = LineChart(name, section, title, subtitle, x, "regret", points, log_x=True)
    return TargetFindings([ResultTable(name, section, title, rows, setting)], [figure], [])


def summarize_by_seeds(data: DataSet, sizes: Sizes, outcomes: JobOutcomes) -> TargetFindings:
    """Return the table, the chart and the claims on the regret of LOCB by the number of seed users."""
    final: dict[float, Any] = {count: _curves(outcomes, "locb", n_seeds=count)[:, -1] for count in paper.SEED_COUNTS}
    name, section = f"regret-by-seeds-{data.name}", "regret-by-seeds"
    title = f"Regret by the number of seeds: {data.label}"
    found = _by_setting("seeds", final, name, section, title, f"{sizes.rounds:,} rounds, alpha 1")
    few, medium, many = final[5], final[20], final[100]
    more = [
        Criterion.paired("regret with 5 seeds above regret with 20", few, medium),
        Criterion.paired("regret with 5 seeds above regret with 100", few, many),
    ]
    statement = "reduction of regret from 5 to 20 seeds above reduction from 20 to 100"
    beyond = [Criterion.paired(statement, few - medium, medium - many)]
    source = "Regret by seeds, Figure 5"
    found.claims.append(Claim(section, data.label, "More seeds reduce the regret.", source, more, evidence=name))
    found.claims.append(
        Claim(section, data.label, "Beyond 20 seeds the regret falls little.", source, beyond, evidence=name)
    )
    return found


def _no_minimum_explanation(criteria: list[Criterion]) -> str:
    """Return an explanation if the smallest gamma does not raise the regret; otherwise an empty string."""
    if criteria[1].verdict != FAILS:
        return ""
    return "A small gamma does not raise the regret. Clusters become final later and improve until then."


def summarize_by_gamma(data: DataSet, sizes: Sizes, outcomes: JobOutcomes) -> TargetFindings:
    """Return tables and charts of the regret of LOCB by gamma, and the claim that the regret has a minimum.

    The paper states this claim without a figure.
    """
    found = TargetFindings([], [], [])
    section = "regret-by-gamma"
    for centre, gammas in gamma_ranges(data):
        final = {gamma: _curves(outcomes, "locb", gamma=gamma)[:, -1] for gamma in gammas}
        label = data.label if data.scaled is None else f"{data.label}, gammas around {centre:g}"
        name = f"regret-by-gamma-{data.name}" + ("" if centre == paper.GAMMA else "-scaled")
        setting = f"{sizes.rounds:,} rounds, alpha 1, 30 seeds"
        found.extend(_by_setting("gamma", final, name, section, f"Regret by gamma: {label}", setting))
        values = np.array([final[gamma] for gamma in gammas]).T
        best = "above regret at the best inner gamma (chosen from the other repeats)"
        first, last = f"regret at {gammas[0]:g} {best}", f"regret at {gammas[-1]:g} {best}"
        criteria = inner_optimum(first, last, values, best="lowest")
        statement = "Regret has a minimum in gamma: larger and smaller values are both worse."
        explanation = _no_minimum_explanation(criteria)
        found.claims.append(Claim(section, label, statement, "Section 6.3, not shown", criteria, explanation, name))
    return found

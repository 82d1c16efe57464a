"""Figures 3 to 5: cumulative regret, also by the number of seeds and by gamma."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.evaluation.findings import FAILS, Claim, Criterion, LineChart, Measurement, ResultTable, line_points
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.parameters import scaled_gammas
from locb.experiments.reproduce.targets import DataSet, Evidence, Played, Sizes, peak_inside
from locb.policies import policy_spec

BASELINES = {name: policy_spec(name).label for name in ("linucb-one", "linucb-ind", "club", "sclub")}
EARLY = 10  # rounds a user that count as "in the beginning"


def _job(data: DataSet, sizes: Sizes, repeat: int, policy: str, **parameters: Any) -> Job:
    settings = {"policy": policy, "rounds": sizes.rounds, "parameters": parameters}
    return Job(runs.regret, data.world, sizes.seed + repeat, settings, cost=2.0 * sizes.rounds, data=data.name)


def plan_regret(data: DataSet, sizes: Sizes) -> list[Job]:
    """A job a policy, alpha and repeat."""
    jobs = []
    for repeat in range(sizes.repeats):
        for alpha in paper.ALPHAS:
            locb = {"alpha": alpha, "n_seeds": paper.REGRET_SEEDS}
            jobs += [_job(data, sizes, repeat, "locb", gamma=gamma, **locb) for gamma in data.gammas]
            jobs += [_job(data, sizes, repeat, name, alpha=alpha) for name in BASELINES]
    return jobs


def plan_by_seeds(data: DataSet, sizes: Sizes) -> list[Job]:
    """A job a number of seeds and repeat."""
    return [
        _job(data, sizes, repeat, "locb", alpha=1.0, gamma=paper.GAMMA, n_seeds=n_seeds)
        for n_seeds in paper.SEED_COUNTS
        for repeat in range(sizes.repeats)
    ]


def plan_by_gamma(data: DataSet, sizes: Sizes) -> list[Job]:
    """A job a gamma and repeat."""
    return [
        _job(data, sizes, repeat, "locb", alpha=1.0, gamma=gamma, n_seeds=paper.REGRET_SEEDS)
        for _, gammas in scaled_gammas(data)
        for gamma in gammas
        for repeat in range(sizes.repeats)
    ]


def _curves(played: Played, policy: str, **wanted: Any) -> Any:
    """Regret of the runs with these parameters, in the order of the repeats: (repeats, points)."""
    found = {}
    for job, outcome in played:
        parameters = job.settings["parameters"]
        if job.settings["policy"] == policy and all(parameters.get(name) == value for name, value in wanted.items()):
            found[job.seed] = outcome["regret"]
    return np.array([found[seed] for seed in sorted(found)])


def tell_regret(data: DataSet, sizes: Sizes, played: Played) -> Evidence:
    """The order of the policies, and whether it is the paper's."""
    rounds = played[0][1]["rounds"]
    tried = {
        "LOCB" if gamma == paper.GAMMA else f"LOCB, gamma {gamma:g}": ("locb", {"gamma": gamma})
        for gamma in data.gammas
    }
    tried |= {label: (name, {}) for name, label in BASELINES.items()}
    best: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    points, all_rows = [], []
    for label, (name, wanted) in tried.items():
        curves = {alpha: _curves(played, name, alpha=alpha, **wanted) for alpha in paper.ALPHAS}
        alpha = min(curves, key=lambda a: float(curves[a][:, -1].mean()))
        best[label] = curves[alpha]
        points += line_points(label, "round", rounds, "regret", curves[alpha])
        rows.append({"policy": label, "alpha": alpha, "regret": Measurement.from_values(curves[alpha][:, -1])})
        all_rows += [
            {"policy": label, "alpha": a, "regret": Measurement.from_values(of[:, -1])} for a, of in curves.items()
        ]
    for row in rows:
        behind = Criterion.paired("", best[row["policy"]][:, -1], best["LOCB"][:, -1]).difference
        row["regret less LOCB's"] = None if row["policy"] == "LOCB" else behind
    rows.sort(key=lambda row: float(row["regret"].mean))
    told = f"{sizes.rounds:,} rounds; each policy at its best alpha of {', '.join(f'{a:g}' for a in paper.ALPHAS)}"
    note = f"{told}. The paper shows curves and gives no figures."
    if data.scaled is not None:
        note += f" At gamma {data.scaled:g} half of the users are in groups of two or more, which 0.2 does not give."
    name, title = f"regret-{data.name}", f"Regret: {data.label}"
    tables = [
        ResultTable(name, "regret", title, rows, note),
        ResultTable(f"{name}-settings", "regret", f"Every alpha: {data.label}", all_rows),
    ]
    figure = LineChart(name, "regret", title, f"{told}; shaded: 95% interval", "round", "regret", points)
    final = {label: curves[:, -1] for label, curves in best.items()}
    number = 1 if data.name in ("synthetic", "yelp") else 2

    def claim(says: str, *parts: Criterion, why: str = "") -> Claim:
        return Claim("regret", data.label, says, f"Regret comparison, figure {number}", list(parts), why, name)

    def below(lower: str, higher: str) -> Criterion:
        return Criterion.paired(f"regret of {higher} above that of {lower}", final[higher], final[lower])

    early = int(np.searchsorted(rounds, min(rounds[-1], EARLY * 100)))
    ind, one = best["LinUCB-IND"][:, early], best["LinUCB-ONE"][:, early]
    claims = [
        claim("LOCB has the lowest regret.", *(below("LOCB", label) for label in BASELINES.values())),
        claim("In the long run LinUCB-IND is ahead of LinUCB-ONE.", below("LinUCB-IND", "LinUCB-ONE")),
        claim(
            "In the beginning LinUCB-ONE is ahead of LinUCB-IND.",
            Criterion.paired(f"regret of LinUCB-IND above that of LinUCB-ONE after {rounds[early]:,} rounds", ind, one),
        ),
        claim("CLUB is ahead of LinUCB-ONE.", below("CLUB", "LinUCB-ONE")),
        claim("SCLUB is ahead of CLUB.", below("SCLUB", "CLUB")),
    ]
    return Evidence(tables, [figure], claims)


def _by_setting(x: str, values: dict[float, Any], name: str, section: str, title: str, told: str) -> Evidence:
    """A table and a chart of the last regret against a setting."""
    rows = [{x: value, "regret": Measurement.from_values(final)} for value, final in values.items()]
    points = line_points("LOCB", x, list(values), "regret", np.array(list(values.values())).T)
    subtitle = f"{told}; shaded: 95% interval"
    figure = LineChart(name, section, title, subtitle, x, "regret", points, log_x=True)
    return Evidence([ResultTable(name, section, title, rows, told)], [figure], [])


def tell_by_seeds(data: DataSet, sizes: Sizes, played: Played) -> Evidence:
    """Regret by the number of seeds."""
    final: dict[float, Any] = {count: _curves(played, "locb", n_seeds=count)[:, -1] for count in paper.SEED_COUNTS}
    name, section = f"regret-by-seeds-{data.name}", "regret-by-seeds"
    title = f"Regret by the number of seeds: {data.label}"
    evidence = _by_setting("seeds", final, name, section, title, f"{sizes.rounds:,} rounds, alpha 1")
    few, some, many = final[5], final[20], final[100]
    where = "Regret by seeds, figure 3"
    evidence.claims.append(
        Claim(
            section,
            data.label,
            "More seeds, less regret.",
            where,
            [
                Criterion.paired("regret with 5 seeds above that with 20", few, some),
                Criterion.paired("regret with 5 seeds above that with 100", few, many),
            ],
            evidence=name,
        )
    )
    saved = "regret saved from 5 to 20 seeds above that from 20 to 100"
    evidence.claims.append(
        Claim(
            section,
            data.label,
            "Beyond 20 seeds little regret is saved.",
            where,
            [Criterion.paired(saved, few - some, some - many)],
            evidence=name,
        )
    )
    return evidence


def _why_no_valley(parts: list[Criterion]) -> str:
    """What stands against a valley."""
    if parts[1].verdict != FAILS:
        return ""
    return "A small gamma is not worse: sets that are not returned go on changing for the better, and none has to be."


def tell_by_gamma(data: DataSet, sizes: Sizes, played: Played) -> Evidence:
    """Regret by gamma: one valley, says the paper, and shows none."""
    whole = Evidence([], [], [])
    for centre, gammas in scaled_gammas(data):
        final = {gamma: _curves(played, "locb", gamma=gamma)[:, -1] for gamma in gammas}
        where = data.label if data.scaled is None else f"{data.label}, gammas around {centre:g}"
        name = f"regret-by-gamma-{data.name}" + ("" if centre == paper.GAMMA else "-scaled")
        section = "regret-by-gamma"
        told = f"{sizes.rounds:,} rounds, alpha 1, 30 seeds"
        evidence = _by_setting("gamma", final, name, section, f"Regret by gamma: {where}", told)
        values = np.array([final[gamma] for gamma in gammas]).T
        parts = peak_inside(
            f"regret at {gammas[0]:g} above that at the best inner gamma (chosen by the other repeats)",
            f"regret at {gammas[-1]:g} above that at the best inner gamma (chosen by the other repeats)",
            values,
            best="lowest",
        )
        says = "Regret has one valley in gamma: too large and too small a gamma are both worse."
        evidence.claims.append(
            Claim(section, where, says, "Section 6.3, not shown", parts, _why_no_valley(parts), name)
        )
        whole = whole.plus(evidence)
    return whole

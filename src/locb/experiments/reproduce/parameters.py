"""Tables 3 and 4: how the accuracy of LOCB changes with the number of seeds and with gamma."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from locb.evaluation.findings import FAILS, Claim, Criterion, LineChart, ResultTable, line_points
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.targets import (
    MOST_ROUNDS,
    DataSet,
    Evidence,
    Played,
    Sizes,
    f1_row,
    peak_inside,
    setting_told,
    suffix,
)


def _job(data: DataSet, sizes: Sizes, repeat: int, gamma: float, n_seeds: int, judged_at: list[float]) -> Job:
    settings = {
        "gamma": gamma,
        "n_seeds": n_seeds,
        "tau": paper.TAU,
        "judged_at": judged_at,
        "sigma": paper.SIGMA,
        "delta": paper.DELTA,
        "most_rounds": MOST_ROUNDS,
    }
    # Radii fall with the root of the rounds, so that half of gamma takes four times as long.
    cost = 60_000.0 * (paper.GAMMA / gamma) ** 2 * (1.0 + n_seeds / 50.0)
    return Job(runs.clusters, data.world, sizes.seed + repeat, settings, cost, data.name)


def plan_seeds(data: DataSet, sizes: Sizes) -> list[Job]:
    """A job a gamma, number of seeds and repeat."""
    return [
        _job(data, sizes, repeat, gamma, n_seeds, data.judged_at(gamma))
        for gamma in data.gammas
        for n_seeds in paper.SEED_COUNTS
        for repeat in range(sizes.repeats)
    ]


def scaled_gammas(data: DataSet) -> list[tuple[float, tuple[float, ...]]]:
    """The paper's gammas, and the same in proportion to the gamma that fits the data, each list with its centre."""
    lists: list[tuple[float, tuple[float, ...]]] = [(paper.GAMMA, paper.GAMMAS)]
    if data.scaled is not None:
        lists.append((data.scaled, tuple(float(f"{g * data.scaled / paper.GAMMA:.4g}") for g in paper.GAMMAS)))
    return lists


def plan_gamma(data: DataSet, sizes: Sizes) -> list[Job]:
    """A job a gamma and repeat."""
    return [
        _job(data, sizes, repeat, gamma, paper.ACCURACY_SEEDS, [gamma])
        for _, gammas in scaled_gammas(data)
        for gamma in gammas
        for repeat in range(sizes.repeats)
    ]


def _collect(played: Played, name: str, judged: float | None, gamma: float | None = None) -> dict[float, list[Any]]:
    """Records by the value of one setting, in the order of the repeats; judged at their own gamma if None."""
    found: dict[float, dict[int, Any]] = {}
    for job, outcome in played:
        if gamma is not None and job.settings["gamma"] != gamma:
            continue
        for record in outcome["records"]:
            if record["judged_at"] == (job.settings["gamma"] if judged is None else judged):
                found.setdefault(job.settings[name], {})[job.seed] = record
    return {value: [of[seed] for seed in sorted(of)] for value, of in found.items()}


def _curve(
    x: str,
    name: str,
    title: str,
    records: dict[float, list[Any]],
    at: Sequence[float],
    published: Sequence[float] | None,
) -> LineChart:
    """F1 against a setting, with the paper's figures as a dashed line."""
    points = line_points(
        "measured", x, at, "F1", np.array([[r["f1"] for r in records[value]] for value in at]).T, upper=1.0
    )
    if published is not None:
        points += [{"line": "the paper", x: value, "F1": f1} for value, f1 in zip(at, published, strict=True)]
    shade = "mean of the repeats, shaded: 95% interval"
    return LineChart(name, x, title, shade, x, "F1", points, log_x=True, dashed=("the paper",))


def _disagreement(data: DataSet) -> str:
    """That the paper has two figures for one setting, where it has."""
    if data.name not in paper.F1_BY_SEEDS:
        return ""
    here, there = paper.F1_BY_SEEDS[data.name][-1], paper.ACCURACY[data.name]["LOCB"][0]
    return f"With 100 seeds and gamma 0.2 the paper has {here:g} here and {there:g} in its table of accuracy."


def tell_seeds(data: DataSet, sizes: Sizes, played: Played) -> Evidence:
    """F1 by the number of seeds."""
    evidence = Evidence([], [], [])
    for gamma in data.gammas:
        for judged in data.judged_at(gamma):
            records = _collect(played, "n_seeds", judged, gamma)
            published = paper.F1_BY_SEEDS.get(data.name)
            rows = [
                {"seeds": count, **f1_row(records[count], published and (published[place],))}
                for place, count in enumerate(paper.SEED_COUNTS)
            ]
            where, name = setting_told(data, gamma, judged), f"seeds-{data.name}{suffix(gamma, judged)}"
            title = f"Accuracy by the number of seeds: {where}"
            evidence.tables.append(ResultTable(name, "seeds", title, rows, _disagreement(data)))
            evidence.figures.append(_curve("seeds", name, title, records, paper.SEED_COUNTS, published))
            few, some, many = ([r["f1"] for r in records[count]] for count in (5, 20, 100))
            why = data.why if judged == paper.GAMMA else ""
            evidence.claims.append(
                Claim(
                    "seeds",
                    where,
                    "More seeds find the clusters better.",
                    "Table 3",
                    [
                        Criterion.paired("F1 with 20 seeds above that with 5", some, few),
                        Criterion.paired("F1 with 100 seeds above that with 5", many, few),
                    ],
                    why,
                    name,
                )
            )
            gained, more = np.subtract(some, few), np.subtract(many, some)
            evidence.claims.append(
                Claim(
                    "seeds",
                    where,
                    "Beyond 20 seeds little accuracy is gained.",
                    "Table 3, Section 6.3",
                    [Criterion.paired("F1 gained from 5 to 20 seeds above that from 20 to 100", gained, more)],
                    why,
                    name,
                )
            )
    return evidence


def _why_no_peak(data: DataSet, centre: float, parts: list[Criterion]) -> str:
    """What stands against a peak, by the end at which it is missing."""
    if centre == paper.GAMMA and data.why:
        return data.why
    told = []
    if parts[0].verdict == FAILS:
        told.append("A large gamma is not worse here: its groups hold nearly everyone, and so do sets returned early.")
    if parts[1].verdict == FAILS:
        told.append("A small gamma is not worse here: LOCB only waits longer, and what it waits for gets better.")
    return " ".join(told)


def tell_gamma(data: DataSet, sizes: Sizes, played: Played) -> Evidence:
    """F1 by gamma."""
    evidence = Evidence([], [], [])
    records = _collect(played, "gamma", None)
    for centre, gammas in scaled_gammas(data):
        published = paper.F1_BY_GAMMA.get(data.name) if centre == paper.GAMMA else None
        rows = [
            {"gamma": gamma, **f1_row(records[gamma], published and (published[place],))}
            for place, gamma in enumerate(gammas)
        ]
        where = data.label if data.scaled is None else f"{data.label}, gammas around {centre:g}"
        name = f"gamma-{data.name}" + ("" if centre == paper.GAMMA else "-scaled")
        title = f"Accuracy by gamma: {where}"
        evidence.tables.append(ResultTable(name, "gamma", title, rows, _disagreement(data) if published else ""))
        evidence.figures.append(_curve("gamma", name, title, records, gammas, published))
        values = np.array([[record["f1"] for record in records[gamma]] for gamma in gammas]).T
        parts = peak_inside(
            f"F1 at the best inner gamma (chosen by the other repeats) above that at {gammas[0]:g}",
            f"F1 at the best inner gamma (chosen by the other repeats) above that at {gammas[-1]:g}",
            values,
        )
        evidence.claims.append(
            Claim(
                "gamma",
                where,
                "Accuracy has one peak in gamma: too large and too small a gamma are both worse.",
                "Table 4",
                parts,
                _why_no_peak(data, centre, parts),
                name,
            )
        )
    return evidence

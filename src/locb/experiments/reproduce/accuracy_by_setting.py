"""Reproduction of Tables 3 and 4: accuracy of LOCB by the number of seed users and by gamma."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from locb.evaluation.findings import FAILS, Claim, Criterion, LineChart, Measurement, ResultTable, line_points
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.data_set import DataSet, file_suffix, scope_note, setting_label
from locb.experiments.reproduce.target import MAX_ROUNDS, JobOutcomes, Sizes, TargetFindings, f1_row, inner_optimum

PEAK = "Accuracy has a peak in gamma: larger and smaller values are both worse."


def _jobs(data: DataSet, sizes: Sizes, repeat: int, gamma: float, n_seeds: int, truth_gammas: list[float]) -> list[Job]:
    """Return two jobs: LOCB with the re-test of all members before a cluster becomes final, and LOCB as printed."""
    settings = {
        "gamma": gamma,
        "n_seeds": n_seeds,
        "tau": paper.TAU,
        "truth_gammas": truth_gammas,
        "sigma": paper.SIGMA,
        "delta": paper.DELTA,
        "max_rounds": MAX_ROUNDS,
    }
    # A radius is proportional to 1 / √rounds, so a run with half of gamma needs four times as many rounds.
    cost = 60_000.0 * (paper.GAMMA / gamma) ** 2 * (1.0 + n_seeds / 50.0)
    seed = sizes.seed + repeat
    return [
        Job(runs.final_clusters, data.environment, seed, settings | {"stop": stop}, cost, data.name)
        for stop in runs.STOPS
    ]


def plan_seeds(data: DataSet, sizes: Sizes) -> list[Job]:
    """Return the jobs of Table 3 for a data set: two jobs per gamma, number of seed users and repeat."""
    return [
        job
        for gamma in data.gammas
        for n_seeds in paper.SEED_COUNTS
        for repeat in range(sizes.repeats)
        for job in _jobs(data, sizes, repeat, gamma, n_seeds, data.truth_gammas(gamma))
    ]


def gamma_ranges(data: DataSet) -> list[tuple[float, tuple[float, ...]]]:
    """Return the ranges of gamma to measure, each as (gamma in the centre, all gammas).

    The first range is that of the paper. If the data set has a scaled gamma, the second range is the first range
    multiplied by scaled gamma / 0.2.
    """
    ranges: list[tuple[float, tuple[float, ...]]] = [(paper.GAMMA, paper.GAMMAS)]
    if data.scaled is not None:
        ranges.append((data.scaled, tuple(float(f"{g * data.scaled / paper.GAMMA:.4g}") for g in paper.GAMMAS)))
    return ranges


def plan_gamma(data: DataSet, sizes: Sizes) -> list[Job]:
    """Return the jobs of Table 4 for a data set: two jobs per gamma and repeat."""
    return [
        job
        for _, gammas in gamma_ranges(data)
        for gamma in gammas
        for repeat in range(sizes.repeats)
        for job in _jobs(data, sizes, repeat, gamma, paper.ACCURACY_SEEDS, [gamma])
    ]


def _collect(
    outcomes: JobOutcomes, name: str, truth_gamma: float | None, gamma: float | None = None, stop: str = "radius"
) -> dict[float, list[Any]]:
    """Return the accuracy records of the runs, grouped by the value of a setting, in the order of the repeats.

    Parameters
    ----------
    outcomes : list of (Job, dict)
        Jobs with their outcomes.
    name : str
        Name of the setting.
    truth_gamma : float or None
        Gamma of the true clusters. None selects, for each run, the true clusters at the gamma of the run.
    gamma : float, optional
        Gamma of the runs to select. By default, all runs are selected.
    stop : {"radius", "published"}, default "radius"
        Stopping rule of the runs to select.
    """
    found: dict[float, dict[int, Any]] = {}
    for job, outcome in outcomes:
        if job.settings["stop"] != stop or (gamma is not None and job.settings["gamma"] != gamma):
            continue
        for record in outcome["records"]:
            if record["truth_gamma"] == (job.settings["gamma"] if truth_gamma is None else truth_gamma):
                found.setdefault(job.settings[name], {})[job.seed] = record
    return {value: [by_seed[seed] for seed in sorted(by_seed)] for value, by_seed in found.items()}


def _row(records: list[Any], printed: list[Any], published: float | None) -> dict[str, Any]:
    """Return a table row with the accuracy of LOCB with the re-test, and F1 of LOCB as printed in the paper.

    A true cluster is recovered if a found cluster has an F1 of at least ``RECOVERED_F1`` for it.
    """
    row = {
        "recovered clusters": Measurement.from_values(record["recovered"] for record in records),
        f"F1 of {paper.PRINTED}": Measurement.from_values(record["f1"] for record in printed),
    }
    return f1_row(records, None if published is None else (published,)) | row


def _chart(
    x: str,
    name: str,
    title: str,
    records: dict[float, list[Any]],
    values: Sequence[float],
    published: Sequence[float] | None,
) -> LineChart:
    """Return a chart of F1 by the value of a setting, with the paper's numbers as a dashed line."""
    measured = np.array([[record["f1"] for record in records[value]] for value in values]).T
    points = line_points("measured", x, values, "F1", measured, upper=1.0)
    if published is not None:
        points += [{"line": "the paper", x: value, "F1": f1} for value, f1 in zip(values, published, strict=True)]
    subtitle = "mean over repeats; shaded: 95% interval"
    return LineChart(name, x, title, subtitle, x, "F1", points, log_x=True, dashed=("the paper",))


def _discrepancy_note(data: DataSet) -> str:
    """Return a note on the two different numbers that the paper reports for one setting of a data set.

    The note is empty if the paper has no Table 3 for the data set.
    """
    if data.paper_name not in paper.F1_BY_SEEDS:
        return ""
    here, there = paper.F1_BY_SEEDS[data.paper_name][-1], paper.ACCURACY[data.paper_name]["LOCB"][0]
    return (
        f"For {data.label} with 100 seeds and gamma {paper.GAMMA:g}, the paper reports two values of F1: {here:g} in "
        f"Tables 3 and 4, and {there:g} in Tables 1 and 2."
    )


def summarize_seeds(data: DataSet, sizes: Sizes, outcomes: JobOutcomes) -> TargetFindings:
    """Return tables and charts of F1 by the number of seed users, and the claims about this number."""
    found = TargetFindings([], [], [])
    for gamma in data.gammas:
        for truth_gamma in data.truth_gammas(gamma):
            records = _collect(outcomes, "n_seeds", truth_gamma, gamma)
            printed = _collect(outcomes, "n_seeds", truth_gamma, gamma, "published")
            published = paper.F1_BY_SEEDS.get(data.paper_name)
            rows = [
                {"seeds": count} | _row(records[count], printed[count], published and published[index])
                for index, count in enumerate(paper.SEED_COUNTS)
            ]
            label = setting_label(data, gamma, truth_gamma)
            name = f"seeds-{data.name}{file_suffix(gamma, truth_gamma)}"
            title = f"Accuracy by the number of seeds: {label}"
            note = f"Recovered: a found cluster has an F1 of at least {runs.RECOVERED_F1:g} for the true cluster. "
            note += _discrepancy_note(data) + (scope_note(gamma, truth_gamma) if published else "")
            found.tables.append(ResultTable(name, "seeds", title, rows, note.strip()))
            found.figures.append(_chart("seeds", name, title, records, paper.SEED_COUNTS, published))
            limitation = data.limitation if truth_gamma == paper.GAMMA else ""
            found.claims.extend(_seed_claims(label, records, limitation, name))
    return found


def _seed_claims(label: str, records: dict[float, list[Any]], limitation: str, evidence: str) -> list[Claim]:
    few, medium, many = ([record["f1"] for record in records[count]] for count in (5, 20, 100))
    gain, further_gain = np.subtract(medium, few), np.subtract(many, medium)
    more = [
        Criterion.paired("F1 with 20 seeds above F1 with 5", medium, few),
        Criterion.paired("F1 with 100 seeds above F1 with 5", many, few),
    ]
    beyond = [Criterion.paired("gain in F1 from 5 to 20 seeds above gain from 20 to 100", gain, further_gain)]
    two, nearly_all = ([float(record["recovered"]) for record in records[count]] for count in (5, 20))
    recovered = [
        Criterion.paired("2.5 above the number of clusters recovered with 5 seeds", [2.5] * len(two), two),
        Criterion.paired("number of clusters recovered with 5 seeds above 1.5", two, [1.5] * len(two)),
        Criterion.paired("number of clusters recovered with 20 seeds above 4.5", nearly_all, [4.5] * len(two)),
    ]
    claims = {
        "With 5 seeds, LOCB recovers 2 of the 5 clusters; with 20 seeds, it recovers almost all 5.": (
            "Section 6.3, where the data set is not stated",
            recovered,
        ),
        "More seeds improve the accuracy.": ("Table 3", more),
        "Beyond 20 seeds the accuracy improves little.": ("Table 3, Section 6.3", beyond),
    }
    return [
        Claim("seeds", label, statement, source, criteria, evidence=evidence, vacuous=limitation)
        for statement, (source, criteria) in claims.items()
    ]


def _no_peak_explanation(criteria: list[Criterion]) -> str:
    """Return an explanation if F1 is not lower at the largest or at the smallest gamma; otherwise empty."""
    sentences = []
    if criteria[0].verdict == FAILS:
        sentences.append(
            "A large gamma does not reduce the accuracy. At a large gamma, nearly all users are in true groups, and "
            "clusters that become final early contain nearly all users."
        )
    if criteria[1].verdict == FAILS:
        sentences.append(
            "A small gamma does not reduce the accuracy. Clusters become final later and improve until then."
        )
    return " ".join(sentences)


def _gamma_claims(gammas: Sequence[float], records: dict[float, list[Any]]) -> dict[str, list[Criterion]]:
    """Return the claims about the effect of gamma, each with its criteria. ``gammas`` are in descending order."""
    values = {
        score: np.array([[record[score] for record in records[gamma]] for gamma in gammas]).T
        for score in ("f1", "precision", "recall")
    }
    best = "F1 at the best inner gamma (chosen from the other repeats) above F1 at"
    large, small, centre = gammas[0], gammas[-1], len(gammas) // 2

    def higher(score: str, better: int, worse: int) -> Criterion:
        statement = f"{score} at {gammas[better]:g} above {score} at {gammas[worse]:g}"
        return Criterion.paired(statement, values[score][:, better], values[score][:, worse])

    return {
        PEAK: inner_optimum(f"{best} {large:g}", f"{best} {small:g}", values["f1"]),
        "A large gamma lowers the precision.": [higher("precision", centre, 0)],
        "A small gamma raises the precision and lowers the recall.": [
            higher("precision", -1, centre),
            higher("recall", centre, -1),
        ],
    }


def summarize_gamma(data: DataSet, sizes: Sizes, outcomes: JobOutcomes) -> TargetFindings:
    """Return tables and charts of F1 by gamma, and the claims about the effect of gamma on F1, precision and recall."""
    found = TargetFindings([], [], [])
    records, printed = _collect(outcomes, "gamma", None), _collect(outcomes, "gamma", None, stop="published")
    for centre, gammas in gamma_ranges(data):
        published = paper.F1_BY_GAMMA.get(data.paper_name) if centre == paper.GAMMA else None
        rows = [
            {"gamma": gamma} | _row(records[gamma], printed[gamma], published and published[index])
            for index, gamma in enumerate(gammas)
        ]
        label = data.label if data.scaled is None else f"{data.label}, gammas around {centre:g}"
        name = f"gamma-{data.name}" + ("" if centre == paper.GAMMA else "-scaled")
        title = f"Accuracy by gamma: {label}"
        found.tables.append(ResultTable(name, "gamma", title, rows, _discrepancy_note(data) if published else ""))
        found.figures.append(_chart("gamma", name, title, records, gammas, published))
        vacuous = data.limitation if centre == paper.GAMMA else ""
        found.claims.extend(
            Claim(
                "gamma",
                label,
                statement,
                "Table 4" if statement == PEAK else "Section 6.3",
                criteria,
                _no_peak_explanation(criteria) if statement == PEAK else "",
                name,
                vacuous=vacuous,
            )
            for statement, criteria in _gamma_claims(gammas, records).items()
        )
    return found

"""Effect of settings of LOCB that the paper does not state: one setting at a time is changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.evaluation.findings import Measurement, ResultTable
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.data_set import DataSet
from locb.experiments.reproduce.target import MAX_ROUNDS, JobOutcomes, Sizes, TargetFindings

SECTION = "open-settings"
# Settings of this project, with which the others are compared.
REGRET: dict[str, Any] = {"tau": 8.0, "ties": "first"}
ACCURACY: dict[str, Any] = {"sigma": paper.SIGMA, "alpha": 1.0}
REGRET_CHANGES: list[dict[str, Any]] = [{"tau": 10.0}, {"tau": 12.0}, {"ties": "random"}]
ACCURACY_CHANGES: list[dict[str, Any]] = [{"sigma": 0.5}, {"alpha": 0.8}, {"alpha": 1.2}]


def plan(data: DataSet, sizes: Sizes) -> list[Job]:
    """Return the jobs for a data set: for each changed setting and repeat, a run for regret or for accuracy."""
    regret = {"alpha": 1.0, "gamma": paper.GAMMA, "n_seeds": paper.REGRET_SEEDS}
    accuracy: dict[str, Any] = {
        "gamma": paper.GAMMA,
        "n_seeds": paper.ACCURACY_SEEDS,
        "tau": paper.TAU,
        "delta": paper.DELTA,
    }
    accuracy |= {"truth_gammas": data.gammas[-1:], "max_rounds": MAX_ROUNDS, "stop": "radius"}
    jobs = []
    for seed in range(sizes.seed, sizes.seed + sizes.repeats):
        for change in ({}, *REGRET_CHANGES):
            settings = {"policy": "locb", "rounds": sizes.rounds, "parameters": regret | REGRET | change}
            jobs.append(Job(runs.regret, data.environment, seed, settings, 2.0 * sizes.rounds, data.name))
        for change in ({}, *ACCURACY_CHANGES):
            settings = accuracy | ACCURACY | change
            jobs.append(Job(runs.final_clusters, data.environment, seed, settings, 180_000.0, data.name))
    return jobs


def summarize(data: DataSet, sizes: Sizes, outcomes: JobOutcomes) -> TargetFindings:
    """Return a table with the regret or F1 for each changed setting, and its difference from that of this project."""
    rows = []
    for measure, base, changes in (("regret", REGRET, REGRET_CHANGES), ("F1", ACCURACY, ACCURACY_CHANGES)):
        before = _values(outcomes, measure, base)
        for change in ({}, *changes):
            values = _values(outcomes, measure, base | change)
            named = ", ".join(_format(name, value) for name, value in (change or base).items())
            row: dict[str, Any] = {"measure": measure, "setting": named, "mean": Measurement.from_values(values)}
            rows.append(row | {"difference": Measurement.from_values(values - before) if change else None})
    note = (
        f"LOCB at gamma {paper.GAMMA:g}. Regret: {paper.REGRET_SEEDS} seeds, alpha 1, {sizes.rounds:,} rounds. F1: "
        f"{paper.ACCURACY_SEEDS} seeds, the clustering radius and tau {paper.TAU:g}, in the round in which the last "
        "cluster becomes final. The first row of each measure has the settings of this project; the differences are "
        "paired."
    )
    if data.scaled is not None:
        note += f" True clusters at gamma {data.scaled:g}."
    title = f"Settings that the paper does not state: {data.label}"
    return TargetFindings([ResultTable(f"{SECTION}-{data.name}", SECTION, title, rows, note)], [], [])


def _values(outcomes: JobOutcomes, measure: str, wanted: dict[str, Any]) -> Any:
    """Return the regret or F1 of the runs with these settings, in the order of the repeats."""
    found = {}
    for job, outcome in outcomes:
        settings = job.settings.get("parameters", job.settings)
        if all(settings.get(name) == value for name, value in wanted.items()):
            found[job.seed] = outcome["regret"][-1] if measure == "regret" else outcome["records"][0]["f1"]
    return np.array([found[seed] for seed in sorted(found)])


def _format(name: str, value: Any) -> str:
    return f"{name} {value}" if isinstance(value, str) else f"{name} {value:g}"

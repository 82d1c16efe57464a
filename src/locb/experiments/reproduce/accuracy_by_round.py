"""Reproduction of Figure 2: accuracy of the clusters over rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.evaluation.findings import FAILS, HOLDS, Claim, Criterion, LineChart, Measurement, ResultTable, line_points
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.data_set import DataSet
from locb.experiments.reproduce.target import JobOutcomes, Sizes, TargetFindings
from locb.policies import policy_spec

SECTION = "rounds"
SOURCE = "Varying accuracy, Figure 2"
ENDS_BEST = "LOCB has the most accurate clusters at the end."
MAX_POINTS = 50  # per curve
LABELS = {name: policy_spec(name).label for name in ("locb", "club", "sclub", "eloc")}
BASELINES = {name: label for name, label in LABELS.items() if name in ("club", "sclub")}


def plan(data: DataSet, sizes: Sizes) -> list[Job]:
    """Return the jobs of Figure 2 for a data set: one job per policy and repeat."""
    points = np.unique(np.linspace(0, 2 * sizes.rounds, MAX_POINTS + 1).round().astype(int))[1:].tolist()
    special: dict[str, dict[str, Any]] = {
        "locb": {"gamma": paper.GAMMA, "tau": paper.TAU, "n_seeds": paper.ACCURACY_SEEDS, "sigma": paper.SIGMA}
    }
    special["locb"] |= {"delta": paper.DELTA, "radius": "clustering"}
    special["eloc"] = {}  # not in the paper
    return [
        Job(
            runs.accuracy_over_rounds,
            data.environment,
            sizes.seed + repeat,
            {
                "policy": name,
                "truth_gammas": data.gammas,
                "points": points,
                "parameters": special.get(name, {"alpha": 1.0}),
            },
            cost=6.0 * sizes.rounds,
            data=data.name,
        )
        for name in LABELS
        for repeat in range(sizes.repeats)
    ]


def summarize(data: DataSet, sizes: Sizes, outcomes: JobOutcomes) -> TargetFindings:
    """Return charts and tables of F1 over rounds, and the claims about the peak and the end of the curves."""
    found = TargetFindings([], [], [])
    points = outcomes[0][0].settings["points"]
    for truth_gamma in data.gammas:
        curves = {}
        for name in LABELS:
            by_seed = {job.seed: outcome["f1"] for job, outcome in outcomes if job.settings["policy"] == name}
            curves[name] = np.array([by_seed[seed][f"{truth_gamma:g}"] for seed in sorted(by_seed)])
        label = data.label if data.scaled is None else f"{data.label}, true clusters at gamma {truth_gamma:g}"
        name = f"rounds-{data.name}" + ("" if truth_gamma == paper.GAMMA else f"-truth-{truth_gamma:g}")
        title = f"Accuracy over rounds: {label}"
        found.figures.append(_chart(name, title, points, curves))
        found.tables.append(_table(name, title, points, curves))
        limitation = data.limitation if truth_gamma == paper.GAMMA else ""
        found.claims.extend(_claims(label, name, curves, limitation))
    return found


def _chart(name: str, title: str, points: list[int], curves: dict[str, Any]) -> LineChart:
    rows = []
    for key, label in LABELS.items():
        rows += line_points(label, "round", points, "F1", curves[key], upper=1.0)
    subtitle = "LOCB at tau 10 with 100 seeds, CLUB and SCLUB at alpha 1, ELOC with its defaults; shaded: 95% interval"
    return LineChart(name, SECTION, title, subtitle, "round", "F1", rows)


def _table(name: str, title: str, points: list[int], curves: dict[str, Any]) -> ResultTable:
    rows: list[dict[str, Any]] = [
        {
            "policy": label,
            "highest mean F1": float(curves[key].mean(axis=0).max()),
            "peak round": int(points[int(curves[key].mean(axis=0).argmax())]),
            "F1": Measurement.from_values(curves[key][:, -1]),
            "rounds": points[-1],
        }
        for key, label in LABELS.items()
    ]
    return ResultTable(name, SECTION, title, rows, "The column F1 has the value after the last round.")


def _claims(label: str, evidence: str, curves: dict[str, Any], limitation: str) -> list[Claim]:
    falls = [
        Criterion(
            f"F1 of {baseline} at its peak (round chosen from the other repeats) above F1 at the end",
            Measurement.from_values(_falls_from_peak(curves[key])),
        )
        for key, baseline in BASELINES.items()
    ]
    final = curves["locb"][:, -1]
    leads = [
        Criterion.paired(f"F1 of LOCB above F1 of {baseline} at the end", final, curves[key][:, -1])
        for key, baseline in BASELINES.items()
    ]
    explanation = ""
    if falls[0].verdict == HOLDS and falls[1].verdict == FAILS:
        explanation = (
            "CLUB only removes edges, so its accuracy falls. SCLUB also merges clusters and keeps its accuracy."
        )
    statement = "The accuracy of CLUB and SCLUB reaches a peak and then falls."
    return [
        Claim(SECTION, label, statement, SOURCE, falls, explanation, evidence, vacuous=limitation),
        Claim(SECTION, label, ENDS_BEST, SOURCE, leads, evidence=evidence, vacuous=limitation),
    ]


def _falls_from_peak(curves: Any) -> list[float]:
    """Return F1 at the peak minus F1 at the end, one value per repeat.

    Parameters
    ----------
    curves : (repeats, points) array
        F1 over rounds. To avoid a selection bias, the round of the peak of a repeat is the round of the highest mean F1
        of the other repeats. With one repeat, its own peak is used.
    """
    falls = []
    for repeat in range(len(curves)):
        others = np.delete(curves, repeat, axis=0) if len(curves) > 1 else curves
        peak = int(others.mean(axis=0).argmax())
        falls.append(float(curves[repeat, peak] - curves[repeat, -1]))
    return falls

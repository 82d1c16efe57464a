"""Reproduction of Tables 1 and 2: accuracy of the clusters that each method finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.evaluation.findings import Claim, Criterion, ResultTable
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.data_set import DataSet, file_suffix, setting_label
from locb.experiments.reproduce.target import MAX_ROUNDS, JobOutcomes, Sizes, TargetFindings, f1_row, in_seed_order

SECTION = "accuracy"
NOTE = (
    "LOCB uses tau 10. Each baseline is shown at the setting of its highest mean F1, which favours the baselines. "
    "ST-CLUB and ST-SCLUB stop in the round in which the last cluster of LOCB becomes final. N-CLUB and N-LOCB stop "
    "after 100 rounds without a change, counted from the start or from the first change."
)
Records = dict[str, dict[str, dict[int, dict[str, Any]]]]  # method → setting → seed → record


def plan(data: DataSet, sizes: Sizes) -> list[Job]:
    """Return the jobs of Tables 1 and 2 for a data set: one job per gamma and repeat."""
    return [
        Job(
            runs.accuracy,
            data.environment,
            sizes.seed + repeat,
            {
                "gamma": gamma,
                "truth_gammas": data.truth_gammas(gamma),
                "taus": list(paper.TAUS),
                "alphas": list(paper.ALPHAS),
                "n_seeds": paper.ACCURACY_SEEDS,
                "sigma": paper.SIGMA,
                "delta": paper.DELTA,
                "stable_rounds": round(paper.NO_CHANGE / paper.DELTA),
                "max_rounds": MAX_ROUNDS,
            },
            cost=1_500_000.0,
            data=data.name,
        )
        for gamma in data.gammas
        for repeat in range(sizes.repeats)
    ]


def summarize(data: DataSet, sizes: Sizes, outcomes: JobOutcomes) -> TargetFindings:
    """Return tables of the measured accuracy next to the paper's accuracy, and the paper's claims with verdicts."""
    found = TargetFindings([], [], [])
    for gamma in data.gammas:
        for truth_gamma in data.truth_gammas(gamma):
            records = _by_setting(outcomes, gamma, truth_gamma)
            found.extend(_summarize_gamma(data, gamma, truth_gamma, records))
    return found


def _by_setting(outcomes: JobOutcomes, gamma: float, truth_gamma: float) -> Records:
    records: Records = {method: {} for method in paper.METHODS}
    for job, outcome in outcomes:
        if job.settings["gamma"] != gamma:
            continue
        for record in outcome["records"]:
            if record["truth_gamma"] == truth_gamma:
                records[record["method"]].setdefault(_setting(record), {})[job.seed] = record
    return records


def _setting(record: dict[str, Any]) -> str:
    parts = [f"{name} {record[name]:g}" for name in ("tau", "alpha") if name in record]
    if "counted_from" in record:
        parts.append(f"counted from the {'start' if record['counted_from'] == 'start' else 'first change'}")
    return ", ".join(parts)


def _explanation(data: DataSet, gamma: float, truth_gamma: float, locb: dict[str, Any]) -> str:
    """Return an explanation of the measured accuracy of LOCB.

    If the data set has no scaled gamma, or the true clusters are those of the paper's gamma, the explanation is the
    limitation of the data set, which may be empty.
    """
    if data.scaled is None or truth_gamma == paper.GAMMA:
        return data.limitation
    scores = f"precision {locb['precision'].mean:.3f}, recall {locb['recall'].mean:.3f}"
    rule = f"A cluster of LOCB becomes final when the radii of its members are below {gamma * paper.TAU / 8.0:.3g}"
    if gamma == paper.GAMMA:
        return f"{rule}. Final clusters are then smaller than the true groups ({scores})."
    rounds = f"{locb['rounds'].mean:,.0f} rounds"
    return f"{rule}. All clusters are final after {rounds}, when each contains nearly all users ({scores})."


def _summarize_gamma(data: DataSet, gamma: float, truth_gamma: float, records: Records) -> TargetFindings:
    label = setting_label(data, gamma, truth_gamma)
    shown: dict[str, dict[int, dict[str, Any]]] = {}
    rows, all_rows = [], []
    for method in paper.METHODS:
        settings = records[method]
        scores = {name: float(np.mean([r["f1"] for r in by_seed.values()])) for name, by_seed in settings.items()}
        chosen = f"tau {paper.TAU:g}" if method == "LOCB" else max(scores, key=lambda name: scores[name])
        shown[method] = settings[chosen]
        published = paper.ACCURACY[data.name][method]
        rows.append({"method": method, "setting": chosen, **f1_row(shown[method].values(), published)})
        all_rows += [
            {"method": method, "setting": name, **f1_row(by_seed.values(), None)} for name, by_seed in settings.items()
        ]
    name = f"accuracy-{data.name}{file_suffix(gamma, truth_gamma)}"
    tables = [
        ResultTable(name, SECTION, f"Accuracy of the clusters: {label}", rows, NOTE),
        ResultTable(f"{name}-settings", SECTION, f"All settings: {label}", all_rows),
    ]
    explanation = _explanation(data, gamma, truth_gamma, rows[-1])
    return TargetFindings(tables, [], _claims(label, shown, explanation, name))


def _claims(label: str, shown: dict[str, dict[int, dict[str, Any]]], explanation: str, evidence: str) -> list[Claim]:
    def values(method: str, score: str = "f1") -> list[float]:
        return in_seed_order({seed: record[score] for seed, record in shown[method].items()})

    def higher(better: str, worse: str) -> Criterion:
        return Criterion.paired(f"F1 of {better} above F1 of {worse}", values(better), values(worse))

    recall, precision = values("N-CLUB", "recall"), values("N-CLUB", "precision")
    criteria = {
        "LOCB finds the clusters more accurately than every baseline.": [
            higher("LOCB", method) for method in paper.METHODS if method != "LOCB"
        ],
        "Stopped in the same round as LOCB, SCLUB finds the clusters more accurately than CLUB.": [
            higher("ST-SCLUB", "ST-CLUB")
        ],
        "Stopped after 100 rounds without a change, LOCB finds the clusters more accurately than CLUB.": [
            higher("N-LOCB", "N-CLUB")
        ],
        "Stopped after 100 rounds without a change, CLUB has clusters that are too large: recall is above precision.": [
            Criterion.paired("recall of N-CLUB above its precision", recall, precision)
        ],
    }
    return [
        Claim(SECTION, label, statement, "Tables 1 and 2", tests, explanation, evidence)
        for statement, tests in criteria.items()
    ]

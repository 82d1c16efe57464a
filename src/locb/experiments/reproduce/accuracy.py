"""Reproduction of Tables 1 and 2: accuracy of the clusters that each method finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from locb.evaluation.findings import Claim, Criterion, ResultTable
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.data_set import DataSet, file_suffix, scope_note, setting_label
from locb.experiments.reproduce.target import (
    MAX_ROUNDS,
    MAX_STABLE_ROUNDS,
    JobOutcomes,
    Sizes,
    TargetFindings,
    choose_by_other_repeats,
    f1_row,
    in_seed_order,
)

SECTION = "accuracy"
SOURCE = "Tables 1 and 2"
TAU = paper.TAU
NOTE = (
    "LOCB uses tau 10, with the re-test of all members before a cluster becomes final, and as printed in the paper. "
    "CLUB and SCLUB: for each repeat, the other repeats choose alpha and the threshold (alpha2, alpha_theta) with "
    "the highest F1; the column setting shows the choice over all repeats. ST-CLUB, ST-SCLUB and ST-ELOC stop in the "
    "round in which the last cluster of LOCB (tau 10, with re-test) becomes final; ELOC is not part of the paper. "
    "N-CLUB and N-LOCB stop after 100 rounds without a change, counted from the start or from the first change. "
    "One-to-one F1: each found cluster is compared with at most one true cluster, and all found clusters count. ARI "
    "and NMI: adjusted Rand index and normalized mutual information of partitions, in which a user belongs to its "
    "largest cluster."
)
METHODS = (*paper.METHODS[:-1], paper.PRINTED, "LOCB", *paper.OTHER_METHODS)
Records = dict[str, dict[str, dict[int, dict[str, Any]]]]  # method → setting → random seed → record


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
                "thresholds": {"alpha2": list(paper.ALPHA2S), "alpha_theta": list(paper.ALPHA_THETAS)},
                "n_seeds": paper.ACCURACY_SEEDS,
                "sigma": paper.SIGMA,
                "delta": paper.DELTA,
                "stable_rounds": round(paper.NO_CHANGE / paper.DELTA),
                "max_rounds": MAX_ROUNDS,
                "max_stable_rounds": MAX_STABLE_ROUNDS,
            },
            cost=6_000_000.0,
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
    records: Records = {method: {} for method in METHODS}
    for job, outcome in outcomes:
        if job.settings["gamma"] != gamma:
            continue
        for record in outcome["records"]:
            if record["truth_gamma"] == truth_gamma:
                records[record["method"]].setdefault(_setting(record), {})[job.seed] = record
    return records


def _setting(record: dict[str, Any]) -> str:
    parts = [f"{name} {record[name]:g}" for name in ("tau", "alpha", "alpha2", "alpha_theta") if name in record]
    if "counted_from" in record:
        parts.append(f"counted from the {'start' if record['counted_from'] == 'start' else 'first change'}")
    return ", ".join(parts)


def _explanation(data: DataSet, gamma: float, truth_gamma: float, locb: dict[str, Any]) -> str:
    """Return an explanation of the measured accuracy of LOCB.

    It is empty if the data set has no scaled gamma, or the true clusters are those of the paper's gamma.
    """
    if data.scaled is None or truth_gamma == paper.GAMMA:
        return ""
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
    for method in METHODS:
        settings = records[method]
        all_rows += [
            {"method": method, "setting": name, **f1_row(by_seed.values(), None)} for name, by_seed in settings.items()
        ]
        # All rows of the table refer to the same tau of LOCB, and so to the same round.
        same = {name: found for name, found in settings.items() if next(iter(found.values())).get("tau", TAU) == TAU}
        scores = {name: float(np.mean([r["f1"] for r in by_seed.values()])) for name, by_seed in same.items()}
        shown[method] = choose_by_other_repeats(same)
        published = paper.ACCURACY[data.paper_name].get("LOCB" if method == paper.PRINTED else method)
        best = max(scores, key=lambda name: scores[name])
        rows.append({"method": method, "setting": best, **f1_row(shown[method].values(), published)})
    name = f"accuracy-{data.name}{file_suffix(gamma, truth_gamma)}"
    tables = [
        ResultTable(name, SECTION, f"Accuracy of the clusters: {label}", rows, NOTE + scope_note(gamma, truth_gamma)),
        ResultTable(f"{name}-settings", SECTION, f"All settings: {label}", all_rows),
    ]
    locb = next(row for row in rows if row["method"] == "LOCB")
    explanation = _explanation(data, gamma, truth_gamma, locb)
    vacuous = data.limitation if truth_gamma == paper.GAMMA else ""
    claims = _claims(label, shown, "LOCB", name) + _claims(f"{label}, as printed", shown, paper.PRINTED, name)
    claims = [replace(claim, explanation=claim.explanation or explanation, vacuous=vacuous) for claim in claims]
    return TargetFindings(tables, [], claims)


def _claims(label: str, shown: dict[str, dict[int, dict[str, Any]]], locb: str, evidence: str) -> list[Claim]:
    """Return the claims about the accuracy of the clusters; for LOCB as printed, only the comparison with baselines.

    Parameters
    ----------
    label : str
        Name of the data set and its setting.
    shown : dict
        Accuracy records: method → random seed → record.
    locb : {"LOCB", "LOCB as printed"}
        Version of LOCB.
    evidence : str
        Name of the table.
    """

    def values(method: str, score: str = "f1") -> list[float]:
        return in_seed_order({seed: record[score] for seed, record in shown[method].items()})

    def higher(better: str, worse: str) -> Criterion:
        return Criterion.paired(f"F1 of {better} above F1 of {worse}", values(better), values(worse))

    best = {
        "LOCB finds the clusters more accurately than every baseline.": [
            higher(locb, method) for method in paper.METHODS if method != "LOCB"
        ]
    }
    if locb != "LOCB":
        return [Claim(SECTION, label, name, SOURCE, tests, evidence=evidence) for name, tests in best.items()]
    recall, precision = values("N-CLUB", "recall"), values("N-CLUB", "precision")
    criteria = best | {
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
    claims = [Claim(SECTION, label, name, SOURCE, tests, evidence=evidence) for name, tests in criteria.items()]
    statement = "Stopped in the same round as LOCB, ELOC finds the clusters more accurately than LOCB."
    source = "not in the paper: ELOC with its defaults"
    return [*claims, Claim(SECTION, label, statement, source, [higher("ST-ELOC", "LOCB")], evidence=evidence)]

"""Tables 1 and 2: how well the clusters found match the true ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.evaluation.findings import Claim, Criterion, ResultTable
from locb.experiments import paper_values as paper
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.targets import (
    MOST_ROUNDS,
    DataSet,
    Evidence,
    Played,
    Sizes,
    by_seed,
    f1_row,
    setting_told,
    suffix,
)

SECTION = "accuracy"
NOTE = (
    "LOCB at tau 10; of each baseline the setting of the highest mean F1 is shown, so that the comparison favours the "
    "baselines. ST-CLUB and ST-SCLUB stop in the round of LOCB's last return; N-CLUB and N-LOCB when nothing has "
    "changed for 100 rounds, counted from the start or from the first change."
)


def plan(data: DataSet, sizes: Sizes) -> list[Job]:
    """A job a gamma and repeat."""
    return [
        Job(
            runs.accuracy,
            data.world,
            sizes.seed + repeat,
            {
                "gamma": gamma,
                "judged_at": data.judged_at(gamma),
                "taus": list(paper.TAUS),
                "alphas": list(paper.ALPHAS),
                "n_seeds": paper.ACCURACY_SEEDS,
                "sigma": paper.SIGMA,
                "delta": paper.DELTA,
                "quiet": round(paper.QUIET / paper.DELTA),
                "most_rounds": MOST_ROUNDS,
            },
            cost=1_500_000.0,
            data=data.name,
        )
        for gamma in data.gammas
        for repeat in range(sizes.repeats)
    ]


def tell(data: DataSet, sizes: Sizes, played: Played) -> Evidence:
    """Our figures beside the paper's, and what becomes of its claims."""
    evidence = Evidence([], [], [])
    for gamma in data.gammas:
        for judged in data.judged_at(gamma):
            records = _by_setting(played, gamma, judged)
            _tell_one(data, gamma, judged, records, evidence)
    return evidence


Records = dict[str, dict[str, dict[int, dict[str, Any]]]]  # method → setting → seed → record


def _by_setting(played: Played, gamma: float, judged: float) -> Records:
    records: Records = {method: {} for method in paper.METHODS}
    for job, outcome in played:
        if job.settings["gamma"] != gamma:
            continue
        for record in outcome["records"]:
            if record["judged_at"] == judged:
                records[record["method"]].setdefault(_setting(record), {})[job.seed] = record
    return records


def _setting(record: dict[str, Any]) -> str:
    told = [f"{name} {record[name]:g}" for name in ("tau", "alpha") if name in record]
    if "counted" in record:
        told.append(f"quiet from the {'start' if record['counted'] == 'start' else 'first change'}")
    return ", ".join(told)


def _why(data: DataSet, gamma: float, judged: float, locb: dict[str, Any]) -> str:
    """What a data set whose groups need another gamma does to the accuracy, from the figures of LOCB."""
    if data.scaled is None or judged == paper.GAMMA:
        return data.why
    found = f"precision {locb['precision'].mean:.3f}, recall {locb['recall'].mean:.3f}"
    small = f"LOCB returns a set once its radii are below {gamma * paper.TAU / 8.0:.3g}"
    if gamma == paper.GAMMA:
        return f"{small}; by then its sets are narrower than the groups asked for ({found})."
    when = f"after {locb['rounds'].mean:,.0f} rounds, when nearly everyone is in every set"
    return f"{small}, which they are {when} ({found})."


def _tell_one(data: DataSet, gamma: float, judged: float, records: Records, evidence: Evidence) -> None:
    where = setting_told(data, gamma, judged)
    end = suffix(gamma, judged)
    shown: dict[str, dict[int, dict[str, Any]]] = {}
    rows, all_rows = [], []
    for method in paper.METHODS:
        settings = records[method]
        fits = {name: float(np.mean([r["f1"] for r in of.values()])) for name, of in settings.items()}
        chosen = f"tau {paper.TAU:g}" if method == "LOCB" else max(fits, key=lambda name: fits[name])
        shown[method] = settings[chosen]
        published = paper.ACCURACY[data.name][method]
        rows.append({"method": method, "setting": chosen, **f1_row(shown[method].values(), published)})
        all_rows += [{"method": method, "setting": name, **f1_row(of.values(), None)} for name, of in settings.items()]
    name = f"accuracy-{data.name}{end}"
    evidence.tables.append(ResultTable(name, SECTION, f"Accuracy of the clusters: {where}", rows, NOTE))
    evidence.tables.append(ResultTable(f"{name}-settings", SECTION, f"Every setting: {where}", all_rows))
    why = _why(data, gamma, judged, rows[-1])

    def values(method: str, what: str = "f1") -> list[float]:
        return by_seed({seed: record[what] for seed, record in shown[method].items()})

    def claim(says: str, parts: list[Criterion]) -> None:
        evidence.claims.append(Claim(SECTION, where, says, "Tables 1 and 2", parts, why, name))

    best = values("LOCB")
    others = [method for method in paper.METHODS if method != "LOCB"]
    claim(
        "LOCB finds the clusters better than every baseline.",
        [Criterion.paired(f"F1 of LOCB above that of {method}", best, values(method)) for method in others],
    )
    claim(
        "Stopped with LOCB, SCLUB finds the clusters better than CLUB.",
        [Criterion.paired("F1 of ST-SCLUB above that of ST-CLUB", values("ST-SCLUB"), values("ST-CLUB"))],
    )
    claim(
        "Stopped when it is quiet, LOCB finds the clusters better than CLUB.",
        [Criterion.paired("F1 of N-LOCB above that of N-CLUB", values("N-LOCB"), values("N-CLUB"))],
    )
    claim(
        "Stopped when it is quiet, CLUB's groups are too large: recall is above precision.",
        [
            Criterion.paired(
                "recall of N-CLUB above its precision", values("N-CLUB", "recall"), values("N-CLUB", "precision")
            )
        ],
    )

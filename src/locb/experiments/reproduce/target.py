"""Targets of a reproduction (tables and figures of the paper), and the code that all targets share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from locb.evaluation.findings import Claim, Criterion, GroupMap, LineChart, Measurement, ResultTable
from locb.experiments.jobs import Job
from locb.experiments.reproduce.data_set import DataSet

# Further scores of clusters, see ClusterAgreement: key of a record → column of a table.
AGREEMENT = {"one_to_one_f1": "one-to-one F1", "ari": "ARI", "nmi": "NMI", "clusters": "distinct clusters"}
MAX_STABLE_ROUNDS = 50_000  # limit of a run that otherwise ends when its clusters are unchanged for some time
MAX_ROUNDS = 4_000_000  # limit of a run that otherwise ends when its clusters are final or unchanged


@dataclass(frozen=True)
class Sizes:
    """Number of repeats, number of rounds and first random seed of a reproduction."""

    repeats: int
    rounds: int  # per regret run; the target "rounds" uses twice as many
    seed: int  # random seed of the first repeat


class TargetFindings(NamedTuple):
    """Tables, figures and claims of one target."""

    tables: list[ResultTable]
    figures: list[LineChart | GroupMap]
    claims: list[Claim]

    def extend(self, other: TargetFindings) -> None:
        """Append the tables, figures and claims of ``other``."""
        self.tables.extend(other.tables)
        self.figures.extend(other.figures)
        self.claims.extend(other.claims)


JobOutcomes = list[tuple[Job, dict[str, Any]]]


class Target(NamedTuple):
    """Table or figure of the paper: the jobs that it needs, and the summary of their outcomes."""

    heading: str  # heading in the report
    plan: Callable[[DataSet, Sizes], list[Job]]
    summarize: Callable[[DataSet, Sizes, JobOutcomes], TargetFindings]


def in_seed_order(values: dict[int, float]) -> list[float]:
    """Return the values of a dictionary from random seeds to values, in ascending order of the random seeds."""
    return [values[seed] for seed in sorted(values)]


def f1_row(records: Iterable[dict[str, Any]], published: tuple[float, ...] | None) -> dict[str, Any]:
    """Return a table row with F1, precision and recall next to those of the paper, and the number of rounds.

    Parameters
    ----------
    records : iterable of dict
        Accuracy records, one per repeat.
    published : tuple of float or None
        F1, or F1, precision and recall, in the paper; None if the paper has no value.
    """
    records = list(records)
    row: dict[str, Any] = {}
    for index, (key, name) in enumerate((("f1", "F1"), ("precision", "precision"), ("recall", "recall"))):
        measured = Measurement.from_values(record[key] for record in records)
        row[name] = measured
        if published is not None and index < len(published):
            row[f"paper's {name}"] = published[index]
            row[f"{name} difference"] = measured.mean - published[index]
    for key, name in AGREEMENT.items():
        row[name] = Measurement.from_values(record[key] for record in records)
    row["rounds"] = Measurement.from_values(record["rounds"] for record in records)
    return row


def lowest_in_other_repeats(values: Any) -> Any:
    """Return, for each repeat, the index of the setting with the lowest mean over the other repeats.

    Parameters
    ----------
    values : (settings, repeats) array
        Values of which the lowest is the best. With one repeat, the repeat chooses for itself.

    Examples
    --------
    >>> lowest_in_other_repeats(np.array([[1.0, 8.0, 9.0], [6.0, 6.0, 6.0]])).tolist()
    [1, 0, 0]
    """
    table = np.asarray(values, dtype=float)
    sums = table if table.shape[1] == 1 else table.sum(axis=1, keepdims=True) - table
    return sums.argmin(axis=0)


def choose_by_other_repeats(settings: dict[str, dict[int, dict[str, Any]]]) -> dict[int, dict[str, Any]]:
    """Return, for each random seed, the record with the setting that has the highest mean F1 in the other repeats.

    The F1 of a repeat does not influence the choice for this repeat, so the mean is not biased by the choice. With
    one repeat, the repeat chooses for itself.

    Parameters
    ----------
    settings : dict
        Accuracy records: setting → random seed → record.
    """
    chosen: dict[int, dict[str, Any]] = {}
    seeds = next(iter(settings.values()))
    for seed in seeds:
        others = [other for other in seeds if other != seed] or [seed]
        best = max(settings.values(), key=lambda records: sum(records[other]["f1"] for other in others))
        chosen[seed] = best[seed]
    return chosen


def inner_optimum(left_statement: str, right_statement: str, values: Any, best: str = "highest") -> list[Criterion]:
    """Return two criteria: the best inner setting is better than the first setting, and better than the last setting.

    Inner settings are all settings except the first and the last. To avoid a selection bias, the best inner setting of
    a repeat is the one with the best mean over the other repeats.

    Parameters
    ----------
    left_statement, right_statement : str
        Statements of the comparisons with the first and the last setting.
    values : (repeats, settings) array
        Measured values in the order of the settings.
    best : {"highest", "lowest"}, default "highest"
        Whether the highest or the lowest value is the best.
    """
    table = np.asarray(values, dtype=float) if best == "highest" else -np.asarray(values, dtype=float)
    repeats = len(table)
    left, right = [], []
    for repeat in range(repeats):
        others = np.delete(table, repeat, axis=0) if repeats > 1 else table
        inner = 1 + int(others.mean(axis=0)[1:-1].argmax())
        left.append(table[repeat, inner] - table[repeat, 0])
        right.append(table[repeat, inner] - table[repeat, -1])
    return [
        Criterion(left_statement, Measurement.from_values(left)),
        Criterion(right_statement, Measurement.from_values(right)),
    ]

"""Targets of a reproduction, and the code that all targets share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from locb.evaluation.findings import Claim, Criterion, GroupMap, LineChart, Measurement, ResultTable
from locb.experiments.jobs import Job
from locb.experiments.reproduce.data_set import DataSet

MAX_ROUNDS = 4_000_000  # limit of a run that ends by itself


@dataclass(frozen=True)
class Sizes:
    """Size of a reproduction."""

    repeats: int
    rounds: int  # per regret run; accuracy over rounds uses twice as many
    seed: int


class TargetFindings(NamedTuple):
    """Findings of one target."""

    tables: list[ResultTable]
    figures: list[LineChart | GroupMap]
    claims: list[Claim]

    def extend(self, other: TargetFindings) -> None:
        """Append the findings of another target."""
        self.tables.extend(other.tables)
        self.figures.extend(other.figures)
        self.claims.extend(other.claims)


JobOutcomes = list[tuple[Job, dict[str, Any]]]


class Target(NamedTuple):
    """Table or figure of the paper: the jobs that it needs, and the summary of their outcomes."""

    heading: str
    plan: Callable[[DataSet, Sizes], list[Job]]
    summarize: Callable[[DataSet, Sizes, JobOutcomes], TargetFindings]


def in_seed_order(values: dict[int, float]) -> list[float]:
    """Return values by seed in the order of the repeats."""
    return [values[seed] for seed in sorted(values)]


def f1_row(records: Iterable[dict[str, Any]], published: tuple[float, ...] | None) -> dict[str, Any]:
    """Return F1, precision and recall over the repeats next to the paper's, and the rounds per run."""
    records = list(records)
    row: dict[str, Any] = {}
    for index, (key, name) in enumerate((("f1", "F1"), ("precision", "precision"), ("recall", "recall"))):
        measured = Measurement.from_values(record[key] for record in records)
        row[name] = measured
        if published is not None and index < len(published):
            row[f"paper's {name}"] = published[index]
            row[f"{name} difference"] = measured.mean - published[index]
    row["rounds"] = Measurement.from_values(record["rounds"] for record in records)
    return row


def inner_optimum(left_statement: str, right_statement: str, values: Any, best: str = "highest") -> list[Criterion]:
    """Return the two criteria that an inner setting is better than the first and better than the last.

    The best inner setting of each repeat is chosen from the other repeats, which avoids a selection bias.

    Parameters
    ----------
    left_statement, right_statement : str
        Statements of the comparisons with the first and the last setting.
    values : (repeats, settings) array
        Measured values in the order of the settings.
    best : {"highest", "lowest"}, default "highest"
        Which values are better.
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

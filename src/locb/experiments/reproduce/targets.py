"""What all targets share: the data sets, the size of the work, and what a target gives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from locb.environments import Interactions
from locb.evaluation.findings import Claim, Criterion, GroupMap, LineChart, Measurement, ResultTable
from locb.experiments import paper_values as paper
from locb.experiments.environment_factory import make_environment, note
from locb.experiments.jobs import Job

MOST_ROUNDS = 4_000_000  # a run that should end by itself is stopped here


@dataclass(frozen=True)
class Sizes:
    """How much to play."""

    repeats: int
    rounds: int  # of a regret run; twice as many where accuracy is followed over rounds
    seed: int


@dataclass(frozen=True)
class DataSet:
    """A data set as the targets see it."""

    name: str  # synthetic, movielens, yelp, yahoo
    world: dict[str, Any]
    scaled: float | None  # the gamma that leaves groups in its ground truth, where 0.2 does not
    note: str | None
    digest: str  # of the users' θ: tells whether it is the same data

    @property
    def why(self) -> str:
        """What keeps the ground truth at the paper's gamma from saying much, in short."""
        return "" if self.note is None else self.note.partition(": ")[2].partition(", so F1")[0] + "."

    @property
    def label(self) -> str:
        """Its name for people."""
        return paper.DATA[self.name]

    @property
    def gammas(self) -> list[float]:
        """The paper's gamma, and the one that fits the data if that differs."""
        return [paper.GAMMA] if self.scaled is None else [paper.GAMMA, self.scaled]

    def judged_at(self, gamma: float) -> list[float]:
        """The gammas of the ground truths that a run with this gamma is compared with."""
        return [other for other in self.gammas if other >= gamma] if gamma in self.gammas else [gamma]


class Evidence(NamedTuple):
    """What a target found."""

    tables: list[ResultTable]
    figures: list[LineChart | GroupMap]
    claims: list[Claim]

    def plus(self, other: Evidence) -> Evidence:
        """Both, one after the other."""
        return Evidence(self.tables + other.tables, self.figures + other.figures, self.claims + other.claims)


Played = list[tuple[Job, dict[str, Any]]]


def open_data_set(name: str, world: dict[str, Any], seed: int) -> DataSet:
    """Look at a data set: whether the paper's gamma leaves it groups, and which gamma does."""
    env: Any = make_environment(world, seed)
    digest = hashlib.sha256(np.round(env.theta, 6).tobytes()).hexdigest()[:16]
    told = note(env, paper.GAMMA)
    if told is None or not isinstance(env, Interactions):
        return DataSet(name, world, None, None, digest)
    scaled = env.scaled_gamma()
    return DataSet(name, world, None if scaled == float("inf") else scaled, f"{paper.DATA[name]}: {told}", digest)


def suffix(gamma: float, judged: float) -> str:
    """What tells runs with another gamma, or judged at another one, in a file name."""
    if gamma != paper.GAMMA:
        return f"-gamma-{gamma:g}"
    return "" if judged == paper.GAMMA else f"-judged-{judged:g}"


def setting_told(data: DataSet, gamma: float, judged: float) -> str:
    """The data set with its gammas, for a heading."""
    if data.scaled is None:
        return data.label
    return f"{data.label}, gamma {gamma:g}" + ("" if gamma == judged else f", judged at gamma {judged:g}")


def by_seed(values: dict[int, float]) -> list[float]:
    """Values in the order of the repeats."""
    return [values[seed] for seed in sorted(values)]


def f1_row(records: Iterable[dict[str, Any]], published: tuple[float, ...] | None) -> dict[str, Any]:
    """F1, precision and recall over the repeats beside the paper's, and the round in which a run ended."""
    kept = list(records)
    row: dict[str, Any] = {}
    for place, (key, name) in enumerate((("f1", "F1"), ("precision", "precision"), ("recall", "recall"))):
        ours = Measurement.from_values(record[key] for record in kept)
        row[name] = ours
        if published is not None and place < len(published):
            row[f"paper's {name}"] = published[place]
            row[f"{name} less paper's"] = ours.mean - published[place]
    row["rounds"] = Measurement.from_values(record["ended"] for record in kept)
    return row


def peak_inside(says_left: str, says_right: str, values: Any, best: str = "highest") -> list[Criterion]:
    """Is a value inside better than both ends? ``values`` is (repeats, settings), in the order of the settings.

    The best inner setting is chosen for every repeat from the other repeats, so that the choice favours nothing.
    """
    table = np.asarray(values, dtype=float) if best == "highest" else -np.asarray(values, dtype=float)
    repeats = len(table)
    left, right = [], []
    for one in range(repeats):
        others = np.delete(table, one, axis=0) if repeats > 1 else table
        inner = 1 + int(others.mean(axis=0)[1:-1].argmax())
        left.append(table[one, inner] - table[one, 0])
        right.append(table[one, inner] - table[one, -1])
    return [Criterion(says_left, Measurement.from_values(left)), Criterion(says_right, Measurement.from_values(right))]

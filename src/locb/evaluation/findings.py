"""Result types of reproduction, verification and scenario runs: tables, figures, and claims with a verdict.

The types hold plain numbers and text. They do not depend on policies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from locb.common.arrays import Floats
from locb.evaluation.confidence_intervals import ci_half_width, proportion_interval

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Measurement:
    """Mean over repeats with its margin, half of the 95% confidence interval. The margin of one repeat is NaN."""

    mean: float
    margin: float

    @classmethod
    def from_values(cls, values: Iterable[Any]) -> Measurement:
        """Return the measurement of ``values``, which has one value per repeat.

        Examples
        --------
        >>> Measurement.from_values([1.0, 2.0, 3.0]).mean
        2.0
        """
        values = [float(value) for value in values]
        return cls(sum(values) / len(values), float(ci_half_width(values)))


@dataclass(frozen=True)
class ResultTable:
    """Table of results. A cell is text, a number, None or a :class:`Measurement`."""

    name: str  # also the file name
    section: str
    title: str
    rows: list[dict[str, Any]]
    note: str = ""


@dataclass(frozen=True)
class LineChart:
    """Line chart. Each row is one point of one line, with ``low`` and ``high`` where an interval is known."""

    name: str
    section: str
    title: str
    subtitle: str
    x: str
    y: str
    rows: list[dict[str, Any]]  # "line", x, y, "low", "high"
    log_x: bool = False
    log_y: bool = False
    dashed: tuple[str, ...] = ()  # lines that are not measured: the paper's figures, bounds


def line_points(
    line: str, x: str, xs: Sequence[float], y: str, values: Any, upper: float = math.inf
) -> list[dict[str, Any]]:
    """Return the points of one chart line with 95% confidence bands, clipped to the range from 0 to ``upper``.

    Parameters
    ----------
    line : str
        Name of the line.
    x, y : str
        Names of the two axes.
    xs : sequence of float
        Positions of the points on the x axis.
    values : (repeats, points) array
        Measured values.
    upper : float, default inf
        Upper limit of the band.

    Examples
    --------
    >>> line_points("a", "round", [10], "F1", [[0.9], [0.9]])
    [{'line': 'a', 'round': 10, 'F1': 0.9, 'low': 0.9, 'high': 0.9}]
    """
    points = []
    for index, position in enumerate(xs):
        measured = Measurement.from_values(row[index] for row in values)
        margin = 0.0 if math.isnan(measured.margin) else measured.margin
        band = {"low": max(0.0, measured.mean - margin), "high": min(upper, measured.mean + margin)}
        points.append({"line": line, x: position, y: measured.mean, **band})
    return points


@dataclass(frozen=True)
class GroupMap:
    """Scatter chart of users in two dimensions, coloured by group."""

    name: str
    section: str
    title: str
    subtitle: str
    theta: Floats  # (n, d)
    groups: list[list[int]]


@dataclass(frozen=True)
class HeatMap:
    """Heat map of ratios, one row per cell. A ratio of 1 is neutral, and smaller is better."""

    name: str
    section: str
    title: str
    subtitle: str
    x: str
    y: str
    rows: list[
        dict[str, Any]
    ]  # "panel", x, y, "ratio", "margin" (None if unknown), "best" (True for the baseline, whose ratio is 1)


@dataclass(frozen=True)
class Criterion:
    """One test of a claim: a difference that must be positive for the claim to hold."""

    statement: str
    difference: Measurement
    detail: str = ""  # full text of the result, where the difference and its interval are not enough

    @classmethod
    def paired(cls, statement: str, larger: Any, smaller: Any) -> Criterion:
        """Return the criterion that ``larger`` exceeds ``smaller``; both have one value per repeat."""
        return cls(statement, Measurement.from_values([a - b for a, b in zip(larger, smaller, strict=True)]))

    @classmethod
    def proportion(cls, statement: str, count: int, total: int, claimed: float) -> Criterion:
        """Return the criterion that an event has at least probability ``claimed``, with Wilson's 95% interval.

        Parameters
        ----------
        statement : str
            What is counted.
        count, total : int
            The event occurred ``count`` times in ``total`` trials.
        claimed : float
            Probability that the claim states.
        """
        middle, margin = proportion_interval(count, total)
        interval = f"95% interval {middle - margin:.3f} to {middle + margin:.3f}"
        detail = f"{statement}: {count:,} of {total:,} ({interval}; claimed: at least {claimed:g})"
        return cls(statement, Measurement(middle - claimed, margin), detail)

    @classmethod
    def always(cls, statement: str, count: int, total: int) -> Criterion:
        """Return the criterion that an event occurred in every one of ``total`` trials."""
        difference = Measurement(1.0 if count == total and total else -1.0, 0.0)
        return cls(statement, difference, f"{statement}: {count:,} of {total:,}")

    @property
    def verdict(self) -> str:
        """HOLDS if the 95% interval of the difference is above zero, FAILS if it is below, else UNDECIDED."""
        mean, margin = self.difference.mean, self.difference.margin
        if mean - margin > 0.0:
            return HOLDS
        return (
            FAILS if mean + margin < 0.0 else UNDECIDED
        )  # one repeat: the margin is NaN, and both comparisons are false


@dataclass(frozen=True)
class Claim:
    """Statement of the paper or of this project, with the criteria that decide it."""

    section: str
    data: str
    statement: str
    source: str  # where the paper makes the claim
    criteria: Sequence[Criterion]  # the claim holds if all of them hold
    explanation: str = ""  # reason for the verdict, where it is known
    evidence: str = ""  # name of the table or figure that shows the numbers
    guaranteed: bool = False  # True if locb itself guarantees the claim, so that a failure is an error

    @property
    def verdict(self) -> str:
        """HOLDS if every criterion holds, FAILS if one fails, else UNDECIDED.

        Examples
        --------
        >>> both = [Criterion("a above b", Measurement(2.0, 1.0)), Criterion("a above c", Measurement(0.5, 1.0))]
        >>> Claim("regret", "synthetic", "a is best", "Figure 3", both).verdict
        'undecided'
        """
        verdicts = [criterion.verdict for criterion in self.criteria]
        if FAILS in verdicts:
            return FAILS
        return HOLDS if verdicts and all(verdict == HOLDS for verdict in verdicts) else UNDECIDED


Figure = LineChart | GroupMap | HeatMap


@dataclass(frozen=True)
class Findings:
    """All results of a reproduction, a verification or a scenario matrix."""

    title: str
    tables: list[ResultTable]
    figures: list[Figure]
    claims: list[Claim]
    sections: dict[str, str]  # name → heading
    notes: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def count(self, verdict: str) -> int:
        """Return the number of claims with this verdict."""
        return sum(claim.verdict == verdict for claim in self.claims)

    def failed_guarantees(self) -> list[Claim]:
        """Return the claims that locb guarantees and that these runs contradict."""
        return [claim for claim in self.claims if claim.guaranteed and claim.verdict == FAILS]

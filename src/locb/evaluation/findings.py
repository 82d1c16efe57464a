"""Result types of ``locb reproduce``, ``locb verify`` and scenario comparisons: tables, figures and claims.

The types hold plain numbers and text, and do not depend on policies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from locb.common.arrays import Floats
from locb.evaluation.confidence_intervals import (
    NORMAL_QUANTILE,
    ci_half_width,
    holm,
    proportion_interval,
    student_quantile,
    upper_tail,
)

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
NOT_COUNTED = "not counted"  # in place of a verdict, for a vacuous claim
LEVEL = 0.025  # largest p-value of a one-sided test that decides a claim; equivalent to a 95% interval


@dataclass(frozen=True)
class Measurement:
    """Mean over repeats, with half of the width of its 95% confidence interval."""

    mean: float
    margin: float  # half of the width of the interval; NaN for one repeat
    # Degrees of freedom of the interval (Student's t); infinite for an interval from the normal distribution.
    degrees: float = field(default=math.inf, compare=False, repr=False)

    @classmethod
    def from_values(cls, values: Iterable[Any]) -> Measurement:
        """Return the measurement of ``values``, which has one value per repeat.

        Examples
        --------
        >>> Measurement.from_values([1.0, 2.0, 3.0]).mean
        2.0
        """
        values = [float(value) for value in values]
        return cls(sum(values) / len(values), float(ci_half_width(values)), max(1, len(values) - 1))

    @property
    def p_positive(self) -> float:
        """p-value of the one-sided test whose alternative is that the mean is positive; 1 if there is no interval."""
        if math.isnan(self.margin) or math.isnan(self.mean) or self.mean == self.margin == 0.0:
            return 1.0
        if self.margin == 0.0:
            return 0.0 if self.mean > 0.0 else 1.0
        quantile = NORMAL_QUANTILE if math.isinf(self.degrees) else student_quantile(self.degrees)
        return upper_tail(self.mean / self.margin * quantile, self.degrees)

    @property
    def p_negative(self) -> float:
        """p-value of the one-sided test whose alternative is that the mean is negative; 1 if there is no interval."""
        return Measurement(-self.mean, self.margin, self.degrees).p_positive


@dataclass(frozen=True)
class ResultTable:
    """Table of results. A cell is text, a number, None or a :class:`Measurement`."""

    name: str  # also the file name, without its suffix
    section: str  # name of a section in ``Findings.sections``
    title: str
    rows: list[dict[str, Any]]  # cell by column name
    note: str = ""


@dataclass(frozen=True)
class LineChart:
    """Data and titles of a line chart. Each row is one point of one line."""

    name: str
    section: str
    title: str
    subtitle: str
    x: str
    y: str
    rows: list[dict[str, Any]]  # keys: "line", x, y, and the confidence band "low" and "high" where it is known
    log_x: bool = False
    log_y: bool = False
    dashed: tuple[str, ...] = ()  # names of lines that were not measured, such as bounds and values from the paper


def line_points(
    line: str, x: str, xs: Sequence[float], y: str, values: Any, upper: float = math.inf
) -> list[dict[str, Any]]:
    """Return the points of one line of a chart, with 95% confidence bands clipped to the range from 0 to ``upper``.

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
    """Data and titles of a scatter chart of users in two dimensions, coloured by group."""

    name: str
    section: str
    title: str
    subtitle: str
    theta: Floats  # (n, d) preferences of each user; the chart shows a projection
    groups: list[list[int]]  # users of each group


@dataclass(frozen=True)
class HeatMap:
    """Data and titles of a heat map of ratios. A policy with a ratio below 1 is better than the baseline."""

    name: str
    section: str
    title: str
    subtitle: str
    x: str
    y: str
    rows: list[
        dict[str, Any]
    ]  # one per cell: "panel", x, y, "ratio", "margin" (None if unknown), "best" (True for the best baseline)


@dataclass(frozen=True)
class Criterion:
    """One test of a claim: a difference that must be positive for the claim to hold."""

    statement: str
    difference: Measurement
    detail: str = ""  # text of the result that replaces the difference and its interval in reports
    # p_holds and p_fails, p-values of one-sided tests; by default, both are computed from the difference.
    p_values: tuple[float, float] | None = None

    @property
    def p_holds(self) -> float:
        """p-value of the one-sided test whose alternative is that the difference is positive."""
        return self.difference.p_positive if self.p_values is None else self.p_values[0]

    @property
    def p_fails(self) -> float:
        """p-value of the one-sided test whose alternative is that the difference is negative."""
        return self.difference.p_negative if self.p_values is None else self.p_values[1]

    @classmethod
    def paired(cls, statement: str, larger: Any, smaller: Any) -> Criterion:
        """Return the criterion that ``larger`` exceeds ``smaller`` on average, each with one value per repeat."""
        return cls(statement, Measurement.from_values([a - b for a, b in zip(larger, smaller, strict=True)]))

    @classmethod
    def proportion(cls, statement: str, count: int, total: int, claimed: float) -> Criterion:
        """Return the criterion that an event has at least probability ``claimed``, with Wilson's 95% interval.

        Parameters
        ----------
        statement : str
            Description of the event.
        count, total : int
            Number of trials in which the event occurred, and number of trials.
        claimed : float
            Lower bound of the probability that the claim states.
        """
        middle, margin = proportion_interval(count, total)
        interval = f"95% interval {middle - margin:.3f} to {middle + margin:.3f}"
        detail = f"{statement}: {count:,} of {total:,} ({interval}; claimed: at least {claimed:g})"
        error = math.sqrt(claimed * (1.0 - claimed) / total)
        tail = upper_tail((count / total - claimed) / error) if error > 0.0 else float(count < total)
        return cls(statement, Measurement(middle - claimed, margin), detail, (tail, 1.0 - tail))

    @classmethod
    def always(cls, statement: str, count: int, total: int) -> Criterion:
        """Return the criterion that an event, which occurred ``count`` times, occurred in each of ``total`` trials."""
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
        )  # with one repeat, the margin is NaN and the two comparisons are false


@dataclass(frozen=True)
class Claim:
    """Statement of the paper or of this project, with the criteria that decide whether it holds."""

    section: str  # name of a section in ``Findings.sections``
    data: str  # data set or environment
    statement: str
    source: str  # place of the claim in the paper, or a text that begins with "not in the paper"
    criteria: Sequence[Criterion]  # the claim holds if all criteria hold
    explanation: str = ""  # reason for the verdict, where it is known
    evidence: str = ""  # name of the table or figure with the measured values
    guaranteed: bool = False  # True if locb itself guarantees the claim, so that a failure is an error
    # Claims of one family are corrected together, and claims with the same family and statement are counted once.
    family: str = ""
    vacuous: str = (
        ""  # reason why the claim cannot fail or cannot be decided; such a claim is listed apart and not counted
    )
    adjusted: tuple[float, float] | None = None  # p_holds and p_fails, corrected for the other claims of the family

    @property
    def p_holds(self) -> float:
        """p-value of the claim: the largest p-value of its criteria, because all criteria must hold."""
        return max((criterion.p_holds for criterion in self.criteria), default=1.0)

    @property
    def p_fails(self) -> float:
        """p-value of the failure of the claim, for which the failure of one criterion is enough.

        It is the smallest p-value of the failure of a criterion, times the number of criteria.
        """
        return min([1.0, *(len(self.criteria) * criterion.p_fails for criterion in self.criteria)])

    @property
    def verdict(self) -> str:
        """HOLDS if every criterion holds, FAILS if one fails, else UNDECIDED; NOT_COUNTED for a vacuous claim.

        The p-values are those in ``adjusted``, if they are set.

        Examples
        --------
        >>> both = [Criterion("a above b", Measurement(2.0, 1.0)), Criterion("a above c", Measurement(0.5, 1.0))]
        >>> Claim("regret", "synthetic", "a is best", "Figure 3", both).verdict
        'undecided'
        """
        if self.vacuous:
            return NOT_COUNTED
        holds, fails = self.adjusted or (self.p_holds, self.p_fails)
        if fails <= LEVEL:
            return FAILS
        return HOLDS if holds <= LEVEL else UNDECIDED


def adjust_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Return claims whose p-values are corrected for all claims of the same family with Holm's method.

    Vacuous claims are not tests. They are neither corrected nor part of a family.
    """
    adjusted = list(claims)
    families: dict[str, list[int]] = {}
    for index, claim in enumerate(adjusted):
        if not claim.vacuous:
            families.setdefault(claim.family, []).append(index)
    for members in families.values():
        holds = holm([adjusted[index].p_holds for index in members])
        fails = holm([adjusted[index].p_fails for index in members])
        for index, pair in zip(members, zip(holds, fails, strict=True), strict=True):
            adjusted[index] = replace(adjusted[index], adjusted=pair)
    return adjusted


def combine_verdicts(verdicts: Iterable[str]) -> str:
    """Return the verdict of a claim that was tested in several variants: the claim holds if it holds in all of them.

    Examples
    --------
    >>> combine_verdicts(["holds", "undecided"])
    'undecided'
    """
    found = set(verdicts)
    return FAILS if FAILS in found else UNDECIDED if UNDECIDED in found else HOLDS


Figure = LineChart | GroupMap | HeatMap


@dataclass(frozen=True)
class Findings:
    """All results of ``locb reproduce``, ``locb verify`` or a comparison over scenarios.

    The p-values of ``claims`` are corrected for multiple comparisons, see :func:`adjust_claims`.
    """

    title: str
    tables: list[ResultTable]
    figures: list[Figure]
    claims: list[Claim]
    sections: dict[str, str]  # heading by name of the section
    notes: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)  # origin of the results, written to each CSV file

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", adjust_claims(self.claims))

    def failed_guarantees(self) -> list[Claim]:
        """Return the claims that locb guarantees but that do not hold in these results.

        The p-values are not corrected for other claims, so that further claims do not hide a failure.
        """
        return [claim for claim in self.claims if claim.guaranteed and claim.p_fails <= LEVEL]

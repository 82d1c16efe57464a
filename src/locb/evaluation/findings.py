"""What reproducing and verifying give: tables, figures and claims with a verdict. Plain numbers, no policies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from locb.common.arrays import Floats
from locb.evaluation.results import half_width

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told from these runs"


@dataclass(frozen=True)
class Measured:
    """A mean over repeats with half of its 95% interval; NaN from a single repeat."""

    mean: float
    margin: float

    @classmethod
    def of(cls, values: Any) -> Measured:
        """From one value a repeat.

        Examples
        --------
        >>> Measured.of([1.0, 2.0, 3.0]).mean
        2.0
        """
        values = [float(value) for value in values]
        return cls(sum(values) / len(values), float(half_width(values)))


@dataclass(frozen=True)
class ResultTable:
    """Rows of the same columns; a cell is text, a number, None or Measured."""

    name: str  # also its file name
    section: str
    title: str
    rows: list[dict[str, Any]]
    note: str = ""


@dataclass(frozen=True)
class Series:
    """A chart of lines: a row is a point of one of them, with ``low`` and ``high`` around it where they are known."""

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


def banded(line: str, x: str, xs: Sequence[float], y: str, values: Any, most: float = math.inf) -> list[dict[str, Any]]:
    """The points of one line of a chart from ``values`` (repeats, points): mean and 95% band, within 0 and most.

    Examples
    --------
    >>> banded("a", "round", [10], "F1", [[0.9], [0.9]])
    [{'line': 'a', 'round': 10, 'F1': 0.9, 'low': 0.9, 'high': 0.9}]
    """
    points = []
    for place, at in enumerate(xs):
        here = Measured.of(row[place] for row in values)
        around = 0.0 if math.isnan(here.margin) else here.margin
        band = {"low": max(0.0, here.mean - around), "high": min(most, here.mean + around)}
        points.append({"line": line, x: at, y: here.mean, **band})
    return points


@dataclass(frozen=True)
class GroupMap:
    """A chart of users in two dimensions, coloured by group."""

    name: str
    section: str
    title: str
    subtitle: str
    theta: Floats  # (n, d)
    groups: list[list[int]]


@dataclass(frozen=True)
class HeatMap:
    """A chart of ratios, one a cell; a row is a cell. 1 is neutral, below it is good."""

    name: str
    section: str
    title: str
    subtitle: str
    x: str
    y: str
    rows: list[
        dict[str, Any]
    ]  # "panel", x, y, "ratio", "margin" (None where there is none), "best" (whether it is the 1)


@dataclass(frozen=True)
class Part:
    """One comparison that a claim rests on: a difference that the claim says is above zero."""

    says: str
    difference: Measured
    told: str = ""  # the finding in words, where a difference and its interval do not say it well

    @classmethod
    def paired(cls, says: str, larger: Any, smaller: Any) -> Part:
        """From paired values, one a repeat: ``larger`` is the one that the claim says is larger."""
        return cls(says, Measured.of([a - b for a, b in zip(larger, smaller, strict=True)]))

    @classmethod
    def share(cls, says: str, count: int, total: int, least: float) -> Part:
        """That something happens with at least this probability, from how often it did (Wilson's 95% interval)."""
        z2 = 1.959964**2
        middle = (count + z2 / 2) / (total + z2)
        around = math.sqrt(z2) / (total + z2) * math.sqrt(count * (total - count) / total + z2 / 4)
        told = f"{says}: in {count:,} of {total:,}, a share from {middle - around:.3f} to {middle + around:.3f}"
        return cls(says, Measured(middle - least, around), f"{told} (95%) where {least:g} is claimed")

    @classmethod
    def always(cls, says: str, count: int, total: int) -> Part:
        """That something happened every time."""
        return cls(says, Measured(1.0 if count == total and total else -1.0, 0.0), f"{says}: {count:,} of {total:,}")

    @property
    def verdict(self) -> str:
        """Whether the 95% interval of the difference is above zero, below zero, or neither."""
        mean, margin = self.difference.mean, self.difference.margin
        if mean - margin > 0.0:
            return HOLDS
        return FAILS if mean + margin < 0.0 else OPEN  # NaN is neither


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what these runs say to it."""

    section: str
    data: str
    says: str
    where: str  # in the paper
    parts: Sequence[Part]  # the claim holds if all of them do
    why: str = ""  # what explains the verdict, where that is known
    rests_on: str = ""  # the name of the table or figure to look at
    promised: bool = False  # whether locb itself promises it, so that a failure is an error

    @property
    def verdict(self) -> str:
        """Holds if every part does; does not hold if one is the other way round; else it cannot be told.

        Examples
        --------
        >>> both = [Part("a above b", Measured(2.0, 1.0)), Part("a above c", Measured(0.5, 1.0))]
        >>> Claim("regret", "synthetic", "a is best", "Figure 3", both).verdict
        'cannot be told from these runs'
        """
        verdicts = [part.verdict for part in self.parts]
        if FAILS in verdicts:
            return FAILS
        return HOLDS if verdicts and all(verdict == HOLDS for verdict in verdicts) else OPEN


Figure = Series | GroupMap | HeatMap


@dataclass(frozen=True)
class Findings:
    """All that a reproduction, a verification or a matrix of worlds found."""

    title: str
    tables: list[ResultTable]
    figures: list[Figure]
    claims: list[Claim]
    sections: dict[str, str]  # name → heading
    notes: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def count(self, verdict: str) -> int:
        """How many claims have this verdict."""
        return sum(claim.verdict == verdict for claim in self.claims)

    def broken_promises(self) -> list[Claim]:
        """What locb promises and these runs contradict."""
        return [claim for claim in self.claims if claim.promised and claim.verdict == FAILS]

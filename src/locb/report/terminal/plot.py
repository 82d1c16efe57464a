"""Lines in a terminal: braille dots for a line, a light shade for the interval around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from locb.common.arrays import Floats

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille character, by row and column
BLANK = 0x2800
SHADE = "░"


@dataclass(frozen=True)
class Line:
    """Points in the order of their x, and what is around them."""

    xs: Sequence[float]
    ys: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    name: str = ""  # told at its end
    style: str = ""
    gap: float = math.inf  # points farther apart than this are not joined


def plot(
    lines: Sequence[Line],
    width: int,
    height: int,
    *,
    y_told: Callable[[float], str],
    x_told: Callable[[float], str],
) -> Text:
    """A chart of this many characters; scales at its left and below, names of lines at their right ends.

    Examples
    --------
    >>> rise = Line([0, 1, 2, 3], [0, 1, 2, 3], name="up")
    >>> for row in plot([rise], 14, 2, y_told="{:.0f}".format, x_told="{:.0f}".format).plain.splitlines():
    ...     print(row.rstrip())
    3 ┤    ⣀⠤⠒⠉ up
    0 ┤⣀⠤⠒⠉
       0      3
    """
    xs = np.concatenate([np.asarray(line.xs, dtype=np.float64) for line in lines])
    edges = [side for line in lines for side in (line.ys, line.low, line.high) if side is not None]
    ys = np.concatenate([np.asarray(side, dtype=np.float64) for side in edges])
    x_span, y_span = _span(xs), _span(ys)
    marks = [y_told(y_span[1]), y_told(y_span[0])]
    left = max(map(len, marks))
    right = max((len(line.name) for line in lines), default=0)
    columns = max(width - left - 2 - (right + 1 if right else 0), 8)
    cells: list[list[tuple[str, str]]] = [[(" ", "")] * columns for _ in range(height)]
    for line in lines:
        _shade(cells, line, x_span, y_span)
    for line in lines:
        _draw(cells, line, x_span, y_span)
    names = _ends(lines, height, y_span)
    told = Text()
    for row in range(height):
        mark = marks[0] if row == 0 else marks[1] if row == height - 1 else ""
        told.append(f"{mark:>{left}} {'┤' if mark else '│'}")
        for character, style in cells[row]:
            told.append(character, style or None)
        if (ends := names[row]) is not None:
            told.append(f" {ends.name}", ends.style or None)
        told.append("\n")
    first, last = x_told(x_span[0]), x_told(x_span[1])
    told.append(" " * (left + 2) + first + last.rjust(columns - len(first)))
    return told


def _span(values: Floats) -> tuple[float, float]:
    """From the smallest to the largest; a little around it where all are equal."""
    known = values[np.isfinite(values)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if low == high:
        around = abs(low) * 0.05 or 0.5
        return low - around, high + around
    return low, high


def _places(values: Floats, span: tuple[float, float], count: int) -> Floats:
    """From values to dots, 0 … count − 1."""
    return np.asarray((values - span[0]) / (span[1] - span[0]) * (count - 1))


def _pieces(line: Line, *sides: Sequence[float]) -> list[tuple[Floats, ...]]:
    """The line where its points follow each other: x and the sides of each piece."""
    xs = np.asarray(line.xs, dtype=np.float64)
    breaks = np.flatnonzero(np.diff(xs) > line.gap) + 1
    parts = [np.split(np.asarray(side, dtype=np.float64), breaks) for side in (xs, *sides)]
    return list(zip(*parts, strict=True))


def _draw(
    cells: list[list[tuple[str, str]]], line: Line, x_span: tuple[float, float], y_span: tuple[float, float]
) -> None:
    """Braille dots, joined upwards and downwards so that a steep line has no holes."""
    rows, columns = 4 * len(cells), 2 * len(cells[0])
    for xs, ys in _pieces(line, line.ys):
        at = np.rint(_places(xs, x_span, columns)).astype(int)
        where = np.arange(at[0], at[-1] + 1)
        level = (
            rows - 1 - np.rint(np.interp(where, _places(xs, x_span, columns), _places(ys, y_span, rows))).astype(int)
        )
        before = level[0]
        for column, row in zip(where.tolist(), level.tolist(), strict=True):
            step = 1 if row > before else -1
            for each in range(before + step, row + step, step) if row != before else (row,):
                _dot(cells, each, column, line.style)
            before = row


def _dot(cells: list[list[tuple[str, str]]], row: int, column: int, style: str) -> None:
    known, _ = cells[row // 4][column // 2]
    dots = ord(known) - BLANK if ord(known) >= BLANK else 0
    cells[row // 4][column // 2] = chr(BLANK + (dots | DOTS[row % 4][column % 2])), style


def _shade(
    cells: list[list[tuple[str, str]]], line: Line, x_span: tuple[float, float], y_span: tuple[float, float]
) -> None:
    """Characters whose middle is within the interval."""
    if line.low is None or line.high is None:
        return
    rows, columns = len(cells), len(cells[0])
    for xs, low, high in _pieces(line, line.low, line.high):
        at = _places(xs, x_span, columns)
        for column in range(max(math.ceil(at[0] - 0.5), 0), min(math.floor(at[-1] + 0.5), columns - 1) + 1):
            lowest = float(np.interp(column, at, _places(low, y_span, rows)))
            highest = float(np.interp(column, at, _places(high, y_span, rows)))
            for level in range(math.ceil(lowest - 0.25), math.floor(highest + 0.25) + 1):
                cells[rows - 1 - min(max(level, 0), rows - 1)][column] = (SHADE, "bright_black")


def _ends(lines: Sequence[Line], height: int, y_span: tuple[float, float]) -> list[Line | None]:
    """Which line's name stands in which row: where it ends, or in the nearest row that is free."""
    names: list[Line | None] = [None] * height
    for line in sorted((line for line in lines if line.name), key=lambda line: -line.ys[-1]):
        wanted = height - 1 - round(float(_places(np.array(line.ys[-1]), y_span, height)))
        free = [row for row in range(height) if names[row] is None]
        if free:
            names[min(free, key=lambda row: (abs(row - wanted), row))] = line
    return names

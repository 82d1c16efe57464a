"""Line charts in a terminal, with braille dots for lines and a light shade for confidence bands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from rich.text import Text

from locb.common.arrays import Floats

BRAILLE_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bits of a braille character [row][column]
BRAILLE_BLANK = 0x2800
SHADE = "░"
MIN_COLUMNS = 8  # minimum width of the drawing area, in characters

Cells: TypeAlias = list[list[tuple[str, str]]]  # character and style, [row][column]
Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """Line of a chart: points in ascending order of x, with an optional band."""

    xs: Sequence[float]
    ys: Sequence[float]
    low: Sequence[float] | None = None  # lower end of the band at each point
    high: Sequence[float] | None = None  # upper end of the band at each point
    name: str = ""  # label at the right end
    style: str = ""  # Rich style
    gap: float = math.inf  # adjacent points with a larger difference in x are not connected


def plot(
    lines: Sequence[Line],
    width: int,
    height: int,
    *,
    format_y: Callable[[float], str],
    format_x: Callable[[float], str],
) -> Text:
    """Return a line chart as text of ``width`` columns and ``height`` rows, plus one row for the x axis.

    ``format_x`` and ``format_y`` format the numbers at the ends of the axes.

    Examples
    --------
    >>> rise = Line([0, 1, 2, 3], [0, 1, 2, 3], name="up")
    >>> for row in plot([rise], 14, 2, format_y="{:.0f}".format, format_x="{:.0f}".format).plain.splitlines():
    ...     print(row.rstrip())
    3 ┤    ⣀⠤⠒⠉ up
    0 ┤⣀⠤⠒⠉
       0      3
    """
    xs = np.concatenate([np.asarray(line.xs, dtype=np.float64) for line in lines])
    edges = [edge for line in lines for edge in (line.ys, line.low, line.high) if edge is not None]
    ys = np.concatenate([np.asarray(edge, dtype=np.float64) for edge in edges])
    x_range, y_range = _range(xs), _range(ys)
    top_label, bottom_label = format_y(y_range[1]), format_y(y_range[0])
    left = max(len(top_label), len(bottom_label))
    right = max((len(line.name) for line in lines), default=0)
    columns = max(width - left - 2 - (right + 1 if right else 0), MIN_COLUMNS)
    cells: Cells = [[(" ", "")] * columns for _ in range(height)]
    for line in lines:
        _draw_band(cells, line, x_range, y_range)
    for line in lines:
        _draw_line(cells, line, x_range, y_range)
    named_lines = _assign_label_rows(lines, height, y_range)
    chart = Text()
    for row in range(height):
        label = top_label if row == 0 else bottom_label if row == height - 1 else ""
        chart.append(f"{label:>{left}} {'┤' if label else '│'}")
        for character, style in cells[row]:
            chart.append(character, style or None)
        if (named := named_lines[row]) is not None:
            chart.append(f" {named.name}", named.style or None)
        chart.append("\n")
    first, last = format_x(x_range[0]), format_x(x_range[1])
    chart.append(" " * (left + 2) + first + last.rjust(columns - len(first)))
    return chart


def _range(values: Floats) -> Range:
    """Return the minimum and the maximum of the finite values. If they are equal, the range is widened."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        margin = abs(low) * 0.05 or 0.5
        return low - margin, high + margin
    return low, high


def _scale(values: Floats, value_range: Range, count: int) -> Floats:
    """Map values linearly from ``value_range`` to the range from 0 to count − 1."""
    return np.asarray((values - value_range[0]) / (value_range[1] - value_range[0]) * (count - 1))


def _segments(line: Line, *series: Sequence[float]) -> list[tuple[Floats, ...]]:
    """Split the xs of a line, and series of the same length, where two adjacent xs differ by more than ``line.gap``."""
    xs = np.asarray(line.xs, dtype=np.float64)
    breaks = np.flatnonzero(np.diff(xs) > line.gap) + 1
    parts = [np.split(np.asarray(values, dtype=np.float64), breaks) for values in (xs, *series)]
    return list(zip(*parts, strict=True))


def _draw_line(cells: Cells, line: Line, x_range: Range, y_range: Range) -> None:
    """Draw a line with braille dots. Vertical runs of dots connect the columns of a steep line."""
    dot_rows, dot_columns = 4 * len(cells), 2 * len(cells[0])
    for xs, ys in _segments(line, line.ys):
        scaled = _scale(xs, x_range, dot_columns)
        ends = np.rint(scaled).astype(int)
        columns = np.arange(ends[0], ends[-1] + 1)
        heights = np.rint(np.interp(columns, scaled, _scale(ys, y_range, dot_rows))).astype(int)
        rows = dot_rows - 1 - heights
        previous = rows[0]
        for column, row in zip(columns.tolist(), rows.tolist(), strict=True):
            step = 1 if row > previous else -1
            for dot_row in range(previous + step, row + step, step) if row != previous else (row,):
                _draw_dot(cells, dot_row, column, line.style)
            previous = row


def _draw_dot(cells: Cells, row: int, column: int, style: str) -> None:
    character, _ = cells[row // 4][column // 2]
    dots = ord(character) - BRAILLE_BLANK if ord(character) >= BRAILLE_BLANK else 0
    cells[row // 4][column // 2] = chr(BRAILLE_BLANK + (dots | BRAILLE_DOTS[row % 4][column % 2])), style


def _draw_band(cells: Cells, line: Line, x_range: Range, y_range: Range) -> None:
    """Shade the characters in the band of a line."""
    if line.low is None or line.high is None:
        return
    rows, columns = len(cells), len(cells[0])
    for xs, low, high in _segments(line, line.low, line.high):
        scaled = _scale(xs, x_range, columns)
        for column in range(max(math.ceil(scaled[0] - 0.5), 0), min(math.floor(scaled[-1] + 0.5), columns - 1) + 1):
            bottom = float(np.interp(column, scaled, _scale(low, y_range, rows)))
            top = float(np.interp(column, scaled, _scale(high, y_range, rows)))
            for level in range(math.ceil(bottom - 0.25), math.floor(top + 0.25) + 1):
                cells[rows - 1 - min(max(level, 0), rows - 1)][column] = (SHADE, "bright_black")


def _assign_label_rows(lines: Sequence[Line], height: int, y_range: Range) -> list[Line | None]:
    """Return the line whose name is printed in each row, or None.

    A name is printed at the height of the last point of its line, or in the nearest free row.
    """
    rows: list[Line | None] = [None] * height
    for line in sorted((line for line in lines if line.name), key=lambda line: -line.ys[-1]):
        wanted = height - 1 - round(float(_scale(np.array(line.ys[-1]), y_range, height)))
        free = [row for row in range(height) if rows[row] is None]
        if free:
            rows[min(free, key=lambda row: (abs(row - wanted), row))] = line
    return rows

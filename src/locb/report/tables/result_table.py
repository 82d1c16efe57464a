"""Result tables as CSV for programs, formatted cells for people, and Markdown for documents."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from locb.evaluation.findings import Measurement, ResultTable

MARGIN = " ±"  # suffix of the column with half the width of the 95% CI of the previous column
_INTEGER = ("regret", "rounds", "round", "bound", "served")
_SIGNED = ("difference",)
_UNROUNDED = ("alpha", "gamma", "sigma", "tau")
_COUNTS = ("seeds", "users", "environments", "covered", "violated", "final", "gamma-cluster")


def to_csv(table: ResultTable) -> str:
    """Return the table as CSV, numbers with six digits, a measurement in two columns."""
    columns: dict[str, None] = {}
    for row in table.rows:
        for name, value in row.items():
            columns[name] = None
            if isinstance(value, Measurement):
                columns[name + MARGIN] = None
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in table.rows:
        writer.writerow([_csv_cell(row, name) for name in columns])
    return out.getvalue()


def _csv_cell(row: dict[str, Any], column: str) -> str:
    if column.endswith(MARGIN):
        measured = row.get(column.removesuffix(MARGIN))
        value: Any = measured.margin if isinstance(measured, Measurement) else None
    else:
        value = row.get(column)
        value = value.mean if isinstance(value, Measurement) else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return format(value, ".6g") if isinstance(value, float) else str(value)


def format_csv(text: str) -> tuple[list[str], list[list[str]]]:
    """Return headings and formatted cells of a CSV; a measurement and its margin share one cell."""
    columns, *rows = list(csv.reader(io.StringIO(text)))
    headings = [name for name in columns if not name.endswith(MARGIN)]
    formatted = []
    for row in rows:
        value = dict(zip(columns, row, strict=True))
        cells = []
        for name in headings:
            cell = _format_cell(name, value[name], value[name])
            margin = value.get(name + MARGIN, "")
            cells.append(f"{cell} ± {_format_cell(name, margin, value[name]).lstrip('+')}" if margin else cell)
        formatted.append(cells)
    return headings, formatted


def _format_cell(column: str, text: str, like: str) -> str:
    """Format a number with the digits of its column and of the number ``like``; empty text as a dash."""
    if text == "":
        return "–"
    try:
        return format(float(text), _number_spec(column, like, float(like)))
    except ValueError:
        return text


def _number_spec(column: str, text: str, number: float) -> str:
    """Return the format specification of numbers like this one in a column."""
    words = column.lower().replace("'s", "").split()
    sign = "+" if any(word in words for word in _SIGNED) else ""
    if words[-1] in _UNROUNDED:
        return f"{sign}g"
    if any(word in words for word in _INTEGER) and abs(number) >= 10:
        return f"{sign},.0f"
    if words[-1] in _COUNTS or (number >= 2 and text.isdigit()):
        return f"{sign},.0f"
    return f"{sign}.3f" if number == 0.0 or 0.001 <= abs(number) < 1000 else f"{sign}.3g"


def to_markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(headings), line(["---"] * len(headings)), *(line(row) for row in rows)])

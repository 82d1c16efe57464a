"""Tables of results in their three forms: CSV for programs, cells for people, Markdown for pages."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from locb.evaluation.findings import Measurement, ResultTable

MARGIN = " ±"  # a column of this ending holds half of the 95% interval of the one before it
_WHOLE = ("regret", "rounds", "round", "bound", "served")
_SIGNED = ("less", "difference")
_AS_IS = ("alpha", "gamma", "sigma", "tau")
_COUNTS = ("seeds", "users", "worlds", "sets", "covered", "broken", "returned", "gamma-cluster")


def to_csv(table: ResultTable) -> str:
    """Every number with six digits; a measured one in two columns."""
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
        writer.writerow([_plain(row, name) for name in columns])
    return out.getvalue()


def _plain(row: dict[str, Any], column: str) -> str:
    if column.endswith(MARGIN):
        measured = row.get(column.removesuffix(MARGIN))
        value: Any = measured.margin if isinstance(measured, Measurement) else None
    else:
        value = row.get(column)
        value = value.mean if isinstance(value, Measurement) else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return format(value, ".6g") if isinstance(value, float) else str(value)


def from_csv(text: str) -> tuple[list[str], list[list[str]]]:
    """The cells that people read, from a CSV: a measured number and its interval in one cell, digits to fit."""
    columns, *rows = list(csv.reader(io.StringIO(text)))
    headings = [name for name in columns if not name.endswith(MARGIN)]
    shown = []
    for row in rows:
        value = dict(zip(columns, row, strict=True))
        cells = []
        for name in headings:
            cell = _formatted(name, value[name], value[name])
            margin = value.get(name + MARGIN, "")
            cells.append(f"{cell} ± {_formatted(name, margin, value[name]).lstrip('+')}" if margin else cell)
        shown.append(cells)
    return headings, shown


def _formatted(column: str, text: str, like: str) -> str:
    """A number in the digits that suit its column and the number ``like``; other text as it is; a dash for nothing."""
    if text == "":
        return "–"
    try:
        return format(float(text), _form(column, like, float(like)))
    except ValueError:
        return text


def _form(column: str, text: str, number: float) -> str:
    """The format of a column's numbers that are like this one."""
    words = column.lower().replace("'s", "").split()
    sign = "+" if any(word in words for word in _SIGNED) else ""
    if words[-1] in _AS_IS:
        return f"{sign}g"
    if any(word in words for word in _WHOLE) and abs(number) >= 10:
        return f"{sign},.0f"
    if words[-1] in _COUNTS or (number >= 2 and text.isdigit()):
        return f"{sign},.0f"
    return f"{sign}.3f" if number == 0.0 or 0.001 <= abs(number) < 1000 else f"{sign}.3g"


def to_markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(headings), line(["---"] * len(headings)), *(line(row) for row in rows)])

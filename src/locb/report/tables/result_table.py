"""Conversion of result tables to CSV, to formatted cells and to Markdown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from locb.evaluation.findings import Measurement, ResultTable

MARGIN = " ±"  # suffix of the column with half the width of the 95% confidence interval of the previous column
# Words in the heading of a column that determine the format of its numbers.
_INTEGER = ("regret", "rounds", "round", "bound", "served")
_SIGNED = ("difference",)
_UNROUNDED = ("alpha", "gamma", "sigma", "tau")
_COUNTS = ("seeds", "users", "environments", "covered", "violated", "final", "gamma-cluster")


def to_csv(table: ResultTable) -> str:
    """Return a table as CSV. Floats have six significant digits.

    A measurement has two columns: the mean, and the margin with " ±" appended to the heading.
    """
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


def format_header(provenance: Mapping[str, str]) -> str:
    r"""Return the origin of a table as lines of comments, which precede the table in a CSV file.

    Examples
    --------
    >>> format_header({"commit": "12ab", "seeds": "0 to 4"})
    '# commit: 12ab\n# seeds: 0 to 4\n'
    """
    return "".join(f"# {name}: {' '.join(value.split())}\n" for name, value in provenance.items())


def read_csv(text: str) -> list[list[str]]:
    """Return the lines of a table in CSV as lists of cells. The first line has the headings. Comments are skipped."""
    lines = text.splitlines(keepends=True)
    comments = next((index for index, line in enumerate(lines) if not line.startswith("# ")), len(lines))
    return list(csv.reader(io.StringIO("".join(lines[comments:]))))


def read_rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a table in CSV, each as a dictionary from headings to cells."""
    headings, *rows = read_csv(text)
    return [dict(zip(headings, row, strict=True)) for row in rows]


def format_csv(text: str) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the formatted cells of a table in CSV. A mean and its margin share one cell."""
    columns, *rows = read_csv(text)
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
    """Return a cell as text: numbers with as many digits as ``like`` in this column, and a dash for an empty cell.

    ``like`` is the mean if ``text`` is its margin, so that both have the same number of digits.
    """
    if text == "":
        return "–"
    try:
        return format(float(text), _number_spec(column, like, float(like)))
    except ValueError:
        return text


def _number_spec(column: str, text: str, number: float) -> str:
    """Return the format specification for a number in a column, by the words of the heading and the magnitude."""
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
    """Return headings and rows as a Markdown table."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(headings), line(["---"] * len(headings)), *(line(row) for row in rows)])

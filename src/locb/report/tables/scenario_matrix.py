"""The matrix of policies and worlds for a terminal."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from locb.evaluation.findings import Findings, Measurement, ResultTable

ABOUT = ("world", "groups", "best baseline", "its regret")  # the columns before those of policies


def table_of(findings: Findings, name: str) -> ResultTable:
    """A table by its name."""
    return next(table for table in findings.tables if table.name == name)


def matrix_table(findings: Findings) -> Table:
    """A row a world, a column a policy; a narrow terminal has the interval below the ratio."""
    matrix = table_of(findings, "matrix")
    policies = [name for name in matrix.rows[0] if name not in ABOUT]
    table = _table("Regret relative to the best baseline of each world (1; below it is better), ± 95% interval")
    table.add_column("world", no_wrap=True)
    table.add_column("regret of 1", justify="right")
    for policy in policies:
        table.add_column(policy.replace("-", "-\n"), justify="right", overflow="fold")
    for row in matrix.rows:
        ratios = {name: row[name].mean if isinstance(row[name], Measurement) else row[name] for name in policies}
        lowest = min(ratios.values())
        cells = [_cell(row[name], ratios[name] == lowest) for name in policies]
        table.add_row(row["world"], f"{row['its regret'].mean:,.0f}", *cells)
    return table


def policies_table(findings: Findings) -> Table:
    """A row a policy: its mean ratio where there are groups, its worst world, F1, time."""
    summary = table_of(findings, "policies")
    columns = list(dict.fromkeys(name for row in summary.rows for name in row))
    table = _table("Every policy over the worlds that have groups (geometric mean), and its worst world of all")
    for name in columns:
        words = name in ("policy", "worst world")
        longest = max(map(len, name.split()))  # no heading loses letters
        table.add_column(name, justify="left" if words else "right", no_wrap=words, min_width=longest)
    for row in summary.rows:
        table.add_row(*(_told(row.get(name)) for name in columns))
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _cell(value: Any, lowest: bool) -> str:
    text = _told(value) if isinstance(value, Measurement) else "1"
    return f"[bold green]{text}[/]" if lowest else text


def _told(value: Any) -> str:
    """A number in two digits after the point, its margin without the zero before it."""
    if isinstance(value, Measurement):
        form = ".2f" if value.mean < 10 else ".1f" if value.mean < 100 else ",.0f"
        margin = "" if value.margin != value.margin else " ±" + format(value.margin, form).removeprefix("0")
        return format(value.mean, form) + margin
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else str(value)

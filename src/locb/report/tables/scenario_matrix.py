"""Tables of a scenario matrix for a terminal."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from locb.evaluation.findings import Findings, Measurement, ResultTable

DESCRIPTIVE_COLUMNS = ("scenario", "groups", "best baseline", "baseline regret")  # every other column is a policy


def find_table(findings: Findings, name: str) -> ResultTable:
    """Return the table of the findings with the name ``name``, which must exist."""
    return next(table for table in findings.tables if table.name == name)


def make_matrix_table(findings: Findings) -> Table:
    """Return the scenario matrix as a table for a terminal, with one row per scenario and one column per policy."""
    matrix = find_table(findings, "matrix")
    policies = [name for name in matrix.rows[0] if name not in DESCRIPTIVE_COLUMNS]
    table = _make_table("Regret relative to the best baseline of each scenario (below 1 is better), ± 95% CI")
    table.add_column("scenario", no_wrap=True)
    table.add_column("baseline regret", justify="right")
    for policy in policies:
        table.add_column(policy.replace("-", "-\n"), justify="right", overflow="fold")
    for row in matrix.rows:
        ratios = {name: row[name].mean if isinstance(row[name], Measurement) else row[name] for name in policies}
        lowest = min(ratios.values())
        cells = [_format_cell(row[name], ratios[name] == lowest) for name in policies]
        table.add_row(row["scenario"], f"{row['baseline regret'].mean:,.0f}", *cells)
    return table


def make_policy_table(findings: Findings) -> Table:
    """Return a table for a terminal with one row per policy: mean ratio, worst scenario, F1 and time.

    The mean ratio is the geometric mean of the regret ratios over the scenarios with groups.
    """
    summary = find_table(findings, "policies")
    columns = list(dict.fromkeys(name for row in summary.rows for name in row))
    table = _make_table("Policies over the scenarios with groups (geometric mean), and the worst of all scenarios")
    for name in columns:
        is_text = name in ("policy", "worst scenario")
        min_width = max(map(len, name.split()))  # wide enough for the longest word of the heading
        table.add_column(name, justify="left" if is_text else "right", no_wrap=is_text, min_width=min_width)
    for row in summary.rows:
        table.add_row(*(_format_value(row.get(name)) for name in columns))
    return table


def _make_table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _format_cell(value: Any, lowest: bool) -> str:
    text = _format_value(value) if isinstance(value, Measurement) else "1"
    return f"[bold green]{text}[/]" if lowest else text


def _format_value(value: Any) -> str:
    """Return a value as text: about three significant digits, and a margin without a leading zero."""
    if isinstance(value, Measurement):
        spec = ".2f" if value.mean < 10 else ".1f" if value.mean < 100 else ",.0f"
        margin = "" if value.margin != value.margin else " ±" + format(value.margin, spec).removeprefix("0")
        return format(value.mean, spec) + margin
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else str(value)

"""Table of the candidates that ``locb tune`` has compared."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

from locb.logs.results import Tuning, format_range, format_signed

HEADINGS = ("candidate", "value", "95% interval", "minus log", "interval of the difference", "decisions", "chosen for")
SHOWN = (0, 1, 2, 3, 6)  # columns in the terminal


def tuning_rows(tuning: Tuning) -> list[tuple[str, ...]]:
    """Return one row of text per candidate, best first."""
    folds = len(tuning.chosen)
    return [
        (
            candidate.name,
            f"{candidate.value.value:.4g}",
            format_range(candidate.value),
            format_signed(candidate.difference.value),
            format_range(candidate.difference),
            f"{candidate.decisions:,.0f}",
            f"{tuning.chosen.count(candidate.name)} of {folds} folds",
        )
        for candidate in tuning.candidates
    ]


def make_tuning_table(tuning: Tuning) -> Table:
    """Return the table that ``locb tune`` prints."""
    title = f"Mean reward per decision; the log earned {tuning.logged.value:.4g}"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in SHOWN:
        table.add_column(HEADINGS[column], justify="left" if column == 0 else "right")
    for row in tuning_rows(tuning):
        table.add_row(*(row[column] for column in SHOWN))
    return table

"""Layout of terminal views: lists of facts, tables and bars. Text that does not fit in a line is wrapped."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

MIN_TABLE_WIDTH = 100  # columns; narrower terminals get text instead of wide tables and bars


def count_lines(renderable: RenderableType, width: int) -> int:
    """Return the number of lines that a Rich renderable occupies in a terminal with ``width`` columns."""
    return len(Console(width=width, file=io.StringIO()).render_lines(renderable))


def make_fact_list(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """Return a table without a header that has one row per fact: its name and its text."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in rows:
        table.add_row(name, fact)
    return table


def make_table(title: str, headings: Iterable[str], text_columns: Iterable[str]) -> Table:
    """Return a table with headings and no rows.

    The columns in ``text_columns`` are left-aligned and wrapped. All other columns are right-aligned for numbers.
    """
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    text_columns = tuple(text_columns)
    for heading in headings:
        if heading in text_columns:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    return table


def render_bar(share: float, width: int = 10) -> str:
    """Render a share from 0 to 1 as a bar of ``width`` characters. The bar is full only for a share of 1.

    Examples
    --------
    >>> render_bar(0.5), render_bar(0.999), render_bar(1.0)
    ('█████░░░░░', '█████████░', '██████████')
    """
    full = width if share >= 1.0 else min(int(max(share, 0.0) * width), width - 1)
    return "█" * full + "░" * (width - full)

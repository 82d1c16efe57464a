"""How a view is laid out: facts by name, tables, bars; what does not fit is wrapped, never cut."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

NARROW = 100  # columns below which words take the place of wide tables and bars


def lines_of(shown: RenderableType, width: int) -> int:
    """How many lines it takes."""
    return len(Console(width=width, file=io.StringIO()).render_lines(shown))


def facts(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """A name a line, and what there is to say of it."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, told in rows:
        table.add_row(name, told)
    return table


def table(title: str, headings: Iterable[str], words: Iterable[str]) -> Table:
    """A table whose columns of ``words`` may be wrapped and are on the left; the others are figures."""
    made = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    words = tuple(words)
    for heading in headings:
        if heading in words:
            made.add_column(heading, overflow="fold")
        else:
            made.add_column(heading, justify="right", no_wrap=True)
    return made


def bar(share: float, width: int = 10) -> str:
    """A share of all as a bar; full only when it is all.

    Examples
    --------
    >>> bar(0.5), bar(0.999), bar(1.0)
    ('█████░░░░░', '█████████░', '██████████')
    """
    full = width if share >= 1.0 else min(int(max(share, 0.0) * width), width - 1)
    return "█" * full + "░" * (width - full)

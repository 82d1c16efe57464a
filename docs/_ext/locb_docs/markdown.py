"""Functions that format entries and tables of the generated reference in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def entry(kind: str, name: str, body: str) -> str:
    """Return a Sphinx directive that describes one object and gives it an anchor.

    Parameters
    ----------
    kind : str
        Object type, such as "option" or "route".
    name : str
        Name of the object.
    body : str
        Description in Markdown.
    """
    return f"::::{{{kind}}} {name}\n{body.strip()}\n::::\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, or an empty string if there are no rows."""
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    if not lines:
        return ""
    head = ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    return "\n".join([*head, *lines]) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

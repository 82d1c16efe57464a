"""Timing of functions, and result tables in Markdown, for the benchmarks."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

REPETITIONS = 7


def best_of(make: Callable[[], Callable[[], object]], repetitions: int = REPETITIONS) -> float:
    """Return the time in seconds of the fastest of several repetitions, after one repetition that is not timed.

    ``make`` prepares a repetition and returns the function to time.
    """
    make()()
    fastest = float("inf")
    for _ in range(repetitions):
        job = make()
        started = time.perf_counter()
        job()
        fastest = min(fastest, time.perf_counter() - started)
    return fastest


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table with a title."""
    print(f"\n{title}\n\n{markdown_table(headings, rows)}")


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return headings and rows as a Markdown table."""
    lines = ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def replace_table(page: Path, name: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Replace the table between the comments <!-- name --> and <!-- end of name --> of a Markdown page."""
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8")
    if first not in text or last not in text:
        raise SystemExit(f"{page} must have the comments {first} and {last}; add them where the table belongs")
    before, _, rest = text.partition(first)
    _, _, after = rest.partition(last)
    page.write_text(f"{before}{first}\n{markdown_table(headings, rows)}\n{last}{after}", encoding="utf-8")

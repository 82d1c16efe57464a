"""How every benchmark here takes time: the best of several goes, after a warm one, all in one process."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

GOES = 7


def best_of(make: Callable[[], Callable[[], object]], goes: int = GOES) -> float:
    """Seconds of the fastest go. ``make`` sets a go up and gives back what is timed."""
    make()()
    fastest = float("inf")
    for _ in range(goes):
        job = make()
        began = time.perf_counter()
        job()
        fastest = min(fastest, time.perf_counter() - began)
    return fastest


def show(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    print(f"\n{title}\n\n{table(headings, rows)}")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def put_into(page: Path, name: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Renew the table that stands in a page between <!-- name --> and <!-- end of name -->."""
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(first)
    _, _, after = rest.partition(last)
    page.write_text(f"{before}{first}\n{table(headings, rows)}\n{last}{after}", encoding="utf-8")

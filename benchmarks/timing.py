"""How every benchmark here takes time: the best of several goes, after a warm one, all in one process."""

import time
from collections.abc import Callable, Sequence

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
    print(f"\n{title}\n")
    print("| " + " | ".join(headings) + " |")
    print("|" + " --- |" * len(headings))
    for row in rows:
        print("| " + " | ".join(row) + " |")

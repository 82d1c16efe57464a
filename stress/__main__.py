"""``python -m stress``: all faults and loads, a table of each, figures in runs/stress, 1 if something was missed."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stress.checks import WRONG, wrong
from stress.disks import KINDS as DISKS
from stress.disks import new_disk
from stress.full import full
from stress.kill import kill
from stress.outage import outage
from stress.page import page
from stress.restart import restart, snapshots
from stress.stores import KINDS as STORES
from stress.stores import new_store
from stress.throughput import throughput

# What the service promises.
START_SECONDS = 15.0
REPLAYED = 100_000  # events a second
RATIO = 0.45
P99 = 30.0  # milliseconds
BLOCKED = 50.0  # milliseconds
PAGE_SECONDS = 2.0
PAGE_COST = 2.0  # % of a processor, for ten pages

ALSO_WRONG = ("given up", "other answers", "not erased")

Found = Iterator[tuple[str, dict[str, Any], list[str]]]  # title, figures, what was missed


def _faults(figures: dict[str, Any]) -> list[str]:
    missed = wrong(figures) + [f"{figures[name]} {name}" for name in ALSO_WRONG if figures.get(name)]
    if figures.get("starts of the service", 1) != 1:
        missed.append("the service ended")
    return missed


def _kill(asked: argparse.Namespace) -> Found:
    for kind in asked.store:
        with new_store(kind) as place:
            figures = kill(place, asked.kills, asked.clients)
        yield f"SIGKILL under load, {kind}", figures, _faults(figures)


def _outage(asked: argparse.Namespace) -> Found:
    if "postgresql" in asked.store:
        with new_store("postgresql") as place:
            figures = outage(place, asked.outages, asked.clients)
        silent = [] if figures["requests told 503"] else ["no request was told 503"]
        yield "PostgreSQL restarted under load", figures, _faults(figures) + silent


def _full(asked: argparse.Namespace) -> Found:
    for kind in DISKS:
        try:
            with new_disk(kind) as disk:
                figures = full(disk, asked.outages, asked.clients)
        except PermissionError as error:
            print(f"\nA full disk ({kind}) is left out: {error}")
            continue
        silent = [] if figures["reasons"] else ["no request was told the reason"]
        yield f"A full disk, {kind}", figures, _faults(figures) + silent


def _restart(asked: argparse.Namespace) -> Found:
    for kind in asked.store:
        with new_store(kind) as place:
            figures = restart(place, asked.events, asked.users)
            slow = [name for name in figures if name.startswith("start") and figures[name] > START_SECONDS]
            if figures["events replayed a second"] < REPLAYED:
                slow.append("events replayed a second")
            yield f"Restart, {kind}", figures, slow
            beside = snapshots(place, asked.users, asked.rate)
            late = [] if beside["blocked, milliseconds"] <= BLOCKED else ["requests were blocked for too long"]
            late += [] if beside["snapshots"] else ["there was no snapshot"]
            yield f"Snapshots under load, {kind}", beside, late


def _throughput(asked: argparse.Namespace) -> Found:
    for kind in asked.store:
        with new_store(kind) as place:
            figures = throughput(place, asked.clients)
        missed = [] if figures["ratio"] >= RATIO else [f"a ratio of {figures['ratio']}, not {RATIO}"]
        if figures["p99 at half, milliseconds"] > P99:
            missed.append(f"p99 of {figures['p99 at half, milliseconds']} ms at half of that load, not {P99:g}")
        yield f"Throughput, {kind}", figures, missed


def _page(asked: argparse.Namespace) -> Found:
    with new_store("sqlite") as place:
        try:
            figures = page(place, asked.events, asked.users)
        except FileNotFoundError as error:
            print(f"\nThe page is left out: {error}")
            return
    slow = [name for name in figures if name.endswith(", seconds") and figures[name] > PAGE_SECONDS]
    if figures["cost of the pages, % of a processor"] > PAGE_COST:
        slow.append("ten pages cost too much")
    yield "The page on a large store", figures, slow


PARTS: dict[str, Callable[[argparse.Namespace], Found]] = {
    "kill": _kill,
    "outage": _outage,
    "full": _full,
    "restart": _restart,
    "throughput": _throughput,
    "page": _page,
}


def main() -> int:
    """All that is asked for."""
    parser = argparse.ArgumentParser(prog="stress", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to do; all of it if nothing is named")
    parser.add_argument("--store", action="append", choices=STORES, help="may be repeated; both if not given")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--outages", type=int, default=5, help="of the database, and full disks")
    parser.add_argument("--clients", type=int, default=200, help="connections at once")
    parser.add_argument("--events", type=int, default=1_000_000, help="of the store that is started again")
    parser.add_argument("--users", type=int, default=100_000, help="of that store")
    parser.add_argument("--rate", type=float, default=400.0, help="decisions a second beside snapshots")
    parser.add_argument("--output", type=Path, default=Path("runs/stress"))
    asked = parser.parse_args()
    asked.store = asked.store or list(STORES)
    asked.output.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in asked.parts or PARTS:
        all_figures = {}
        for title, figures, missed in PARTS[name](asked):
            _show(title, figures, missed)
            all_figures[title] = figures | {"missed": missed}
            failed |= bool(missed)
        told = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": _machine(), "found": all_figures}
        (asked.output / f"{name}.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    print("\nSomething was missed." if failed else "\nAll was survived.")
    return int(failed)


def _show(title: str, figures: dict[str, Any], missed: list[str]) -> None:
    print(f"\n{title}\n")
    for name, figure in figures.items():
        if name not in WRONG or figure:
            print(f"  {name:<36} {figure}")
    print(f"  {'missed' if missed else 'nothing missed':<36} {'; '.join(missed)}", flush=True)


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())

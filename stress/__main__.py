"""``python -m stress``: run fault injection and load tests, print and save their figures, exit with 1 on a failure."""

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

from stress.checks import VIOLATIONS, violations
from stress.dashboard import dashboard
from stress.disk_full import disk_full
from stress.disks import KINDS as DISKS
from stress.disks import new_disk
from stress.kill import kill
from stress.outage import outage
from stress.restart import restart, snapshots
from stress.stores import KINDS as STORES
from stress.stores import new_store
from stress.throughput import throughput

# Limits; a measurement outside them is a failure.
MAX_START_SECONDS = 15.0
MIN_REPLAY_RATE = 100_000  # events per second
MIN_RATIO = 0.45  # ratio of the throughput of durable requests to that of pings
MAX_P99_MS = 30.0
MAX_BLOCKED_MS = 50.0
MAX_PANEL_SECONDS = 2.0
MAX_PAGES_CPU = 2.0  # % of one CPU, for ten pages

MORE_VIOLATIONS = ("given up", "other errors", "not erased")

Results = Iterator[tuple[str, dict[str, Any], list[str]]]  # title, figures, failures


def _failures(figures: dict[str, Any]) -> list[str]:
    failures = violations(figures) + [f"{figures[name]} {name}" for name in MORE_VIOLATIONS if figures.get(name)]
    if figures.get("starts of the service", 1) != 1:
        failures.append("the service has restarted")
    return failures


def _kill(options: argparse.Namespace) -> Results:
    for kind in options.store:
        with new_store(kind) as location:
            figures = kill(location, options.kills, options.clients)
        yield f"SIGKILL under load, {kind}", figures, _failures(figures)


def _outage(options: argparse.Namespace) -> Results:
    if "postgresql" in options.store:
        with new_store("postgresql") as location:
            figures = outage(location, options.outages, options.clients)
        silent = [] if figures["responses with 503"] else ["no response had status 503"]
        yield "Outages of PostgreSQL under load", figures, _failures(figures) + silent


def _disk_full(options: argparse.Namespace) -> Results:
    for kind in DISKS:
        try:
            with new_disk(kind) as disk:
                figures = disk_full(disk, options.outages, options.clients)
        except PermissionError as error:
            print(f"\nFull disk ({kind}) skipped: {error}")
            continue
        silent = [] if figures["reasons"] else ["no response gave the reason"]
        yield f"Full disk, {kind}", figures, _failures(figures) + silent


def _restart(options: argparse.Namespace) -> Results:
    for kind in options.store:
        with new_store(kind) as location:
            figures = restart(location, options.events, options.users)
            slow = [name for name in figures if name.startswith("start") and figures[name] > MAX_START_SECONDS]
            if figures["events replayed per second"] < MIN_REPLAY_RATE:
                slow.append("events replayed per second")
            yield f"Restart, {kind}", figures, slow
            figures = snapshots(location, options.users, options.rate)
            failures = (
                [] if figures["blocked, milliseconds"] <= MAX_BLOCKED_MS else ["requests were blocked for too long"]
            )
            failures += [] if figures["snapshots"] else ["there was no snapshot"]
            yield f"Snapshots under load, {kind}", figures, failures


def _throughput(options: argparse.Namespace) -> Results:
    for kind in options.store:
        with new_store(kind) as location:
            figures = throughput(location, options.clients)
        failures = [] if figures["ratio"] >= MIN_RATIO else [f"ratio {figures['ratio']} is below {MIN_RATIO}"]
        p99 = figures["p99 at half load, milliseconds"]
        if p99 > MAX_P99_MS:
            failures.append(f"p99 at half load is {p99} ms, above {MAX_P99_MS:g} ms")
        yield f"Throughput, {kind}", figures, failures


def _dashboard(options: argparse.Namespace) -> Results:
    with new_store("sqlite") as location:
        try:
            figures = dashboard(location, options.events, options.users)
        except FileNotFoundError as error:
            print(f"\nDashboard skipped: {error}")
            return
    slow = [name for name in figures if name.endswith(", seconds") and figures[name] > MAX_PANEL_SECONDS]
    if figures["CPU of the pages, %"] > MAX_PAGES_CPU:
        slow.append("ten pages use too much CPU time")
    yield "Dashboard of a large store", figures, slow


PARTS: dict[str, Callable[[argparse.Namespace], Results]] = {
    "kill": _kill,
    "outage": _outage,
    "disk-full": _disk_full,
    "restart": _restart,
    "throughput": _throughput,
    "dashboard": _dashboard,
}


def main() -> int:
    """Run the selected parts, and return the exit status."""
    parser = argparse.ArgumentParser(prog="stress", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="tests to run; default: all")
    parser.add_argument("--store", action="append", choices=STORES, help="can be repeated; default: both")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--outages", type=int, default=5, help="number of database outages, and of full disks")
    parser.add_argument("--clients", type=int, default=200, help="concurrent connections")
    parser.add_argument("--events", type=int, default=1_000_000, help="events in the large store")
    parser.add_argument("--users", type=int, default=100_000, help="users in the large store")
    parser.add_argument("--rate", type=float, default=400.0, help="decisions per second during snapshots")
    parser.add_argument("--output", type=Path, default=Path("runs/stress"))
    options = parser.parse_args()
    options.store = options.store or list(STORES)
    options.output.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in options.parts or PARTS:
        all_figures = {}
        for title, figures, failures in PARTS[name](options):
            _print_figures(title, figures, failures)
            all_figures[title] = figures | {"failures": failures}
            failed |= bool(failures)
        record = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": _machine(),
            "results": all_figures,
        }
        (options.output / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print("\nSome tests failed." if failed else "\nAll tests passed.")
    return int(failed)


def _print_figures(title: str, figures: dict[str, Any], failures: list[str]) -> None:
    print(f"\n{title}\n")
    for name, figure in figures.items():
        if name not in VIOLATIONS or figure:
            print(f"  {name:<36} {figure}")
    print(f"  {'FAILED' if failures else 'passed':<36} {'; '.join(failures)}", flush=True)


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())

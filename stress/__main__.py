"""Run fault injection tests and load tests of the service; print and save their measurements.

The exit status is 1 if a test fails. Start the tests with ``python -m stress``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from stress.checks import VIOLATIONS, violations
from stress.clients.hostile import hostile_clients
from stress.faults.clock_steps import clock_steps
from stress.faults.disk_full import disk_full
from stress.faults.disks import KINDS as DISKS
from stress.faults.disks import new_disk
from stress.faults.hanging_store import SHUTDOWN_SECONDS, hanging_store
from stress.faults.kill import kill
from stress.faults.outage import outage
from stress.faults.two_writers import two_writers
from stress.histories.run import histories
from stress.log_size import SHAPES, log_size
from stress.reading.dashboard import dashboard
from stress.reading.loop_blocks import POLICIES as READ_POLICIES
from stress.reading.loop_blocks import QUANTITIES, loop_blocks
from stress.restart import restart, snapshots
from stress.soak import POLICIES, soak
from stress.stores import KINDS as STORES
from stress.stores import new_store, new_stores
from stress.throughput import throughput

# Limits of the measurements. A test fails if a measurement is outside its limit.
# Time from the start of the process to its first response, with 1,000,000 events of 100,000 users.
MAX_START_SECONDS = {"start without a snapshot, seconds": 8.0, "start with a snapshot, seconds": 3.0}
MIN_REPLAY_RATE = 100_000  # events per second
MIN_RATIO = 0.45  # throughput of decisions and rewards divided by the throughput of pings
MIN_ELOC_RATIO = 0.8  # throughput with ELOC divided by the throughput with LOCB
MAX_P99_MS = 30.0  # 99% quantile of the latency at half load
MAX_BLOCKED_MS = 50.0  # time for which a snapshot blocks requests
MAX_PANEL_SECONDS = 2.0  # time until a panel of the dashboard shows its figures and charts
# Longest block of the event loop: CPU time of its thread for a GET, and for a large POST or an erasure, which prepare
# batches of about 10 ms. The elapsed time has the same limit for all requests: it includes waiting for the disk and for
# other threads of the service, such as the rebuild of the policy after an erasure.
MAX_LOOP_CPU_MS, MAX_LARGE_CPU_MS, MAX_LOOP_BLOCK_MS = 5.0, 20.0, 20.0
MAX_DELAY_MS = 500.0  # slowest request of an ordinary client during an attack
MAX_ERASURE_DELAY_MS = 2_000.0  # the same while users are erased: a commit waits for up to eight erasures
MAX_TOKENS_CHECKED = 100  # the default of --max-failed-tokens, per minute
MAX_GROWTH_MB = 200.0  # growth of the memory of the service during an attack
MAX_DECISION_BYTES = 1_200  # disk space of a decision between two arms, with its reward
MAX_PAGES_CPU = 2.0  # % of one CPU that the service uses for ten open pages
MAX_MEMORY_GROWTH, MAX_CPU_GROWTH = 5.0, 15.0  # %, from the second to the last third of a soak test
MAX_CPU_MS = {600.0: 0.5, 1_200.0: 0.35}  # CPU time per decision and reward, by decisions per second
MIN_ANSWERED = 0.99  # decisions of a soak test, divided by the planned decisions
MAX_UNHEALTHY_SECONDS = 5.0  # time until health has status 503 if the store hangs
MAX_LIVE_SECONDS = 0.5  # slowest response of live while the store hangs
MAX_STOP_SECONDS = SHUTDOWN_SECONDS + 2.0  # time until the process ends after SIGTERM while the store hangs
MAX_ERASURE_SECONDS = 10.0  # slowest erasure while other users are erased, or data are exported

ATTACK_CONNECTIONS, ATTACK_SECONDS = 1_500, 8.0

SNAPSHOT_RATE, SOAK_RATE = 400.0, 2_000.0  # decisions per second
COST_USERS, COST_SECONDS = 1_000, 20.0
NOT_BY_DEFAULT = ("soak",)  # ``make soak`` runs it

# Counts that must be 0, if a test has them.
MORE_VIOLATIONS = (
    "given up", "other errors", "not erased", "exports with another error", "requests that got another response",
    "processes that did not exit with status 1", "refused decisions in the log", "decisions without a default reward",
)  # fmt: skip
REQUIRED = ("acknowledged decisions", "acknowledged rewards")  # counts that must not be 0

Results = Iterator[tuple[str, dict[str, Any], list[str]]]  # title, figures, failures


def _failures(figures: dict[str, Any]) -> list[str]:
    failures = violations(figures) + [f"{figures[name]} {name}" for name in MORE_VIOLATIONS if figures.get(name)]
    if figures.get("starts of the service", 1) != 1:
        failures.append(f"the service started {figures['starts of the service']} times instead of once")
    return failures + [f"no {name}" for name in REQUIRED if not figures[name]]


def _kill(options: argparse.Namespace) -> Results:
    for kind in options.store:
        with new_store(kind) as location:
            figures = kill(location, options.kills, options.clients)
        idle = [] if figures["attempts without a response"] else ["no kill interrupted a request"]
        yield f"SIGKILL under load, {kind}", figures, _failures(figures) + idle


def _outage(options: argparse.Namespace) -> Results:
    if "postgresql" in options.store:
        with new_store("postgresql") as location:
            figures = outage(location, options.outages, options.clients)
        silent = [] if figures["responses with 503"] else ["no response during an outage had status 503"]
        yield "Outages of PostgreSQL under load", figures, _failures(figures) + silent


def _disk_full(options: argparse.Namespace) -> Results:
    for kind in DISKS:
        try:
            with new_disk(kind) as disk:
                figures = disk_full(disk, options.outages, options.clients)
        except PermissionError as error:
            print(f"\nFull disk ({kind}) skipped: {error}")
            continue
        silent = [] if figures["reasons"] else ["no response during a full disk had status 503 with a reason"]
        if (
            kind == "tmpfs" and not figures["exports with 503"]
        ):  # with a limit, the file of an export can be small enough
            silent.append("no export during a full disk had status 503")
        yield f"Full disk, {kind}", figures, _failures(figures) + silent


def _two_writers(options: argparse.Namespace) -> Results:
    for kind in options.store:
        with new_store(kind) as location:
            figures = two_writers(location, options.outages)
        yield f"Two services on one store, {kind}", figures, _failures(figures)


def _hanging_store(options: argparse.Namespace) -> Results:
    if "postgresql" in options.store:
        with new_store("postgresql") as location:
            for name, figures in hanging_store(location, options.clients):
                silent = [] if figures["responses with 503"] else ["no response had status 503"]
                slow = _above(figures, "until health has status 503, seconds", MAX_UNHEALTHY_SECONDS)
                slow += _above(figures, "slowest response of live, seconds", MAX_LIVE_SECONDS)
                slow += _above(figures, "until the process ends after SIGTERM, seconds", MAX_STOP_SECONDS)
                yield f"PostgreSQL hangs under load, {name}", figures, _failures(figures) + silent + slow


def _clock_steps(options: argparse.Namespace) -> Results:
    for kind in options.store:
        with new_store(kind) as location:
            figures = clock_steps(location, options.kills)
        errors = [f"errors: {figures['errors']}"] if figures["errors"] else []
        yield f"Steps of the system time, {kind}", figures, _failures(figures) + errors


def _above(figures: dict[str, Any], name: str, limit: float) -> list[str]:
    """Return a failure if a figure is above its limit; the figure can be missing."""
    return [f"{name}: {figures[name]}, above {limit:g}"] if figures.get(name, 0.0) > limit else []


def _restart(options: argparse.Namespace) -> Results:
    for kind, policy in product(options.store, options.policy or POLICIES):
        with new_store(kind) as location:
            figures = restart(location, options.events, options.users, policy)
            slow = [failure for name, limit in MAX_START_SECONDS.items() for failure in _above(figures, name, limit)]
            replayed = figures["events replayed per second"]
            if replayed < MIN_REPLAY_RATE:
                slow.append(f"{replayed} events replayed per second, below {MIN_REPLAY_RATE}")
            yield f"Restart, {policy}, {kind}", figures, slow
            figures = snapshots(location, options.users, options.rate or SNAPSHOT_RATE)
            blocked = figures["blocked, milliseconds"]
            failures = (
                []
                if blocked <= MAX_BLOCKED_MS
                else [f"a snapshot blocked requests for {blocked} ms, above {MAX_BLOCKED_MS:g} ms"]
            )
            failures += [] if figures["snapshots"] else ["the service wrote no snapshot"]
            failures += [f"errors: {figures['errors']}"] if figures["errors"] else []
            yield f"Snapshots under load, {policy}, {kind}", figures, failures


def _throughput(options: argparse.Namespace) -> Results:
    for kind in options.store:
        with new_stores(kind, fsync=True) as new_location:
            for policy, figures in throughput(new_location, options.policy or POLICIES, options.clients).items():
                failures = [] if figures["ratio"] >= MIN_RATIO else [f"ratio {figures['ratio']} is below {MIN_RATIO}"]
                if (relative := figures.get("ratio to LOCB", 1.0)) < MIN_ELOC_RATIO:
                    failures.append(f"the throughput is {relative} of that with LOCB, below {MIN_ELOC_RATIO}")
                p99 = figures["p99 at half load, milliseconds"]
                if p99 > MAX_P99_MS:
                    failures.append(f"p99 at half load is {p99} ms, above {MAX_P99_MS:g} ms")
                failures += [f"{figures['errors']} errors"] if figures["errors"] else []
                yield f"Throughput, {policy}, {kind}", figures, failures


def _log_size(options: argparse.Namespace) -> Results:
    for kind in options.store:
        for shape in SHAPES:
            with new_store(kind) as location:
                figures = log_size(location, shape)
            size = figures["bytes per decision"]
            large = shape.arms == 2 and size > MAX_DECISION_BYTES
            failures = [f"{size} bytes per decision, above {MAX_DECISION_BYTES}"] if large else []
            features = f"named features, dim {shape.dim}" if shape.named else f"arrays, dim {shape.dim}"
            ranking = "whole ranking" if shape.ranked is None else f"count {shape.ranked}"
            yield f"Log size, {kind}, {shape.policy}, {shape.arms} arms, {features}, {ranking}", figures, failures


def _dashboard(options: argparse.Namespace) -> Results:
    with new_store("sqlite") as location:
        try:
            figures = dashboard(location, options.events, options.users)
        except FileNotFoundError as error:
            print(f"\nDashboard skipped: {error}")
            return
    times = [name for name in figures if name.endswith(", seconds")]
    slow = [failure for name in times for failure in _above(figures, name, MAX_PANEL_SECONDS)]
    if figures["CPU of the pages, %"] > MAX_PAGES_CPU:
        slow.append(f"CPU of the pages is {figures['CPU of the pages, %']}%, above {MAX_PAGES_CPU:g}%")
    yield "Dashboard of a large store", figures, slow


def _loop_blocks(options: argparse.Namespace) -> Results:
    for kind, policy in product(options.store, options.policy or READ_POLICIES):
        with new_store(kind) as location:
            figures = loop_blocks(location, policy, options.users)
        slow = []
        for name in figures:
            cpu_limit = MAX_LOOP_CPU_MS if name.startswith("GET ") else MAX_LARGE_CPU_MS
            if name.endswith(QUANTITIES):
                slow += _above(figures, name, cpu_limit if name.endswith("CPU time") else MAX_LOOP_BLOCK_MS)
        slow += [] if figures["users"] >= options.users else [f"{figures['users']} users, below {options.users}"]
        cpu = f"at most {MAX_LOOP_CPU_MS:g} of CPU time (GET) or {MAX_LARGE_CPU_MS:g} (POST, DELETE)"
        limits = f"{cpu}, at most {MAX_LOOP_BLOCK_MS:g} elapsed"
        yield f"Longest block of the event loop in milliseconds, {limits}, {policy}, {kind}", figures, slow


def _hostile_clients(_: argparse.Namespace) -> Results:
    with new_store("sqlite") as location:
        for title, figures in hostile_clients(location, ATTACK_CONNECTIONS, ATTACK_SECONDS):
            failures = [f"{figures['failed']} requests of other clients failed"] if figures["failed"] else []
            failures += [] if figures["requests of other clients"] else ["no request of another client"]
            limit = MAX_ERASURE_DELAY_MS if "erasures" in figures else MAX_DELAY_MS
            if figures["slowest, milliseconds"] > limit:
                failures.append(f"a request took {figures['slowest, milliseconds']} ms, above {limit:g} ms")
            if figures["memory grown, MB"] > MAX_GROWTH_MB:
                failures.append(f"the memory grew by {figures['memory grown, MB']} MB, above {MAX_GROWTH_MB:g} MB")
            if figures.get("tokens checked", 0) > MAX_TOKENS_CHECKED:
                failures.append(f"{figures['tokens checked']} unknown tokens checked, above {MAX_TOKENS_CHECKED}")
            failures += _above(figures, "slowest erasure, seconds", MAX_ERASURE_SECONDS)
            for name in ("failed erasures", "forged requests not refused"):
                failures += [f"{figures[name]} {name}"] if figures.get(name) else []
            for name in ("erasures", "forged requests refused"):
                failures += [f"no {name}"] if figures.get(name) == 0 else []
            yield f"Hostile clients: {title}", figures, failures


def _histories(options: argparse.Namespace) -> Results:
    for kind in options.store:
        with new_stores(kind) as new_location:
            seeds = range(options.seed, options.seed + options.histories)
            figures = histories(kind, seeds, new_location, print)
        failures = [f"{count} with {name}" for name, count in figures["histories with violations"].items()]
        failures += [] if figures["requests acknowledged"] else ["no acknowledged requests"]
        yield f"Random faults and recorded requests, {kind}", figures, failures


def _cost(options: argparse.Namespace) -> Results:
    for kind in options.store:
        for policy in options.policy or POLICIES:
            for rate, limit in MAX_CPU_MS.items():
                with new_store(kind) as location:
                    figures = soak(location, policy, 1, rate, COST_USERS, lambda _: None, COST_SECONDS)
                cost = figures["CPU per decision and reward, milliseconds"]
                failures = [f"errors: {figures['errors']}"] if figures["errors"] else []
                failures += [] if cost <= limit else [f"{cost} ms of CPU time per decision, above {limit} ms"]
                yield f"CPU time at {rate:g} decisions per second, {policy}, {kind}", figures, failures


def _soak(options: argparse.Namespace) -> Results:
    for kind in options.store:
        for policy in options.policy or POLICIES:
            title = f"Sustained load, {policy}, {kind}"
            print(f"\n{title}\n", flush=True)
            with new_store(kind) as location:
                rate, report = options.rate or SOAK_RATE, partial(print, flush=True)
                figures = soak(location, policy, options.minutes, rate, options.users, report)
            yield title, figures, _soak_failures(figures)


def _soak_failures(figures: dict[str, Any]) -> list[str]:
    failures = [f"errors: {figures['errors']}"] if figures["errors"] else []
    if figures["decisions"] < MIN_ANSWERED * figures["planned decisions"]:
        failures.append(f"only {figures['decisions']} of {figures['planned decisions']} decisions")
    slow = [str(row["minute"]) for row in figures["per minute"] if row["p99"] > MAX_P99_MS]
    if slow:
        failures.append(f"p99 is above {MAX_P99_MS:g} ms in these minutes: {', '.join(slow)}")
    for name, limit in (("memory", MAX_MEMORY_GROWTH), ("CPU per decision", MAX_CPU_GROWTH)):
        grown = figures[f"growth of the {name}, %"]
        if grown is not None and grown > limit:
            failures.append(f"the {name} grew by {grown}%, above {limit:g}%")
    return failures


PARTS: dict[str, Callable[[argparse.Namespace], Results]] = {
    "kill": _kill,
    "outage": _outage,
    "disk-full": _disk_full,
    "two-writers": _two_writers,
    "hanging-store": _hanging_store,
    "clock-steps": _clock_steps,
    "restart": _restart,
    "throughput": _throughput,
    "log-size": _log_size,
    "dashboard": _dashboard,
    "loop-blocks": _loop_blocks,
    "hostile": _hostile_clients,
    "histories": _histories,
    "cost": _cost,
    "soak": _soak,
}


def main() -> int:
    """Run the selected tests, and return the exit status."""
    parser = argparse.ArgumentParser(prog="stress", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="tests to run (default: all except soak)")
    parser.add_argument(
        "--store", action="append", choices=STORES, help="store to test (default: both); can be repeated"
    )
    parser.add_argument(
        "--kills", type=int, default=50, help="number of kills, and of clock steps (default: %(default)s)"
    )
    parser.add_argument(
        "--outages", type=int, default=5, help="number of outages, full disks and takeovers (default: %(default)s)"
    )
    parser.add_argument(
        "--clients", type=int, default=200, help="number of concurrent connections (default: %(default)s)"
    )
    parser.add_argument(
        "--histories", type=int, default=200, help="number of histories with random faults (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed of the first history (default: %(default)s)")
    parser.add_argument(
        "--events", type=int, default=1_000_000, help="events in the large store (default: %(default)s)"
    )
    parser.add_argument("--users", type=int, default=100_000, help="users in the large store (default: %(default)s)")
    parser.add_argument(
        "--rate",
        type=float,
        help=f"decisions per second (default: {SNAPSHOT_RATE:g} while snapshots are written, {SOAK_RATE:g} in soak)",
    )
    parser.add_argument(
        "--minutes", type=int, default=30, help="minutes of soak per store and policy (default: %(default)s)"
    )
    parser.add_argument(
        "--policy",
        action="append",
        choices=READ_POLICIES,
        help=f"policy of cost, loop-blocks, restart, soak and throughput (default: {' and '.join(POLICIES)}; for "
        f"loop-blocks: {', '.join(READ_POLICIES)}); can be repeated",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("runs/stress"), help="folder of the results (default: %(default)s)"
    )
    options = parser.parse_args()
    options.store = options.store or list(STORES)
    options.output.mkdir(parents=True, exist_ok=True)
    ran, failed = 0, False
    for name in options.parts or [name for name in PARTS if name not in NOT_BY_DEFAULT]:
        all_figures = {}
        for title, figures, failures in PARTS[name](options):
            _print_figures(title, figures, failures)
            all_figures[title] = figures | {"failures": failures}
            failed |= bool(failures)
            ran += 1
        record = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": _machine(),
            "results": all_figures,
        }
        (options.output / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print("\nSome tests failed." if failed else f"\nAll {ran} tests passed." if ran else "\nNo test ran.")
    return int(failed or not ran)


def _print_figures(title: str, figures: dict[str, Any], failures: list[str]) -> None:
    width = max(36, *map(len, figures))
    print(f"\n{title}\n")
    for name, figure in figures.items():
        if name != "per minute" and (name not in VIOLATIONS or figure):
            print(f"  {name:<{width}} {figure}")
    print(f"  {'FAILED' if failures else 'passed':<{width}} {'; '.join(failures)}", flush=True)


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())

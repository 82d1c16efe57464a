"""Time per round and memory by the number of users, seed users, features and arms, varied one at a time.

A sweep varies one of these numbers, and each value is one point of the sweep. Each point runs in its own process, so
that its memory can be measured. The points are measured several times in turn, and the fastest time is reported, so
that temporary load on the machine does not distort a curve. ``--into docs`` updates the tables of
docs/explanation/performance.md and the charts docs/images/scaling-*.svg.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from synthetic_rounds import make_block
from timing import print_table, replace_table

import locb
from locb.evaluation.findings import LineChart
from locb.report.charts.chart_theme import style
from locb.report.charts.line_charts import line_chart

DEFAULTS = {"users": 1_000, "seeds": 100, "features": 10, "arms": 10}
SWEEPS: dict[str, tuple[int, ...]] = {
    "users": (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "seeds": (10, 30, 100, 300, 1_000),
    "features": (5, 10, 20, 50, 100),
    "arms": (5, 10, 20, 50, 100),
}
POLICIES: dict[str, dict[str, Any]] = {
    "LOCB, pooled": {"policy": "locb", "bonus": "pooled"},
    "LOCB, pooled, float32": {"policy": "locb", "bonus": "pooled", "dtype": "float32"},
    "LOCB, mean": {"policy": "locb", "bonus": "mean"},
    "LinUCB-IND": {"policy": "linucb-ind"},
}
BLOCK, WARM_UP_BLOCKS, TIMED_BLOCKS = 4_096, 6, 4
REPETITIONS = 2
SLOW = 500.0  # µs per round; slower points are measured once
# Largest number of users per policy. Above it, bonus="mean" takes too long, and other policies need too much memory.
MAX_USERS = {"LOCB, mean": 100_000, "LOCB, pooled": 1_000_000, "LinUCB-IND": 1_000_000}
PERFORMANCE_PAGE = Path("explanation") / "performance.md"  # relative to docs; comments in it mark the tables

Costs = dict[str, float]  # "µs": time per round; "MiB": memory of the policy


def resident_memory() -> float:
    """Return the resident memory of this process in MiB."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def measure_point(users: int, seeds: int, features: int, arms: int, policy: str, **parameters: Any) -> Costs:
    """Return the time per round in µs and the memory of a policy in MiB.

    The time is that of the fastest of 4 blocks of rounds, after 6 blocks of warm-up.
    """
    if policy == "locb":
        parameters["n_seeds"] = min(seeds, users)
    smallest = {**parameters, "n_seeds": 1} if policy == "locb" else parameters
    locb.make_policy(policy, n_users=1, dim=features, **smallest).play(make_block(BLOCK, 1, arms, features, 0))
    before = resident_memory()
    player = locb.make_policy(policy, n_users=users, dim=features, **parameters)
    fastest = float("inf")
    for number in range(WARM_UP_BLOCKS + TIMED_BLOCKS):
        rounds = make_block(BLOCK, users, arms, features, number)
        started = time.perf_counter()
        player.play(rounds)
        if number >= WARM_UP_BLOCKS:
            fastest = min(fastest, time.perf_counter() - started)
    return {"µs": 1e6 * fastest / BLOCK, "MiB": max(0.0, resident_memory() - before)}


def measure_in_process(sizes: dict[str, int], settings: dict[str, Any]) -> Costs:
    """Run ``measure_point`` in a new process."""
    command = [sys.executable, __file__, "--point", json.dumps(sizes | settings)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    costs: Costs = json.loads(output)
    return costs


def measure_busy(users: int, rounds_per_user: int) -> dict[str, float]:
    """Return the time per round, in µs, of LOCB and LinUCB-IND after ``rounds_per_user`` rounds per user.

    After these rounds, the clusters of LOCB have lost members and differ from each other.
    """
    features, arms = DEFAULTS["features"], DEFAULTS["arms"]
    players = {
        "LOCB, pooled": locb.LOCB(n_users=users, dim=features, n_seeds=DEFAULTS["seeds"], bonus="pooled"),
        "LinUCB-IND": locb.LinUCB(n_users=users, dim=features),
    }
    fastest = dict.fromkeys(players, float("inf"))
    size = min(BLOCK, users // 4)  # small, so that the timed blocks hardly change the rounds per user
    warm_up = users * rounds_per_user // size
    for number in range(warm_up + TIMED_BLOCKS):
        rounds = make_block(BLOCK, users, arms, features, number).slice(0, size)
        for label, player in players.items():
            started = time.perf_counter()
            player.play(rounds)
            if number >= warm_up:
                fastest[label] = min(fastest[label], time.perf_counter() - started)
    return {label: 1e6 * seconds / size for label, seconds in fastest.items()}


def report_busy(docs: Path | None) -> None:
    """Print a table of the time per round of LOCB with different clusters, and write it to the folder ``docs``."""
    rows = []
    for rounds_per_user in (6, 12):
        costs = {users: measure_busy(users, rounds_per_user) for users in (1_000, 1_000_000)}
        small, large = (costs[users]["LOCB, pooled"] for users in costs)
        linucb = costs[1_000_000]["LinUCB-IND"]
        ratios = (f"{large / small:.2f}", f"{large / linucb:.2f}")
        rows.append((f"{rounds_per_user}", f"{small:.2f}", f"{large:.2f}", *ratios))
    headings = ("rounds per user so far", "µs, 1,000 users", "µs, 1,000,000 users", "ratio", "× LinUCB-IND")
    print_table("LOCB with the pooled bonus when its 100 clusters differ", headings, rows)
    if docs is not None:
        replace_table(docs / PERFORMANCE_PAGE, "busy", headings, rows)


def measure_sweep(name: str, values: tuple[int, ...]) -> dict[str, dict[int, Costs]]:
    """Return the costs of each policy at each value of the number ``name`` (users, seeds, features or arms)."""
    costs: dict[str, dict[int, Costs]] = {label: {} for label in POLICIES}
    for _ in range(REPETITIONS):
        for value in values:
            for label, settings in POLICIES.items():
                if name == "users" and value > MAX_USERS.get(label, value):
                    continue
                if value in costs[label] and costs[label][value]["µs"] > SLOW:
                    continue
                measured = measure_in_process(DEFAULTS | {name: value}, settings)
                best = costs[label].get(value, measured)
                costs[label][value] = {key: min(best[key], measured[key]) for key in measured}
    return costs


def report_sweep(name: str, values: tuple[int, ...], docs: Path | None) -> None:
    """Print the table of a sweep, and write the table and a chart to the folder ``docs``.

    The last column is the exponent of the growth of the time, fitted on the log scale.
    """
    costs = measure_sweep(name, values)
    rows, points = [], []
    for label, measured in costs.items():
        power = np.polyfit(np.log(list(measured)), np.log([point["µs"] for point in measured.values()]), 1)[0]
        cells = [f"{measured[v]['µs']:.2f}, {measured[v]['MiB']:,.0f}" if v in measured else "–" for v in values]
        rows.append((label, *cells, f"{power:.2f}"))
        points += [{"line": label, name: v, "µs per round": point["µs"]} for v, point in measured.items()]
    others = ", ".join(f"{value:,} {other}" for other, value in DEFAULTS.items() if other != name)
    headings = ("µs per round, MiB", *(f"{value:,} {name}" for value in values), "power")
    print_table(f"growth with {name}; otherwise {others}", headings, rows)
    if name == "users":
        pooled, linucb = costs["LOCB, pooled"], costs["LinUCB-IND"]
        largest = max(pooled)
        print(
            f"\nLOCB pooled at {largest:,} users: "
            f"{pooled[largest]['µs'] / pooled[1_000]['µs']:.2f} × its cost at 1,000 users, "
            f"{pooled[largest]['µs'] / linucb[largest]['µs']:.2f} × LinUCB-IND"
        )
    if docs is not None:
        replace_table(docs / PERFORMANCE_PAGE, f"growth with {name}", headings, rows)
        title = f"Cost of LOCB by {name}"
        chart = LineChart("scaling", "", title, f"{others}; logarithmic axes", name, "µs per round", points, True, True)
        style(line_chart(chart)).save(str(docs / "images" / f"scaling-{name}.svg"))


def main() -> None:
    """Run all sweeps, one sweep, one point of a sweep, or the measurement of --busy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--point", help="measure one point, given as JSON; the program calls itself with this option")
    parser.add_argument("--only", choices=list(SWEEPS), help="run one sweep (default: all sweeps)")
    parser.add_argument(
        "--busy",
        action="store_true",
        help="measure LOCB after 6 and 12 rounds per user, when its clusters differ (takes minutes)",
    )
    parser.add_argument("--into", type=Path, help="folder docs, whose tables and charts are updated")
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure_point(**json.loads(options.point))))
    elif options.busy:
        report_busy(options.into)
    else:
        for name, values in SWEEPS.items():
            if options.only in (None, name):
                report_sweep(name, values, options.into)


if __name__ == "__main__":
    main()

"""How the cost of a round and the memory grow: with users, seeds, features and arms, one at a time around a usual size.

Every point is a process of its own, so that its memory is its own. Points of one sweep are taken in turn, several times
over, and the fastest counts, so that a slow moment of the machine does not tilt a line. ``--into docs`` renews the
tables of docs/explanation/performance.md and draws docs/images/scaling-*.svg.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from timing import put_into, show

import locb
from locb.evaluation.findings import LineChart
from locb.report.charts import line_chart, style

USUAL = {"users": 1_000, "seeds": 100, "features": 10, "arms": 10}
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
BLOCK, WARM, GOES = 4_096, 6, 4
TURNS = 2
SLOW = 500.0  # µs: such points are taken once
# Beyond these many users a round of bonus="mean" visits too many members to wait for, and memory is too small.
MOST_USERS = {"LOCB, mean": 100_000, "LOCB, pooled": 1_000_000, "LinUCB-IND": 1_000_000}


def resident() -> float:
    """Memory that this process holds now, in MiB."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def block(users: int, arms: int, features: int, seed: int) -> locb.Rounds:
    """Rounds of random unit contexts; rewards follow one of five tastes, so that sets form."""
    rng = np.random.default_rng([users, seed])
    x = rng.standard_normal((BLOCK, arms, features))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    tastes = np.random.default_rng(0).standard_normal((5, features))
    tastes /= np.linalg.norm(tastes, axis=1, keepdims=True)
    who = rng.integers(users, size=BLOCK)
    means = 0.5 + 0.5 * np.einsum("tkd,td->tk", x, tastes[who % 5])
    return locb.Rounds(who, x, (rng.random(means.shape) < means).astype(float))


def point(users: int, seeds: int, features: int, arms: int, policy: str, **parameters: Any) -> dict[str, float]:
    """µs a round, the fastest of some blocks after warm ones, and MiB that the policy itself takes."""
    if policy == "locb":
        parameters["n_seeds"] = min(seeds, users)
    one = {**parameters, "n_seeds": 1} if policy == "locb" else parameters
    locb.make_policy(policy, n_users=1, dim=features, **one).play(block(1, arms, features, 0))
    before = resident()
    player = locb.make_policy(policy, n_users=users, dim=features, **parameters)
    fastest = float("inf")
    for number in range(WARM + GOES):
        rounds = block(users, arms, features, number)
        began = time.perf_counter()
        player.play(rounds)
        if number >= WARM:
            fastest = min(fastest, time.perf_counter() - began)
    return {"µs": 1e6 * fastest / BLOCK, "MiB": max(0.0, resident() - before)}


def busy(users: int, rounds_per_user: int) -> dict[str, float]:
    """µs a round of LOCB and LinUCB once users have been served some rounds each and sets differ."""
    players = {
        "LOCB, pooled": locb.LOCB(n_users=users, dim=USUAL["features"], n_seeds=USUAL["seeds"], bonus="pooled"),
        "LinUCB-IND": locb.LinUCB(n_users=users, dim=USUAL["features"]),
    }
    fastest = dict.fromkeys(players, float("inf"))
    size = min(BLOCK, users // 4)  # so that a few goes add little to the rounds a user
    warm = users * rounds_per_user // size
    for number in range(warm + GOES):
        rounds = block(users, USUAL["arms"], USUAL["features"], number).slice(0, size)
        for label, player in players.items():
            began = time.perf_counter()
            player.play(rounds)
            if number >= warm:
                fastest[label] = min(fastest[label], time.perf_counter() - began)
    return {label: 1e6 * seconds / size for label, seconds in fastest.items()}


def ask(sizes: dict[str, int], settings: dict[str, Any]) -> dict[str, float]:
    """A point in a process of its own."""
    asked = json.dumps(sizes | settings)
    done = subprocess.run([sys.executable, __file__, "--point", asked], capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main() -> None:
    """All sweeps, or one point of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--point", help="one point, as JSON; used by the program itself")
    parser.add_argument("--only", choices=list(SWEEPS), help="one sweep")
    parser.add_argument("--busy", action="store_true", help="when sets differ: 6 and 12 rounds a user, minutes")
    parser.add_argument("--into", type=Path, help="the folder docs, to renew its tables and pictures of this")
    given = parser.parse_args()
    if given.point:
        print(json.dumps(point(**json.loads(given.point))))
        return
    if given.busy:
        rows = []
        for rounds_per_user in (6, 12):
            found = {users: busy(users, rounds_per_user) for users in (1_000, 1_000_000)}
            small, large = (found[users]["LOCB, pooled"] for users in found)
            alone = found[1_000_000]["LinUCB-IND"]
            rows.append(
                (
                    f"{rounds_per_user}",
                    f"{small:.2f}",
                    f"{large:.2f}",
                    f"{large / small:.2f}",
                    f"{large / alone:.2f}",
                )
            )
        headings = ("rounds per user so far", "µs, 1,000 users", "µs, 1,000,000 users", "ratio", "× LinUCB-IND")
        show("LOCB pooled when its 100 sets differ", headings, rows)
        if given.into is not None:
            put_into(given.into / "explanation" / "performance.md", "busy", headings, rows)
        return
    for name, values in SWEEPS.items():
        if given.only in (None, name):
            sweep(name, values, given.into)


def sweep(name: str, values: tuple[int, ...], docs: Path | None) -> None:
    """One table, with the exponent fitted to each line; renewed in the docs, with its chart, if asked for."""
    found: dict[str, dict[int, dict[str, float]]] = {label: {} for label in POLICIES}
    for _ in range(TURNS):
        for value in values:
            for label, settings in POLICIES.items():
                if name == "users" and value > MOST_USERS.get(label, value):
                    continue
                if value in found[label] and found[label][value]["µs"] > SLOW:
                    continue  # a moment more or less does not matter there
                here = ask(USUAL | {name: value} | ({"users": 1_000} if name != "users" else {}), settings)
                before = found[label].get(value, here)
                found[label][value] = {key: min(before[key], here[key]) for key in here}
    rows, points = [], []
    for label, measured in found.items():
        power = np.polyfit(np.log(list(measured)), np.log([at["µs"] for at in measured.values()]), 1)[0]
        cells = [f"{measured[v]['µs']:.2f}, {measured[v]['MiB']:,.0f}" if v in measured else "–" for v in values]
        rows.append((label, *cells, f"{power:.2f}"))
        points += [{"line": label, name: v, "µs per round": at["µs"]} for v, at in measured.items()]
    around = ", ".join(f"{value:,} {other}" for other, value in USUAL.items() if other != name)
    headings = ("µs per round, MiB", *(f"{value:,} {name}" for value in values), "power")
    show(f"growth with {name}; otherwise {around}", headings, rows)
    if name == "users":
        pooled, alone = found["LOCB, pooled"], found["LinUCB-IND"]
        most = max(pooled)
        print(
            f"\nLOCB pooled at {most:,} users: {pooled[most]['µs'] / pooled[1_000]['µs']:.2f} × its round at 1,000, "
            f"{pooled[most]['µs'] / alone[most]['µs']:.2f} × LinUCB-IND's"
        )
    if docs is not None:
        put_into(docs / "explanation" / "performance.md", f"growth with {name}", headings, rows)
        title = f"LOCB's round by {name}"
        chart = LineChart("scaling", "", title, f"{around}; logarithmic axes", name, "µs per round", points, True, True)
        style(line_chart(chart)).save(str(docs / "images" / f"scaling-{name}.svg"))


if __name__ == "__main__":
    main()

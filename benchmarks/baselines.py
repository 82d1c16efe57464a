"""What CLUB and SCLUB cost with many users: at first, and later, when their groups have come apart."""

import time
from typing import Any

import numpy as np
from timing import show

import locb

FEATURES, ARMS, TASTES = 10, 10, 5
BLOCK, ROUNDS_A_USER = 8_192, 10
SMALL = {"alpha2": 0.5}, {"alpha_theta": 0.5}  # so that groups come apart within ten rounds a user
CASES: list[tuple[str, str, dict[str, Any], tuple[int, ...]]] = [
    ("CLUB, complete graph", "club", SMALL[0], (1_000, 10_000)),
    ("CLUB, random graph", "club", {**SMALL[0], "graph": "erdos-renyi"}, (1_000, 10_000, 100_000)),
    ("SCLUB", "sclub", SMALL[1], (1_000, 10_000, 100_000)),
]


def block(users: int, seed: int) -> locb.Rounds:
    """Rounds of random unit contexts; rewards follow one of five tastes."""
    rng = np.random.default_rng([users, seed])
    x = rng.standard_normal((BLOCK, ARMS, FEATURES))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    tastes = np.random.default_rng(0).standard_normal((TASTES, FEATURES))
    tastes /= np.linalg.norm(tastes, axis=1, keepdims=True)
    who = rng.integers(users, size=BLOCK)
    means = 0.5 + 0.5 * np.einsum("tkd,td->tk", x, tastes[who % TASTES])
    return locb.Rounds(who, x, (rng.random(means.shape) < means).astype(float))


def main() -> None:
    rows = []
    for title, name, parameters, sizes in CASES:
        locb.make_policy(name, n_users=10, dim=FEATURES, **parameters).prepare()
        for users in sizes:
            policy: Any = locb.make_policy(name, n_users=users, dim=FEATURES, **parameters)
            costs, groups = [], []
            for number in range(max(2, -(-ROUNDS_A_USER * users // BLOCK))):
                rounds = block(users, number)
                began = time.perf_counter()
                policy.play(rounds)
                costs.append(1e6 * (time.perf_counter() - began) / BLOCK)
                groups.append(len(policy.cluster_sizes()))
            shown = [f"{cost:.1f}" for cost in (costs[0], max(costs), costs[-1], float(np.mean(costs)))]
            size = sum(array.nbytes for array in policy._state) / 2**20
            rows.append((title, f"{users:,}", *shown, f"{groups[0]:,}", f"{groups[-1]:,}", f"{size:,.0f}"))
    show(
        f"CLUB and SCLUB, {ROUNDS_A_USER} rounds a user, d = {FEATURES}, k = {ARMS}: µs a round; blocks of {BLOCK:,}",
        ("", "users", "first block", "slowest", "last", "mean", "groups after the first", "after the last", "MiB"),
        rows,
    )


if __name__ == "__main__":
    main()

"""Cost per round of CLUB and SCLUB with many users, from the first rounds until the clusters have split."""

import time
from typing import Any

import numpy as np
from synthetic_rounds import make_block
from timing import print_table

import locb

FEATURES, ARMS = 10, 10
BLOCK, ROUNDS_PER_USER = 8_192, 10
# Small thresholds of the cluster tests, so that clusters split within ten rounds per user.
CLUB_PARAMETERS, SCLUB_PARAMETERS = {"alpha2": 0.5}, {"alpha_theta": 0.5}
CASES: list[tuple[str, str, dict[str, Any], tuple[int, ...]]] = [
    ("CLUB, complete graph", "club", CLUB_PARAMETERS, (1_000, 10_000)),
    ("CLUB, random graph", "club", {**CLUB_PARAMETERS, "graph": "erdos-renyi"}, (1_000, 10_000, 100_000)),
    ("SCLUB", "sclub", SCLUB_PARAMETERS, (1_000, 10_000, 100_000)),
]


def measure(name: str, users: int, parameters: dict[str, Any]) -> list[str]:
    """Return the table cells of one policy: µs per round, number of clusters, and memory of the policy in MiB."""
    policy: Any = locb.make_policy(name, n_users=users, dim=FEATURES, **parameters)
    costs, clusters = [], []
    for number in range(max(2, -(-ROUNDS_PER_USER * users // BLOCK))):
        rounds = make_block(BLOCK, users, ARMS, FEATURES, number)
        started = time.perf_counter()
        policy.play(rounds)
        costs.append(1e6 * (time.perf_counter() - started) / BLOCK)
        clusters.append(len(policy.cluster_sizes()))
    cells = [f"{cost:.1f}" for cost in (costs[0], max(costs), costs[-1], float(np.mean(costs)))]
    size = sum(array.nbytes for array in policy._state) / 2**20
    return [*cells, f"{clusters[0]:,}", f"{clusters[-1]:,}", f"{size:,.0f}"]


def main() -> None:
    """Measure all cases and print the table."""
    rows = []
    for title, name, parameters, sizes in CASES:
        locb.make_policy(name, n_users=10, dim=FEATURES, **parameters).prepare()
        rows += [(title, f"{users:,}", *measure(name, users, parameters)) for users in sizes]
    print_table(
        f"CLUB and SCLUB, {ROUNDS_PER_USER} rounds per user, {FEATURES} features, {ARMS} arms: "
        f"µs per round in blocks of {BLOCK:,} rounds",
        (
            "",
            "users",
            "first block",
            "slowest block",
            "last block",
            "mean",
            "clusters after first block",
            "clusters after last block",
            "MiB",
        ),
        rows,
    )


if __name__ == "__main__":
    main()

"""Cost per round of ``play`` for every policy, and LOCB compared with a compiled brute-force implementation.

The rounds have 100 users, 6 features and 10 arms.
"""

from typing import Any

import brute_force_locb
import numpy as np
from timing import best_of, print_table

import locb

ROUNDS = 50_000
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("LinUCB-IND", "linucb-ind", {}),
    ("LinUCB-ONE", "linucb-one", {}),
    ("CLUB, complete graph", "club", {}),
    ("CLUB, random graph", "club", {"graph": "erdos-renyi"}),
    ("SCLUB", "sclub", {}),
    ("LOCB, 30 seeds", "locb", {"n_seeds": 30}),
    ("LOCB, 100 seeds", "locb", {"n_seeds": 100}),
    ("LOCB, 30 seeds, pooled", "locb", {"n_seeds": 30, "bonus": "pooled"}),
    ("LOCB, 30 seeds, ellipsoid", "locb", {"n_seeds": 30, "radius": "ellipsoid"}),
    ("ELOC, 30 seeds", "eloc", {"n_seeds": 30}),
    ("LinTS-IND", "lints-ind", {"alpha": 0.1}),
    ("Hybrid LinUCB", "hybrid-linucb", {}),
    ("MixedEffects", "mixed-effects", {}),
    ("DynUCB, 8 clusters", "dynucb", {"n_clusters": 8, "alpha": 0.1}),
    ("CAB", "cab", {"alpha": 0.1}),
    ("RCLUMB, complete graph", "rclumb", {"alpha": 0.1}),
]


def main() -> None:
    """Measure all policies and the brute-force implementation, and print the two tables."""
    env = locb.Synthetic(seed=7)
    rounds = env.rounds(ROUNDS, seed=1)

    def job(name: str, parameters: dict[str, Any]) -> Any:
        policy = locb.make_policy(name, n_users=env.n_users, dim=env.dim, **parameters)
        return lambda: policy.play(rounds)

    cost = {title: best_of(lambda n=name, p=p: job(n, p)) for title, name, p in CASES}  # type: ignore[misc]  # mypy cannot infer lambda defaults
    linucb = cost["LinUCB-IND"]
    rows = [(title, f"{1e6 * s / ROUNDS:.2f}", f"{s / linucb:.2f}") for title, s in cost.items()]
    title = f"play, {ROUNDS:,} rounds, 100 users, 6 features, 10 arms"
    print_table(title, ("policy", "µs per round", "× LinUCB-IND"), rows)

    policy = locb.LOCB(n_users=env.n_users, dim=env.dim, n_seeds=30)
    seeds = np.array([cluster.seed for cluster in policy.clusters()])
    arguments = (env.n_users, seeds, 0.2, 1.0, rounds.users, rounds.contexts, rounds.rewards)
    slow = best_of(lambda: lambda: brute_force_locb.play(*arguments), repetitions=2)
    different = int((brute_force_locb.play(*arguments) != policy.play(rounds)).sum())
    if different:
        raise SystemExit(f"the brute-force implementation and the package choose different arms in {different} rounds")
    fast = cost["LOCB, 30 seeds"]
    print_table(
        "LOCB, 30 seeds, compared with a compiled brute-force implementation that makes the same choices",
        ("", "µs per round", "× slower"),
        [
            ("package", f"{1e6 * fast / ROUNDS:.2f}", "1"),
            ("brute force", f"{1e6 * slow / ROUNDS:.2f}", f"{slow / fast:.0f}"),
        ],
    )


if __name__ == "__main__":
    main()

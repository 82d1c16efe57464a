"""Regret of LOCB with bonus="pooled", compared with bonus="mean" on the same rounds for 10 random seeds.

To include MovieLens data, give the path of its files: python benchmarks/bonus_regret.py ml-latest-small
"""

import sys
from typing import Any

from timing import print_table

import locb
from locb.evaluation.findings import Criterion, Measurement
from locb.experiments.environment_factory import make_environment
from locb.experiments.parallel import Workers

SEEDS, ROUNDS = range(10), 50_000
SCENARIOS: dict[str, dict[str, Any]] = {
    "Bernoulli, 100 users": {},
    "Bernoulli, 500 users": {"n_users": 500},
    "noise 0.1": {"noise": 0.1},
    "noise 0.5": {"noise": 0.5},
    "Zipf arrivals, 300 users": {"n_users": 300, "arrivals": "zipf"},
    "no two users alike": {"n_clusters": 100},
}


def final_regret(task: tuple[dict[str, Any], str, int]) -> float:
    """Return the cumulative regret after the last round of a task (settings of the environment, bonus, seed)."""
    settings, bonus, seed = task
    env = make_environment(settings, seed, warn=False)
    policy = locb.LOCB(n_users=env.n_users, dim=env.dim, bonus=bonus, seed=seed)
    return float(locb.simulate(policy, env, rounds=ROUNDS, seed=seed).regret[-1])


def main() -> None:
    """Run LOCB with both bonuses in all environments and print the table."""
    scenarios = dict(SCENARIOS)
    for path in sys.argv[1:]:
        scenarios["MovieLens"] = {"data": "movielens", "path": path}
    tasks = [
        (settings, bonus, seed) for settings in scenarios.values() for bonus in ("mean", "pooled") for seed in SEEDS
    ]
    with Workers() as workers:
        results = dict(workers.run(final_regret, tasks))
    rows = []
    for index, name in enumerate(scenarios):
        start = 2 * index * len(SEEDS)
        mean, pooled = ([results[start + bonus * len(SEEDS) + r] for r in range(len(SEEDS))] for bonus in (0, 1))
        difference = Criterion.paired("", pooled, mean).difference
        level = Measurement.from_values(mean)
        regret, change = (
            f"{level.mean:,.0f} ± {level.margin:,.0f}",
            f"{difference.mean:+,.0f} ± {difference.margin:,.0f}",
        )
        rows.append((name, regret, change))
    title = f"regret of LOCB after {ROUNDS:,} rounds, {len(SEEDS)} random seeds, 30 seed users, alpha 1"
    print_table(title, ("environment", 'bonus="mean"', '"pooled" minus "mean", paired'), rows)


if __name__ == "__main__":
    main()

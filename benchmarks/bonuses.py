"""What the pooled bonus costs in regret: LOCB with bonus="pooled" against bonus="mean", paired over 10 seeds.

Add the path of MovieLens files to have them too: python benchmarks/bonuses.py ml-latest-small
"""

import sys
from typing import Any

from timing import show

import locb
from locb.evaluation.findings import Criterion, Measurement
from locb.experiments.environment_factory import noise_free_environment
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


def regret(task: tuple[dict[str, Any], str, int]) -> float:
    world, bonus, seed = task
    env = noise_free_environment(world, seed)
    policy = locb.LOCB(n_users=env.n_users, dim=env.dim, bonus=bonus, seed=seed)
    return float(locb.simulate(policy, env, rounds=ROUNDS, seed=seed).regret[-1])


def main() -> None:
    worlds = dict(SCENARIOS)
    for path in sys.argv[1:]:
        worlds["MovieLens"] = {"data": "movielens", "path": path}
    tasks = [(world, bonus, seed) for world in worlds.values() for bonus in ("mean", "pooled") for seed in SEEDS]
    with Workers() as workers:
        found = dict(workers.run(regret, tasks))
    rows = []
    for place, name in enumerate(worlds):
        start = 2 * place * len(SEEDS)
        mean, pooled = ([found[start + part * len(SEEDS) + r] for r in range(len(SEEDS))] for part in (0, 1))
        gap = Criterion.paired("", pooled, mean).difference
        usual = Measurement.from_values(mean)
        rows.append((name, f"{usual.mean:,.0f} ± {usual.margin:,.0f}", f"{gap.mean:+,.0f} ± {gap.margin:,.0f}"))
    title = f"regret after {ROUNDS:,} rounds, {len(SEEDS)} seeds, 30 sets, alpha 1"
    show(title, ("environment", 'bonus="mean"', '"pooled" minus "mean", paired'), rows)


if __name__ == "__main__":
    main()

"""F1 and regret of LOCB and ELOC with rewards on other scales, without and with ``reward_range``.

The environment is the synthetic environment of the paper: 100 users in 5 clusters, and rewards of 0 or 1.
"""

import warnings
from typing import Any

import numpy as np
from timing import print_table

import locb
from locb.evaluation.findings import Measurement
from locb.parallel.workers import Workers

SEEDS, ROUNDS = range(10), 50_000
POLICIES = ("locb", "eloc")
# Name → (scale, shift): a reward r becomes scale · r + shift.
SCALES = {"r": (1.0, 0.0), "r × 0.01": (0.01, 0.0), "r × 100": (100.0, 0.0), "r + 5": (1.0, 5.0)}


def f1_and_regret(task: tuple[str, str, bool, int]) -> tuple[float, float]:
    """Return the F1 and the regret, in units of r, of a task.

    The elements of a task are the policy, the scale, whether ``reward_range`` is set, and the random seed.
    """
    name, scale_name, with_range, seed = task
    scale, shift = SCALES[scale_name]
    env = locb.Synthetic(seed=seed)
    drawn = env.rounds(ROUNDS, seed=seed)
    settings: dict[str, Any] = {"reward_range": (shift, shift + scale)} if with_range else {}
    policy = locb.make_policy(name, n_users=env.n_users, dim=env.dim, seed=seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", locb.RewardScaleWarning)
        chosen = policy.play(locb.Rounds(drawn.users, drawn.contexts, scale * drawn.rewards + shift))
    found = {cluster.members.tobytes(): cluster.members for cluster in policy.clusters()}
    assert drawn.means is not None
    regret = drawn.means.max(axis=1) - drawn.means[np.arange(ROUNDS), chosen]
    return locb.match_clusters(list(found.values()), env.true_clusters()).f1, float(regret.sum())


def main() -> None:
    """Run both policies with all scales and print a table of F1 and a table of regret."""
    columns = [(name, with_range) for name in POLICIES for with_range in (False, True)]
    tasks = [(name, scale, with_range, seed) for scale in SCALES for name, with_range in columns for seed in SEEDS]
    with Workers() as workers:
        results = dict(workers.run(f1_and_regret, tasks))
    settings = f"after {ROUNDS:,} rounds, {len(SEEDS)} random seeds, default parameters, 95% interval of the mean"
    headings = [f"{name.upper()}, {'with' if with_range else 'without'} range" for name, with_range in columns]
    for index, (quantity, digits) in enumerate((("F1", ".2f"), ("regret, in units of r,", ",.0f"))):
        rows = []
        for row, scale in enumerate(SCALES):
            starts = [(row * len(columns) + column) * len(SEEDS) for column in range(len(columns))]
            values = [[results[start + r][index] for r in range(len(SEEDS))] for start in starts]
            means = [Measurement.from_values(runs) for runs in values]
            rows.append((scale, *(f"{found.mean:{digits}} ± {found.margin:{digits}}" for found in means)))
        print_table(f"{quantity} {settings}", ("rewards", *headings), rows)


if __name__ == "__main__":
    main()

"""Regret with an option of a policy, compared with its default on the same rounds for 10 random seeds.

The options are ``bonus="pooled"`` of LOCB, and ``safe=True`` of LOCB, CLUB and SCLUB. To include MovieLens data, give
the path of its files: python benchmarks/option_regret.py ml-latest-small
"""

import sys
from typing import Any, NamedTuple

from timing import print_table

import locb
from locb.evaluation.findings import Criterion, Measurement
from locb.experiments.environment_factory import make_environment
from locb.parallel.workers import Workers

SEEDS, ROUNDS = range(10), 50_000


class Case(NamedTuple):
    """An environment, and a policy with the parameters that differ from its defaults."""

    name: str
    settings: dict[str, Any]
    parameters: dict[str, Any] | None = None
    policy: str = "locb"


PAPER: dict[str, Any] = {}
NO_GROUPS = {"n_clusters": 100}
DRIFT = {"drift": 0.2, "drifters": "users"}
POOLED_CASES = [
    Case("Bernoulli, 100 users", PAPER),
    Case("Bernoulli, 500 users", {"n_users": 500}),
    Case("noise 0.1", {"noise": 0.1}),
    Case("noise 0.5", {"noise": 0.5}),
    Case("Zipf arrivals, 300 users", {"n_users": 300, "arrivals": "zipf"}),
    Case("no two users alike", NO_GROUPS),
]
SAFE_CASES = [
    Case("LOCB; environment of the paper", PAPER),
    Case("LOCB, alpha 0.3; environment of the paper", PAPER, {"alpha": 0.3}),
    Case("LOCB, gamma 2; environment of the paper", PAPER, {"gamma": 2.0}),
    Case("LOCB, gamma 2, alpha 0.3; environment of the paper", PAPER, {"gamma": 2.0, "alpha": 0.3}),
    Case("LOCB, gamma 2, pooled; environment of the paper", PAPER, {"gamma": 2.0, "bonus": "pooled"}),
    Case("LOCB; one-hot arms, 60 users in 4 groups", {"categories": 10, "n_users": 60, "n_clusters": 4}),
    Case("LOCB; users drift", DRIFT),
    Case("LOCB; no two users alike", NO_GROUPS),
    Case("CLUB; environment of the paper", PAPER, policy="club"),
    Case("CLUB; users drift", DRIFT, policy="club"),
    Case("SCLUB; environment of the paper", PAPER, policy="sclub"),
    Case("SCLUB; users drift", DRIFT, policy="sclub"),
]


def final_regret(task: tuple[Case, dict[str, Any], int]) -> float:
    """Return the cumulative regret after the last round of a task: case, parameters of the option, random seed."""
    case, option, seed = task
    env = make_environment(case.settings, seed, warn=False)
    size = {"n_users": env.n_users, "dim": env.dim}
    policy = locb.make_policy(case.policy, **size, seed=seed, **(case.parameters or {}), **option)
    return float(locb.simulate(policy, env, rounds=ROUNDS, seed=seed).regret[-1])


def compare(workers: Workers, title: str, cases: list[Case], option: dict[str, Any]) -> None:
    """Run all cases without and with the option, and print a table."""
    tasks = [(case, parameters, seed) for case in cases for parameters in ({}, option) for seed in SEEDS]
    results = dict(workers.run(final_regret, tasks))
    rows = []
    for index, case in enumerate(cases):
        start = 2 * index * len(SEEDS)
        default, changed = ([results[start + part * len(SEEDS) + r] for r in range(len(SEEDS))] for part in (0, 1))
        difference, level = Criterion.paired("", changed, default).difference, Measurement.from_values(default)
        regret = f"{level.mean:,.0f} ± {level.margin:,.0f}"
        rows.append((case.name, regret, f"{difference.mean:+,.0f} ± {difference.margin:,.0f}"))
    print_table(title, ("case", "regret without the option", "change by the option, paired"), rows)


def main() -> None:
    """Compare both options in all environments."""
    more = [Case("MovieLens", {"data": "movielens", "path": path}) for path in sys.argv[1:]]
    suffix = f"{ROUNDS:,} rounds, {len(SEEDS)} random seeds, 30 seed users"
    with Workers() as workers:
        compare(workers, f'LOCB, bonus="pooled"; {suffix}, alpha 1', POOLED_CASES + more, {"bonus": "pooled"})
        compare(workers, f"safe=True; {suffix}, alpha 1 unless stated", SAFE_CASES + more, {"safe": True})


if __name__ == "__main__":
    main()

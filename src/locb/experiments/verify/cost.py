"""Check of a claim of the LOCB paper: the cost of a round depends on the number of seeds, not on the number of users.

The cost is counted and not timed, so that results can be repeated exactly. It is the number of terms in the exploration
bonus of one arm as the paper defines it: the bonus of a cluster is a mean over its members.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.environments import Synthetic
from locb.evaluation.findings import Claim, Criterion, Measurement, ResultTable
from locb.experiments.jobs import Job
from locb.policies import LOCB

SECTION = "cost"
N_SEEDS = 30
ROUNDS_PER_USER = 200
MAX_EXPONENT = 0.1  # a cost that grows as a smaller power of the number of users counts as independent of it
EXPLANATION = (
    "The exploration bonus as defined in the paper is a mean over the members of each cluster that contains the user, "
    "so that a round visits each of these members. With the option bonus='pooled' of this project, the cost does not "
    "depend on the number of users."
)


def plan(user_counts: tuple[int, ...], repeats: int, seed: int) -> list[Job]:
    """Return the jobs of the check: one per number of users and repeat."""
    return [
        Job(count_terms, {"n_users": n}, seed + repeat, {"rounds": n * ROUNDS_PER_USER}, cost=n * ROUNDS_PER_USER * 4.0)
        for n in user_counts
        for repeat in range(repeats)
    ]


def count_terms(*, environment: dict[str, Any], seed: int, rounds: int) -> dict[str, Any]:
    """Return the mean number of terms of the bonus of an arm after the last round, for a random user.

    A user has one term for each member of each cluster that contains the user. A user in no cluster has one term.
    """
    env = Synthetic(**environment, seed=seed)
    policy = LOCB(n_users=env.n_users, dim=env.dim, n_seeds=min(N_SEEDS, env.n_users), seed=seed)
    for block in env.stream(rounds, seed=seed):
        policy.play(block)
    terms = np.zeros(env.n_users)
    for cluster in policy.clusters():
        terms[cluster.members] += len(cluster)
    return {"terms": float(np.maximum(terms, 1.0).mean()), "rounds": rounds}


def summarize(outcomes: list[tuple[Job, dict[str, Any]]]) -> tuple[list[ResultTable], list[Claim]]:
    """Return a table of the number of terms by the number of users, and the claim that it is constant."""
    by_n: dict[int, list[float]] = {}
    for job, outcome in outcomes:
        by_n.setdefault(job.environment["n_users"], []).append(outcome["terms"])
    rows: list[dict[str, Any]] = [
        {"users": n, "terms per arm": Measurement.from_values(values)} for n, values in by_n.items()
    ]
    note = (
        f"{N_SEEDS} seeds, after {ROUNDS_PER_USER} rounds per user. Terms per arm: number of members over which the "
        "paper's exploration bonus of one arm is summed, in the mean over users."
    )
    log_n = np.log(list(by_n))
    exponents = [
        float(np.polyfit(log_n, np.log([values[repeat] for values in by_n.values()]), 1)[0])
        for repeat in range(min(len(values) for values in by_n.values()))
    ]
    exponent = Measurement.from_values(exponents)
    detail = f"terms per arm grow as n to the power {exponent.mean:.3f} ± {exponent.margin:.3f} (n: number of users)"
    difference = Measurement(MAX_EXPONENT - exponent.mean, exponent.margin, exponent.degrees)
    claim = Claim(
        SECTION,
        f"{N_SEEDS} seeds, n from {min(by_n)} to {max(by_n)}",
        "The cost of a round does not depend on the number of users.",
        "Introduction",
        [Criterion(f"growth below n to the power {MAX_EXPONENT:g}", difference, detail)],
        EXPLANATION,
        SECTION,
    )
    return [ResultTable("cost", SECTION, "Cost of a round", rows, note)], [claim]

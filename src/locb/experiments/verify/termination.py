"""Check of Theorem 2 of the LOCB paper: the number of rounds until all clusters are final, by the number n of users."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locb.environments import Synthetic
from locb.evaluation.findings import Claim, Criterion, LineChart, Measurement, ResultTable
from locb.evaluation.theorem_bounds import min_rounds_per_user, termination_bound
from locb.experiments.jobs import Job
from locb.experiments.reproduce.runs import play_until_final
from locb.experiments.verify.coverage import smallest_eigenvalue
from locb.policies import LOCB

SECTION = "termination"
TITLE = "Theorem 2: rounds until all clusters are final"
GAMMA = 1.0
DELTA = 0.1
MAX_ROUNDS = 1_000_000_000
# λ is the smallest eigenvalue of E[x xᵀ]. Few features give a large λ, with which the theory radius shrinks faster.
ENVIRONMENT: dict[str, Any] = {"n_clusters": 5, "raw_dim": 2, "n_arms": 2}
MEASURED, BOUND = "measured", "bound of Theorem 2"
REQUIRED, REFERENCE = "rounds that the theorem requires", "n log n through the first point"


def plan(user_counts: tuple[int, ...], repeats: int, seed: int) -> list[Job]:
    """Return the jobs of the check: one per number of users and repeat."""
    return [
        Job(measure_rounds, {**ENVIRONMENT, "n_users": n}, seed + repeat, {"gamma": GAMMA}, cost=n * 60_000.0)
        for n in user_counts
        for repeat in range(repeats)
    ]


def measure_rounds(*, environment: dict[str, Any], seed: int, gamma: float) -> dict[str, Any]:
    """Return the round in which the last cluster becomes final, with the theory radius and tau = 1.

    ``finished`` is False if a cluster is not final after MAX_ROUNDS rounds.
    """
    env = Synthetic(**environment, seed=seed)
    policy = LOCB(
        n_users=env.n_users,
        dim=env.dim,
        gamma=gamma,
        tau=1.0,
        n_seeds=10,
        radius="theory",
        min_eigenvalue=smallest_eigenvalue(env),
        delta=DELTA,
        seed=seed,
    )
    return {"rounds": play_until_final(policy, env, seed, MAX_ROUNDS), "finished": policy.finished}


def summarize(
    outcomes: list[tuple[Job, dict[str, Any]]],
) -> tuple[list[ResultTable], list[LineChart], list[Claim]]:
    """Return the table and the chart of the measured rounds next to the bound, and the claims about them."""
    rounds_by_n: dict[int, list[int]] = {}
    for job, outcome in outcomes:
        rounds_by_n.setdefault(job.environment["n_users"], []).append(outcome["rounds"])
    env = Synthetic(**ENVIRONMENT, n_users=10)
    eigenvalue = smallest_eigenvalue(env)
    rows: list[dict[str, Any]] = []
    points, below = [], []
    for n, rounds in rounds_by_n.items():
        bound = termination_bound(n, env.dim, gamma=GAMMA, delta=DELTA, min_eigenvalue=eigenvalue)
        required = n * min_rounds_per_user(n, env.dim, DELTA, eigenvalue)
        measured = Measurement.from_values(rounds)
        rows.append(
            {
                "users": n,
                "rounds": measured,
                "bound": bound,
                "bound / measured": bound / measured.mean,
                "measured / (n log n)": measured.mean / (n * math.log(n)),
                REQUIRED: required,
            }
        )
        below += [value < bound for value in rounds]
        points += [
            {"line": line, "users": n, "rounds": value}
            for line, value in ((MEASURED, measured.mean), (BOUND, bound), (REQUIRED, required))
        ]
    first = rows[0]
    for n in rounds_by_n:
        scaled = first["rounds"].mean * n * math.log(n) / (first["users"] * math.log(first["users"]))
        points.append({"line": REFERENCE, "users": n, "rounds": scaled})
    note = (
        f"d = {env.dim} features per arm; λ = {eigenvalue:g}, the smallest eigenvalue of the second-moment matrix of "
        f"the features; σ = ½; δ = {DELTA:g}; 10 seeds; uniform arrivals. n is the number of users."
    )
    chart = LineChart(
        "termination",
        SECTION,
        TITLE,
        "logarithmic axes; dashed: not measured",
        "users",
        "rounds",
        points,
        log_x=True,
        log_y=True,
        dashed=(BOUND, REQUIRED, REFERENCE),
    )
    return [ResultTable("termination", SECTION, TITLE, rows, note)], [chart], _claims(rounds_by_n, below)


def _claims(rounds_by_n: dict[int, list[int]], below: list[bool]) -> list[Claim]:
    log_n = np.log(list(rounds_by_n))
    power, excess = [], []
    for repeat in range(min(len(rounds) for rounds in rounds_by_n.values())):
        log_rounds = np.log([rounds[repeat] for rounds in rounds_by_n.values()])
        power.append(float(np.polyfit(log_n, log_rounds, 1)[0]))
        excess.append(float(np.polyfit(log_n, log_rounds - np.log(log_n) - log_n, 1)[0]))
    exponent, over = Measurement.from_values(power), Measurement.from_values(excess)
    detail = (
        f"rounds grow as n to the power {exponent.mean:.3f} ± {exponent.margin:.3f}; "
        f"rounds / (n log n) as n to the power {over.mean:.3f} ± {over.margin:.3f}"
    )
    data = f"theory radius, tau 1, gamma {GAMMA:g}, n from {min(rounds_by_n)} to {max(rounds_by_n)}"
    return [
        Claim(
            SECTION,
            data,
            "All clusters become final before the round that the theorem gives.",
            "Theorem 2",
            [Criterion.always("runs that end before the bound", sum(below), len(below))],
            evidence=SECTION,
            vacuous="The theorem assumes that a minimum number of rounds has been played. This number is larger than "
            "both the measured number of rounds and the bound, so the theorem guarantees nothing at these sizes.",
        ),
        Claim(
            SECTION,
            data,
            "The number of rounds grows no faster than n log n.",
            "Theorem 2",
            [Criterion("no growth beyond n log n", Measurement(-over.mean, over.margin, over.degrees), detail)],
            evidence=SECTION,
        ),
    ]

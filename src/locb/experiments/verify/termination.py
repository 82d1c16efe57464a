"""(c) Theorem 2: how many rounds until all sets are returned, and how does that grow with the number of users?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locb.environments import Synthetic
from locb.evaluation.confidence import min_rounds_per_user, termination_bound
from locb.evaluation.findings import Claim, Criterion, LineChart, Measurement, ResultTable
from locb.experiments.jobs import Job
from locb.experiments.reproduce.runs import until_returned
from locb.experiments.verify.coverage import smallest_eigenvalue
from locb.policies import LOCB

SECTION = "termination"
GAMMA = 1.0
DELTA = 0.1
# Few features and arms: the theory radius depends on how often users are served, and λ is largest in few dimensions.
WORLD: dict[str, Any] = {"n_clusters": 5, "raw_dim": 2, "n_arms": 2}


def plan(sizes: tuple[int, ...], worlds: int, seed: int) -> list[Job]:
    """A job a number of users and world."""
    return [
        Job(ending, {**WORLD, "n_users": n}, seed + number, {"gamma": GAMMA}, cost=n * 60_000.0)
        for n in sizes
        for number in range(worlds)
    ]


def ending(*, world: dict[str, Any], seed: int, gamma: float) -> dict[str, Any]:
    """The round of the last return, with the theory radius and tau = 1."""
    env = Synthetic(**world, seed=seed)
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
    return {"rounds": until_returned(policy, env, seed, 1_000_000_000), "finished": policy.finished}


def tell(played: list[tuple[Job, dict[str, Any]]]) -> tuple[list[ResultTable], list[LineChart], list[Claim]]:
    """Measured rounds beside the bound, and the exponent of their growth."""
    ends: dict[int, list[int]] = {}
    for job, outcome in played:
        ends.setdefault(job.world["n_users"], []).append(outcome["rounds"])
    env = Synthetic(**WORLD, n_users=10)
    eigenvalue = smallest_eigenvalue(env)
    rows: list[dict[str, Any]] = []
    points, below = [], []
    for n, rounds in ends.items():
        bound = termination_bound(n, env.dim, gamma=GAMMA, delta=DELTA, min_eigenvalue=eigenvalue)
        condition = n * min_rounds_per_user(n, env.dim, DELTA, eigenvalue)
        measured = Measurement.from_values(rounds)
        rows.append(
            {
                "users": n,
                "rounds": measured,
                "bound": bound,
                "bound over measured": bound / measured.mean,
                "measured / (n log n)": measured.mean / (n * math.log(n)),
                "rounds that the theorem presupposes": condition,
            }
        )
        below += [end < bound for end in rounds]
        points.append({"line": "measured", "users": n, "rounds": measured.mean})
        points.append({"line": "bound of Theorem 2", "users": n, "rounds": bound})
        points.append({"line": "rounds that it presupposes", "users": n, "rounds": condition})
    first = rows[0]
    for n in ends:
        scaled = first["rounds"].mean * n * math.log(n) / (first["users"] * math.log(first["users"]))
        points.append({"line": "n log n through the first point", "users": n, "rounds": scaled})
    log_n = np.log(list(ends))
    power, excess = [], []
    for world in range(min(len(rounds) for rounds in ends.values())):
        end = np.log([rounds[world] for rounds in ends.values()])
        power.append(float(np.polyfit(log_n, end, 1)[0]))
        excess.append(float(np.polyfit(log_n, end - np.log(log_n) - log_n, 1)[0]))
    exponent, over = Measurement.from_values(power), Measurement.from_values(excess)
    told = (
        f"rounds grow as n to the power {exponent.mean:.3f} ± {exponent.margin:.3f}; "
        f"rounds / (n log n) as n to the power {over.mean:.3f} ± {over.margin:.3f}"
    )
    data = f"theory radius, tau 1, gamma {GAMMA:g}, n from {min(ends)} to {max(ends)}"
    claims = [
        Claim(
            SECTION,
            data,
            "All sets are returned before the bound.",
            "Theorem 2",
            [Criterion.always("runs that ended before the bound", sum(below), len(below))],
            "The theorem presupposes more rounds than either: its proof uses a simpler radius that needs them.",
            SECTION,
        ),
        Claim(
            SECTION,
            data,
            "Rounds to terminate grow no faster than n log n.",
            "Theorem 2",
            [Criterion("no growth beyond n log n", Measurement(-over.mean, over.margin), told)],
            evidence=SECTION,
        ),
    ]
    note = f"d = {env.dim}, λ = {eigenvalue:g}, σ = ½, δ = {DELTA:g}, 10 seeds, users come uniformly."
    title = "Theorem 2: rounds until all sets are returned"
    chart = LineChart(
        "termination",
        SECTION,
        title,
        "logarithmic axes; dashed: not measured",
        "users",
        "rounds",
        points,
        log_x=True,
        log_y=True,
        dashed=("bound of Theorem 2", "rounds that it presupposes", "n log n through the first point"),
    )
    return [ResultTable("termination", SECTION, title, rows, note)], [chart], claims

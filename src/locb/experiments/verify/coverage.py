"""(a) Coverage: does every user's error stay below its radius, in all rounds at once?"""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.environments import Synthetic
from locb.evaluation.confidence import RADII
from locb.evaluation.findings import Claim, Criterion, ResultTable
from locb.experiments.jobs import Job
from locb.kernels.radius_coverage import measure_coverage
from locb.policies import LOCB
from locb.policies.state.user_rows import initial_estimates

SECTION = "coverage"
ENVIRONMENTS = 400
ENVIRONMENTS_PER_JOB = 20
N_USERS = 20
DELTA = 0.1
# ½ is right for rewards of 0 or 1; the accuracy experiments use 1 with their own radius.
SIGMAS = {"regret": 0.5, "clustering": 1.0, "theory": 0.5, "ellipsoid": 0.5}
SOURCES = {
    "regret": "Section 6.2 uses it, without proof",
    "clustering": "Section 6.1 uses it, without proof",
    "theory": "Lemma 5.2",
    "ellipsoid": "not in the paper: the radius of certificates",
}


def plan(rounds: int, seed: int) -> list[Job]:
    """Several worlds a job."""
    return [
        Job(
            cover,
            {"n_users": N_USERS, "n_clusters": 4},
            seed + first,
            {"worlds": ENVIRONMENTS_PER_JOB, "rounds": rounds},
            cost=2.0 * ENVIRONMENTS_PER_JOB * rounds,
        )
        for first in range(0, ENVIRONMENTS, ENVIRONMENTS_PER_JOB)
    ]


def smallest_eigenvalue(env: Synthetic) -> float:
    """λ of E[x xᵀ] in a synthetic world: the directions of a random unit vector share ½, the constant has the other."""
    return min(0.5, 0.5 / (env.dim - 1))


def cover(*, world: dict[str, Any], seed: int, worlds: int, rounds: int) -> dict[str, Any]:
    """The largest ‖θ̂_i − θ_i‖ / B(i, t) of each kind of radius in each world, where LOCB chooses the arms."""
    found = []
    sigmas = np.array([SIGMAS[name] for name in RADII])
    for number in range(seed, seed + worlds):
        env = Synthetic(**world, seed=number)
        policy = LOCB(n_users=env.n_users, dim=env.dim, n_seeds=min(10, env.n_users), seed=number)
        estimates = initial_estimates(env.n_users, env.dim)
        log_det, served = np.zeros(env.n_users), np.zeros(env.n_users, np.int64)
        worst, played = np.zeros(len(RADII)), 0
        for block in env.stream(rounds, seed=number):
            every, chosen = np.arange(len(block)), policy.play(block)
            measure_coverage(
                estimates,
                log_det,
                served,
                env.theta,
                played,
                block.users,
                block.contexts[every, chosen],
                block.rewards[every, chosen],
                sigmas,
                DELTA,
                smallest_eigenvalue(env),
                worst,
            )
            played += len(block)
        found.append(worst.tolist())
    return {"worst": found, "rounds": worlds * rounds}


def tell(played: list[tuple[Job, dict[str, Any]]]) -> tuple[list[ResultTable], list[Claim]]:
    """The share of worlds that each radius covers."""
    worst = np.array([row for _, outcome in played for row in outcome["worst"]])  # (worlds, kinds)
    rounds = played[0][0].settings["rounds"]
    rows, claims = [], []
    for name, kind in RADII.items():
        covered = int((worst[:, kind] <= 1.0).sum())
        rows.append(
            {
                "radius": name,
                "sigma": SIGMAS[name],
                "worlds covered": covered,
                "worlds": len(worst),
                "largest error in radii, median world": float(np.median(worst[:, kind])),
                "worst world": float(worst[:, kind].max()),
            }
        )
        says = f"With radius {name} every error stays below its radius in all rounds, with probability 1 − δ."
        part = Criterion.proportion("worlds covered", covered, len(worst), 1.0 - DELTA)
        why = ""
        if name in ("regret", "clustering"):
            why = f"The {name} radius is smaller than any that is proven; it is there to learn sooner."
        data = f"{len(worst)} worlds of {rounds:,} rounds"
        claims.append(Claim(SECTION, data, says, SOURCES[name], [part], why, SECTION, guaranteed=name == "ellipsoid"))
    note = f"{N_USERS} users, δ = {DELTA:g}, arms chosen by LOCB. An error of 1 radius or less is covered."
    return [ResultTable("coverage", SECTION, "Coverage of the four radii", rows, note)], claims

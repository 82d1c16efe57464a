"""Check of coverage: in all rounds, the error of each user's estimate does not exceed the confidence radius."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.environments import Synthetic
from locb.evaluation.findings import Claim, Criterion, ResultTable
from locb.experiments.jobs import Job
from locb.kernels.confidence_radii import RADII
from locb.kernels.radius_coverage import measure_coverage
from locb.policies import LOCB
from locb.policies.state.user_rows import initial_estimates

SECTION = "coverage"
ENVIRONMENTS = 400
ENVIRONMENTS_PER_JOB = 20
N_USERS = 20
DELTA = 0.1
# Noise scale sigma of each radius. ½ is valid for rewards of 0 or 1. This project reproduces the accuracy experiments
# of the paper with sigma = 1 and the clustering radius.
SIGMAS = {"regret": 0.5, "clustering": 1.0, "theory": 0.5, "ellipsoid": 0.5}
SOURCES = {
    "regret": "Section 6.2, used without proof",
    "clustering": "Section 6.1, used without proof",
    "theory": "Lemma 5.2",
    "ellipsoid": "not in the paper: the radius of certificates",
}


def plan(rounds: int, seed: int) -> list[Job]:
    """Return the jobs of the check: 400 environments, 20 per job, each with ``rounds`` rounds."""
    return [
        Job(
            measure_errors,
            {"n_users": N_USERS, "n_clusters": 4},
            seed + first,
            {"environments": ENVIRONMENTS_PER_JOB, "rounds": rounds},
            cost=2.0 * ENVIRONMENTS_PER_JOB * rounds,
        )
        for first in range(0, ENVIRONMENTS, ENVIRONMENTS_PER_JOB)
    ]


def smallest_eigenvalue(env: Synthetic) -> float:
    """Return λ, the smallest eigenvalue of E[x xᵀ], where x is the feature vector of a random arm.

    The features are a random unit vector with dim − 1 elements divided by √2, and the constant 1/√2. So the matrix has
    dim − 1 eigenvalues of ½ / (dim − 1) for the random vector, and the eigenvalue ½ for the constant.
    """
    return min(0.5, 0.5 / (env.dim - 1))


def measure_errors(*, environment: dict[str, Any], seed: int, environments: int, rounds: int) -> dict[str, Any]:
    """Return the largest ratio of error to radius over all users and rounds, per environment and kind of radius.

    The error of user i is ‖θ̂_i − θ_i‖, the distance of the estimate θ̂_i from the true preferences θ_i. LOCB chooses the
    arms. A ratio of at most 1 means that the radius covers all errors of the environment.
    """
    found = []
    sigmas = np.array([SIGMAS[name] for name in RADII])
    for number in range(seed, seed + environments):
        env = Synthetic(**environment, seed=number)
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
    return {"worst": found, "rounds": environments * rounds}


def summarize(outcomes: list[tuple[Job, dict[str, Any]]]) -> tuple[list[ResultTable], list[Claim]]:
    """Return a table of the number of environments that each radius covers, and the claims about coverage."""
    worst = np.array([row for _, outcome in outcomes for row in outcome["worst"]])  # (environments, radii)
    rounds = outcomes[0][0].settings["rounds"]
    data = f"{len(worst)} environments of {rounds:,} rounds"
    rows, claims = [], []
    for name, kind in RADII.items():
        covered = int((worst[:, kind] <= 1.0).sum())
        rows.append(
            {
                "radius": name,
                "sigma": SIGMAS[name],
                "environments covered": covered,
                "environments": len(worst),
                "largest error in radii, median": float(np.median(worst[:, kind])),
                "largest error in radii, maximum": float(worst[:, kind].max()),
            }
        )
        statement = f"With the {name} radius, every error stays below its radius in all rounds with probability 1 − δ."
        criterion = Criterion.proportion("environments covered", covered, len(worst), 1.0 - DELTA)
        explanation = ""
        if name in ("regret", "clustering"):
            explanation = f"The {name} radius is smaller than the proven radii, so that users are separated sooner."
        guaranteed = name == "ellipsoid"
        claims.append(
            Claim(SECTION, data, statement, SOURCES[name], [criterion], explanation, SECTION, guaranteed=guaranteed)
        )
    note = (
        f"{N_USERS} users, δ = {DELTA:g}, arms chosen by LOCB. The error of a user is the distance between the "
        "preference vector and its estimate. An environment is covered if no error exceeds its radius in any round. "
        "Largest error in radii: the largest ratio of an error to its radius, over the users and rounds of an "
        "environment."
    )
    return [ResultTable("coverage", SECTION, "Coverage of the four radii", rows, note)], claims

"""Check of coverage: no error of an estimate or of an expected reward exceeds its bound, in any round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from locb.environments import Synthetic
from locb.evaluation.findings import Claim, Criterion, ResultTable
from locb.experiments.jobs import Job
from locb.kernels.confidence_radii import RADII, THEORY, radius_width
from locb.kernels.radius_coverage import REWARD_INTERVAL, measure_coverage
from locb.policies import LOCB
from locb.policies.state.user_rows import initial_estimates

SECTION = "coverage"
ENVIRONMENTS = 400
ENVIRONMENTS_PER_JOB = 20
N_USERS = 20
DELTA = 0.1
# Noise scale sigma of each radius. ½ is valid for rewards of 0 or 1. This project reproduces the accuracy experiments
# of the paper with sigma = 1 and the clustering radius.
SIGMAS = {"regret": 0.5, "clustering": 1.0, "theory": 0.5, "ellipsoid": 0.5, "reward interval": 0.5}
BOUNDS = RADII | {"reward interval": REWARD_INTERVAL}
# The theory radius begins to shrink after about 140,000 rounds per user, so it has runs of its own with few users.
THEORY_ENVIRONMENT = {"n_users": 4, "n_clusters": 2}
SOURCES = {
    "regret": "Section 6.2, used without proof",
    "clustering": "Section 6.1, used without proof",
    "theory": "Lemma 5.2",
    "ellipsoid": "not in the paper: the radius of certificates",
    "reward interval": "Lemma A.2, with the confidence width of Abbasi-Yadkori et al. (2011)",
}


def plan(rounds: int, theory_rounds: int, seed: int) -> list[Job]:
    """Return the jobs of the check, each with 20 environments.

    There are 400 environments with ``rounds`` rounds, and 400 for the theory radius with ``theory_rounds`` rounds.
    """
    return [
        Job(
            measure_errors,
            environment,
            seed + first,
            {"environments": ENVIRONMENTS_PER_JOB, "rounds": count},
            cost=2.0 * ENVIRONMENTS_PER_JOB * count,
        )
        for environment, count in (({"n_users": N_USERS, "n_clusters": 4}, rounds), (THEORY_ENVIRONMENT, theory_rounds))
        for first in range(0, ENVIRONMENTS, ENVIRONMENTS_PER_JOB)
    ]


def rounds_before_shrinking(n_users: int, dim: int, min_eigenvalue: float) -> int:
    """Return the number of rounds per user after which the theory radius begins to shrink."""

    def is_constant(served: int) -> bool:
        return radius_width(THEORY, served, n_users, dim, 0.0, DELTA, min_eigenvalue, 0.0, 0.0) == 1.0

    high = 1
    while is_constant(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_constant(middle) else (low, middle)
    return low


def smallest_eigenvalue(env: Synthetic) -> float:
    """Return λ, the smallest eigenvalue of E[x xᵀ], where x is the feature vector of a random arm.

    The features are a random unit vector with dim − 1 elements divided by √2, and the constant 1/√2. So the matrix has
    dim − 1 eigenvalues of ½ / (dim − 1) for the random vector, and the eigenvalue ½ for the constant.
    """
    return min(0.5, 0.5 / (env.dim - 1))


def measure_errors(*, environment: dict[str, Any], seed: int, environments: int, rounds: int) -> dict[str, Any]:
    """Return the largest ratio of error to bound over all users and rounds, per environment and kind of bound.

    The error of user i is ‖θ̂_i − θ_i‖, the distance of the estimate θ̂_i from the true preferences θ_i, and for the
    reward interval |θ̂_iᵀx − θ_iᵀx| for all contexts x. LOCB chooses the arms. A ratio of at most 1 means that the bound
    covers all errors of the environment.
    """
    found = []
    sigmas = np.array([SIGMAS[name] for name in BOUNDS])
    for number in range(seed, seed + environments):
        env = Synthetic(**environment, seed=number)
        policy = LOCB(n_users=env.n_users, dim=env.dim, n_seeds=min(10, env.n_users), seed=number)
        estimates = initial_estimates(env.n_users, env.dim)
        log_det, served = np.zeros(env.n_users), np.zeros(env.n_users, np.int64)
        worst, noise_sums, played = np.zeros(len(BOUNDS)), np.zeros((env.n_users, env.dim)), 0
        for block in env.stream(rounds, seed=number):
            every, chosen = np.arange(len(block)), policy.play(block)
            measure_coverage(
                estimates,
                log_det,
                noise_sums,
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
    """Return a table of the number of environments that each bound covers, and the claims about coverage."""
    rows, claims = [], []
    for name in BOUNDS:
        users = THEORY_ENVIRONMENT["n_users"] if name == "theory" else N_USERS
        row, claim = _summarize_bound(
            name, users, [each for each in outcomes if each[0].environment["n_users"] == users]
        )
        rows.append(row)
        claims.append(claim)
    claims.append(
        replace(
            claims[-1],
            statement="The intervals of the expected rewards of clusters hold in all rounds with probability 1 − δ.",
            source="Lemma A.3",
            vacuous="It follows from Lemma A.2 by the triangle inequality, and is true in the same environments.",
        )
    )
    note = (
        f"δ = {DELTA:g}, arms chosen by LOCB. The error of a user is the distance between the preference vector and "
        "its estimate. An environment is covered if no error exceeds its bound in any round. Largest error in radii: "
        "the largest ratio of an error to its bound, over the users and rounds of an environment. Reward interval: the "
        "error is that of the expected reward, for all possible contexts."
    )
    return [ResultTable("coverage", SECTION, "Coverage of the four radii and of reward intervals", rows, note)], claims


def _summarize_bound(name: str, users: int, outcomes: list[tuple[Job, dict[str, Any]]]) -> tuple[dict[str, Any], Claim]:
    """Return the row of the table and the claim about one kind of bound."""
    worst = np.array([row for _, outcome in outcomes for row in outcome["worst"]])[:, BOUNDS[name]]
    rounds = outcomes[0][0].settings["rounds"]
    covered = int((worst <= 1.0).sum())
    row = {
        "radius": name,
        "sigma": SIGMAS[name],
        "users": users,
        "rounds": rounds,
        "environments covered": covered,
        "environments": len(worst),
        "largest error in radii, median": float(np.median(worst)),
        "largest error in radii, maximum": float(worst.max()),
    }
    statement = f"With the {name} radius, every error stays below its radius in all rounds with probability 1 − δ."
    if name == "reward interval":
        statement = (
            "Every expected reward stays in its interval in all rounds, for all contexts, with probability 1 − δ."
        )
    explanation, vacuous = "", ""
    if name in ("regret", "clustering"):
        explanation = f"The {name} radius is smaller than the proven radii, so that users are separated sooner."
    if name == "theory":
        constant = rounds_before_shrinking(users, Synthetic().dim, smallest_eigenvalue(Synthetic()))
        if constant * users >= rounds:
            vacuous = f"The radius begins to shrink only after {constant:,} rounds per user, more than in these runs."
    return row, Claim(
        SECTION,
        f"{len(worst)} environments of {users} users and {rounds:,} rounds",
        statement,
        SOURCES[name],
        [Criterion.proportion("environments covered", covered, len(worst), 1.0 - DELTA)],
        explanation,
        SECTION,
        guaranteed=name in ("ellipsoid", "reward interval"),
        vacuous=vacuous,
    )

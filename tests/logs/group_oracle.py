"""Slow implementations of ``find_groups``, written from the documentation, and logs of groups with a known truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import multivariate_normal

import locb
from locb.common.arrays import Floats, Ints


class Scenario(NamedTuple):
    """Log with known preference vectors and groups.

    ``frame`` has the columns user, reward, x0, x1, …, and x with lists of numbers, which are used as they are.
    """

    frame: dict[str, Any]
    features: list[str]
    vector: list[str]
    theta: Floats
    truth: list[Ints]
    counts: Ints


def draw_scenario(seed: int, n_users: int = 120, rows: int = 30_000, raw_dim: int = 4, n_clusters: int = 4) -> Scenario:
    """Return a log of random arms in the synthetic environment of the paper."""
    env = locb.Synthetic(
        n_users=n_users, n_clusters=n_clusters, raw_dim=raw_dim, n_arms=1, noise="bernoulli", seed=seed
    )
    rounds = env.rounds(rows, seed=seed + 1000)
    contexts = rounds.contexts[:, 0]
    names = [f"x{column}" for column in range(contexts.shape[1])]
    frame = {"user": rounds.users, "reward": rounds.rewards[:, 0]}
    frame |= dict(zip(names, contexts.T, strict=True)) | {"x": contexts.tolist()}
    counts = np.bincount(rounds.users, minlength=n_users)
    return Scenario(frame, names, ["x"], env.theta, env.true_clusters(), counts)


def user_rows(frame: dict[str, Any], features: list[str], user: Any) -> tuple[Floats, Floats]:
    """Return the features and the rewards of one user."""
    mine = np.array([other == user for other in frame["user"]])
    x = np.column_stack([np.asarray(frame[name], dtype=float)[mine] for name in features])
    return x, np.asarray(frame["reward"], dtype=float)[mine]


def log_evidence(x: Floats, r: Floats, mean: Floats, covariance: Floats, noise: float) -> float:
    """Return the log density of rewards with θ ~ N(mean, covariance), minus that with θ = 0."""
    spread = x @ covariance @ x.T + noise * np.eye(len(r))
    alone = multivariate_normal.logpdf(r, np.zeros(len(r)), noise * np.eye(len(r)))
    return float(multivariate_normal.logpdf(r, x @ mean, spread) - alone)


def ellipsoid(
    x: Floats, r: Floats, n_users: int, sigma: float, delta: float, norm_bound: float
) -> tuple[Floats, float]:
    """Return the ridge estimate of a user and its radius."""
    a = np.eye(x.shape[1]) + x.T @ x
    noise = sigma * np.sqrt(np.log(np.linalg.det(a)) + 2 * np.log(n_users / delta))
    return np.linalg.solve(a, x.T @ r), float((noise + norm_bound) / np.sqrt(np.linalg.eigvalsh(a)[0]))


def standardize(x: Floats) -> Floats:
    """Return standardized columns with a mean squared norm of ½, and a constant column √½."""
    scaled = (x - x.mean(axis=0)) / x.std(axis=0) / np.sqrt(2.0 * x.shape[1])
    return np.column_stack([scaled, np.full(len(x), np.sqrt(0.5))])


def true_width(theta: Floats, members: Any) -> float:
    """Return the largest distance of the preference vectors of two members."""
    inside = theta[np.asarray(members)]
    return float(np.linalg.norm(inside[:, None] - inside[None], axis=2).max())

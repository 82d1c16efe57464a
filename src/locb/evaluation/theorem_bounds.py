"""Bounds of the theorems of the LOCB paper on termination and regret."""

import math


def min_rounds_per_user(n_users: int, dim: int, delta: float, min_eigenvalue: float) -> float:
    """Return the number of rounds that each user must have before Theorem 2 applies.

    The parameters are those of ``termination_bound``.

    Examples
    --------
    >>> f"{min_rounds_per_user(100, 6, 0.1, 0.1):,.0f}"
    '40,637,827'
    """
    factor = 32.0**2 / min_eigenvalue**2
    log_term = math.log(2.0 * n_users * dim * n_users / delta)
    return 2.0 * factor * log_term * math.log(factor * log_term)


def termination_bound(
    n_users: int, dim: int, *, gamma: float, sigma: float = 0.5, delta: float = 0.1, min_eigenvalue: float
) -> float:
    """Return the bound of Theorem 2: the round before which LOCB returns all clusters, so that they are final.

    The bound holds for tau = 1, the ``theory`` radius and users who arrive equally often. Theorem 2 applies only once
    every user was served ``min_rounds_per_user`` times. If that takes longer than the bound, the theorem gives no
    bound.

    Parameters
    ----------
    n_users, dim : int
        The number n of users and the number d of features.
    gamma : float
        The parameter γ of LOCB: intended maximum distance between two users of a cluster.
    sigma : float, default 0.5
        The noise scale σ: rewards are σ-sub-Gaussian.
    delta : float, default 0.1
        The largest probability δ that the bound fails.
    min_eigenvalue : float
        The smallest eigenvalue of E[x xᵀ], where x is the context of an arm.

    Examples
    --------
    >>> f"{termination_bound(100, 6, gamma=0.2, min_eigenvalue=0.1):,.0f}"
    '6,495,162,843'
    """
    per_user = min_eigenvalue * gamma**2 / (16.0**3 * sigma**2)  # C in the paper
    log_term = (dim + 1) * math.log(2.0) + math.log(n_users / delta)
    rest = log_term - (gamma**2 - 256.0) / (512.0 * sigma**2)
    size = n_users * dim / per_user
    return 2.0 * size * math.log(size) + 2.0 * n_users / per_user * rest + n_users


def regret_bound(
    rounds: int,
    n_users: int,
    dim: int,
    *,
    gamma: float,
    sigma: float = 0.5,
    delta: float = 0.1,
    min_eigenvalue: float,
) -> float:
    """Return the bound of Theorem 3 on the cumulative regret, with the constants of its proof in place of each O(·).

    The bound is the sum of three parts:

    - twice the sum of the bonuses, 2 √(nT) √(2d log(1 + T/(dn))) α, with α = σ √(d log((1 + T/n) n/δ)) + 1 from the
      self-normalized bound;
    - 2γ per round after all clusters are returned (see ``termination_bound``);
    - 8A per round before that, where A = σ √(2d log T + 2 log(2n/δ)) + 1 is the largest radius. The proof writes 4A for
      two terms of at most 4A each.

    The regret is at most 1 per round, so a bound above ``rounds`` is not informative.

    Parameters
    ----------
    rounds : int
        The number of rounds T.
    n_users, dim, gamma, sigma, delta, min_eigenvalue
        As in ``termination_bound``.

    Examples
    --------
    >>> f"{regret_bound(50_000, 100, 6, gamma=0.2, min_eigenvalue=0.1):,.0f}"
    '2,986,021'
    """
    bonus = sigma * math.sqrt(dim * math.log((1.0 + rounds / n_users) * n_users / delta)) + 1.0
    explored = math.sqrt(n_users * rounds * 2.0 * dim * math.log(1.0 + rounds / (dim * n_users)))
    radius = sigma * math.sqrt(2.0 * dim * math.log(rounds) + 2.0 * math.log(2.0 * n_users / delta)) + 1.0
    end = termination_bound(n_users, dim, gamma=gamma, sigma=sigma, delta=delta, min_eigenvalue=min_eigenvalue)
    before = min(float(rounds), end)
    return 2.0 * bonus * explored + 2.0 * gamma * (rounds - before) + 8.0 * radius * before

"""How far a user's estimate may be from the truth: the four radii B(i, t).

Each radius is a width of the user times a scale of the round, B(i, t) = scale(t) · width(i). The width changes
only when the user is served, so the kernels keep it, and a round pays for one scale whatever the number of users.
"""

import math

import numpy as np

from locb.jit import inlined

REGRET, CLUSTERING, THEORY, ELLIPSOID = 0, 1, 2, 3
RADII = {"regret": REGRET, "clustering": CLUSTERING, "theory": THEORY, "ellipsoid": ELLIPSOID}


@inlined
def shrinkage(served: int) -> float:
    """F(m) = √((1 + log(1 + m)) / (1 + m)), the width that CLUB, SCLUB and the regret experiments use."""
    return math.sqrt((1.0 + math.log(1.0 + served)) / (1.0 + served))


@inlined
def scale(kind: int, t: int, n_users: int, dim: int, sigma: float, delta: float) -> float:
    """The part of a radius that every user shares in round t; +inf where it is not defined."""
    if kind in (REGRET, ELLIPSOID):
        return 1.0
    if t < 1:
        return np.inf
    top = sigma * math.sqrt(2.0 * dim * math.log(t) + 2.0 * math.log(2.0 * n_users / delta)) + 1.0
    if kind == CLUSTERING:
        top /= n_users ** (1.0 / 3.0)
    return top


@inlined
def width(
    kind: int,
    served: int,
    n_users: int,
    dim: int,
    sigma: float,
    delta: float,
    min_eigenvalue: float,
    log_det: float,
    largest_inverse: float,
) -> float:
    """The part of a radius that is the user's own.

    ``min_eigenvalue`` is Lemma 5.2's λ of the contexts (``theory`` alone). ``log_det`` is log det A_i and
    ``largest_inverse`` the largest eigenvalue of A_i⁻¹, that is 1 / λ_min(A_i) (``ellipsoid`` alone).
    """
    if kind == REGRET:
        return shrinkage(served)
    if kind == CLUSTERING:
        return 1.0 / math.sqrt(1.0 + served / 4.0)
    if kind == THEORY:
        log_term = math.log((served + 3.0) * (2.0 * n_users * dim) / (delta / n_users))
        h = min_eigenvalue * served / 4.0 - 8.0 * log_term - 2.0 * math.sqrt(served * log_term)
        return 1.0 / math.sqrt(1.0 + max(h, 0.0))
    noise = sigma * math.sqrt(log_det + 2.0 * math.log(n_users / delta))
    return (noise + 1.0) * math.sqrt(largest_inverse)

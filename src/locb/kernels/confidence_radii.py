"""Confidence radii of the users' estimates. The symbols are defined in ``locb.kernels``.

Each of the four radii (``regret``, ``clustering``, ``theory`` and ``ellipsoid``) is the product of a scale that depends
on the round and a width that depends on the user: B(i, t) = scale(t) · width(i). The width changes only when the user
is served or, for ``theory`` and ``ellipsoid``, when users are added, so the kernels store it. A round computes one
scale for all users.
"""

import math

import numpy as np

from locb.common.jit import inline_entry_point

REGRET, CLUSTERING, THEORY, ELLIPSOID = 0, 1, 2, 3
RADII = {"regret": REGRET, "clustering": CLUSTERING, "theory": THEORY, "ellipsoid": ELLIPSOID}


@inline_entry_point
def shrinkage(served: int) -> float:
    """Return F(m) = √((1 + log(1 + m)) / (1 + m)), the width of the ``regret`` radius. CLUB and SCLUB use it too."""
    return math.sqrt((1.0 + math.log(1.0 + served)) / (1.0 + served))


@inline_entry_point
def radius_scale(kind: int, t: int, n_users: int, dim: int, sigma: float, delta: float) -> float:
    """Return the scale of a radius, the factor that all users share in round t; +inf if it is not defined."""
    if kind in (REGRET, ELLIPSOID):
        return 1.0
    if t < 1:
        return np.inf
    scale = sigma * math.sqrt(2.0 * dim * math.log(t) + 2.0 * math.log(2.0 * n_users / delta)) + 1.0
    if kind == CLUSTERING:
        scale /= n_users ** (1.0 / 3.0)
    return scale


@inline_entry_point
def radius_width(
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
    """Return the width of a radius, the factor that depends on the user i.

    Only the ``theory`` radius uses ``min_eigenvalue``, the smallest eigenvalue λ of E[x xᵀ] in Lemma 5.2 of the LOCB
    paper. Only the ``ellipsoid`` radius uses ``log_det``, which is log det A_i, and ``largest_inverse``, the largest
    eigenvalue of A_i⁻¹.
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

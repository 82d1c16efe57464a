"""Drift bounds, for the pooled bonus: how far the mean A⁻¹ of each cluster may be from a common reference matrix.

Terms and symbols are defined in ``locb.kernels.locb.state`` and ``locb.kernels``.
"""

import math

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc
from locb.kernels.locb.state import BONUS_KIND, N_USERS, POOLED, LOCBState, T


@inline
def squared_norm(packed: Floats, row: int, start: int, dim: int) -> float:
    """Return the squared Frobenius norm of the packed matrix that starts at column ``start`` of a row of ``packed``."""
    total = 0.0
    q = start
    for i in range(dim):
        total += packed[row, q] * packed[row, q]
        for r in range(q + 1, q + dim - i):
            total += 2.0 * packed[row, r] * packed[row, r]
        q += dim - i
    return total


@no_alloc
def recompute_drift_bounds(state: LOCBState, dim: int) -> None:
    """Set the reference to the mean of the clusters' mean estimates, and the drift bounds to the exact distances."""
    sums, sizes, reference, drift_bound = state.sums, state.sizes, state.reference, state.drift_bound
    n_seeds = sizes.size
    for q in range(reference.shape[1]):
        reference[0, q] = 0.0
    for s in range(n_seeds):
        share = 1.0 / (sizes[s] * n_seeds)
        for q in range(reference.shape[1]):
            reference[0, q] += sums[s, q] * share
    for s in range(n_seeds):
        share = 1.0 / sizes[s]
        for q in range(reference.shape[1]):
            reference[1, q] = sums[s, q] * share - reference[0, q]
        drift_bound[s] = math.sqrt(squared_norm(reference, 1, dim, dim))
    drift_bound[n_seeds] = 0.0


@inline
def refresh_drift_bounds(state: LOCBState, dim: int) -> None:
    """Recompute the drift bounds if this is due: every min(1 + n // 16, 1024) rounds, before they become too large."""
    int_params = state.int_params
    is_used = int_params[BONUS_KIND] == POOLED and int_params[N_USERS] >= state.drift_bound_min_users[0]
    if is_used and int_params[T] % min(1 + (int_params[N_USERS] >> 4), 1_024) == 0:
        recompute_drift_bounds(state, dim)

"""Drift bounds, for the pooled bonus: how far the mean A⁻¹ of each cluster may be from a common reference matrix.

With many users, they give bounds of the pooled scores, so that few clusters need an exact score.

Terms and symbols are defined in ``locb.kernels.locb.state`` and ``locb.kernels``.
"""

import math

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc
from locb.kernels.common.arm_scoring import TIE, dot
from locb.kernels.locb.state import ALPHA, BONUS_KIND, N_USERS, POOLED, LOCBState, ScoringScratch, T


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


@inline
def bound_pooled_scores(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """Compute an upper bound of the pooled score of each cluster and arm, and the highest bound of each arm.

    With the mean A⁻¹ of a cluster, M, and the reference R: xᵀMx ≤ xᵀRx + ‖M − R‖ ‖x‖², where the drift bound limits
    ‖M − R‖. With √(v + e) ≤ √v + e / (2√v), one root per arm suffices. The bounds take d products per cluster and arm.
    The clusters are in the last dimension of the arrays, so that the compiler can vectorize the sums over features.
    """
    sums, sizes, drift_bound, alpha = state.sums, state.sizes, state.drift_bound, state.float_params[ALPHA]
    arms, clusters, cluster_means = scratch.arms, scratch.clusters, scratch.cluster_means
    pooled_bounds, best_bound = scratch.pooled_bounds, scratch.best_bound
    for c in range(count):
        s = clusters[c]
        share = 1.0 / sizes[s]
        cluster_means[d, c] = drift_bound[s] + drift_bound[sizes.size] * share
        for q in range(d):
            cluster_means[q, c] = sums[s, q] * share
    for a in range(best_bound.size):
        root = math.sqrt(max(dot(arms, a, state.reference, 0, d, arms.shape[1]), 0.0))
        slope = 0.5 * alpha * dot(arms, a, arms, a, 0, d) / root if root > 0.0 else 0.0
        for c in range(count):
            pooled_bounds[a, c] = alpha * root + slope * cluster_means[d, c]
        for q in range(d):
            x = arms[a, q]
            for c in range(count):
                pooled_bounds[a, c] += x * cluster_means[q, c]
        best_bound[a] = pooled_bounds[a, 0]
        for c in range(1, count):
            best_bound[a] = max(best_bound[a], pooled_bounds[a, c])


@inline
def score_pooled_bounded(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """Compute the scores of ``score_pooled`` for many users. Clusters that bounds exclude need no exact score."""
    sums, sizes = state.sums, state.sizes
    arms, clusters, scores = scratch.arms, scratch.clusters, scratch.scores
    pooled_bounds, best_bound = scratch.pooled_bounds, scratch.best_bound
    bound_pooled_scores(state, count, d, scratch)
    for a in range(scores.size):
        scores[a] = -np.inf
    best = -np.inf
    while True:
        arm = 0
        for a in range(1, scores.size):
            if best_bound[a] > best_bound[arm]:
                arm = a
        # Twice TIE: once for ties, once for the rounding errors of the bounds.
        if best_bound[arm] < best - 2.0 * TIE or best_bound[arm] == -np.inf:
            return
        # First score the cluster with the highest bound, then every cluster that can still be the best.
        threshold = best_bound[arm]
        for scan in range(2):
            for c in range(count):
                if pooled_bounds[arm, c] >= threshold:
                    s = clusters[c]
                    share = 1.0 / sizes[s]
                    variance = dot(arms, arm, sums, s, d, arms.shape[1]) * share
                    value = dot(arms, arm, sums, s, 0, d) * share + state.float_params[ALPHA] * math.sqrt(
                        max(variance, 0.0)
                    )
                    scores[arm] = max(scores[arm], value)
                    best = max(best, value)
                    pooled_bounds[arm, c] = -np.inf
                    if scan == 1:
                        threshold = best - 2.0 * TIE
            threshold = best - 2.0 * TIE
        best_bound[arm] = -np.inf

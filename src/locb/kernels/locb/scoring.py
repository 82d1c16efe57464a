"""LOCB's pulling module, which chooses an arm: scores of the arms, and bounds of these scores.

Only arms that can be the best get an exact score. Terms and symbols are defined in ``locb.kernels.locb.state`` and
``locb.kernels``. ``count`` is the number of distinct clusters of the user, which are in ``scratch.clusters``.
"""

import math

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import alloc, inline
from locb.kernels.common.arm_scoring import TIE, dot, expand_contexts, score_arms
from locb.kernels.common.bit_sets import ONE, trailing_zeros
from locb.kernels.locb.state import ALPHA, BONUS_KIND, MEAN, N_USERS, POOLED, LOCBState, ScoringScratch

MIN_BOUNDED_CLUSTERS = 8  # fewer clusters are scored exactly without bounds


@alloc
def allocate_scoring_scratch(state: LOCBState, n_arms: int, dim: int) -> ScoringScratch:
    """Return new work arrays for choices among ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    n_seeds = state.seeds.size
    n_words = state.members.shape[1] if state.int_params[BONUS_KIND] == MEAN else 0
    return ScoringScratch(
        np.empty((n_arms, columns)),
        np.empty((n_seeds, n_arms)),
        np.empty(n_seeds, np.int64),
        np.empty(n_arms),
        np.empty(n_arms),
        np.empty(n_arms),
        np.empty((n_arms, n_seeds)),
        np.empty((dim + 1, n_seeds)),
        np.empty((n_arms, 64 * n_words)),
        np.empty((n_arms, n_words), np.uint64),
        np.empty(n_arms),
    )


@inline
def collect_distinct_clusters(state: LOCBState, user: int, scratch: ScoringScratch) -> int:
    """Write the distinct clusters of a user to ``scratch.clusters`` and return their number."""
    count = 0
    for w in range(state.distinct.size):
        word = state.cluster_bits[user, w] & state.distinct[w]
        while word != 0:
            scratch.clusters[count] = (w << 6) + trailing_zeros(word)
            count += 1
            word &= word - ONE
    return count


@inline
def score_pooled(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """Compute ``scratch.scores`` with the pooled bonus, which needs only the sums of the clusters."""
    sums, sizes = state.sums, state.sizes
    arms, clusters, scores = scratch.arms, scratch.clusters, scratch.scores
    for a in range(scores.size):
        scores[a] = -np.inf
    for c in range(count):
        s = clusters[c]
        share = 1.0 / sizes[s]
        for a in range(scores.size):
            variance = dot(arms, a, sums, s, d, arms.shape[1]) * share
            value = dot(arms, a, sums, s, 0, d) * share + state.float_params[ALPHA] * math.sqrt(max(variance, 0.0))
            scores[a] = max(scores[a], value)


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
    """Compute the scores of ``score_pooled`` for many users: upper bounds exclude most clusters without a score."""
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


@inline
def mean_root(state: LOCBState, s: int, a: int, d: int, scratch: ScoringScratch) -> float:
    """Return the mean of √(xᵀA_j⁻¹x) over the members j of cluster s. Only this step of scoring visits members.

    Clusters share members, so the roots of an arm are cached during the round. ``scratch.has_root`` marks cached roots.
    """
    members, estimates, arms, roots, has_root = (
        state.members,
        state.estimates,
        scratch.arms,
        scratch.roots,
        scratch.has_root,
    )
    total = 0.0
    for w in range(members.shape[1]):
        word = members[s, w] & ~has_root[a, w]
        has_root[a, w] |= word
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            roots[a, j] = math.sqrt(max(dot(arms, a, estimates, j, d, arms.shape[1]), 0.0))
            word &= word - ONE
        word = members[s, w]
        while word != 0:
            total += roots[a, (w << 6) + trailing_zeros(word)]
            word &= word - ONE
    mean: float = total / state.sizes[s]
    return mean


@inline
def bound_mean_scores(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """Compute an upper and a lower bound of the score with the mean bonus, for each cluster and arm.

    The root √(xᵀA_j⁻¹x) of a member j who was never served is ‖x‖. Let V be the sum of the squared roots of the g other
    members, which the sums of the cluster give. The sum of these g roots is between V / ‖x‖, because no root exceeds
    ‖x‖, and √(g V), because a mean of roots is at most the root of the mean. Writes all upper bounds, and the highest
    upper bound and the highest lower bound of each arm, to the scratch.
    """
    sums, sizes, unserved, alpha = state.sums, state.sizes, state.unserved, state.float_params[ALPHA]
    arms, clusters, upper_bounds, best_bound, lower_bound, norms = (
        scratch.arms,
        scratch.clusters,
        scratch.upper_bounds,
        scratch.best_bound,
        scratch.lower_bound,
        scratch.norms,
    )
    for a in range(norms.size):
        norms[a] = math.sqrt(dot(arms, a, arms, a, 0, d))
        best_bound[a] = -np.inf
        lower_bound[a] = -np.inf
    for c in range(count):
        s = clusters[c]
        share = 1.0 / sizes[s]
        n_unserved = unserved[s]
        for a in range(norms.size):
            mean = dot(arms, a, sums, s, 0, d) * share
            squares = max(dot(arms, a, sums, s, d, arms.shape[1]) - n_unserved * norms[a] * norms[a], 0.0)
            unserved_roots = n_unserved * norms[a]
            upper_bounds[c, a] = mean + alpha * share * (unserved_roots + math.sqrt((sizes[s] - n_unserved) * squares))
            best_bound[a] = max(best_bound[a], upper_bounds[c, a])
            min_roots = squares / norms[a] if norms[a] > 0.0 else 0.0
            lower_bound[a] = max(lower_bound[a], mean + alpha * share * (unserved_roots + min_roots))


@inline
def score_mean(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """Compute ``scratch.scores`` with the mean bonus, visiting members only if bounds do not determine the best arm."""
    sums, sizes = state.sums, state.sizes
    arms, clusters, scores = scratch.arms, scratch.clusters, scratch.scores
    upper_bounds, best_bound, lower_bound = scratch.upper_bounds, scratch.best_bound, scratch.lower_bound
    n_arms = scores.size
    bound_mean_scores(state, count, d, scratch)
    for a in range(n_arms):
        scores[a] = -np.inf
    while True:
        best = -np.inf
        arm = 0
        for a in range(n_arms):
            best = max(best, lower_bound[a])
            if best_bound[a] > best_bound[arm]:
                arm = a
        # Twice TIE: once for ties, once for the rounding errors of the sums.
        threshold = best - 2.0 * TIE
        if best_bound[arm] < threshold or best_bound[arm] == -np.inf:
            return
        rivals = 0
        for a in range(n_arms):
            rivals += max(best_bound[a], scores[a]) >= threshold
        if rivals == 1:
            scores[arm] = best_bound[arm]  # an upper bound, but no other arm can have a higher score
            return
        c = 0
        while upper_bounds[c, arm] < best_bound[arm]:
            c += 1
        s = clusters[c]
        if scores[arm] == -np.inf:
            for w in range(scratch.has_root.shape[1]):
                scratch.has_root[arm, w] = np.uint64(0)
        exact = dot(arms, arm, sums, s, 0, d) / sizes[s] + state.float_params[ALPHA] * mean_root(
            state, s, arm, d, scratch
        )
        scores[arm] = max(scores[arm], exact)
        lower_bound[arm] = max(lower_bound[arm], exact)
        upper_bounds[c, arm] = -np.inf
        best_bound[arm] = -np.inf
        for c in range(count):
            best_bound[arm] = max(best_bound[arm], upper_bounds[c, arm])


@inline
def score(state: LOCBState, user: int, contexts: Floats, scratch: ScoringScratch) -> None:
    """Compute ``scratch.scores``, so that the best arm and all arms tied with it are those of the exact scores.

    The scores of all other arms may be too low.
    """
    d = contexts.shape[1]
    expand_contexts(contexts, scratch.arms)
    count = collect_distinct_clusters(state, user, scratch)
    if count == 0:
        score_arms(scratch.arms, state.estimates, user, d, state.float_params[ALPHA], 1.0, scratch.scores)
    elif state.int_params[BONUS_KIND] != POOLED:
        score_mean(state, count, d, scratch)
    elif state.int_params[N_USERS] >= state.drift_bound_min_users[0] and count >= MIN_BOUNDED_CLUSTERS:
        score_pooled_bounded(state, count, d, scratch)
    else:
        score_pooled(state, count, d, scratch)

"""LOCB's pulling module, which chooses an arm: scores of the arms, bounds of these scores, and explanations.

Only arms that can be the best get an exact score. Terms and symbols are defined in ``locb.kernels.locb.state`` and
``locb.kernels``. ``count`` is the number of distinct clusters of the user, which are in ``scratch.clusters``.
"""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import alloc, entry_point, inline
from locb.kernels.common.arm_scoring import (
    TIE,
    apply_screen,
    dot,
    expand_contexts,
    explain_arms,
    is_valid,
    pick_arm,
    score_arms,
)
from locb.kernels.common.bit_sets import ONE, trailing_zeros
from locb.kernels.locb.drift_bounds import score_pooled_bounded
from locb.kernels.locb.state import (
    ALPHA,
    BONUS_KIND,
    MEAN,
    N_USERS,
    POOLED,
    SCREEN_WIDTH,
    TIES,
    LOCBState,
    ScoringScratch,
)

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


@inline
def explain_clusters(
    state: LOCBState, count: int, d: int, scratch: ScoringScratch, estimate: Floats, bonus: Floats, best_clusters: Ints
) -> None:
    """Compute the estimate and the bonus of every arm in its best cluster: the first that gives the arm its score."""
    arms, has_root, scores = scratch.arms, scratch.has_root, scratch.scores
    pooled = state.int_params[BONUS_KIND] == POOLED
    if not pooled:
        bound_mean_scores(state, count, d, scratch)
    for a in range(scores.size):
        scores[a] = -np.inf
        for w in range(has_root.shape[1]):
            has_root[a, w] = np.uint64(0)
    for c in range(count):
        s = scratch.clusters[c]
        share = 1.0 / state.sizes[s]
        for a in range(scores.size):
            mean = dot(arms, a, state.sums, s, 0, d) * share
            if not pooled and scratch.upper_bounds[c, a] < scores[a] - TIE:
                continue  # cluster s cannot be the best for this arm; TIE allows for the rounding error of the bound
            if pooled:
                variance = dot(arms, a, state.sums, s, d, arms.shape[1]) * share
                arm_bonus = state.float_params[ALPHA] * math.sqrt(max(variance, 0.0))
            else:
                arm_bonus = state.float_params[ALPHA] * mean_root(state, s, a, d, scratch)
            if mean + arm_bonus > scores[a]:
                scores[a] = mean + arm_bonus
                estimate[a], bonus[a], best_clusters[a] = mean, arm_bonus, s


@entry_point
def explain(
    state: LOCBState,
    users: Ints,
    ends: Ints,
    contexts: Floats,
    estimate: Floats,
    bonus: Floats,
    theta: Floats,
    chosen: Ints,
) -> None:
    """Explain the choices for u users.

    The arms of user number i are the rows of ``contexts`` from ends[i − 1] to ends[i] − 1. Writes the estimate and the
    bonus of every arm, and ``theta`` (u, d), the mean estimate of the cluster that gives the chosen arm its score. Also
    writes ``chosen`` (u, 3): the chosen arm, or −1 if a context is invalid; the cluster; and 1 if the safety screen has
    replaced the arm with the highest score, else 0. The cluster is −1 if the user is in no cluster; the score then uses
    the estimate of the user alone.
    """
    d = contexts.shape[1]
    ties, width = state.int_params[TIES], state.float_params[SCREEN_WIDTH]
    stop = 0
    for i in range(users.size):
        user, start = users[i], stop
        stop = ends[i]
        chosen[i, 0] = chosen[i, 1] = -1
        chosen[i, 2] = 0
        if not is_valid(contexts[start:stop].ravel()):
            continue
        user_estimate, user_bonus = estimate[start:stop], bonus[start:stop]
        scratch = allocate_scoring_scratch(state, stop - start, d)
        best_clusters = np.full(stop - start, -1)
        expand_contexts(contexts[start:stop], scratch.arms)
        count = collect_distinct_clusters(state, user, scratch)
        if count > 0:
            explain_clusters(state, count, d, scratch, user_estimate, user_bonus, best_clusters)
        else:
            explain_arms(
                scratch.arms, state.estimates, user, d, state.float_params[ALPHA], 1.0, user_estimate, user_bonus
            )
        best = arm = pick_arm(user_estimate + user_bonus, ties, state.generator)
        if width > 0.0 and arm >= 0:
            arms, scores = scratch.arms, scratch.scores
            arm = apply_screen(arms, state.estimates, user, d, width, arm, ties, state.generator, scores)
        s = best_clusters[arm]
        for q in range(d):
            theta[i, q] = state.estimates[user, q] if s < 0 else state.sums[s, q] / state.sizes[s]
        chosen[i, 0], chosen[i, 1], chosen[i, 2] = arm, s, arm != best

"""LOCB's pulling module: the score of every arm that can win, and no more work than that takes."""

import math

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc
from locb.kernels.common.bit_sets import ONE, trailing_zeros
from locb.kernels.common.linear_algebra import TIE, dot, expand_contexts, score_arms
from locb.kernels.locb.state import ALPHA, BONUS_KIND, N_USERS, POOLED, LOCBState, ScoringScratch, T

FEW_SETS = 8  # fewer than this are scored outright


@inline
def squared_norm(packed: Floats, row: int, start: int, dim: int) -> float:
    """Squared Frobenius norm of the packed matrix that begins at column ``start`` of a row."""
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
    """Take the mean of all sets' mean A⁻¹ as the reference, and measure how far each set's is from it."""
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
    """Renew the departures before the steps since the last time add up to much."""
    int_params = state.int_params
    used = int_params[BONUS_KIND] == POOLED and int_params[N_USERS] >= state.drift_bound_min_users[0]
    if used and int_params[T] % min(1 + (int_params[N_USERS] >> 4), 1_024) == 0:
        recompute_drift_bounds(state, dim)


@inline
def collect_distinct_clusters(state: LOCBState, user: int, scratch: ScoringScratch) -> int:
    """Put the different sets of this user into scratch.sets; how many there are."""
    count = 0
    for w in range(state.distinct.size):
        word = state.cluster_bits[user, w] & state.distinct[w]
        while word != 0:
            scratch.sets[count] = (w << 6) + trailing_zeros(word)
            count += 1
            word &= word - ONE
    return count


@inline
def score_pooled(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """Fill scratch.scores from the sets' sums alone, all of them."""
    sums, sizes = state.sums, state.sizes
    arms, sets, scores = scratch.arms, scratch.sets, scratch.scores
    for a in range(scores.size):
        scores[a] = -np.inf
    for c in range(count):
        s = sets[c]
        share = 1.0 / sizes[s]
        for a in range(scores.size):
            spread = dot(arms, a, sums, s, d, arms.shape[1]) * share
            value = dot(arms, a, sums, s, 0, d) * share + state.float_params[ALPHA] * math.sqrt(max(spread, 0.0))
            scores[a] = max(scores[a], value)


@inline
def cap_scores(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """Bound the pooled score of every arm in every set from above by d products: scratch.caps, its highest in top.

    xᵀM x ≤ xᵀR x + ‖M − R‖ ‖x‖² bounds a set's spread by that of a common reference R, and √(v + e) ≤ √v + e / (2√v)
    takes one root an arm, not one a set and arm. Sets stand side by side, so that sums over features fill vectors.
    """
    sums, sizes, drift_bound, alpha = state.sums, state.sizes, state.drift_bound, state.float_params[ALPHA]
    arms, sets, caps, centres, top = scratch.arms, scratch.sets, scratch.caps, scratch.centres, scratch.top
    for c in range(count):
        s = sets[c]
        share = 1.0 / sizes[s]
        centres[d, c] = drift_bound[s] + drift_bound[sizes.size] * share
        for q in range(d):
            centres[q, c] = sums[s, q] * share
    for a in range(top.size):
        root = math.sqrt(max(dot(arms, a, state.reference, 0, d, arms.shape[1]), 0.0))
        slope = 0.5 * alpha * dot(arms, a, arms, a, 0, d) / root if root > 0.0 else 0.0
        for c in range(count):
            caps[a, c] = alpha * root + slope * centres[d, c]
        for q in range(d):
            x = arms[a, q]
            for c in range(count):
                caps[a, c] += x * centres[q, c]
        top[a] = caps[a, 0]
        for c in range(1, count):
            top[a] = max(top[a], caps[a, c])


@inline
def score_pooled_many(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """As score_pooled, for many users, where sets are large and move slowly: most sets are ruled out by their caps."""
    sums, sizes = state.sums, state.sizes
    arms, sets, scores, caps, top = scratch.arms, scratch.sets, scratch.scores, scratch.caps, scratch.top
    cap_scores(state, count, d, scratch)
    for a in range(scores.size):
        scores[a] = -np.inf
    best = -np.inf
    while True:
        arm = 0
        for a in range(1, scores.size):
            if top[a] > top[arm]:
                arm = a
        # Twice the tie margin: the second covers the rounding of the caps.
        if top[arm] < best - 2.0 * TIE or top[arm] == -np.inf:
            return
        enough = top[arm]  # in the first set looked at, then whatever can still win
        for turn in range(2):
            for c in range(count):
                if caps[arm, c] >= enough:
                    s = sets[c]
                    share = 1.0 / sizes[s]
                    spread = dot(arms, arm, sums, s, d, arms.shape[1]) * share
                    value = dot(arms, arm, sums, s, 0, d) * share + state.float_params[ALPHA] * math.sqrt(
                        max(spread, 0.0)
                    )
                    scores[arm] = max(scores[arm], value)
                    best = max(best, value)
                    caps[arm, c] = -np.inf
                    if turn == 1:
                        enough = best - 2.0 * TIE
            enough = best - 2.0 * TIE
        top[arm] = -np.inf


@inline
def mean_root(state: LOCBState, s: int, a: int, d: int, scratch: ScoringScratch) -> float:
    """Mean over the members j of set s of √(xᵀ A_j⁻¹ x): the one step of a pull that visits members.

    Sets share members, so the roots of an arm are kept for the round; scratch.known tells whose are there.
    """
    members, estimates, arms, roots, known = state.members, state.estimates, scratch.arms, scratch.roots, scratch.known
    total = 0.0
    for w in range(members.shape[1]):
        word = members[s, w] & ~known[a, w]
        known[a, w] |= word
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
def bound_mean(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """Bound each set's mean of roots from both sides, by its sums: uppers in scratch.bounds, the best in top and low.

    Members never served have the root ‖x‖, exactly. For the others, with roots r and squares r² that add up to V:
    V / ‖x‖ ≤ Σ r ≤ √(count · V), since no root is above ‖x‖ and a mean of roots is not above the root of a mean.
    """
    sums, sizes, unserved, alpha = state.sums, state.sizes, state.unserved, state.float_params[ALPHA]
    arms, sets, bounds, top, low, lengths = (
        scratch.arms,
        scratch.sets,
        scratch.bounds,
        scratch.top,
        scratch.low,
        scratch.lengths,
    )
    for a in range(lengths.size):
        lengths[a] = math.sqrt(dot(arms, a, arms, a, 0, d))
        top[a] = -np.inf
        low[a] = -np.inf
    for c in range(count):
        s = sets[c]
        share = 1.0 / sizes[s]
        new = unserved[s]
        for a in range(lengths.size):
            mean = dot(arms, a, sums, s, 0, d) * share
            squares = max(dot(arms, a, sums, s, d, arms.shape[1]) - new * lengths[a] * lengths[a], 0.0)
            known = new * lengths[a]
            bounds[c, a] = mean + alpha * share * (known + math.sqrt((sizes[s] - new) * squares))
            top[a] = max(top[a], bounds[c, a])
            least = squares / lengths[a] if lengths[a] > 0.0 else 0.0
            low[a] = max(low[a], mean + alpha * share * (known + least))


@inline
def score_mean(state: LOCBState, count: int, d: int, scratch: ScoringScratch) -> None:
    """Fill scratch.scores by visiting members only where the bounds cannot tell which arm is best."""
    sums, sizes = state.sums, state.sizes
    arms, sets, scores, bounds, top, low = (
        scratch.arms,
        scratch.sets,
        scratch.scores,
        scratch.bounds,
        scratch.top,
        scratch.low,
    )
    n_arms = scores.size
    bound_mean(state, count, d, scratch)
    for a in range(n_arms):
        scores[a] = -np.inf
    while True:
        best = -np.inf
        arm = 0
        for a in range(n_arms):
            best = max(best, low[a])
            if top[a] > top[arm]:
                arm = a
        # Twice the tie margin: the second covers the rounding of the running sums.
        enough = best - 2.0 * TIE
        if top[arm] < enough or top[arm] == -np.inf:
            return
        rivals = 0
        for a in range(n_arms):
            rivals += max(top[a], scores[a]) >= enough
        if rivals == 1:
            scores[arm] = top[arm]  # not exact, and highest all the same
            return
        c = 0
        while bounds[c, arm] < top[arm]:
            c += 1
        s = sets[c]
        if scores[arm] == -np.inf:
            for w in range(scratch.known.shape[1]):
                scratch.known[arm, w] = np.uint64(0)
        exact = dot(arms, arm, sums, s, 0, d) / sizes[s] + state.float_params[ALPHA] * mean_root(
            state, s, arm, d, scratch
        )
        scores[arm] = max(scores[arm], exact)
        low[arm] = max(low[arm], exact)
        bounds[c, arm] = -np.inf
        top[arm] = -np.inf
        for c in range(count):
            top[arm] = max(top[arm], bounds[c, arm])


@inline
def score(state: LOCBState, user: int, contexts: Floats, scratch: ScoringScratch) -> None:
    """Fill scratch.scores: exact for every arm that can be highest or tied with it, lower for the others."""
    d = contexts.shape[1]
    expand_contexts(contexts, scratch.arms)
    count = collect_distinct_clusters(state, user, scratch)
    if count == 0:
        score_arms(scratch.arms, state.estimates, user, d, state.float_params[ALPHA], 1.0, scratch.scores)
    elif state.int_params[BONUS_KIND] != POOLED:
        score_mean(state, count, d, scratch)
    elif state.int_params[N_USERS] >= state.drift_bound_min_users[0] and count >= FEW_SETS:
        score_pooled_many(state, count, d, scratch)
    else:
        score_pooled(state, count, d, scratch)

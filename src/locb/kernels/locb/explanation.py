"""What each arm is worth under LOCB: of all sets that hold the user, the one that scores the arm highest."""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline
from locb.kernels.common.explanation import explain_arms
from locb.kernels.common.linear_algebra import TIE, dot, expand_contexts, is_valid, pick_arm
from locb.kernels.locb.scoring import bound_mean, collect_distinct_clusters, mean_root
from locb.kernels.locb.state import ALPHA, BONUS_KIND, POOLED, TIES, LOCBState, ScoringScratch, allocate_scoring_scratch


@inline
def explain_sets(
    state: LOCBState, count: int, d: int, scratch: ScoringScratch, estimate: Floats, bonus: Floats, sources: Ints
) -> None:
    """Mean and bonus of every arm in the set that scores it highest, the first of these, and which set that is."""
    arms, known, scores = scratch.arms, scratch.known, scratch.scores
    pooled = state.int_params[BONUS_KIND] == POOLED
    if not pooled:
        bound_mean(state, count, d, scratch)
    for a in range(scores.size):
        scores[a] = -np.inf
        for w in range(known.shape[1]):
            known[a, w] = np.uint64(0)
    for c in range(count):
        s = scratch.sets[c]
        share = 1.0 / state.sizes[s]
        for a in range(scores.size):
            mean = dot(arms, a, state.sums, s, 0, d) * share
            if not pooled and scratch.bounds[c, a] < scores[a] - TIE:
                continue  # its members need no visit; the margin covers the rounding of the bound
            if pooled:
                spread = dot(arms, a, state.sums, s, d, arms.shape[1]) * share
                reach = state.float_params[ALPHA] * math.sqrt(max(spread, 0.0))
            else:
                reach = state.float_params[ALPHA] * mean_root(state, s, a, d, scratch)
            if mean + reach > scores[a]:
                scores[a] = mean + reach
                estimate[a], bonus[a], sources[a] = mean, reach, s


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
    """For every user the arm now, −1 if a context is not usable, and the set that lends its estimate, −1 if none does.

    The arms of user i are the rows of ``contexts`` up to ``ends[i]``, from where those of the user before end. What
    each arm is worth, the estimates lent (b, d), and arms and sets (b, 2) go into the last four.
    """
    d = contexts.shape[1]
    stop = 0
    for i in range(users.size):
        user, start = users[i], stop
        stop = ends[i]
        chosen[i, 0] = chosen[i, 1] = -1
        if not is_valid(contexts[start:stop].ravel()):
            continue
        worth, reach = estimate[start:stop], bonus[start:stop]
        scratch = allocate_scoring_scratch(state, stop - start, d)
        sources = np.full(stop - start, -1)
        expand_contexts(contexts[start:stop], scratch.arms)
        count = collect_distinct_clusters(state, user, scratch)
        if count > 0:
            explain_sets(state, count, d, scratch, worth, reach, sources)
        else:
            explain_arms(scratch.arms, state.estimates, user, d, state.float_params[ALPHA], 1.0, worth, reach)
        arm = pick_arm(worth + reach, state.int_params[TIES], state.generator)
        s = sources[arm]
        for q in range(d):
            theta[i, q] = state.estimates[user, q] if s < 0 else state.sums[s, q] / state.sizes[s]
        chosen[i, 0], chosen[i, 1] = arm, s

"""LOCB's explanations: the estimate and the bonus of every arm, and the cluster that gives them.

Terms and symbols are defined in ``locb.kernels.locb.state`` and ``locb.kernels``.
"""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline
from locb.kernels.common.arm_scoring import TIE, apply_screen, dot, expand_contexts, explain_arms, is_valid, pick_arm
from locb.kernels.locb.scoring import (
    allocate_scoring_scratch,
    bound_mean_scores,
    collect_distinct_clusters,
    mean_root,
)
from locb.kernels.locb.state import ALPHA, BONUS_KIND, POOLED, SCREEN_WIDTH, TIES, LOCBState, ScoringScratch


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

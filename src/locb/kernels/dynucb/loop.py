"""DynUCB's rounds: recommend, update and play. After each round, the served user moves to the nearest cluster.

θ_C and A_C are the estimate and the matrix A of cluster C. Further symbols are defined in ``locb.kernels``.
"""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.arm_scoring import expand_contexts, next_random, pick_arm, score_arms
from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import add_observation, rank_one_update, solve_ridge, squared_distance
from locb.kernels.dynucb.state import N_USERS, TIES, DynUCBScratch, DynUCBState, T, allocate_scratch

__all__ = ["allocate_scratch", "assign_clusters", "run_rounds"]


@entry_point
def assign_clusters(state: DynUCBState, first: int, stop: int) -> None:
    """Put each of the users from ``first`` to ``stop`` − 1 into a random cluster."""
    n_clusters = np.uint64(state.sizes.size)
    for i in range(first, stop):
        c = np.int64(((next_random(state.generator) >> np.uint64(33)) * n_clusters) >> np.uint64(31))
        state.cluster[i] = c
        state.sizes[c] += 1


@inline
def choose(state: DynUCBState, user: int, contexts: Floats, scratch: DynUCBScratch) -> int:
    """Return the arm with the largest score θ_Cᵀx + α √(xᵀA_C⁻¹x · log(t + 1)), or −1 if the scores are NaN."""
    log_round = math.log(state.int_params[T] + 2.0)  # int_params[T] rounds are complete, so this is round t = T + 1
    row, alpha = state.cluster[user], state.float_params[0]
    expand_contexts(contexts, scratch.arms)
    score_arms(scratch.arms, state.cluster_estimates, row, contexts.shape[1], alpha, log_round, scratch.scores)
    return pick_arm(scratch.scores, state.int_params[TIES], state.generator)


@inline
def find_nearest(state: DynUCBState, i: int, d: int) -> int:
    """Return the cluster with the smallest ‖θ̂_i − θ_C‖: of equally near clusters, that of user i, or else the first."""
    nearest = state.cluster[i]
    shortest = squared_distance(state.estimates, i, state.cluster_estimates, nearest, d)
    for c in range(state.sizes.size):
        distance = squared_distance(state.estimates, i, state.cluster_estimates, c, d)
        if distance < shortest:
            nearest, shortest = c, distance
    return int(nearest)


@no_alloc
def move_user(state: DynUCBState, i: int, new: int, workspace: Floats) -> None:
    """Move user i to the cluster ``new``. The sums of the old cluster are recomputed from its users."""
    old, total, sums = state.cluster[i], state.cluster_sums, state.sums
    state.cluster[i] = new
    for c, change in ((old, -1), (new, 1)):
        state.sizes[c] += change
        state.cluster_served[c] += change * state.served[i]
    for q in range(total.shape[1]):
        total[old, q] = 0.0
        total[new, q] += sums[i, q]
    for j in range(state.int_params[N_USERS]):
        if state.cluster[j] == old and state.served[j] > 0:
            for q in range(total.shape[1]):
                total[old, q] += sums[j, q]
    solve_ridge(total, old, state.cluster_estimates, old, workspace)
    solve_ridge(total, new, state.cluster_estimates, new, workspace)


@inline
def learn_round(state: DynUCBState, i: int, x: Floats, reward: float, scratch: DynUCBScratch) -> None:
    """Learn one observation, and move the user to the cluster that is nearest to the new estimate of the user.

    The distances are those from the estimates that the clusters had before the round.
    """
    rank_one_update(state.estimates, i, x, reward, scratch.step)
    add_observation(state.sums, i, x, reward)
    nearest, c = find_nearest(state, i, x.size), state.cluster[i]
    rank_one_update(state.cluster_estimates, c, x, reward, scratch.step)
    add_observation(state.cluster_sums, c, x, reward)
    state.int_params[T] += 1
    state.served[i] += 1
    state.cluster_served[c] += 1
    if nearest != c:
        move_user(state, i, nearest, scratch.workspace)


@no_alloc
def run_rounds(
    state: DynUCBState,
    scratch: DynUCBScratch,
    steps: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
) -> None:
    """Run T rounds (see ``locb.kernels.common.handles``)."""
    for t in range(users.size):
        if steps & CHOOSE:
            chosen[t] = choose(state, users[t], contexts[t], scratch)
        if steps & LEARN:
            learn_round(state, users[t], contexts[t, chosen[t]], rewards[t, chosen[t]], scratch)

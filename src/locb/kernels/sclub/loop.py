"""SCLUB's rounds: recommend, update and play. Clusters split and merge; users in one cluster share one estimate.

Terms and symbols are defined in ``locb.kernels.sclub.state`` and ``locb.kernels``.
"""

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline, no_alloc
from locb.kernels.common.arm_scoring import apply_screen, expand_contexts, pick_arm, score_arms
from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import add_observation, rank_one_update
from locb.kernels.sclub.merging import merge_clusters
from locb.kernels.sclub.phases import begin_phase
from locb.kernels.sclub.splitting import enqueue, frequency_differs, is_far, split_off
from locb.kernels.sclub.state import (
    ALPHA,
    BLOCK,
    HIGH,
    PHASE_END,
    SCREEN_WIDTH,
    TIES,
    SCLUBScratch,
    SCLUBState,
    T,
)


@inline
def score(state: SCLUBState, user: int, contexts: Floats, scratch: SCLUBScratch) -> None:
    """Write the score θ̂ᵀx + α √(xᵀ(I + S)⁻¹x) of every arm to ``scratch.scores``; θ̂ and S are those of the cluster."""
    row = state.slot[user]
    expand_contexts(contexts, scratch.arms)
    score_arms(
        scratch.arms, state.cluster_estimates, row, contexts.shape[1], state.float_params[ALPHA], 1.0, scratch.scores
    )


@inline
def choose(state: SCLUBState, user: int, contexts: Floats, scratch: SCLUBScratch) -> int:
    """Return the arm with the highest score, or its replacement by the safety screen; −1 if the scores are NaN."""
    score(state, user, contexts, scratch)
    ties, width = state.int_params[TIES], state.float_params[SCREEN_WIDTH]
    arm = pick_arm(scratch.scores, ties, state.generator)
    if width == 0.0 or arm < 0:
        return arm
    d = contexts.shape[1]
    return apply_screen(scratch.arms, state.estimates, user, d, width, arm, ties, state.generator, scratch.scores)


@inline
def learn_round(state: SCLUBState, i: int, x: Floats, reward: float, scratch: SCLUBScratch) -> None:
    """Learn one observation: update the estimates of user i and of the cluster of i, then split and merge clusters."""
    int_params = state.int_params
    if int_params[T] == int_params[PHASE_END]:
        begin_phase(state, scratch.workspace)
    row = state.slot[i]
    rank_one_update(state.estimates, i, x, reward, scratch.step)
    add_observation(state.sums, i, x, reward)
    rank_one_update(state.cluster_estimates, row, x, reward, scratch.step)
    add_observation(state.cluster_sums, row, x, reward)
    int_params[T] += 1
    state.served[i] += 1
    state.cluster_served[row] += 1
    state.served_range[row, HIGH] = max(state.served_range[row, HIGH], state.served[i])
    enqueue(state, row)
    if state.sizes[row] > 1 and (is_far(state, i, x.size) or frequency_differs(state, i)):
        split_off(state, i, scratch.workspace)
    if state.checked[i] == 0:
        state.checked[i] = 1
        state.unchecked[state.slot[i]] -= 1
    merge_clusters(state, scratch.workspace, scratch.distances)


def allocate_scratch(state: SCLUBState, n_arms: int, dim: int) -> SCLUBScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return SCLUBScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty(columns),
        np.empty((2 * dim, dim)),
        np.empty(BLOCK, np.float32),
    )


@no_alloc
def run_rounds(
    state: SCLUBState,
    scratch: SCLUBScratch,
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

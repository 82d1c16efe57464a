"""SCLUB's rounds: recommend, update and play. Clusters split and merge; users in one cluster share one estimate."""

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.arm_scoring import apply_screen, expand_contexts, is_valid, pick_arm, score_arms
from locb.kernels.common.linear_algebra import add_observation, rank_one_update, squared_distance
from locb.kernels.confidence_radii import shrinkage
from locb.kernels.sclub.merging import merge_clusters
from locb.kernels.sclub.splitting import begin_phase, enqueue, frequency_differs, split_off
from locb.kernels.sclub.state import (
    ALPHA,
    ALPHA_THETA,
    HIGH,
    PHASE_END,
    SCREEN_WIDTH,
    TIES,
    SCLUBScratch,
    SCLUBState,
    T,
    allocate_scratch,
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
    d = x.size
    int_params, float_params = state.int_params, state.float_params
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
    if state.sizes[row] > 1:
        reach = float_params[ALPHA_THETA] * (shrinkage(state.served[i]) + shrinkage(state.phase_served[row]))
        far = squared_distance(state.estimates, i, state.phase_theta, row, d) > reach * reach
        if far or frequency_differs(state, i):
            split_off(state, i, scratch.workspace)
    if state.checked[i] == 0:
        state.checked[i] = 1
        state.unchecked[state.slot[i]] -= 1
    merge_clusters(state, scratch.workspace, scratch.distances)


@entry_point
def recommend(state: SCLUBState, user: int, contexts: Floats) -> int:
    """Return the arm to recommend to a user, or −1 if a context is invalid or the scores are NaN."""
    if not is_valid(contexts.ravel()):
        return -1
    scratch = allocate_scratch(state, contexts.shape[0], contexts.shape[1])
    return choose(state, user, contexts, scratch)


@entry_point
def update(state: SCLUBState, user: int, x: Floats, reward: float) -> bool:
    """Learn the reward of context x and return True; if x is invalid (``is_valid``), learn nothing and return False."""
    if not is_valid(x):
        return False
    learn_round(state, user, x, reward, allocate_scratch(state, 1, x.size))
    return True


@no_alloc
def play_rounds(
    state: SCLUBState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints, scratch: SCLUBScratch
) -> None:
    """Run the rounds of ``play`` without allocating memory."""
    for t in range(users.size):
        arm = choose(state, users[t], contexts[t], scratch)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], scratch)


@entry_point
def play(state: SCLUBState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Choose an arm and learn its reward in each of T rounds; write the chosen arms to ``chosen`` (T,)."""
    play_rounds(state, users, contexts, rewards, chosen, allocate_scratch(state, contexts.shape[1], contexts.shape[2]))

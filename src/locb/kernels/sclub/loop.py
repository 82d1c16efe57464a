"""SCLUB: sets of users that split and merge; users in one set share one estimate."""

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import alloc, entry_point, inline, no_alloc
from locb.evaluation.confidence import shrinkage
from locb.kernels.common.linear_algebra import (
    add_observation,
    expand,
    learn,
    pick,
    score_arms,
    squared_distance,
    usable,
)
from locb.kernels.sclub.clusters import (
    ALPHA,
    ALPHA_THETA,
    BLOCK,
    MOST,
    PHASE_END,
    TIES,
    SetScratch,
    SetState,
    T,
    begin_phase,
    has_moved,
    is_served_unlike,
    split_off,
)
from locb.kernels.sclub.merging import merge


@alloc
def scratch_for(state: SetState, n_arms: int, dim: int) -> SetScratch:
    """Room for rounds of ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return SetScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty(columns),
        np.empty((2 * dim, dim)),
        np.empty(BLOCK, np.float32),
    )


@inline
def score(state: SetState, user: int, contexts: Floats, scratch: SetScratch) -> None:
    """θ̂ᵀx + α √(xᵀ (I + S)⁻¹ x) of every arm, from the cluster of the user."""
    row = state.slot[user]
    expand(contexts, scratch.arms)
    score_arms(scratch.arms, state.shared, row, contexts.shape[1], state.float_params[ALPHA], 1.0, scratch.scores)


@inline
def learn_round(state: SetState, i: int, x: Floats, reward: float, scratch: SetScratch) -> None:
    """One observation of user i: its own estimate, its cluster's, then the split and the merges."""
    d = x.size
    int_params, float_params = state.int_params, state.float_params
    if int_params[T] == int_params[PHASE_END]:
        begin_phase(state, scratch.room)
    row = state.slot[i]
    learn(state.estimates, i, x, reward, scratch.step)
    add_observation(state.sums, i, x, reward)
    learn(state.shared, row, x, reward, scratch.step)
    add_observation(state.shared_sums, row, x, reward)
    int_params[T] += 1
    state.served[i] += 1
    state.shared_served[row] += 1
    state.span[row, MOST] = max(state.span[row, MOST], state.served[i])
    has_moved(state, row)
    if state.sizes[row] > 1:
        reach = float_params[ALPHA_THETA] * (shrinkage(state.served[i]) + shrinkage(state.phase_served[row]))
        far = squared_distance(state.estimates, i, state.phase_theta, row, d) > reach * reach
        if far or is_served_unlike(state, i):
            split_off(state, i, scratch.room)
    if state.checked[i] == 0:
        state.checked[i] = 1
        state.unchecked[state.slot[i]] -= 1
    merge(state, scratch.room, scratch.near)


@entry_point
def recommend(state: SetState, user: int, contexts: Floats) -> int:
    """The arm for one user now; −1 if a context is not usable."""
    if not usable(contexts.ravel()):
        return -1
    scratch = scratch_for(state, contexts.shape[0], contexts.shape[1])
    score(state, user, contexts, scratch)
    return pick(scratch.scores, state.int_params[TIES], state.generator)


@entry_point
def update(state: SetState, user: int, x: Floats, reward: float) -> bool:
    """Learn one observation; False, and nothing learned, if the context is not usable."""
    if not usable(x):
        return False
    learn_round(state, user, x, reward, scratch_for(state, 1, x.size))
    return True


@no_alloc
def play_rounds(
    state: SetState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints, scratch: SetScratch
) -> None:
    """The loop of ``play``."""
    for t in range(users.size):
        score(state, users[t], contexts[t], scratch)
        arm = pick(scratch.scores, state.int_params[TIES], state.generator)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], scratch)


@entry_point
def play(state: SetState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Recommend and learn, round after round."""
    play_rounds(state, users, contexts, rewards, chosen, scratch_for(state, contexts.shape[1], contexts.shape[2]))

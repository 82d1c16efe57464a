"""LinUCB's rounds: recommend, update and play, with one linear estimate per user or one for all users."""

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, no_alloc
from locb.kernels.common.arm_scoring import expand_contexts, is_valid, pick_arm, score_arms
from locb.kernels.common.linear_algebra import rank_one_update
from locb.kernels.linucb.state import SHARED, TIES, LinUCBState, T


@entry_point
def recommend(state: LinUCBState, user: int, contexts: Floats) -> int:
    """Return the arm to recommend to a user, or −1 if a context is invalid or the scores are NaN."""
    if not is_valid(contexts.ravel()):
        return -1
    n_arms, d = contexts.shape
    arms = np.empty((n_arms, state.estimates.shape[1]))
    scores = np.empty(n_arms)
    row = user if state.int_params[SHARED] == 0 else 0
    expand_contexts(contexts, arms)
    score_arms(arms, state.estimates, row, d, state.float_params[0], 1.0, scores)
    return pick_arm(scores, state.int_params[TIES], state.generator)


@entry_point
def update(state: LinUCBState, user: int, x: Floats, reward: float) -> bool:
    """Learn the reward of context x and return True; if x is invalid (``is_valid``), learn nothing and return False."""
    if not is_valid(x):
        return False
    row = user if state.int_params[SHARED] == 0 else 0
    rank_one_update(state.estimates, row, x, reward, np.empty(state.estimates.shape[1]))
    state.served[user] += 1
    state.int_params[T] += 1
    return True


@no_alloc
def play_rounds(
    state: LinUCBState,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
    arms: Floats,
    scores: Floats,
    step: Floats,
) -> None:
    """Run the rounds of ``play`` without allocating memory."""
    d = contexts.shape[2]
    estimates = state.estimates
    for t in range(users.size):
        user = users[t]
        row = user if state.int_params[SHARED] == 0 else 0
        expand_contexts(contexts[t], arms)
        score_arms(arms, estimates, row, d, state.float_params[0], 1.0, scores)
        arm = pick_arm(scores, state.int_params[TIES], state.generator)
        chosen[t] = arm
        rank_one_update(estimates, row, contexts[t, arm], rewards[t, arm], step)
        state.served[user] += 1
    state.int_params[T] += users.size


@entry_point
def play(state: LinUCBState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Choose an arm and learn its reward in each of T rounds; write the chosen arms to ``chosen`` (T,)."""
    n_arms = contexts.shape[1]
    estimates = state.estimates
    arms = np.empty((n_arms, estimates.shape[1]))
    scores = np.empty(n_arms)
    step = np.empty(estimates.shape[1])
    play_rounds(state, users, contexts, rewards, chosen, arms, scores, step)

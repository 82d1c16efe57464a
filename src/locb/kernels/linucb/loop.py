"""LinUCB: one linear estimate a user, or one for all."""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import entry_point, no_alloc
from locb.kernels.common.linear_algebra import expand, learn, pick, score_arms, usable

T, TIES, SHARED = 0, 1, 2


class LinearState(NamedTuple):
    """What LinUCB knows. e: estimates kept, one a user, or a single one."""

    estimates: Floats  # (e, d + p) θ̂ and A⁻¹, packed
    served: Ints  # (n,) m
    int_params: Ints  # t, ties, 1 if the users share one estimate
    float_params: Floats  # α
    generator: Words  # (1,) for random ties


@entry_point
def recommend(state: LinearState, user: int, contexts: Floats) -> int:
    """The arm for one user now; −1 if a context is not usable."""
    if not usable(contexts.ravel()):
        return -1
    n_arms, d = contexts.shape
    arms = np.empty((n_arms, state.estimates.shape[1]))
    scores = np.empty(n_arms)
    row = user if state.int_params[SHARED] == 0 else 0
    expand(contexts, arms)
    score_arms(arms, state.estimates, row, d, state.float_params[0], 1.0, scores)
    return pick(scores, state.int_params[TIES], state.generator)


@entry_point
def update(state: LinearState, user: int, x: Floats, reward: float) -> bool:
    """Learn one observation; False, and nothing learned, if the context is not usable."""
    if not usable(x):
        return False
    row = user if state.int_params[SHARED] == 0 else 0
    learn(state.estimates, row, x, reward, np.empty(state.estimates.shape[1]))
    state.served[user] += 1
    state.int_params[T] += 1
    return True


@no_alloc
def play_rounds(
    state: LinearState,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
    arms: Floats,
    scores: Floats,
    step: Floats,
) -> None:
    """The loop of ``play``."""
    d = contexts.shape[2]
    estimates = state.estimates
    for t in range(users.size):
        user = users[t]
        row = user if state.int_params[SHARED] == 0 else 0
        expand(contexts[t], arms)
        score_arms(arms, estimates, row, d, state.float_params[0], 1.0, scores)
        arm = pick(scores, state.int_params[TIES], state.generator)
        chosen[t] = arm
        learn(estimates, row, contexts[t, arm], rewards[t, arm], step)
        state.served[user] += 1
    state.int_params[T] += users.size


@entry_point
def play(state: LinearState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Recommend and learn, round after round."""
    n_arms = contexts.shape[1]
    estimates = state.estimates
    arms = np.empty((n_arms, estimates.shape[1]))
    scores = np.empty(n_arms)
    step = np.empty(estimates.shape[1])
    play_rounds(state, users, contexts, rewards, chosen, arms, scores, step)

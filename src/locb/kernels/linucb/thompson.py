"""The rounds of LinTS: recommend, update and play. The state is that of LinUCB; arms are scored by a random draw."""

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.arm_scoring import is_valid
from locb.kernels.common.linear_algebra import rank_one_update
from locb.kernels.common.thompson_sampling import choose_by_sample
from locb.kernels.linucb.loop import update
from locb.kernels.linucb.state import SHARED, TIES, LinUCBState, T

__all__ = ["play", "recommend", "update"]


@inline
def choose(state: LinUCBState, user: int, contexts: Floats, sample: Floats, workspace: Floats, scores: Floats) -> int:
    """Return the arm with the largest θ̃ᵀx, where θ̃ is a draw from N(θ̂, α² A⁻¹); −1 if the scores are NaN."""
    row = user if state.int_params[SHARED] == 0 else 0
    alpha, generator = state.float_params[0], state.generator
    ties = state.int_params[TIES]
    return choose_by_sample(state.estimates, row, contexts, alpha, ties, generator, sample, workspace, scores)


@entry_point
def recommend(state: LinUCBState, user: int, contexts: Floats) -> int:
    """Return the arm to recommend to a user, or −1 if a context is invalid or the scores are NaN."""
    if not is_valid(contexts.ravel()):
        return -1
    n_arms, d = contexts.shape
    return choose(state, user, contexts, np.empty(d), np.empty((d, d)), np.empty(n_arms))


@no_alloc
def play_rounds(
    state: LinUCBState,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
    sample: Floats,
    workspace: Floats,
    scores: Floats,
    step: Floats,
) -> None:
    """Run the rounds of ``play`` without allocating memory."""
    for t in range(users.size):
        user = users[t]
        arm = choose(state, user, contexts[t], sample, workspace, scores)
        chosen[t] = arm
        row = user if state.int_params[SHARED] == 0 else 0
        rank_one_update(state.estimates, row, contexts[t, arm], rewards[t, arm], step)
        state.served[user] += 1
    state.int_params[T] += users.size


@entry_point
def play(state: LinUCBState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Choose an arm and learn its reward in each of T rounds; write the chosen arms to ``chosen`` (T,)."""
    n_arms, d = contexts.shape[1:]
    step = np.empty(state.estimates.shape[1])
    play_rounds(state, users, contexts, rewards, chosen, np.empty(d), np.empty((d, d)), np.empty(n_arms), step)

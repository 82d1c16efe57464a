"""LinUCB's rounds, with one linear estimate per user or one for all users. Symbols: ``locb.kernels``."""

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import no_alloc
from locb.kernels.common.arm_scoring import expand_contexts, pick_arm, score_arms
from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import rank_one_update
from locb.kernels.linucb.state import SHARED, TIES, LinUCBScratch, LinUCBState, T


def allocate_scratch(state: LinUCBState, n_arms: int, _dim: int) -> LinUCBScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return LinUCBScratch(np.empty((n_arms, columns)), np.empty(n_arms), np.empty(columns))


@no_alloc
def run_rounds(
    state: LinUCBState,
    scratch: LinUCBScratch,
    steps: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
) -> None:
    """Run T rounds (see ``locb.kernels.common.handles``)."""
    d = contexts.shape[2]
    estimates = state.estimates
    for t in range(users.size):
        user = users[t]
        row = user if state.int_params[SHARED] == 0 else 0
        if steps & CHOOSE:
            expand_contexts(contexts[t], scratch.arms)
            score_arms(scratch.arms, estimates, row, d, state.float_params[0], 1.0, scratch.scores)
            chosen[t] = pick_arm(scratch.scores, state.int_params[TIES], state.generator)
        if steps & LEARN:
            arm = chosen[t]
            rank_one_update(estimates, row, contexts[t, arm], rewards[t, arm], scratch.step)
            state.served[user] += 1
            state.int_params[T] += 1

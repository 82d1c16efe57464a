"""The rounds of LinTS. The state is that of LinUCB; arms are scored by a random draw. Symbols: ``locb.kernels``."""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import no_alloc
from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import rank_one_update
from locb.kernels.common.thompson_sampling import choose_by_sample
from locb.kernels.linucb.state import SHARED, TIES, LinUCBState, T


class LinTSScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms."""

    sample: Floats  # (d,) the draw θ̃
    workspace: Floats  # (d, d)
    scores: Floats  # (k,)
    step: Floats  # (d + p,) change of an estimate


def allocate_scratch(state: LinUCBState, n_arms: int, dim: int) -> LinTSScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return LinTSScratch(np.empty(dim), np.empty((dim, dim)), np.empty(n_arms), np.empty(columns))


@no_alloc
def run_rounds(
    state: LinUCBState,
    scratch: LinTSScratch,
    steps: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
) -> None:
    """Run T rounds (see ``locb.kernels.common.handles``). The arm has the largest θ̃ᵀx, with θ̃ from N(θ̂, α² A⁻¹)."""
    sample, workspace, scores, step = scratch
    alpha, ties, generator = state.float_params[0], state.int_params[TIES], state.generator
    for t in range(users.size):
        user = users[t]
        row = user if state.int_params[SHARED] == 0 else 0
        if steps & CHOOSE:
            chosen[t] = choose_by_sample(
                state.estimates, row, contexts[t], alpha, ties, generator, sample, workspace, scores
            )
        if steps & LEARN:
            arm = chosen[t]
            rank_one_update(state.estimates, row, contexts[t, arm], rewards[t, arm], step)
            state.served[user] += 1
            state.int_params[T] += 1

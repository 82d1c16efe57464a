"""The state arrays and work arrays of CAB, and the constants that name their entries. Symbols: ``locb.kernels``."""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import alloc

T, N_USERS, TIES = 0, 1, 2  # entries of ``int_params``
ALPHA, GAMMA = 0, 1  # entries of ``float_params``


class CABState(NamedTuple):
    """The arrays of the state of CAB."""

    estimates: Floats  # (N, d + p) θ̂ and A⁻¹ of each user, from its own rounds and from rounds of similar users
    served: Ints  # (N,) m: rounds per user
    int_params: Ints  # t; n; tie rule
    float_params: Floats  # α; γ, the parameter ``gamma`` of CAB
    generator: Words  # (1,) random generator for ties


class CABScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms."""

    arms: Floats  # (k, d + p) x and x xᵀ of each arm, from ``expand_contexts``
    scores: Floats  # (k,)
    parts: Floats  # (k, 2) estimate and bonus of each arm
    predictions: Floats  # (N,) θ̂_jᵀx of one arm
    widths: Floats  # (N,) confidence width of each user for one arm
    step: Floats  # (d + p,) change of an estimate


@alloc
def allocate_scratch(state: CABState, n_arms: int, _dim: int) -> CABScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    capacity, columns = state.estimates.shape
    return CABScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty((n_arms, 2)),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(columns),
    )

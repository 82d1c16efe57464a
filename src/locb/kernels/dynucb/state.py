"""The state arrays and work arrays of DynUCB, and the constants that name their entries. Symbols: ``locb.kernels``."""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words

T, N_USERS, TIES = 0, 1, 2  # entries of ``int_params``


class DynUCBState(NamedTuple):
    """The arrays of the state of DynUCB, with C clusters."""

    estimates: Floats  # (N, d + p) θ̂ and A⁻¹ of each user
    sums: Floats  # (N, d + p) b and A − I of each user
    served: Ints  # (N,) m: rounds per user
    cluster: Ints  # (N,) cluster of each user
    cluster_estimates: Floats  # (C, d + p) θ̂ and A⁻¹ of each cluster
    cluster_sums: Floats  # (C, d + p) b and A − I of each cluster
    sizes: Ints  # (C,) users in each cluster
    cluster_served: Ints  # (C,) rounds of the users of each cluster
    int_params: Ints  # t; n; tie rule
    float_params: Floats  # α
    generator: Words  # (1,) random generator for the first clusters of users and for ties


class DynUCBScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms."""

    arms: Floats  # (k, d + p) x and x xᵀ of each arm, from ``expand_contexts``
    scores: Floats  # (k,)
    step: Floats  # (d + p,) change of an estimate
    workspace: Floats  # (2d, d) for ``solve_ridge``


def allocate_scratch(state: DynUCBState, n_arms: int, dim: int) -> DynUCBScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return DynUCBScratch(np.empty((n_arms, columns)), np.empty(n_arms), np.empty(columns), np.empty((2 * dim, dim)))

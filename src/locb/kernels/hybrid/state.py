"""The state arrays and work arrays of HybridLinUCB, and the constants that name their entries.

The model of a reward is θ_uᵀx + βᵀx + noise, with β shared by all users u. The ridge solution of all coefficients
needs two kinds of rows only (Li, Chu, Langford and Schapire, 2010, with z = x):

- per user, the estimate (θ̂, A⁻¹) of the user alone;
- the shared estimate (β̂, A₀⁻¹) with A₀ = I + Σ_u (I − A_u⁻¹) and b₀ = Σ_u θ̂_u.

The estimate of β + θ_u is w_u = θ̂_u + A_u⁻¹β̂, and its covariance is S_u = A_u⁻¹ + A_u⁻¹ A₀⁻¹ A_u⁻¹. Further symbols are
defined in ``locb.kernels``.
"""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import alloc

T, TIES = 0, 1  # entries of ``int_params``


class HybridState(NamedTuple):
    """The arrays of the state of HybridLinUCB."""

    estimates: Floats  # (N, d + p) θ̂_u and A_u⁻¹ of each user
    shared: Floats  # (1, d + p) β̂ and A₀⁻¹
    served: Ints  # (N,) m: rounds per user
    int_params: Ints  # t; tie rule
    float_params: Floats  # α
    generator: Words  # (1,) random generator for ties


class HybridScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms."""

    arms: Floats  # (k, d + p) x and x xᵀ of each arm, from ``expand_contexts``
    scores: Floats  # (k,)
    step: Floats  # (d + p,) change of an estimate
    row: Floats  # (1, d + p) w_u and S_u of the served user
    inverse: Floats  # (d, d) A_u⁻¹
    product: Floats  # (d, d) A₀⁻¹ A_u⁻¹
    vector: Floats  # (d,)


@alloc
def allocate_scratch(state: HybridState, n_arms: int, dim: int) -> HybridScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return HybridScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty(columns),
        np.empty((1, columns)),
        np.empty((dim, dim)),
        np.empty((dim, dim)),
        np.empty(dim),
    )

"""The state arrays and work arrays of MixedEffects, and the constants that name their entries.

The model: the vector θ_i of each user is drawn from the population N(μ₀, Σ₀). A reward is θ_iᵀx plus normal noise of
standard deviation σ. The posterior of user i is N(θ̄_i, V_i) with V_i = (Σ₀⁻¹ + G_i / σ²)⁻¹ and
θ̄_i = V_i (Σ₀⁻¹μ₀ + b_i / σ²). Further symbols are defined in ``locb.kernels``.
"""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import alloc

T, LAST_FIT, N_USERS, TIES, SAMPLED = 0, 1, 2, 3, 4  # entries of ``int_params``
ALPHA, SIGMA = 0, 1  # entries of ``float_params``
MOMENTS, NATURAL = 0, 1  # rows of ``population``


class MixedEffectsState(NamedTuple):
    """The arrays of the state of MixedEffects."""

    sums: Floats  # (N, d + p) b and G of each user
    population: Floats  # (2, d + p) μ₀ and Σ₀; Σ₀⁻¹μ₀ and Σ₀⁻¹
    served: Ints  # (N,) m: rounds per user
    int_params: Ints  # t; round of the last fit of the population; n; tie rule; 1 for Thompson sampling, else 0
    float_params: Floats  # α, σ
    generator: Words  # (1,) random generator for ties and draws


class MixedEffectsScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms."""

    arms: Floats  # (k, d + p) x and x xᵀ of each arm, from ``expand_contexts``
    scores: Floats  # (k,)
    system: Floats  # (1, d + p) Σ₀⁻¹μ₀ + b / σ² and Σ₀⁻¹ + G / σ² of a user
    posterior: Floats  # (1, d + p) θ̄ and V of a user
    total: Floats  # (1, d + p) sums over all users
    workspace: Floats  # (d, 2d + 1) for ``solve``
    square: Floats  # (d, d) for ``sample_gaussian``
    sample: Floats  # (d,)


@alloc
def allocate_scratch(state: MixedEffectsState, n_arms: int, dim: int) -> MixedEffectsScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    columns = state.sums.shape[1]
    return MixedEffectsScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty((1, columns)),
        np.empty((1, columns)),
        np.empty((1, columns)),
        np.empty((dim, 2 * dim + 1)),
        np.empty((dim, dim)),
        np.empty(dim),
    )

"""Posteriors of users, and the fit of the population. Symbols: ``locb.kernels.mixed_effects.state``."""

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, no_alloc
from locb.kernels.common.linear_algebra import solve
from locb.kernels.mixed_effects.state import (
    MOMENTS,
    N_USERS,
    NATURAL,
    SIGMA,
    MixedEffectsScratch,
    MixedEffectsState,
    allocate_scratch,
)


@no_alloc
def solve_posterior(state: MixedEffectsState, user: int, rows: Floats, to: int, scratch: MixedEffectsScratch) -> None:
    """Write θ̄ and V of a user to row ``to`` of ``rows``."""
    precision = 1.0 / (state.float_params[SIGMA] * state.float_params[SIGMA])
    for q in range(rows.shape[1]):
        scratch.system[0, q] = state.population[NATURAL, q] + precision * state.sums[user, q]
    solve(scratch.system, 0, rows, to, scratch.workspace)


@entry_point
def compute_posteriors(state: MixedEffectsState, users: Ints, rows: Floats, dim: int) -> None:
    """Write θ̄ and V of u users to ``rows`` (u, d + p)."""
    scratch = allocate_scratch(state, 1, dim)
    for k in range(users.size):
        solve_posterior(state, users[k], rows, k, scratch)


@no_alloc
def fit_population(state: MixedEffectsState, scratch: MixedEffectsScratch) -> None:
    """Replace μ₀ and Σ₀ by the averages of one step of expectation maximization.

    μ₀ is the mean of θ̄, and Σ₀ is the mean of V + (θ̄ − μ₀)(θ̄ − μ₀)ᵀ. Both are over the users with rounds and one
    pseudo-user with θ̄ = 0 and V = I. The posteriors use the old values of μ₀ and Σ₀. The sums are over differences from
    the old μ₀, so that large means do not cancel.
    """
    population, total, posterior = state.population, scratch.total, scratch.posterior
    d = scratch.sample.size
    for q in range(total.shape[1]):
        total[0, q] = 0.0
    count = 0.0
    for i in range(-1, state.int_params[N_USERS]):
        if i < 0:
            for q in range(total.shape[1]):
                posterior[0, q] = 0.0
            q = d
            for a in range(d):
                posterior[0, q] = 1.0
                q += d - a
        elif state.served[i] > 0:
            solve_posterior(state, i, posterior, 0, scratch)
        else:
            continue
        count += 1.0
        q = d
        for a in range(d):
            gap = posterior[0, a] - population[MOMENTS, a]
            total[0, a] += gap
            for b in range(a, d):
                total[0, q] += posterior[0, q] + gap * (posterior[0, b] - population[MOMENTS, b])
                q += 1
    q = d
    for a in range(d):
        shift = total[0, a] / count
        for b in range(a, d):
            population[MOMENTS, q] = total[0, q] / count - shift * (total[0, b] / count)
            q += 1
    for a in range(d):
        population[MOMENTS, a] += total[0, a] / count
    store_natural(state, scratch.workspace)


@no_alloc
def store_natural(state: MixedEffectsState, workspace: Floats) -> None:
    """Compute Σ₀⁻¹μ₀ and Σ₀⁻¹ from μ₀ and Σ₀."""
    solve(state.population, MOMENTS, state.population, NATURAL, workspace)


@entry_point
def rebuild_natural(state: MixedEffectsState, dim: int) -> None:
    """Compute Σ₀⁻¹μ₀ and Σ₀⁻¹ from μ₀ and Σ₀."""
    store_natural(state, np.empty((dim, 2 * dim + 1)))

"""ELOC's population: the mean μ_0 and the covariance Σ_0 of the users' θ, learned from one user per round.

The prior of a user is N(μ_0, Σ), where Σ is Σ_0 shrunk towards a multiple of I. V is the posterior covariance of a user
under this prior. Further symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``.
"""

from locb.common.arrays import Floats
from locb.common.jit import no_alloc
from locb.kernels.common.arm_scoring import dot
from locb.kernels.common.linear_algebra import count_used, mean_diagonal, solve
from locb.kernels.eloc.state import (
    CENTRE,
    LEAST_SQUARES,
    LOG_DET,
    MIN_VARIANCE,
    N_SERVED_USERS,
    PRECISION,
    PRIOR_USERS,
    PRIOR_VARIANCE,
    R_SCALE,
    SHRINKAGE_USERS,
    SOLUTION,
    SYSTEM,
    UNCERTAINTY,
    UNDER_POPULATION,
    WISHART_USERS,
    ELOCState,
)


@no_alloc
def update_covariance(rows: Floats, x: Floats, noise: float, square: Floats) -> None:
    """Compute V after one observation from V before the observation, with the Sherman–Morrison formula.

    Reads the old V from row UNDER_POPULATION of ``rows``, and writes the new V to the lower half of ``square``.
    """
    d = x.size
    for a in range(d):
        rows[SYSTEM, a] = 0.0
    q = d
    for a in range(d):  # V x, with the old V
        for b in range(a, d):
            covariance = rows[UNDER_POPULATION, q]
            rows[SYSTEM, a] += covariance * x[b]
            if b > a:
                rows[SYSTEM, b] += covariance * x[a]
            q += 1
    denominator = noise
    for a in range(d):
        denominator += x[a] * rows[SYSTEM, a]
    q = d
    for a in range(d):
        factor = rows[SYSTEM, a] / denominator
        for b in range(a, d):
            square[d + a, b] = rows[UNDER_POPULATION, q] - factor * rows[SYSTEM, b]
            square[d + b, a] = square[d + a, b]
            q += 1


@no_alloc
def recompute_covariance(
    sums: Floats, i: int, noise: float, population: Floats, rows: Floats, square: Floats, workspace: Floats
) -> None:
    """Compute V from the sums of user i.

    Used if ``memory`` is set, because the decay of earlier observations is not a rank-one update. Writes V to the lower
    half of ``square``.
    """
    d = workspace.shape[0]
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = sums[i, q] / noise + population[PRECISION, q]
    solve(rows, SYSTEM, rows, SOLUTION, workspace)
    q = d
    for a in range(d):
        for b in range(a, d):
            square[d + a, b] = rows[SOLUTION, q]
            square[d + b, a] = rows[SOLUTION, q]
            q += 1


@no_alloc
def update_centre_terms(
    sums: Floats, centre_terms: Floats, i: int, noise: float, population: Floats, rows: Floats, square: Floats
) -> None:
    """Replace the terms of user i in the least squares for μ_0.

    The new terms are the matrix Σ⁻¹ − Σ⁻¹ V Σ⁻¹ and the right-hand side Σ⁻¹ V b / σ². V is the covariance after
    this round, in the lower half of ``square``.
    """
    d = square.shape[1]
    q = d
    for a in range(d):
        for b in range(a, d):
            square[a, b] = population[PRECISION, q]
            square[b, a] = population[PRECISION, q]
            q += 1
    magnitude = 0.0
    q = d
    for a in range(d):
        for h in range(d):
            rows[SOLUTION, h] = 0.0
        for b in range(d):  # a row of Σ⁻¹ V
            for h in range(d):
                rows[SOLUTION, h] += square[a, b] * square[d + b, h]
        total = 0.0
        for h in range(d):
            total += rows[SOLUTION, h] * sums[i, h]
        rows[SYSTEM, a] = total / noise
        magnitude += abs(rows[SYSTEM, a])
        for b in range(a, d):
            total = square[a, b] - dot(rows, SOLUTION, square, b, 0, d)
            rows[SYSTEM, q] = total
            magnitude += abs(total)
            q += 1
    is_usable = magnitude < 1e30  # the terms of a user with extreme rewards are omitted, because sums could overflow
    for q in range(rows.shape[1]):
        population[LEAST_SQUARES, q] -= centre_terms[i, q]
        centre_terms[i, q] = rows[SYSTEM, q] if is_usable else 0.0
        population[LEAST_SQUARES, q] += centre_terms[i, q]


@no_alloc
def update_population(state: ELOCState, rows: Floats, square: Floats, workspace: Floats) -> None:
    """Move Σ_0 towards the second moment of the served user's θ around μ_0.

    ``derive_population`` recomputes the values that depend on Σ_0. The second moment is shrunk towards
    PRIOR_VARIANCE · scale · I / u with the weight of WISHART_USERS users, where u is the number of used features.
    """
    population, n_served_users = state.population, state.int_params[N_SERVED_USERS]
    d = workspace.shape[0]
    prior = PRIOR_VARIANCE / count_used(state.pooled_sums, state.seeds.size, d)
    step = 1.0 / (n_served_users + PRIOR_USERS)
    share = WISHART_USERS / (n_served_users + WISHART_USERS)
    q = d
    for a in range(d):
        deviation = rows[UNDER_POPULATION, a] - population[CENTRE, a]
        for b in range(a, d):
            target = rows[UNDER_POPULATION, q] + deviation * (rows[UNDER_POPULATION, b] - population[CENTRE, b])
            target *= 1.0 - share
            if a == b:
                target += (MIN_VARIANCE + share * prior) * state.reward_stats[R_SCALE]
            population[CENTRE, q] += step * (target - population[CENTRE, q])
            q += 1
    derive_population(state, rows, square, workspace)


@no_alloc
def derive_population(state: ELOCState, rows: Floats, square: Floats, workspace: Floats) -> None:
    """Solve the least squares for μ_0, and compute log det Σ and rows PRECISION and UNCERTAINTY from Σ_0.

    C_0, the covariance of μ_0, is the inverse of the least-squares matrix. Σ is Σ_0 shrunk towards the mean variance
    times I.
    """
    population = state.population
    d = workspace.shape[0]
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = population[LEAST_SQUARES, q]
    q = d
    for a in range(d):
        rows[SYSTEM, q] += 1.0 / (PRIOR_VARIANCE * state.reward_stats[R_SCALE])
        q += d - a
    solve(rows, SYSTEM, rows, SOLUTION, workspace)
    used = count_used(state.pooled_sums, state.seeds.size, d)
    users = SHRINKAGE_USERS * used * used
    weight = users / (users + state.int_params[N_SERVED_USERS])
    target = mean_diagonal(population, CENTRE, state.pooled_sums, state.seeds.size, d)
    for q in range(d, rows.shape[1]):
        rows[SYSTEM, q] = (1.0 - weight) * population[CENTRE, q]
    q = d
    for a in range(d):
        population[CENTRE, a] = rows[SOLUTION, a]
        rows[SYSTEM, a] = rows[SOLUTION, a]
        rows[SYSTEM, q] += weight * target
        q += d - a
    state.learned_scalars[LOG_DET] = solve(rows, SYSTEM, population, PRECISION, workspace)  # both Σ⁻¹ μ_0 and Σ⁻¹
    write_uncertainty(population, rows, square)


@no_alloc
def write_uncertainty(population: Floats, rows: Floats, square: Floats) -> None:
    """Write (tr Σ⁻¹ C_0, Σ⁻¹ C_0 Σ⁻¹) to row UNCERTAINTY; C_0 is in row SOLUTION of ``rows``."""
    d = square.shape[1]
    q = d
    for a in range(d):
        population[UNCERTAINTY, a] = 0.0
        for b in range(a, d):
            square[a, b] = population[PRECISION, q]
            square[b, a] = population[PRECISION, q]
            square[d + a, b] = rows[SOLUTION, q]
            square[d + b, a] = rows[SOLUTION, q]
            q += 1
    q = d
    for a in range(d):
        for h in range(d):
            square[2 * d, h] = 0.0
        for b in range(d):  # a row of Σ⁻¹ C_0
            for h in range(d):
                square[2 * d, h] += square[a, b] * square[d + b, h]
        population[UNCERTAINTY, 0] += square[2 * d, a]
        for b in range(a, d):
            population[UNCERTAINTY, q] = dot(square, 2 * d, square, b, 0, d)
            q += 1

"""ELOC's population: the mean μ_0 and the covariance Σ_0 of the users' θ, learned from one user per round.

V is the posterior covariance of a user under the prior N(μ_0, Σ_0). Further symbols are defined in
``locb.kernels.eloc.state`` and ``locb.kernels``.
"""

from locb.common.arrays import Floats
from locb.common.jit import no_alloc
from locb.kernels.common.cholesky import decompose, solve, substitute
from locb.kernels.eloc.state import (
    CENTRE,
    CENTRE_RIDGE,
    LEAST_SQUARES,
    MIN_VARIANCE,
    PRECISION,
    PRIOR_USERS,
    SOLUTION,
    SYSTEM,
    UNDER_POPULATION,
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
    """Compute V from the sums of user i, for the parameter ``memory``: decay is not a rank-one update.

    Writes V to the lower half of ``square``.
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

    The new terms are the matrix Σ_0⁻¹ − Σ_0⁻¹ V Σ_0⁻¹ and the right-hand side Σ_0⁻¹ V b / σ². V is the covariance after
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
        for b in range(d):  # a row of Σ_0⁻¹ V
            for h in range(d):
                rows[SOLUTION, h] += square[a, b] * square[d + b, h]
        total = 0.0
        for h in range(d):
            total += rows[SOLUTION, h] * sums[i, h]
        rows[SYSTEM, a] = total / noise
        magnitude += abs(rows[SYSTEM, a])
        for b in range(a, d):
            total = square[a, b]
            for h in range(d):
                total -= rows[SOLUTION, h] * square[h, b]
            rows[SYSTEM, q] = total
            magnitude += abs(total)
            q += 1
    is_usable = magnitude < 1e30  # the terms of a user with extreme rewards are omitted, because sums could overflow
    for q in range(rows.shape[1]):
        population[LEAST_SQUARES, q] -= centre_terms[i, q]
        centre_terms[i, q] = rows[SYSTEM, q] if is_usable else 0.0
        population[LEAST_SQUARES, q] += centre_terms[i, q]


@no_alloc
def update_population(population: Floats, n_served_users: int, rows: Floats, workspace: Floats) -> float:
    """Move Σ_0 towards the second moment of the served user's θ around μ_0, and solve the least squares for μ_0.

    Returns log det Σ_0.
    """
    d = workspace.shape[0]
    step = 1.0 / (n_served_users + PRIOR_USERS)
    q = d
    for a in range(d):
        deviation = rows[UNDER_POPULATION, a] - population[CENTRE, a]
        for b in range(a, d):
            target = rows[UNDER_POPULATION, q] + deviation * (rows[UNDER_POPULATION, b] - population[CENTRE, b])
            if a == b:
                target += MIN_VARIANCE
            population[CENTRE, q] += step * (target - population[CENTRE, q])
            q += 1
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = population[LEAST_SQUARES, q]
    q = d
    for a in range(d):
        rows[SYSTEM, q] += CENTRE_RIDGE
        q += d - a
    decompose(rows, SYSTEM, workspace)
    substitute(rows, SYSTEM, population, CENTRE, workspace)
    # Solving Σ_0 z = μ_0 gives both Σ_0⁻¹ μ_0 and Σ_0⁻¹.
    return solve(population, CENTRE, population, PRECISION, workspace)

"""What ELOC learns about the population from one user: the centre μ_0 and the spread Σ_0 of tastes."""

from locb.common.arrays import Floats
from locb.common.jit import no_alloc
from locb.kernels.common.cholesky import decompose, solve, substitute
from locb.kernels.eloc.state import CENTRE, CENTRE_RIDGE, EQUATION, LEFT, OWN, PRECISION, RIGHT, SPREAD_FLOOR, USER_LAG


@no_alloc
def inside_now(rows: Floats, x: Floats, noise: float, square: Floats) -> None:
    """The user's covariance under the population after this round, V: that before it, less what one more arm tells."""
    d = x.size
    for a in range(d):
        rows[LEFT, a] = 0.0
    q = d
    for a in range(d):  # V x, with V of before
        for b in range(a, d):
            inside = rows[OWN, q]
            rows[LEFT, a] += inside * x[b]
            if b > a:
                rows[LEFT, b] += inside * x[a]
            q += 1
    growth = noise
    for a in range(d):
        growth += x[a] * rows[LEFT, a]
    q = d
    for a in range(d):
        factor = rows[LEFT, a] / growth
        for b in range(a, d):
            square[d + a, b] = rows[OWN, q] - factor * rows[LEFT, b]
            square[d + b, a] = square[d + a, b]
            q += 1


@no_alloc
def inside_anew(
    sums: Floats, i: int, noise: float, population: Floats, rows: Floats, square: Floats, work: Floats
) -> None:
    """The same where what the user did has faded meanwhile: from the sums."""
    d = work.shape[0]
    for q in range(rows.shape[1]):
        rows[LEFT, q] = sums[i, q] / noise + population[PRECISION, q]
    solve(rows, LEFT, rows, RIGHT, work)
    q = d
    for a in range(d):
        for b in range(a, d):
            square[d + a, b] = rows[RIGHT, q]
            square[d + b, a] = rows[RIGHT, q]
            q += 1


@no_alloc
def learn_terms(
    sums: Floats, centre_terms: Floats, i: int, noise: float, population: Floats, rows: Floats, square: Floats
) -> None:
    """Replace what user i adds to the least squares for μ_0: Σ_0⁻¹ − Σ_0⁻¹ V Σ_0⁻¹ and Σ_0⁻¹ V b / σ².

    V is the user's covariance under the population after this round, in the lower half of the square.
    """
    d = square.shape[1]
    q = d
    for a in range(d):
        for b in range(a, d):
            square[a, b] = population[PRECISION, q]
            square[b, a] = population[PRECISION, q]
            q += 1
    size = 0.0
    q = d
    for a in range(d):
        for h in range(d):
            rows[RIGHT, h] = 0.0
        for b in range(d):  # a row of Σ_0⁻¹ V
            for h in range(d):
                rows[RIGHT, h] += square[a, b] * square[d + b, h]
        total = 0.0
        for h in range(d):
            total += rows[RIGHT, h] * sums[i, h]
        rows[LEFT, a] = total / noise
        size += abs(rows[LEFT, a])
        for b in range(a, d):
            total = square[a, b]
            for h in range(d):
                total -= rows[RIGHT, h] * square[h, b]
            rows[LEFT, q] = total
            size += abs(total)
            q += 1
    fits = size < 1e30  # rewards of absurd size: such a user says nothing about μ_0
    for q in range(rows.shape[1]):
        population[EQUATION, q] -= centre_terms[i, q]
        centre_terms[i, q] = rows[LEFT, q] if fits else 0.0
        population[EQUATION, q] += centre_terms[i, q]


@no_alloc
def learn_population(population: Floats, seen: int, rows: Floats, work: Floats) -> float:
    """Σ_0 moves towards the spread of the served user around μ_0; then μ_0 by least squares over all users.

    Returns log det Σ_0.
    """
    d = work.shape[0]
    step = 1.0 / (seen + USER_LAG)
    q = d
    for a in range(d):
        apart = rows[OWN, a] - population[CENTRE, a]
        for b in range(a, d):
            told = rows[OWN, q] + apart * (rows[OWN, b] - population[CENTRE, b])
            if a == b:
                told += SPREAD_FLOOR
            population[CENTRE, q] += step * (told - population[CENTRE, q])
            q += 1
    for q in range(rows.shape[1]):
        rows[LEFT, q] = population[EQUATION, q]
    q = d
    for a in range(d):
        rows[LEFT, q] += CENTRE_RIDGE
        q += d - a
    decompose(rows, LEFT, work)
    substitute(rows, LEFT, population, CENTRE, work)
    # Solving Σ_0 z = μ_0 leaves Σ_0⁻¹ μ_0 and Σ_0⁻¹.
    return solve(population, CENTRE, population, PRECISION, work)

"""What ELOC believes about one user: evidence for each component, their weights, the mixture of what they say.

A component is a prior for the user's θ: N(μ, v I) for a neighbourhood or for everyone, N(μ_0, Σ_0) for the population.
With η = b/σ² + prior⁻¹ μ and V = (G/σ² + prior⁻¹)⁻¹ its posterior mean is V η and its log evidence, but for what all
components share, −½ log|I + G prior/σ²| − ½ μᵀ prior⁻¹ μ + ½ ηᵀ V η. For priors of one width v that is a quadratic
form in μ whose coefficients need one factorisation; so each centre costs one inner product of rows.
"""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline, no_alloc
from locb.kernels.common.cholesky import decompose, inverse_trace, solve, substitute
from locb.kernels.common.linear_algebra import dot, packed_trace
from locb.kernels.eloc.state import (
    ANSWER,
    CENTRE,
    EVERYONE,
    EVERYONE_WIDTH,
    GAMMA,
    LEFT,
    LOG_DET,
    MAX_NEIGHBOURHOODS,
    MIXTURE,
    NOISE,
    OWN,
    OWN_SHARE,
    POPULATION,
    PRECISION,
    RIGHT,
    RULED_OUT,
    WEIGHT_FLOOR,
    WIDTH_STEP,
    ELOCScratch,
    ELOCState,
    held,
)


@no_alloc
def solve_centre(equation: Floats, noise: float, inside: float, centres: Floats, s: int, work: Floats) -> int:
    """Solve the equation in row LEFT for a centre, into row s of the centres; the rounded width of its component.

    (A + σ² Σ_0⁻¹) μ = c + σ² Σ_0⁻¹ μ_0. The width is that of the users around the centre, ``inside``, plus that of what
    is not known about the centre, σ² tr (A + σ² Σ_0⁻¹)⁻¹ / d.
    """
    d = work.shape[0]
    decompose(equation, LEFT, work)
    substitute(equation, LEFT, equation, RIGHT, work)
    q = d
    for a in range(d):
        here = equation[RIGHT, a]
        centres[s, a] = here
        centres[s, q] = here * here
        q += 1
        for b in range(a + 1, d):
            centres[s, q] = 2.0 * here * equation[RIGHT, b]
            q += 1
    width = inside + noise * inverse_trace(work) / d
    return math.floor(math.log(max(width, 1e-100)) / WIDTH_STEP + 0.5)


@inline
def width_inside(state: ELOCState, s: int, d: int) -> float:
    """Variance, in any direction, of users around the centre of component s."""
    inside: float = state.float_params[GAMMA] * state.float_params[GAMMA] / (4.0 * d)
    return inside * EVERYONE_WIDTH if s == state.seeds.size else inside


@no_alloc
def factorise(
    sums: Floats,
    i: int,
    noise: float,
    v: float,
    f: int,
    scales: Floats,
    posteriors: Floats,
    forms: Floats,
    rows: Floats,
    work: Floats,
) -> None:
    """Fill place f with what all components of width v say about user i."""
    d = work.shape[0]
    scale = 1.0 / noise
    for q in range(rows.shape[1]):
        rows[LEFT, q] = sums[i, q] * scale
    q = d
    for a in range(d):
        rows[LEFT, q] += 1.0 / v
        q += d - a
    log_det = solve(rows, LEFT, posteriors, f, work)
    scales[f, 0] = v
    scales[f, 1] = 0.5 * (dot(posteriors, f, rows, LEFT, 0, d) - log_det - d * math.log(v))
    half = 0.5 / (v * v)
    for a in range(d):
        forms[f, a] = posteriors[f, a] / v
    for q in range(d, rows.shape[1]):
        forms[f, q] = half * posteriors[f, q]
    q = d
    for a in range(d):
        forms[f, q] -= 0.5 / v
        q += d - a


@inline
def factor_for(state: ELOCState, i: int, level: int, count: int, room: ELOCScratch) -> int:
    """The place of this level's factorisation, which is made in place ``count`` if there is none."""
    f = 0
    while f < count and room.known[f] != level:
        f += 1
    if f == count:
        room.known[f] = level
        v = math.exp(level * WIDTH_STEP)
        noise = state.learned_scalars[NOISE]
        factorise(state.sums, i, noise, v, f, room.scales, room.posteriors, room.forms, room.rows, room.work)
    return f


@inline
def weigh_population(
    sums: Floats, i: int, population: Floats, learned_scalars: Floats, rows: Floats, work: Floats
) -> float:
    """Posterior of user i under the population, into row OWN; its log evidence."""
    d = work.shape[0]
    scale = 1.0 / learned_scalars[NOISE]
    for q in range(rows.shape[1]):
        rows[LEFT, q] = sums[i, q] * scale + population[PRECISION, q]
    log_det = solve(rows, LEFT, rows, OWN, work)
    gained = dot(rows, OWN, rows, LEFT, 0, d) - dot(population, CENTRE, population, PRECISION, 0, d)
    told: float = 0.5 * (gained - log_det - learned_scalars[LOG_DET])
    return told


@inline
def leave_out(state: ELOCState, i: int, count: int, room: ELOCScratch) -> None:
    """Compare user i with those components of which it is itself a large part as they would be without it.

    Or a user would confirm itself. Not done for components that are ruled out even with the user in them.
    """
    d = room.work.shape[0]
    n_seeds = state.seeds.size
    noise = state.learned_scalars[NOISE]
    evidence, rows, pooled_sums, sums = room.evidence, room.rows, state.pooled_sums, state.sums
    best = -np.inf
    for s in range(n_seeds + 2):
        best = max(best, evidence[s])
    size = packed_trace(sums, i, d)
    for z in range(MAX_NEIGHBOURHOODS + 1):
        s = n_seeds if z == MAX_NEIGHBOURHOODS else held(state, i, z)
        share = 1.0 if z == MAX_NEIGHBOURHOODS else state.weights[i, z]
        if s < 0 or evidence[s] < best - RULED_OUT or share * size <= OWN_SHARE * packed_trace(pooled_sums, s, d):
            continue
        for q in range(rows.shape[1]):
            rows[LEFT, q] = pooled_sums[s, q] - share * sums[i, q] + noise * state.population[PRECISION, q]
        level = solve_centre(rows, noise, width_inside(state, s, d), room.lone, z, room.work)
        f = factor_for(state, i, level, count, room)
        count = max(count, f + 1)
        room.places[s, 0] = f
        room.places[s, 1] = z
        evidence[s] = room.scales[f, 1] + dot(room.forms, f, room.lone, z, 0, rows.shape[1])


@inline
def weigh(state: ELOCState, i: int, room: ELOCScratch) -> None:
    """The log evidence of every component for user i."""
    n_seeds = state.seeds.size
    columns = state.centres.shape[1]
    count = 0
    for s in range(n_seeds + 1):
        f = factor_for(state, i, state.width_levels[s], count, room)
        count = max(count, f + 1)
        room.places[s, 0] = f
        room.places[s, 1] = -1
        room.evidence[s] = room.scales[f, 1] + dot(room.forms, f, state.centres, s, 0, columns)
    told = weigh_population(state.sums, i, state.population, state.learned_scalars, room.rows, room.work)
    room.evidence[n_seeds + 1] = told
    leave_out(state, i, count, room)


@inline
def share_out(prior_weights: Floats, evidence: Floats, odds: Floats) -> None:
    """The responsibilities of the components, ∝ π exp(ℓ); 0 for those below WEIGHT_FLOOR of the largest."""
    best = -np.inf
    for s in range(odds.size):
        best = max(best, evidence[s])
    largest = 0.0
    for s in range(odds.size):
        odds[s] = 0.0
        if evidence[s] >= best - RULED_OUT:
            odds[s] = prior_weights[s] * math.exp(evidence[s] - best)
            largest = max(largest, odds[s])
    total = 0.0
    for s in range(odds.size):
        if odds[s] < WEIGHT_FLOOR * largest:
            odds[s] = 0.0
        total += odds[s]
    for s in range(odds.size):
        odds[s] /= total


@inline
def open_gate(learned_scalars: Floats, gated: Floats) -> None:
    """The gate's weights of everyone, the population and the mixture, ∝ exp(L)."""
    best = max(learned_scalars[EVERYONE], learned_scalars[POPULATION], learned_scalars[MIXTURE])
    total = 0.0
    for a in range(3):
        gated[a] = math.exp(learned_scalars[a] - best)
        total += gated[a]
    for a in range(3):
        gated[a] /= total


@inline
def component_mean(
    centres: Floats, row: int, posteriors: Floats, f: int, v: float, means: Floats, s: int, d: int
) -> None:
    """Posterior mean V (b/σ² + μ/v) of component s, whose centre is in a row."""
    for a in range(d):
        total = 0.0
        q = d + a  # down the column above the diagonal, then along the row
        for b in range(a):
            total += posteriors[f, q] * centres[row, b]
            q += d - 1 - b
        for b in range(a, d):
            total += posteriors[f, q] * centres[row, b]
            q += 1
        means[s, a] = posteriors[f, a] + total / v


@inline
def weight_of(s: int, odds: Floats, gated: Floats) -> float:
    """What component s weighs in the gated mixture."""
    weight: float = gated[MIXTURE] * odds[s]
    if s == odds.size - 2:
        weight += gated[EVERYONE]
    elif s == odds.size - 1:
        weight += gated[POPULATION]
    return weight


@no_alloc
def mix(
    centres: Floats,
    lone: Floats,
    places: Ints,
    scales: Floats,
    posteriors: Floats,
    odds: Floats,
    gated: Floats,
    means: Floats,
    rows: Floats,
    apart: Floats,
) -> None:
    """Mean and covariance of the gated mixture, within components and between them, into row ANSWER."""
    d = means.shape[1]
    everyone, population, mixture = odds.size - 2, odds.size - 1, odds.size
    for a in range(d):
        means[population, a] = rows[OWN, a]
        means[mixture, a] = 0.0
    for s in range(odds.size):
        if s < population and (odds[s] > 0.0 or s == everyone):
            f, z = places[s, 0], places[s, 1]
            if z < 0:
                component_mean(centres, s, posteriors, f, scales[f, 0], means, s, d)
            else:
                component_mean(lone, z, posteriors, f, scales[f, 0], means, s, d)
        if odds[s] > 0.0:
            for a in range(d):
                means[mixture, a] += odds[s] * means[s, a]
    for a in range(d):
        rows[ANSWER, a] = gated[EVERYONE] * means[everyone, a] + gated[POPULATION] * means[population, a]
        rows[ANSWER, a] += gated[MIXTURE] * means[mixture, a]
    for q in range(d, rows.shape[1]):
        rows[ANSWER, q] = 0.0
    count = 0  # the components that weigh anything, side by side: the root of the weight times how far each is apart
    for s in range(odds.size):
        weight = weight_of(s, odds, gated)
        if weight > 0.0:
            root = math.sqrt(weight)
            for a in range(d):
                apart[a, count] = root * (means[s, a] - rows[ANSWER, a])
            count += 1
            if s == population:
                add_inside(rows, rows, OWN, weight, d)
            else:
                add_inside(rows, posteriors, places[s, 0], weight, d)
    q = d
    for a in range(d):
        for b in range(a, d):
            rows[ANSWER, q] += dot(apart, a, apart, b, 0, count)
            q += 1


@inline
def add_inside(rows: Floats, posteriors: Floats, f: int, weight: float, d: int) -> None:
    """Add a multiple of one covariance to that of row ANSWER."""
    for q in range(d, rows.shape[1]):
        rows[ANSWER, q] += weight * posteriors[f, q]


@no_alloc
def believe(state: ELOCState, i: int, room: ELOCScratch) -> None:
    """Everything about user i that a choice or a lesson needs, into the scratch; the state stays as it is."""
    weigh(state, i, room)
    share_out(state.prior_weights, room.evidence, room.odds)
    open_gate(state.learned_scalars, room.gated)
    mix(
        state.centres,
        room.lone,
        room.places,
        room.scales,
        room.posteriors,
        room.odds,
        room.gated,
        room.means,
        room.rows,
        room.apart,
    )

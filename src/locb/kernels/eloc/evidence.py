"""ELOC's evidence: centres of components, and the log evidence of each component for one user.

Terms and symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``. A component is a prior N(μ, P) for
the user's θ, with P = v I for a neighbourhood or for everyone, and μ = μ_0 and P = Σ for the population. With
η = b/σ² + P⁻¹μ and V = (G/σ² + P⁻¹)⁻¹, the posterior mean is V η. The log evidence is −½ log|I + G P/σ²| − ½ μᵀP⁻¹μ +
½ ηᵀV η, up to a term that is the same for all components. For components of the same variance v, this is a quadratic
form in μ, whose coefficients need one factorization. Each centre then takes one inner product of two rows.
"""

import math

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc
from locb.kernels.common.arm_scoring import dot
from locb.kernels.common.linear_algebra import add_product, decompose, mean_diagonal, packed_trace, solve, substitute
from locb.kernels.eloc.state import (
    CENTRE,
    CENTRE_VARIANCE_SHARE,
    DELTA,
    EVERYONE_VARIANCE_RATIO,
    FULL_EVIDENCE_INTERVAL,
    FULL_EVIDENCE_ROUNDS,
    LATE_POPULATION_INTERVAL,
    LATE_POPULATION_ROUNDS,
    LEAVE_ONE_OUT_SHARE,
    LOG_DET,
    MAX_EVIDENCE_GAP,
    MAX_NEIGHBOURHOODS,
    NOISE,
    NORM_BOUND,
    OWN,
    POPULATION_INTERVAL,
    POPULATION_ROUNDS,
    PRECISION,
    SCREEN,
    SCREEN_DEVIATIONS,
    SCREEN_THEORY,
    SIGMA,
    SYSTEM,
    UNCERTAINTY,
    UNDER_EVERYONE,
    UNDER_POPULATION,
    VARIANCE_STEP,
    WITHIN_VARIANCE,
    ELOCScratch,
    ELOCState,
)


@inline
def neighbourhood_in_slot(state: ELOCState, i: int, z: int) -> int:
    """Return neighbourhood number z of user i, from ``user_neighbourhoods``; −1 if it does not exist any more."""
    neighbourhood_id = state.user_neighbourhoods[i, z]
    if neighbourhood_id < 0:
        return -1
    s = neighbourhood_id % state.seeds.size
    return s if state.neighbourhood_ids[s] == neighbourhood_id else -1


@inline
def is_full_round(m: int) -> bool:
    """Return whether all components are evaluated in round m + 1 of a user, not only those with a weight."""
    return m < FULL_EVIDENCE_ROUNDS or (m + 1) % FULL_EVIDENCE_INTERVAL == 0


@inline
def is_population_round(m: int) -> bool:
    """Return whether the mean and covariance of the population are updated in the m-th round of a user.

    m starts at 1.
    """
    if m <= POPULATION_ROUNDS:
        return True
    return m % (POPULATION_INTERVAL if m <= LATE_POPULATION_ROUNDS else LATE_POPULATION_INTERVAL) == 0


@no_alloc
def solve_centre(
    state: ELOCState, within: float, centres: Floats, posteriors: Floats, s: int, scratch: ELOCScratch
) -> int:
    """Compute a centre μ from the linear system in row SYSTEM, write it to two arrays, and return its variance level.

    The system is (A + σ² Σ⁻¹) μ = c + σ² Σ⁻¹ μ_0. For a known μ_0, μ has the covariance C₁ = σ² (A + σ² Σ⁻¹)⁻¹. The
    prior variance of the component is the variance of users around the centre, ``within``, plus CENTRE_VARIANCE_SHARE
    of the mean of the diagonal of C₁. Row s of ``posteriors`` receives μ, and its covariance C for an uncertain μ_0.
    Row s of ``centres`` receives the row for inner products.
    """
    d = scratch.workspace.shape[0]
    solve(scratch.rows, SYSTEM, posteriors, s, scratch.workspace)
    for q in range(d, posteriors.shape[1]):
        posteriors[s, q] *= state.learned_scalars[NOISE]
    q = d
    for a in range(d):
        coordinate = posteriors[s, a]
        centres[s, a] = coordinate
        centres[s, q] = coordinate * coordinate
        q += 1
        for b in range(a + 1, d):
            centres[s, q] = 2.0 * coordinate * posteriors[s, b]
            q += 1
    variance = within + CENTRE_VARIANCE_SHARE * mean_diagonal(posteriors, s, state.pooled_sums, state.seeds.size, d)
    # C = C₁ + C₁ Σ⁻¹ C_0 Σ⁻¹ C₁, because the centre depends on μ_0 through C₁ Σ⁻¹.
    add_product(posteriors, s, posteriors, s, state.population, UNCERTAINTY, 1.0, scratch.square)
    return math.floor(math.log(max(variance, 1e-100)) / VARIANCE_STEP + 0.5)


@inline
def recompute_all_centres(state: ELOCState) -> None:
    """Mark all centres that exist, so that the next ``update_centres`` recomputes them."""
    for c in range(1, state.components[0]):
        state.trace_change[state.components[c]] = np.inf


@inline
def within_variance(state: ELOCState, s: int, d: int) -> float:
    """Return the variance per direction of users around the centre of component s, a fraction of that of Σ_0."""
    variance: float = WITHIN_VARIANCE * mean_diagonal(state.population, CENTRE, state.pooled_sums, state.seeds.size, d)
    return variance * EVERYONE_VARIANCE_RATIO if s == state.seeds.size else variance


@no_alloc
def factorize(
    sums: Floats,
    i: int,
    noise: float,
    v: float,
    f: int,
    factor_scales: Floats,
    posteriors: Floats,
    evidence_forms: Floats,
    rows: Floats,
    workspace: Floats,
) -> None:
    """Compute factorization number f: posterior and evidence form of user i, for all components of prior variance v."""
    d = workspace.shape[0]
    scale = 1.0 / noise
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = sums[i, q] * scale
    q = d
    for a in range(d):
        rows[SYSTEM, q] += 1.0 / v
        q += d - a
    log_det = solve(rows, SYSTEM, posteriors, f, workspace)
    factor_scales[f, 0] = v
    factor_scales[f, 1] = 0.5 * (dot(posteriors, f, rows, SYSTEM, 0, d) - log_det - d * math.log(v))
    half = 0.5 / (v * v)
    for a in range(d):
        evidence_forms[f, a] = posteriors[f, a] / v
    for q in range(d, rows.shape[1]):
        evidence_forms[f, q] = half * posteriors[f, q]
    q = d
    for a in range(d):
        evidence_forms[f, q] -= 0.5 / v
        q += d - a


@inline
def find_or_factorize(state: ELOCState, i: int, level: int, count: int, scratch: ELOCScratch) -> int:
    """Return the number of the factorization for a variance level, and compute it if the first ``count`` lack it."""
    f = 0
    while f < count and scratch.factor_levels[f] != level:
        f += 1
    if f == count:
        scratch.factor_levels[f] = level
        v = math.exp(level * VARIANCE_STEP)
        noise = state.learned_scalars[NOISE]
        scales, forms = scratch.factor_scales, scratch.evidence_forms
        factorize(state.sums, i, noise, v, f, scales, scratch.posteriors, forms, scratch.rows, scratch.workspace)
    return f


@inline
def solve_system(to: int, scratch: ELOCScratch) -> float:
    """Solve the system in row SYSTEM into row ``to``, with its inverse if ``is_inverted`` is set for this row."""
    rows, workspace = scratch.rows, scratch.workspace
    if scratch.is_inverted[to]:
        return solve(rows, SYSTEM, rows, to, workspace)
    log_det = decompose(rows, SYSTEM, workspace)
    substitute(rows, SYSTEM, rows, to, workspace)
    return log_det


@no_alloc
def population_evidence(state: ELOCState, i: int, scratch: ELOCScratch) -> float:
    """Write the posterior of user i under the population to row UNDER_POPULATION, and return the log evidence."""
    rows, population, learned_scalars = scratch.rows, state.population, state.learned_scalars
    d = scratch.workspace.shape[0]
    scale = 1.0 / learned_scalars[NOISE]
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = state.sums[i, q] * scale + population[PRECISION, q]
    log_det = solve_system(UNDER_POPULATION, scratch)
    quadratic = dot(rows, UNDER_POPULATION, rows, SYSTEM, 0, d) - dot(population, CENTRE, population, PRECISION, 0, d)
    log_evidence: float = 0.5 * (quadratic - log_det - learned_scalars[LOG_DET])
    return log_evidence


@no_alloc
def everyone_evidence(state: ELOCState, i: int, scratch: ELOCScratch) -> float:
    """Write the posterior of user i under everyone to row UNDER_EVERYONE, and return the log evidence.

    ``component_rows`` of everyone has the variance level, and the row of ``left_out_centres``, or −1.
    """
    rows, everyone = scratch.rows, state.seeds.size
    d = scratch.workspace.shape[0]
    scale = 1.0 / state.learned_scalars[NOISE]
    z = scratch.component_rows[everyone, 1]
    v = math.exp(scratch.component_rows[everyone, 0] * VARIANCE_STEP)
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = state.sums[i, q] * scale
    squared_norm = 0.0
    q = d
    for a in range(d):
        centre = state.centres[everyone, a] if z < 0 else scratch.left_out_centres[z, a]
        squared_norm += centre * centre
        rows[SYSTEM, a] += centre / v
        rows[SYSTEM, q] += 1.0 / v
        q += d - a
    log_det = solve_system(UNDER_EVERYONE, scratch)
    quadratic = dot(rows, UNDER_EVERYONE, rows, SYSTEM, 0, d) - squared_norm / v
    log_evidence: float = 0.5 * (quadratic - log_det - d * math.log(v))
    return log_evidence


@inline
def leave_user_out(state: ELOCState, i: int, count: int, scratch: ELOCScratch) -> None:
    """Recompute the evidence of each component of which user i has a large share, without the contribution of i.

    Otherwise, the user's own observations would count as evidence for the component. The limit of the share is
    LEAVE_ONE_OUT_SHARE. Components whose evidence is too low even with the contribution of i are skipped.
    """
    d = scratch.workspace.shape[0]
    n_seeds = state.seeds.size
    noise = state.learned_scalars[NOISE]
    log_evidence, rows, pooled_sums, sums = scratch.log_evidence, scratch.rows, state.pooled_sums, state.sums
    best = -np.inf
    for c in range(1, state.components[0] + 1):
        best = max(best, log_evidence[state.components[c]])
    trace = packed_trace(sums, i, d)
    for z in range(MAX_NEIGHBOURHOODS + 1):
        s = n_seeds if z == MAX_NEIGHBOURHOODS else neighbourhood_in_slot(state, i, z)
        share = 1.0 if z == MAX_NEIGHBOURHOODS else state.weights[i, z]
        if s < 0 or log_evidence[s] < best - MAX_EVIDENCE_GAP:
            continue
        if share * trace <= LEAVE_ONE_OUT_SHARE * packed_trace(pooled_sums, s, d):
            continue
        for q in range(rows.shape[1]):
            rows[SYSTEM, q] = pooled_sums[s, q] - share * sums[i, q] + noise * state.population[PRECISION, q]
        within = within_variance(state, s, d)
        level = solve_centre(state, within, scratch.left_out_centres, scratch.left_out_posteriors, z, scratch)
        scratch.component_rows[s, 1] = z
        if s == n_seeds:
            scratch.component_rows[s, 0] = level
            log_evidence[s] = everyone_evidence(state, i, scratch)
            continue
        f = find_or_factorize(state, i, level, count, scratch)
        count = max(count, f + 1)
        scratch.component_rows[s, 0] = f
        form = dot(scratch.evidence_forms, f, scratch.left_out_centres, z, 0, rows.shape[1])
        log_evidence[s] = scratch.factor_scales[f, 1] + form


@inline
def evaluate_component(state: ELOCState, i: int, s: int, count: int, scratch: ELOCScratch) -> int:
    """Compute the log evidence of neighbourhood s; return the number of factorizations so far."""
    f = find_or_factorize(state, i, state.variance_levels[s], count, scratch)
    scratch.component_rows[s, 0] = f
    scratch.component_rows[s, 1] = -1
    form = dot(scratch.evidence_forms, f, state.centres, s, 0, state.centres.shape[1])
    scratch.log_evidence[s] = scratch.factor_scales[f, 1] + form
    return max(count, f + 1)


@inline
def compute_evidence(state: ELOCState, i: int, is_full: bool, scratch: ELOCScratch) -> None:
    """Compute the log evidence of the components for user i: of all, or if not ``is_full``, of those with a weight.

    The log evidence of other components becomes −∞. Everyone and the population are always evaluated.
    """
    n_seeds = state.seeds.size
    count = 0
    for c in range(1, state.components[0] - 1):
        s = state.components[c]
        scratch.log_evidence[s] = -np.inf
        if is_full:
            count = evaluate_component(state, i, s, count, scratch)
    if not is_full:
        for z in range(MAX_NEIGHBOURHOODS):
            s = neighbourhood_in_slot(state, i, z)
            if s >= 0:
                count = evaluate_component(state, i, s, count, scratch)
    scratch.component_rows[n_seeds, 0] = state.variance_levels[n_seeds]
    scratch.component_rows[n_seeds, 1] = -1
    scratch.log_evidence[n_seeds] = everyone_evidence(state, i, scratch)
    scratch.log_evidence[n_seeds + 1] = population_evidence(state, i, scratch)
    leave_user_out(state, i, count, scratch)


@no_alloc
def own_estimate(state: ELOCState, i: int, rows: Floats, workspace: Floats) -> float:
    """Write the own ridge estimate (θ̂, A⁻¹) of user i to row OWN; return the factor of √(xᵀA⁻¹x) in the width.

    A is I + G. With the screen "theory", θ̂ is shrunk towards 0, and the factor is σ √(2 log(1/δ_i) + log det A) + S,
    with δ_i = 6 δ / (π (i + 1))². All confidence bounds then hold for all users and rounds with probability at least
    1 − δ. Otherwise, θ̂ is shrunk towards μ_0, and the factor is SCREEN_DEVIATIONS times the estimated standard
    deviation of the noise.
    """
    d = workspace.shape[0]
    is_theory = state.int_params[SCREEN] == SCREEN_THEORY
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = state.sums[i, q]
    q = d
    for a in range(d):
        if not is_theory:
            rows[SYSTEM, a] += state.population[CENTRE, a]
        rows[SYSTEM, q] += 1.0
        q += d - a
    log_det = solve(rows, SYSTEM, rows, OWN, workspace)
    if not is_theory:
        return SCREEN_DEVIATIONS * math.sqrt(state.learned_scalars[NOISE])
    share = math.pi * (i + 1.0)
    log_risk = math.log(share * share / (6.0 * state.float_params[DELTA]))
    width: float = state.float_params[SIGMA] * math.sqrt(2.0 * log_risk + log_det) + state.float_params[NORM_BOUND]
    return width

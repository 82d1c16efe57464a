"""ELOC's posterior of one user: evidence of each component, responsibilities, and the gated mixture.

Terms and symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``. A component is a prior N(μ, P) for
the user's θ, with P = v I for a neighbourhood or for everyone, and μ = μ_0 and P = Σ_0 for the population. With
η = b/σ² + P⁻¹μ and V = (G/σ² + P⁻¹)⁻¹, the posterior mean is V η. The log evidence is −½ log|I + G P/σ²| − ½ μᵀP⁻¹μ +
½ ηᵀV η, up to a term that is the same for all components. For components of the same variance v, this is a quadratic
form in μ, whose coefficients need one factorization. Each centre then takes one inner product of two rows.
"""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline, no_alloc
from locb.kernels.common.arm_scoring import dot
from locb.kernels.common.cholesky import decompose, inverse_trace, solve, substitute
from locb.kernels.common.linear_algebra import packed_trace
from locb.kernels.eloc.state import (
    CENTRE,
    EVERYONE,
    EVERYONE_VARIANCE_RATIO,
    GAMMA,
    LEAVE_ONE_OUT_SHARE,
    LOG_DET,
    MAX_EVIDENCE_GAP,
    MAX_NEIGHBOURHOODS,
    MIN_RELATIVE_WEIGHT,
    MIXTURE,
    NOISE,
    POPULATION,
    POSTERIOR,
    PRECISION,
    SOLUTION,
    SYSTEM,
    UNDER_POPULATION,
    VARIANCE_STEP,
    ELOCScratch,
    ELOCState,
    neighbourhood_in_slot,
)


@no_alloc
def solve_centre(system: Floats, noise: float, within: float, centres: Floats, s: int, workspace: Floats) -> int:
    """Compute a centre μ from the linear system in row SYSTEM, write it to row s of ``centres``, and return its level.

    The system is (A + σ² Σ_0⁻¹) μ = c + σ² Σ_0⁻¹ μ_0. The result is the variance level of the component. Its prior
    variance is the variance of users around the centre, ``within``, plus the uncertainty of the centre,
    σ² tr (A + σ² Σ_0⁻¹)⁻¹ / d.
    """
    d = workspace.shape[0]
    decompose(system, SYSTEM, workspace)
    substitute(system, SYSTEM, system, SOLUTION, workspace)
    q = d
    for a in range(d):
        coordinate = system[SOLUTION, a]
        centres[s, a] = coordinate
        centres[s, q] = coordinate * coordinate
        q += 1
        for b in range(a + 1, d):
            centres[s, q] = 2.0 * coordinate * system[SOLUTION, b]
            q += 1
    variance = within + noise * inverse_trace(workspace) / d
    return math.floor(math.log(max(variance, 1e-100)) / VARIANCE_STEP + 0.5)


@inline
def within_variance(state: ELOCState, s: int, d: int) -> float:
    """Return the variance per direction of users around the centre of component s: γ²/4d, or γ²/400d for everyone."""
    variance: float = state.float_params[GAMMA] * state.float_params[GAMMA] / (4.0 * d)
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
def population_evidence(
    sums: Floats, i: int, population: Floats, learned_scalars: Floats, rows: Floats, workspace: Floats
) -> float:
    """Write the posterior of user i under the population to row UNDER_POPULATION, and return the log evidence."""
    d = workspace.shape[0]
    scale = 1.0 / learned_scalars[NOISE]
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = sums[i, q] * scale + population[PRECISION, q]
    log_det = solve(rows, SYSTEM, rows, UNDER_POPULATION, workspace)
    quadratic = dot(rows, UNDER_POPULATION, rows, SYSTEM, 0, d) - dot(population, CENTRE, population, PRECISION, 0, d)
    log_evidence: float = 0.5 * (quadratic - log_det - learned_scalars[LOG_DET])
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
    for s in range(n_seeds + 2):
        best = max(best, log_evidence[s])
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
        level = solve_centre(rows, noise, within_variance(state, s, d), scratch.left_out_centres, z, scratch.workspace)
        f = find_or_factorize(state, i, level, count, scratch)
        count = max(count, f + 1)
        scratch.component_rows[s, 0] = f
        scratch.component_rows[s, 1] = z
        form = dot(scratch.evidence_forms, f, scratch.left_out_centres, z, 0, rows.shape[1])
        log_evidence[s] = scratch.factor_scales[f, 1] + form


@inline
def compute_evidence(state: ELOCState, i: int, scratch: ELOCScratch) -> None:
    """Compute the log evidence of every component for user i."""
    n_seeds = state.seeds.size
    columns = state.centres.shape[1]
    count = 0
    for s in range(n_seeds + 1):
        f = find_or_factorize(state, i, state.variance_levels[s], count, scratch)
        count = max(count, f + 1)
        scratch.component_rows[s, 0] = f
        scratch.component_rows[s, 1] = -1
        form = dot(scratch.evidence_forms, f, state.centres, s, 0, columns)
        scratch.log_evidence[s] = scratch.factor_scales[f, 1] + form
    scratch.log_evidence[n_seeds + 1] = population_evidence(
        state.sums, i, state.population, state.learned_scalars, scratch.rows, scratch.workspace
    )
    leave_user_out(state, i, count, scratch)


@inline
def compute_responsibilities(prior_weights: Floats, log_evidence: Floats, responsibilities: Floats) -> None:
    """Compute the responsibilities of the components, proportional to π exp(ℓ), where ℓ is the log evidence.

    Responsibilities below MIN_RELATIVE_WEIGHT of the largest become 0.
    """
    best = -np.inf
    for s in range(responsibilities.size):
        best = max(best, log_evidence[s])
    largest = 0.0
    for s in range(responsibilities.size):
        responsibilities[s] = 0.0
        if log_evidence[s] >= best - MAX_EVIDENCE_GAP:
            responsibilities[s] = prior_weights[s] * math.exp(log_evidence[s] - best)
            largest = max(largest, responsibilities[s])
    total = 0.0
    for s in range(responsibilities.size):
        if responsibilities[s] < MIN_RELATIVE_WEIGHT * largest:
            responsibilities[s] = 0.0
        total += responsibilities[s]
    for s in range(responsibilities.size):
        responsibilities[s] /= total


@inline
def compute_gate_weights(learned_scalars: Floats, gate_weights: Floats) -> None:
    """Compute the gate's weights of everyone, the population and the mixture from their log weights; the sum is 1."""
    best = max(learned_scalars[EVERYONE], learned_scalars[POPULATION], learned_scalars[MIXTURE])
    total = 0.0
    for a in range(3):
        gate_weights[a] = math.exp(learned_scalars[a] - best)
        total += gate_weights[a]
    for a in range(3):
        gate_weights[a] /= total


@inline
def component_mean(
    centres: Floats, row: int, posteriors: Floats, f: int, v: float, means: Floats, s: int, d: int
) -> None:
    """Write the posterior mean V (b/σ² + μ/v) of component s to ``means``; μ is row ``row`` of ``centres``."""
    for a in range(d):
        total = 0.0
        q = d + a  # row a of the packed V: first column a above the diagonal, then row a from the diagonal on
        for b in range(a):
            total += posteriors[f, q] * centres[row, b]
            q += d - 1 - b
        for b in range(a, d):
            total += posteriors[f, q] * centres[row, b]
            q += 1
        means[s, a] = posteriors[f, a] + total / v


@inline
def component_weight(s: int, responsibilities: Floats, gate_weights: Floats) -> float:
    """Return the total weight of component s in the posterior.

    The total weight is the gate's weight of the mixture times the responsibility of component s. Two components follow
    the K neighbourhoods: everyone (s = K) and the population (s = K + 1). Both also have a gate weight of their own.
    """
    weight: float = gate_weights[MIXTURE] * responsibilities[s]
    if s == responsibilities.size - 2:
        weight += gate_weights[EVERYONE]
    elif s == responsibilities.size - 1:
        weight += gate_weights[POPULATION]
    return weight


@no_alloc
def mix_components(
    centres: Floats,
    left_out_centres: Floats,
    component_rows: Ints,
    factor_scales: Floats,
    posteriors: Floats,
    responsibilities: Floats,
    gate_weights: Floats,
    means: Floats,
    rows: Floats,
    deviations: Floats,
) -> None:
    """Write the mean and the covariance of the gated mixture to row POSTERIOR of ``rows``.

    The covariance is the sum of the covariance within components and that between the means of components.
    """
    d = means.shape[1]
    everyone, population, mixture = responsibilities.size - 2, responsibilities.size - 1, responsibilities.size
    for a in range(d):
        means[population, a] = rows[UNDER_POPULATION, a]
        means[mixture, a] = 0.0
    for s in range(responsibilities.size):
        if s < population and (responsibilities[s] > 0.0 or s == everyone):
            f, z = component_rows[s, 0], component_rows[s, 1]
            if z < 0:
                component_mean(centres, s, posteriors, f, factor_scales[f, 0], means, s, d)
            else:
                component_mean(left_out_centres, z, posteriors, f, factor_scales[f, 0], means, s, d)
        if responsibilities[s] > 0.0:
            for a in range(d):
                means[mixture, a] += responsibilities[s] * means[s, a]
    for a in range(d):
        rows[POSTERIOR, a] = (
            gate_weights[EVERYONE] * means[everyone, a] + gate_weights[POPULATION] * means[population, a]
        )
        rows[POSTERIOR, a] += gate_weights[MIXTURE] * means[mixture, a]
    for q in range(d, rows.shape[1]):
        rows[POSTERIOR, q] = 0.0
    count = 0  # number of components with a weight, which are the first columns of ``deviations``
    for s in range(responsibilities.size):
        weight = component_weight(s, responsibilities, gate_weights)
        if weight > 0.0:
            root = math.sqrt(weight)
            for a in range(d):
                deviations[a, count] = root * (means[s, a] - rows[POSTERIOR, a])
            count += 1
            if s == population:
                add_covariance(rows, rows, UNDER_POPULATION, weight, d)
            else:
                add_covariance(rows, posteriors, component_rows[s, 0], weight, d)
    q = d
    for a in range(d):
        for b in range(a, d):
            rows[POSTERIOR, q] += dot(deviations, a, deviations, b, 0, count)
            q += 1


@inline
def add_covariance(rows: Floats, posteriors: Floats, f: int, weight: float, d: int) -> None:
    """Add ``weight`` times the covariance in row f of ``posteriors`` to the covariance in row POSTERIOR of ``rows``."""
    for q in range(d, rows.shape[1]):
        rows[POSTERIOR, q] += weight * posteriors[f, q]


@no_alloc
def compute_posterior(state: ELOCState, i: int, scratch: ELOCScratch) -> None:
    """Compute evidence, responsibilities, gate weights and the posterior of user i, and write them to the scratch."""
    compute_evidence(state, i, scratch)
    compute_responsibilities(state.prior_weights, scratch.log_evidence, scratch.responsibilities)
    compute_gate_weights(state.learned_scalars, scratch.gate_weights)
    mix_components(
        state.centres,
        scratch.left_out_centres,
        scratch.component_rows,
        scratch.factor_scales,
        scratch.posteriors,
        scratch.responsibilities,
        scratch.gate_weights,
        scratch.means,
        scratch.rows,
        scratch.deviations,
    )

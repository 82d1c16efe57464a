"""ELOC's posterior of one user: the means and covariances of the components, mixed by their weights.

Terms and symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``, the posterior of one component in
``locb.kernels.eloc.evidence``. The weights are the responsibilities of the components and the gate. The centre μ of a
component is uncertain, with covariance C. With S = V P⁻¹, this adds S C Sᵀ to the covariance V of the user's θ. Without
this term, ELOC would not explore directions of the features for which no user has data.
"""

import math

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.jit import alloc, entry_point, inline, no_alloc
from locb.kernels.common.arm_scoring import dot
from locb.kernels.common.linear_algebra import add_product, packed_trace
from locb.kernels.eloc.evidence import (
    compute_evidence,
    everyone_evidence,
    is_full_round,
    is_population_round,
    own_estimate,
    population_evidence,
)
from locb.kernels.eloc.state import (
    EVERYONE,
    GAP,
    MAX_EVIDENCE_GAP,
    MAX_GAP,
    MAX_NEIGHBOURHOODS,
    MEMBERSHIP_EVIDENCE_GAP,
    MIN_COVARIANCE_WEIGHT,
    MIN_RELATIVE_WEIGHT,
    MIN_UNCERTAIN_WEIGHT,
    MIN_UNCERTAINTY,
    MIXTURE,
    OWN,
    POPULATION,
    POSTERIOR,
    UNCERTAINTY,
    UNDER_EVERYONE,
    UNDER_POPULATION,
    USERS,
    VARIANCE_STEP,
    ELOCScratch,
    ELOCState,
)


@alloc
def allocate_scratch(state: ELOCState, n_arms: int, dim: int) -> ELOCScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    columns = state.centres.shape[1]
    n_components = state.prior_weights.size
    max_factors = n_components + MAX_NEIGHBOURHOODS
    return ELOCScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty(max_factors, np.int64),
        np.empty((max_factors, 2)),
        np.empty((max_factors, columns)),
        np.empty((max_factors, columns)),
        np.empty((n_components, 2), np.int64),
        np.empty((MAX_NEIGHBOURHOODS + 1, columns)),
        np.empty((MAX_NEIGHBOURHOODS + 1, columns)),
        np.full(n_components, -np.inf),
        np.zeros(n_components),
        np.empty((n_components + 1, dim)),
        np.empty(3),
        np.empty((6, columns)),
        np.empty((dim, n_components)),
        np.empty((2 * dim + 1, dim)),
        np.empty((dim, 2 * dim + 1)),
        np.zeros(2, np.int64),
    )


@inline
def compute_responsibilities(
    components: Ints, prior_weights: Floats, log_evidence: Floats, responsibilities: Floats
) -> None:
    """Compute the responsibilities of the components, proportional to π exp(ℓ), where ℓ is the log evidence.

    Responsibilities below MIN_RELATIVE_WEIGHT of the largest become 0.
    """
    best = -np.inf
    for c in range(1, components[0] + 1):
        best = max(best, log_evidence[components[c]])
    largest = 0.0
    for c in range(1, components[0] + 1):
        s = components[c]
        responsibilities[s] = 0.0
        if log_evidence[s] >= best - MAX_EVIDENCE_GAP:
            responsibilities[s] = prior_weights[s] * math.exp(log_evidence[s] - best)
            largest = max(largest, responsibilities[s])
    total = 0.0
    for c in range(1, components[0] + 1):
        s = components[c]
        if responsibilities[s] < MIN_RELATIVE_WEIGHT * largest:
            responsibilities[s] = 0.0
        total += responsibilities[s]
    for c in range(1, components[0] + 1):
        responsibilities[components[c]] /= total


@inline
def compute_gate_weights(learned_scalars: Floats, gate_weights: Floats) -> None:
    """Compute the gate's weights of everyone, the population and the mixture from their log weights; the sum is 1.

    The log weight of everyone is reduced if the evidence of all users contradicts it.
    """
    for a in range(3):
        gate_weights[a] = learned_scalars[a]
    gate_weights[EVERYONE] -= max(0.0, learned_scalars[GAP] - MAX_GAP)
    best = max(gate_weights[EVERYONE], gate_weights[POPULATION], gate_weights[MIXTURE])
    total = 0.0
    for a in range(3):
        gate_weights[a] = math.exp(gate_weights[a] - best)
        total += gate_weights[a]
    for a in range(3):
        gate_weights[a] /= total


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
def write_means(state: ELOCState, scratch: ELOCScratch) -> None:
    """Write the posterior means of the components and of the mixture to ``scratch.means``, and θ̄ to row POSTERIOR."""
    means, rows, responsibilities, gate = scratch.means, scratch.rows, scratch.responsibilities, scratch.gate_weights
    d = means.shape[1]
    everyone, population, mixture = responsibilities.size - 2, responsibilities.size - 1, responsibilities.size
    for a in range(d):
        means[everyone, a] = rows[UNDER_EVERYONE, a]
        means[population, a] = rows[UNDER_POPULATION, a]
        means[mixture, a] = 0.0
    for c in range(1, state.components[0] + 1):
        s = state.components[c]
        if s < everyone and responsibilities[s] > 0.0:
            f, z = scratch.component_rows[s, 0], scratch.component_rows[s, 1]
            v = scratch.factor_scales[f, 0]
            if z < 0:
                component_mean(state.centres, s, scratch.posteriors, f, v, means, s, d)
            else:
                component_mean(scratch.left_out_centres, z, scratch.posteriors, f, v, means, s, d)
        if responsibilities[s] > 0.0:
            for a in range(d):
                means[mixture, a] += responsibilities[s] * means[s, a]
    for a in range(d):
        rows[POSTERIOR, a] = gate[EVERYONE] * means[everyone, a] + gate[POPULATION] * means[population, a]
        rows[POSTERIOR, a] += gate[MIXTURE] * means[mixture, a]


@no_alloc
def write_covariance(state: ELOCState, i: int, scratch: ELOCScratch) -> None:
    """Write the covariance of the gated mixture for user i to row POSTERIOR.

    It is the sum of three parts: the covariances within the components, the effect of the uncertain centres, and the
    covariance of the means of the components.
    """
    means, rows, posteriors = scratch.means, scratch.rows, scratch.posteriors
    responsibilities = scratch.responsibilities
    d, everyone, population = means.shape[1], responsibilities.size - 2, responsibilities.size - 1
    for q in range(d, rows.shape[1]):
        rows[POSTERIOR, q] = 0.0
    count = 0  # number of components with a weight; their deviations are the first columns of ``deviations``
    for c in range(1, state.components[0] + 1):
        s = state.components[c]
        weight = component_weight(s, responsibilities, scratch.gate_weights)
        if weight <= 0.0:
            continue
        root = math.sqrt(weight)
        for a in range(d):
            scratch.deviations[a, count] = root * (means[s, a] - rows[POSTERIOR, a])
        count += 1
        if weight <= MIN_COVARIANCE_WEIGHT:
            continue
        if s == population:
            invert_population(state, i, scratch)
            add_covariance(rows, rows, UNDER_POPULATION, weight, d)
            if weight > MIN_UNCERTAIN_WEIGHT and state.population[UNCERTAINTY, 0] > MIN_UNCERTAINTY:
                add_product(
                    rows, POSTERIOR, rows, UNDER_POPULATION, state.population, UNCERTAINTY, weight, scratch.square
                )
        elif s == everyone:
            invert_everyone(state, i, scratch)
            v = math.exp(scratch.component_rows[s, 0] * VARIANCE_STEP)
            add_component(state, s, rows, UNDER_EVERYONE, v, weight, scratch)
        else:
            f = scratch.component_rows[s, 0]
            add_component(state, s, posteriors, f, scratch.factor_scales[f, 0], weight, scratch)
    q = d
    for a in range(d):
        for b in range(a, d):
            rows[POSTERIOR, q] += dot(scratch.deviations, a, scratch.deviations, b, 0, count)
            q += 1


@inline
def invert_population(state: ELOCState, i: int, scratch: ELOCScratch) -> None:
    """Compute the covariance of user i under the population, unless ``population_evidence`` has computed it."""
    if not scratch.is_inverted[UNDER_POPULATION]:
        scratch.is_inverted[UNDER_POPULATION] = 1
        population_evidence(state, i, scratch)


@inline
def invert_everyone(state: ELOCState, i: int, scratch: ELOCScratch) -> None:
    """Compute the covariance of user i under everyone, unless ``everyone_evidence`` has computed it."""
    if not scratch.is_inverted[UNDER_EVERYONE]:
        scratch.is_inverted[UNDER_EVERYONE] = 1
        everyone_evidence(state, i, scratch)


@inline
def add_component(
    state: ELOCState, s: int, posteriors: Floats, f: int, v: float, weight: float, scratch: ELOCScratch
) -> None:
    """Add the covariance of component s, a neighbourhood or everyone, to row POSTERIOR, with that of its centre."""
    rows, z = scratch.rows, scratch.component_rows[s, 1]
    d = scratch.workspace.shape[0]
    add_covariance(rows, posteriors, f, weight, d)
    if weight > MIN_UNCERTAIN_WEIGHT:
        factor = weight / (v * v)
        if z < 0 and packed_trace(state.centre_posteriors, s, d) > MIN_UNCERTAINTY * v:
            add_product(rows, POSTERIOR, posteriors, f, state.centre_posteriors, s, factor, scratch.square)
        elif z >= 0 and packed_trace(scratch.left_out_posteriors, z, d) > MIN_UNCERTAINTY * v:
            add_product(rows, POSTERIOR, posteriors, f, scratch.left_out_posteriors, z, factor, scratch.square)


@inline
def add_covariance(rows: Floats, posteriors: Floats, f: int, weight: float, d: int) -> None:
    """Add ``weight`` times the covariance in row f of ``posteriors`` to the covariance in row POSTERIOR of ``rows``."""
    for q in range(d, rows.shape[1]):
        rows[POSTERIOR, q] += weight * posteriors[f, q]


@no_alloc
def compute_posterior(state: ELOCState, i: int, is_full: bool, scratch: ELOCScratch) -> None:
    """Compute evidence, responsibilities, gate weights and the posterior of user i, and write them to the scratch."""
    gate_weights = scratch.gate_weights
    compute_gate_weights(state.learned_scalars, gate_weights)
    # Covariances that are needed for certain are computed with the evidence, others in ``write_covariance``.
    is_learned = is_population_round(state.served[i] + 1)
    scratch.is_inverted[UNDER_POPULATION] = is_learned or gate_weights[POPULATION] > MIN_COVARIANCE_WEIGHT
    scratch.is_inverted[UNDER_EVERYONE] = gate_weights[EVERYONE] > MIN_COVARIANCE_WEIGHT
    compute_evidence(state, i, is_full, scratch)
    compute_responsibilities(state.components, state.prior_weights, scratch.log_evidence, scratch.responsibilities)
    write_means(state, scratch)
    write_covariance(state, i, scratch)


@entry_point
def compute_posteriors(
    state: ELOCState,
    users: Ints,
    dim: int,
    rows: Floats,
    weights: Floats,
    is_member: NDArray[np.bool_],
    own: Floats,
    widths: Floats,
) -> None:
    """Compute the posteriors of u users. Each of the last five arrays is filled only if it has rows.

    ``rows`` (u, d + p) receives the posterior mean θ̄ and covariance V̄. ``weights`` (u, K + 2) receives the weight of
    each component in the posterior. The weights of neighbourhoods without users, whose centre is the mean of the
    population, are added to that of the population. ``is_member`` (u, K + 1) receives whether the evidence of a
    neighbourhood, or of everyone, is at least 1/20 of that of the best component. A seed user is always a member of its
    neighbourhood.
    ``own`` (u, d + p) and ``widths`` (u,) receive the results of ``own_estimate``.
    """
    scratch = allocate_scratch(state, 1, dim)
    n_seeds = state.seeds.size
    for u in range(users.size):
        is_full = is_full_round(state.served[users[u]])
        if rows.shape[0] > 0:
            compute_posterior(state, users[u], is_full, scratch)
            rows[u] = scratch.rows[POSTERIOR]
        if weights.shape[0] > 0:
            for s in range(n_seeds + 2):
                weights[u, s] = component_weight(s, scratch.responsibilities, scratch.gate_weights)
            for s in range(n_seeds):
                if state.contributors[s, USERS] == 0:
                    weights[u, n_seeds + 1] += weights[u, s]
                    weights[u, s] = 0.0
        if own.shape[0] > 0:
            widths[u] = own_estimate(state, users[u], scratch.rows, scratch.workspace)
            own[u] = scratch.rows[OWN]
        if is_member.shape[0] > 0:
            if not is_full or rows.shape[0] == 0:
                compute_evidence(state, users[u], True, scratch)
            best = scratch.log_evidence.max()
            for s in range(n_seeds + 1):
                is_member[u, s] = scratch.log_evidence[s] >= best - MEMBERSHIP_EVIDENCE_GAP
            if state.seed_of[users[u]] >= 0:
                is_member[u, state.seed_of[users[u]]] = True

"""ELOC's state arrays and workspace, the constants of its model, and the refreshing of its sums.

A row (v, M) holds a vector and a packed symmetric matrix, d + p numbers: (b, G) of a user, (c, A) of a neighbourhood,
(μ, Σ) of the population. Sums, multiples and differences of such pairs are computed on their rows, and one function
solves all these systems.

A *component* of the model is a prior for the θ of a user: one per neighbourhood, then *everyone* (all users have nearly
the same θ), then the *population* (any θ is possible). The *gate* holds the mixing weights of three predictors:
everyone, the population, and the mixture of all components.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import alloc, inline, no_alloc

T, N_SERVED_USERS, REFRESH_COUNTER, TIES = 0, 1, 2, 3  # entries of ``int_params``
GAMMA, BETA, RETENTION = 0, 1, 2  # entries of ``float_params``
EVERYONE, POPULATION, MIXTURE, NOISE, LOG_DET = (
    0,
    1,
    2,
    3,
    4,
)  # entries of ``learned_scalars``; the gate has the first 3
USERS, ROUNDS = 0, 1  # columns of ``contributors``
CENTRE, PRECISION, LEAST_SQUARES = 0, 1, 2  # rows of ``population``

# Initial values. All of them assume that rewards are of the order of 1.
INITIAL_NOISE = 0.25  # σ²: the variance of a fair coin
INITIAL_PRIOR_WEIGHTS = (0.1, 0.3)  # π of everyone and of the population; the neighbourhoods share the rest
INITIAL_GATE = (-8.0, 0.0, -2.0)  # log weights of everyone, population, mixture: "everyone" needs the most evidence
EVERYONE_VARIANCE_RATIO = 0.01  # variance of users around the centre of everyone, relative to a neighbourhood
# Learning rates.
GATE_MEMORY_ROUNDS = 60.0  # the losses of the gate decay over this many rounds per user
NOISE_PRIOR_ROUNDS = 22.0  # σ² moves by 2 / (t + NOISE_PRIOR_ROUNDS) towards the value of a round
PRIOR_USERS = 5.0  # Σ_0 and π move by 1 / (users served so far + PRIOR_USERS)
BONUS_ROUNDS = 20.0  # m_0: the bonus of a user decreases as √(m_0 / (m_0 + m_i))
# Lower bounds, which prevent the permanent exclusion of a component, and division by zero.
MIN_PRIOR_WEIGHT = 0.02  # of π for everyone, for the population, and for all neighbourhoods together
MIN_NOISE = 1e-6  # of σ², which would be 0 for rewards without noise
MIN_VARIANCE = 1e-6  # of the population's variance in any direction
CENTRE_RIDGE = 1e-3  # added to the least squares for μ_0, which have no solution before the first round
# Reseeding: when a seed moves to another user.
UNEXPLAINED_RESPONSIBILITY = 0.5  # no neighbourhood explains a user if the population's responsibility is above this
RESEED_ROUNDS = 16  # tested after this many rounds of a user, then after twice as many, four times as many, …
REDUNDANT_DISTANCE = 0.5  # a seed is redundant if its centre is closer to another than this fraction of γ
# Approximations that save time. LEAVE_ONE_OUT_SHARE and RECENTRE_CHANGE are not ratios of small integers, because
# contexts often have norm 1. Traces are then numbers of rounds, and comparing such ratios would depend on rounding.
MAX_NEIGHBOURHOODS = 8  # neighbourhoods per user that have a weight
MIN_RELATIVE_WEIGHT = 1e-3  # smaller responsibilities, relative to the largest, are set to 0
EQUAL_WEIGHT_TOLERANCE = 1e-6  # weights with a smaller relative difference are equal: far above rounding errors
MAX_EVIDENCE_GAP = 16.0  # a component with a log evidence this far below the best has no weight, for any π
POPULATION_ROUNDS = 32  # the population learns from each of the first rounds of a user,
POPULATION_INTERVAL = 4  # then from every fourth
LEAVE_ONE_OUT_SHARE = 0.0213  # a user with a larger share of a neighbourhood is left out when the two are compared
RECENTRE_CHANGE = 0.0123  # a centre is solved again when tr A has changed by this fraction, and periodically
VARIANCE_STEP = math.log(2.0)  # variances are rounded to powers of 2, so that components share factorizations
MEMBERSHIP_EVIDENCE_GAP = math.log(20.0)  # members: evidence at most 20 times below that of the best component
REFRESH_ROUNDS = 16_384  # all sums are recomputed within this many rounds, or 64 per user if that is more


class ELOCState(NamedTuple):
    """The state of ELOC. c: capacity for users (c ≥ n, so that users can be added), p = d (d + 1) / 2, K: seeds."""

    sums: Floats  # (c, d + p) b = Σ r x and G = Σ x xᵀ of each user
    centre_terms: Floats  # (c, d + p) contribution of each user to the least squares for μ_0: right side and matrix
    user_neighbourhoods: NDArray[np.int32]  # (c, MAX_NEIGHBOURHOODS) ids of the user's neighbourhoods; −1 for none
    weights: Floats  # (c, MAX_NEIGHBOURHOODS) q: the user's weight in each of them
    served: Ints  # (c,) m: rounds per user
    seed_of: Ints  # (c,) the seed that the user is; −1 for none
    seeds: Ints  # (K,) the seed users
    neighbourhood_ids: Ints  # (K,) s at first; increased by K each time seed s moves, which invalidates old weights
    pooled_sums: Floats  # (K + 1, d + p) c = Σ q b and A = Σ q G of each neighbourhood; the last is that of everyone
    centres: Floats  # (K + 1, d + p) μ and μ μᵀ with its off-diagonal terms doubled
    trace_change: Floats  # (K + 1,) change of tr A since the centre was last solved
    variance_levels: Ints  # (K + 1,) log of each component's prior variance, in steps of VARIANCE_STEP
    population: Floats  # (3, d + p) (μ_0, Σ_0); (Σ_0⁻¹ μ_0, Σ_0⁻¹); the sum of all centre terms
    prior_weights: Floats  # (K + 2,) π of the neighbourhoods, everyone, the population
    learned_scalars: Floats  # (5,) log weights of everyone, the population, the mixture; σ²; log det Σ_0
    int_params: Ints  # t, users served so far, rounds in this refresh cycle, tie rule
    float_params: (
        Floats  # γ, β; the factor that a user's sums are multiplied with in each of its rounds, 1 for no decay
    )
    generator: Words  # (1,) random generator for ties
    contributors: Ints  # (K, 2) not saved: users with a weight in each neighbourhood, and the rounds of these users
    n_users: Ints  # (1,) not saved: n


class ELOCScratch(NamedTuple):
    """Workspace of one round, so that a loop over rounds allocates nothing. c: components, K + 2. f: factorizations."""

    arms: Floats  # (k, d + p) x and x xᵀ, packed
    scores: Floats  # (k,)
    factor_levels: Ints  # (f,) variance levels that are factorized
    factor_scales: Floats  # (f, 2) their prior variances v, and the log evidence of a centre at 0
    posteriors: Floats  # (f, d + p) (V b / σ², V), V = (G / σ² + I / v)⁻¹
    evidence_forms: Floats  # (f, d + p) log evidence of a centre μ, as coefficients of μ and μ μᵀ
    component_rows: Ints  # (c, 2) factorization of each component; row of its centre without the user, or −1
    left_out_centres: Floats  # (MAX_NEIGHBOURHOODS + 1, d + p) centres of components without the user
    log_evidence: Floats  # (c,) ℓ: log marginal likelihood of the user's rewards
    responsibilities: Floats  # (c,) posterior probabilities of the components
    means: Floats  # (c + 1, d) posterior means; the last is that of the mixture
    gate_weights: Floats  # (3,) weights of everyone, the population and the mixture
    rows: Floats  # (4, d + p) the four rows below
    deviations: Floats  # (d, c) deviation of each component with a weight from the mean, times the root of its weight
    square: Floats  # (2 d, d) two matrices
    workspace: Floats  # (d, 2 d + 1) for solving


# Rows of ``ELOCScratch.rows``: posterior under the population, posterior (θ̄, V̄), a linear system, its solution.
UNDER_POPULATION, POSTERIOR, SYSTEM, SOLUTION = 0, 1, 2, 3


@alloc
def allocate_scratch(state: ELOCState, n_arms: int, dim: int) -> ELOCScratch:
    """Allocate the workspace of rounds with ``n_arms`` arms."""
    columns = state.sums.shape[1]
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
        np.empty(n_components),
        np.empty(n_components),
        np.empty((n_components + 1, dim)),
        np.empty(3),
        np.empty((4, columns)),
        np.empty((dim, n_components)),
        np.empty((2 * dim, dim)),
        np.empty((dim, 2 * dim + 1)),
    )


@inline
def add_scaled_row(rows: Floats, i: int, others: Floats, j: int, factor: float) -> None:
    """Add a multiple of row j of ``others`` to row i of ``rows``."""
    for q in range(rows.shape[1]):
        rows[i, q] += factor * others[j, q]


@inline
def neighbourhood_in_slot(state: ELOCState, i: int, z: int) -> int:
    """Return the neighbourhood in slot z of user i, or −1 if there is none or its seed has moved since."""
    neighbourhood_id = state.user_neighbourhoods[i, z]
    if neighbourhood_id < 0:
        return -1
    s = neighbourhood_id % state.seeds.size
    return s if state.neighbourhood_ids[s] == neighbourhood_id else -1


@no_alloc
def refresh_sums(state: ELOCState, row: int) -> None:
    """Recompute the sums of a neighbourhood, of everyone (row K), or the least squares for μ_0 (row K + 1)."""
    n_seeds = state.seeds.size
    if row > n_seeds:
        for q in range(state.population.shape[1]):
            state.population[LEAST_SQUARES, q] = 0.0
        for i in range(state.n_users[0]):
            add_scaled_row(state.population, LEAST_SQUARES, state.centre_terms, i, 1.0)
        return
    for q in range(state.pooled_sums.shape[1]):
        state.pooled_sums[row, q] = 0.0
    for i in range(state.n_users[0]):
        if row == n_seeds:
            add_scaled_row(state.pooled_sums, row, state.sums, i, 1.0)
            continue
        for z in range(MAX_NEIGHBOURHOODS):
            if neighbourhood_in_slot(state, i, z) == row:
                add_scaled_row(state.pooled_sums, row, state.sums, i, state.weights[i, z])


@inline
def refresh_in_turn(state: ELOCState) -> None:
    """Recompute one row of sums if it is due: within ``cycle`` rounds each row is recomputed once, evenly spaced."""
    int_params = state.int_params
    n_rows = state.seeds.size + 2
    cycle = max(REFRESH_ROUNDS, 64 * state.n_users[0])
    before = int_params[REFRESH_COUNTER] * n_rows // cycle
    int_params[REFRESH_COUNTER] += 1
    if int_params[REFRESH_COUNTER] * n_rows // cycle > before:
        refresh_sums(state, before)
    if int_params[REFRESH_COUNTER] >= cycle:
        int_params[REFRESH_COUNTER] = 0

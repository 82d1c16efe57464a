"""ELOC's state, the constants of its model, and the bookkeeping of its sums.

A row (v, M) holds a vector and a packed symmetric matrix, d + p numbers: (b, G) of a user, (c, A) of a neighbourhood,
(μ, Σ) of the population. Sums, scalings and differences of such pairs are those of their rows, and one function
solves them all.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import alloc, inline, no_alloc

# Places in the short arrays of a state.
T, N_SERVED_USERS, REFRESH_COUNTER, TIES = 0, 1, 2, 3
GAMMA, BETA, RETENTION = 0, 1, 2
EVERYONE, POPULATION, MIXTURE, NOISE, LOG_DET = 0, 1, 2, 3, 4  # the first three are what the gate weighs
USERS, ROUNDS = 0, 1  # columns of ``contributors``
CENTRE, PRECISION, EQUATION = 0, 1, 2  # rows of ``population``

# What is believed before anything was seen; all of it presumes rewards of about the size of 1.
INITIAL_NOISE = 0.25  # σ²: that of a fair coin
INITIAL_PRIOR_WEIGHTS = (0.1, 0.3)  # π of everyone and of the population; the neighbourhoods share the rest
INITIAL_GATE = (-8.0, 0.0, -2.0)  # L of everyone, population, mixture: "all are alike" has the most to prove
EVERYONE_WIDTH = 0.01  # users who are all alike lie this much closer together than those of a neighbourhood
# How fast beliefs move.
GATE_ROUNDS = 60.0  # the gate forgets over this many rounds a user
NOISE_LAG = 22.0  # σ² moves by 2 / (t + NOISE_LAG) of what a round says
USER_LAG = 5.0  # Σ_0 and π move by 1 / (users seen + USER_LAG)
BONUS_ROUNDS = 20.0  # m_0: the bonus of a user fades as √(m_0 / (m_0 + m_i))
# Floors, so that nothing which was ruled out is so for ever, and nothing is divided by zero.
SHARE_FLOOR = 0.02  # of everyone's π, of the population's, and of all neighbourhoods' together
NOISE_FLOOR = 1e-6  # of σ²: rewards without noise would make it 0
SPREAD_FLOOR = 1e-6  # of the population's variance in any direction
CENTRE_RIDGE = 1e-3  # of the least squares for μ_0: while nobody was served they have no solution
# When a seed is taken elsewhere.
UNEXPLAINED = 0.5  # a user is unexplained whose responsibility of the population is above this,
RESEED_ROUNDS = 16  # looked at after so many rounds of the user, twice, four times as many and so on
TWINS = 0.5  # two seeds are one too many if their centres are nearer than this share of γ
# What is not worth the work. Two of these are no ratio of small whole numbers: contexts are often of length 1, traces
# then count rounds, and rounding is not to decide.
MAX_NEIGHBOURHOODS = 8  # neighbourhoods in which a user may have a weight
WEIGHT_FLOOR = 1e-3  # a component with less than this share of the largest responsibility has none
SAME_WEIGHT = 1e-6  # weights closer than this share of themselves are equal: far above rounding
RULED_OUT = 16.0  # log evidence so far below the best cannot reach that share, whatever π is
POPULATION_ROUNDS = 32  # in so many rounds of a user the population learns from it each time,
POPULATION_EVERY = 4  # later only in every fourth
OWN_SHARE = 0.0213  # a user who is more than this of a neighbourhood is left out of it when the two are compared
MOVED = 0.0123  # a centre is solved for anew when tr A has moved by this share, or in turn
WIDTH_STEP = math.log(2.0)  # widths are rounded to powers of 2, so that many components share one factorisation
SAME_GROUP = math.log(20.0)  # a group holds the users whom it explains at worst 20 times less well than the best does
REFRESH_ROUNDS = 16_384  # within this many rounds, or 64 a user if that is more, all sums are added up anew


class ELOCState(NamedTuple):
    """Everything ELOC knows. c: rows kept for users (c ≥ n, so that users can join), p = d (d + 1) / 2."""

    sums: Floats  # (c, d + p) b = Σ r x and G = Σ x xᵀ of each user
    centre_terms: Floats  # (c, d + p) what each user adds to the least squares for μ_0: a right side and a matrix
    user_neighbourhoods: NDArray[
        np.int32
    ]  # (c, SLOTS) names of neighbourhoods in which the user has a weight; −1 for none
    weights: Floats  # (c, SLOTS) q
    served: Ints  # (c,) m
    seed_of: Ints  # (c,) which seed the user is; −1 for none
    seeds: Ints  # (K,)
    neighbourhood_ids: (
        Ints  # (K,) of their neighbourhoods, s at first; K more each time that seed s moves, which voids old weights
    )
    pooled_sums: Floats  # (K + 1, d + p) c = Σ q b and A = Σ q G of each neighbourhood; the last is everyone's
    centres: Floats  # (K + 1, d + p) μ and μ μᵀ, its off-diagonal terms doubled
    trace_change: Floats  # (K + 1,) how much tr A has moved since the centre was last solved for
    width_levels: Ints  # (K + 1,) log of the width of each neighbourhood in steps of WIDTH_STEP
    population: Floats  # (3, d + p) (μ_0, Σ_0); (Σ_0⁻¹ μ_0, Σ_0⁻¹); the sum of all terms
    prior_weights: Floats  # (K + 2,) π of the neighbourhoods, everyone, the population
    learned_scalars: Floats  # L of everyone, the population, the mixture; σ²; log det Σ_0
    int_params: Ints  # t, users served so far, rounds in this cycle of refreshing the sums; ties
    float_params: Floats  # γ, β; how much of what a user did is kept when it is served again, 1 for all
    generator: Words  # (1,) for random ties
    contributors: (
        Ints  # (K, 2) not saved: users who have a weight in each neighbourhood, and in how many rounds they were served
    )
    n_users: Ints  # (1,) not saved: n


class ELOCScratch(NamedTuple):
    """Room for one round, so that a loop over rounds allocates nothing. c: components, K + 2. f: factorisations."""

    arms: Floats  # (k, d + p) x and x xᵀ, packed
    scores: Floats  # (k,)
    known: Ints  # (f,) the levels that are factorised
    scales: Floats  # (f, 2) their widths v, and the log evidence of a centre at 0
    posteriors: Floats  # (f, d + p) (V b / σ², V), V = (G / σ² + I / v)⁻¹
    forms: Floats  # (f, d + p) log evidence of a centre μ, as coefficients of μ and μ μᵀ
    places: Ints  # (c, 2) the factorisation of each component; the row of its centre without the user, or −1
    lone: Floats  # (SLOTS + 1, d + p) centres without the user
    evidence: Floats  # (c,) ℓ
    odds: Floats  # (c,) o
    means: Floats  # (c + 1, d) posterior means; the last is that of the mixture
    gated: Floats  # (3,) weights of the gate
    rows: Floats  # (4, d + p) the four below
    apart: Floats  # (d, c) how far each component that has a weight is from the mean, times the root of its weight
    square: Floats  # (2 d, d)
    work: Floats  # (d, 2 d + 1) for solving


# Rows of the scratch: posterior under the population, θ̄ and V̄, an equation to be solved, its solution.
OWN, ANSWER, LEFT, RIGHT = 0, 1, 2, 3


@alloc
def allocate_scratch(state: ELOCState, n_arms: int, dim: int) -> ELOCScratch:
    """Room for rounds of ``n_arms`` arms."""
    columns = state.sums.shape[1]
    n_parts = state.prior_weights.size
    n_factors = n_parts + MAX_NEIGHBOURHOODS
    return ELOCScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty(n_factors, np.int64),
        np.empty((n_factors, 2)),
        np.empty((n_factors, columns)),
        np.empty((n_factors, columns)),
        np.empty((n_parts, 2), np.int64),
        np.empty((MAX_NEIGHBOURHOODS + 1, columns)),
        np.empty(n_parts),
        np.empty(n_parts),
        np.empty((n_parts + 1, dim)),
        np.empty(3),
        np.empty((4, columns)),
        np.empty((dim, n_parts)),
        np.empty((2 * dim, dim)),
        np.empty((dim, 2 * dim + 1)),
    )


@inline
def add_row(rows: Floats, i: int, others: Floats, j: int, factor: float) -> None:
    """Add a multiple of one row to another."""
    for q in range(rows.shape[1]):
        rows[i, q] += factor * others[j, q]


@inline
def held(state: ELOCState, i: int, z: int) -> int:
    """The neighbourhood of slot z of user i; −1 for none, or one whose seed has moved since."""
    name = state.user_neighbourhoods[i, z]
    if name < 0:
        return -1
    s = name % state.seeds.size
    return s if state.neighbourhood_ids[s] == name else -1


@no_alloc
def refresh_sums(state: ELOCState, row: int) -> None:
    """Add the sums of a neighbourhood up anew, or everyone's, or (the row after that) the terms of μ_0."""
    n_seeds = state.seeds.size
    if row > n_seeds:
        for q in range(state.population.shape[1]):
            state.population[EQUATION, q] = 0.0
        for i in range(state.n_users[0]):
            add_row(state.population, EQUATION, state.centre_terms, i, 1.0)
        return
    for q in range(state.pooled_sums.shape[1]):
        state.pooled_sums[row, q] = 0.0
    for i in range(state.n_users[0]):
        if row == n_seeds:
            add_row(state.pooled_sums, row, state.sums, i, 1.0)
            continue
        for z in range(MAX_NEIGHBOURHOODS):
            if held(state, i, z) == row:
                add_row(state.pooled_sums, row, state.sums, i, state.weights[i, z])


@inline
def refresh_in_turn(state: ELOCState) -> None:
    """Now and then add one row of sums up anew: in ``cycle`` rounds all have their turn, evenly spaced."""
    int_params = state.int_params
    n_rows = state.seeds.size + 2
    cycle = max(REFRESH_ROUNDS, 64 * state.n_users[0])
    before = int_params[REFRESH_COUNTER] * n_rows // cycle
    int_params[REFRESH_COUNTER] += 1
    if int_params[REFRESH_COUNTER] * n_rows // cycle > before:
        refresh_sums(state, before)
    if int_params[REFRESH_COUNTER] >= cycle:
        int_params[REFRESH_COUNTER] = 0

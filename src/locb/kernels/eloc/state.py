"""ELOC's state arrays and work arrays, the constants of its model, and functions that recompute its sums.

The model is described in docs/explanation/eloc.md, and n, N, K, d, p, k, m, x, r, b, G in ``locb.kernels``.

- A *component* is a Gaussian prior for the θ of a user. There are K + 2: one per *neighbourhood* of a seed user, then
  *everyone* (all users have nearly the same θ), then the *population* (any θ is possible).
- The *centre* μ of a neighbourhood or of everyone is the mean of its prior. The population has mean μ_0 and covariance
  Σ_0; Σ is Σ_0 shrunk towards a multiple of I. C is the covariance of an uncertain centre, and C_0 that of μ_0. σ² is
  the variance of the noise, and π the prior weight of a component, its share among all users.
- u is the number of *used* features: those that were not 0 in all contexts learned so far.
- The *evidence* of a component is the likelihood of a user's rewards under it. Its *responsibility* for the user is its
  posterior probability, proportional to π · evidence. q is the weight with which a user contributes to a neighbourhood.
- The *pooled sums* of a neighbourhood are c = Σ q b and A = Σ q G over its users.
- The *gate* holds the mixing weights of three predictors: everyone, the population, and the mixture of all components.
- A row (v, M) holds a vector and a packed symmetric matrix: (b, G) of a user, (c, A) of a neighbourhood, (μ_0, Σ_0).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints, Words

T, N_SERVED_USERS, REFRESH_COUNTER, TIES, SCREEN = 0, 1, 2, 3, 4  # entries of ``int_params``
BETA, SIGMA, NORM_BOUND, DELTA, ROBUST = 0, 1, 2, 3, 4  # entries of ``float_params``
RETENTION, SCORE = 0, 1  # columns of ``memories``
SCREEN_OFF, SCREEN_NOISE, SCREEN_THEORY = 0, 1, 2  # values of int_params[SCREEN]
EVERYONE, POPULATION, MIXTURE, NOISE, LOG_DET, GAP = 0, 1, 2, 3, 4, 5  # entries of ``learned_scalars``; gate: first 3
USERS, ROUNDS = 0, 1  # columns of ``contributors``
CENTRE, PRECISION, LEAST_SQUARES, UNCERTAINTY = 0, 1, 2, 3  # rows of ``population``
# Entries of ``reward_stats``: mean, variance and mean absolute deviation of all rewards; number of distinct values, at
# most 3, and the first two; the scale; number of residuals, their limit (0: none), the share below it, the number of
# rewards learned with a limit; the location, which is subtracted from all rewards.
R_MEAN, R_VARIANCE, R_DEVIATION, R_DISTINCT, R_FIRST, R_SECOND = 0, 1, 2, 3, 4, 5
R_SCALE, R_RESIDUALS, R_LIMIT, R_INSIDE, R_CLIPPED, R_LOCATION = 6, 7, 8, 9, 10, 11

# Initial values, relative to the scale: an estimate of the variance of rewards from the first rounds.
INITIAL_SCALE = 0.25  # before two distinct rewards: the variance of a reward that is 0 or 1 with equal probability
LOCATION_DEVIATIONS = 3.0  # the location is 0 if the mean reward is at most this many standard deviations from 0
SCALE_ROUNDS = 24  # the scale is estimated in this many rounds, or longer, until there are two distinct rewards
POPULATION_VARIANCE = 16.0  # initial tr Σ_0; a value that is too large is harmless, one that is too small is not
PRIOR_VARIANCE = 4.0  # trace of the value to which Σ_0 is shrunk, and prior variance of μ_0 in each direction
INITIAL_PRIOR_WEIGHTS = (0.1, 0.3)  # π of everyone and of the population; the neighbourhoods share the remaining 0.6
INITIAL_GATE = (-8.0, 0.0, -2.0)  # log weights of everyone, population, mixture: "everyone" needs the most evidence
# Variances of users around a centre.
WITHIN_VARIANCE = 0.02  # variance of users around the centre of a neighbourhood, relative to that of the population
EVERYONE_VARIANCE_RATIO = 0.01  # variance of users around the centre of everyone, relative to that of a neighbourhood
CENTRE_VARIANCE_SHARE = 0.5  # share of the mean variance of a centre that is added to the variance around it
# Learning rates.
GATE_MEMORY_ROUNDS = 60.0  # past errors in the gate's log weights decay over this many rounds per served user
GATE_MEMORY_SHARE = 0.2  # past errors decay over at most this share of all rounds: the first errors are not informative
NOISE_PRIOR_ROUNDS = 22.0  # in round t, σ² moves by the fraction 2 / (t + NOISE_PRIOR_ROUNDS) towards a new value
PRIOR_USERS = 5.0  # Σ_0 and π move by the fraction 1 / (number of served users + PRIOR_USERS) towards new values
WISHART_USERS = 2.0  # weight of the value to which Σ_0 is shrunk, in users: untried directions keep a variance
SHRINKAGE_USERS = 1.0 / 45.0  # Σ_0 is shrunk towards a multiple of I with the weight of SHRINKAGE_USERS · u² users
# Bounds, which prevent the permanent exclusion of a component, and division by zero.
MIN_PRIOR_WEIGHT = 0.02  # lower bound of π for everyone, for the population, and for all neighbourhoods together
MIN_NOISE = 1e-6  # lower bound of σ² relative to the scale, because σ² would be 0 for rewards without noise
MIN_BINARY_NOISE = 0.6  # lower bound of σ² relative to the variance of rewards with at most two distinct values
MIN_VARIANCE = 1e-6  # lower bound of the population's variance in any direction, relative to the scale
# If the log evidence of "population", summed over all users, exceeds that of "everyone" by more than this, the excess
# is subtracted from the log weight of "everyone".
MAX_GAP = 5.0
# ``memory="auto"``.
AUTO_MEMORIES = (300.0, 100.0)  # candidates in addition to no forgetting, in rounds of a user
MEMORY_LEAD = 8.0  # lead of the score that a shorter memory needs over the memory in use; a longer one needs none
SCORE_ROUNDS = 120.0  # past errors in the scores of memories decay over this many rounds per served user
SCORE_SHARE = 0.4  # past errors decay over at most this share of all rounds
MIN_MEMORY_WEIGHT = 0.02  # components with at most this weight do not contribute to the predictions that are scored
# Safety screen.
SCREEN_DEVIATIONS = 2.0  # factor of the width of the screen "noise", in estimated standard deviations of the noise
# Robust rewards: residuals are clipped at one of several limits, if clipping reduces the variance of estimates.
N_LIMITS = 9  # the last limit is infinite
SMALLEST_LIMIT, LIMIT_RATIO = 0.1, 2.0**0.75  # in units of the root of the scale; ratio between two limits
RESIDUAL_ROUNDS = 20_000  # statistics of residuals decay over this many rounds
ROBUST_ROUNDS, LIMIT_INTERVAL = 64, 16  # a limit is chosen after every 16 residuals, first after 64
MIN_INSIDE = 0.5  # smallest share of residuals below a limit
MAX_VARIANCE_RATIO = 0.85  # a limit must reduce the variance to this share
BIAS_WEIGHT = 400.0  # weight of the squared bias of a limit, relative to its variance
# Seeds that move to another user, or become inactive because their neighbourhood was merged with its twin.
UNEXPLAINED_RESPONSIBILITY = 0.5  # no neighbourhood explains a user if the population's responsibility is above this
RESEED_ROUNDS = 16  # a user is tested after this many rounds of the user, and again each time the number doubles
MERGE_INTERVAL = 8  # twins are looked for in every eighth round of a seed user, from RESEED_ROUNDS on
TWIN_EVIDENCE_GAP = 2.0  # the log evidence of a twin for the seed user exceeds that of the population by more than this
TWIN_DISTANCE = 1.5  # the squared distance of the centre of a twin is below this multiple of its expected value
REDUNDANT_DISTANCE = 1.0  # limit of the distance of redundant centres, in standard deviations of users around a centre
# Approximations that save time. LEAVE_ONE_OUT_SHARE and RECENTRE_CHANGE are not ratios of small integers, because
# contexts often have norm 1. Traces are then numbers of rounds, and a comparison with such a ratio would depend on
# rounding.
MAX_NEIGHBOURHOODS = 8  # largest number of neighbourhoods in which a user has a weight q
FULL_EVIDENCE_ROUNDS = 16  # all components are evaluated in the first 16 rounds of a user
FULL_EVIDENCE_INTERVAL = 8  # later in every eighth round; in all other rounds only those in which the user has a weight
MIN_RELATIVE_WEIGHT = 1e-3  # responsibilities below this fraction of the largest are set to 0
EQUAL_WEIGHT_TOLERANCE = 1e-6  # weights with a smaller relative difference count as equal, despite rounding errors
MAX_EVIDENCE_GAP = 16.0  # components with a log evidence this far below the best get responsibility 0, for any π
MIN_COVARIANCE_WEIGHT = 1e-4  # components with at most this weight do not contribute to the covariance of the posterior
MIN_UNCERTAIN_WEIGHT = 0.02  # centres of components with at most this weight are treated as certain
MIN_UNCERTAINTY = 0.02  # a centre is also treated as certain up to this trace of C, relative to the prior variance
POPULATION_ROUNDS = 32  # the population learns from each of the first POPULATION_ROUNDS rounds of a user
POPULATION_INTERVAL = 4  # the population learns from every fourth round of a user up to round LATE_POPULATION_ROUNDS
LATE_POPULATION_ROUNDS = 128  # rounds of a user after which the population learns from fewer rounds of this user
LATE_POPULATION_INTERVAL = 16  # the population learns from every sixteenth round of a user after LATE_POPULATION_ROUNDS
LEAVE_ONE_OUT_SHARE = 0.0213  # a user with a larger share of tr A is left out of the neighbourhood's evidence
RECENTRE_CHANGE = 0.0123  # a centre is recomputed when tr A has changed by this fraction, and periodically
VARIANCE_STEP = math.log(2.0)  # prior variances are rounded to powers of 2, so that components share factorizations
MEMBERSHIP_EVIDENCE_GAP = math.log(20.0)  # a user is a member if the evidence is at least 1/20 of the best component's
REFRESH_ROUNDS = 16_384  # refresh cycle: all sums are recomputed in max(this, 64 n) rounds


class ELOCState(NamedTuple):
    """The arrays of ELOC's state. Terms and symbols are defined in this module and in ``locb.kernels``."""

    sums: Floats  # (N, B (d + p)) b = Σ r x and G = Σ x xᵀ of each user, for each of B memories
    centre_terms: Floats  # (N, d + p) terms of each user in the least squares for μ_0: right-hand side and matrix
    user_neighbourhoods: NDArray[np.int32]  # (N, MAX_NEIGHBOURHOODS) ids of the user's neighbourhoods; −1 for none
    weights: Floats  # (N, MAX_NEIGHBOURHOODS) q: the user's weight in each neighbourhood of user_neighbourhoods
    evidence_gaps: Floats  # (N,) log evidence of the population minus that of everyone, in the user's last round
    served: Ints  # (N,) m: rounds per user
    seed_of: Ints  # (N,) index of each user among the seed users; −1 for a user who is not a seed user
    seeds: Ints  # (K,) the seed users; −1 for an inactive seed: its neighbourhood does not exist
    neighbourhood_ids: Ints  # (K,) id of neighbourhood s: initially s, plus K when seed s moves or becomes inactive
    pooled_sums: Floats  # (K + 1, B (d + p)) c and A of each neighbourhood; last row: those of everyone, with q = 1
    centres: Floats  # (K + 1, d + p) μ, and μ μᵀ with off-diagonal terms doubled; the last row is everyone
    centre_posteriors: Floats  # (K + 1, d + p) μ, and its covariance C
    trace_change: Floats  # (K + 1,) change of tr A since the centre was last computed
    variance_levels: Ints  # (K + 1,) log of each component's prior variance, in steps of VARIANCE_STEP
    population: Floats  # (4, d + p) (μ_0, Σ_0); (Σ⁻¹μ_0, Σ⁻¹); sum of centre terms; (tr Σ⁻¹C_0, Σ⁻¹C_0Σ⁻¹)
    prior_weights: Floats  # (K + 2,) π of the neighbourhoods, everyone, the population; 0 if the seed is inactive
    learned_scalars: Floats  # (6,) log weights of everyone, the population, the mixture; σ²; log det Σ; Σ evidence_gaps
    context_sum: Floats  # (d,) sum of the contexts of the rounds in which the scale was estimated
    reward_stats: Floats  # (12,) statistics of rewards; the entries are listed above
    residual_stats: Floats  # (N_LIMITS, 3) per limit: share of residuals below; mean and mean square if clipped
    # (B, 2) for each memory: the factor by which the sums of a user are multiplied in each round of the user (1: no
    # forgetting), and the score. Row 0 is the memory in use. B is 1 unless ``memory="auto"``.
    memories: Floats
    int_params: Ints  # t, number of users with at least one round, rounds in this refresh cycle, tie rule, screen
    float_params: Floats  # β; σ, S, δ of the screen; 1 if robust, else 0
    generator: Words  # (1,) random generator for ties
    contributors: Ints  # (K, 2) not saved: users with a weight in each neighbourhood, and the rounds of these users
    components: Ints  # (K + 3,) not saved: number of components that exist, and their indices; −1 after them
    n_users: Ints  # (1,) not saved: n


class ELOCScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms.

    A *factorization* is shared by all components of the same variance level. f is the maximum number of factorizations.
    """

    arms: Floats  # (k, d + p) x and x xᵀ of each arm, from ``expand_contexts``
    scores: Floats  # (k,)
    factor_levels: Ints  # (f,) variance level of each factorization
    factor_scales: Floats  # (f, 2) prior variance v of each factorization, and the log evidence of a centre at 0
    posteriors: Floats  # (f, d + p) (V b / σ², V), V = (G / σ² + I / v)⁻¹
    evidence_forms: Floats  # (f, d + p) log evidence of a centre μ, as coefficients of μ and μ μᵀ
    component_rows: Ints  # (K + 2, 2) factorization of each neighbourhood; row of left_out_centres, or −1
    left_out_centres: Floats  # (MAX_NEIGHBOURHOODS + 1, d + p) centres of components computed without the user
    left_out_posteriors: Floats  # (MAX_NEIGHBOURHOODS + 1, d + p) the same centres and their covariances
    log_evidence: Floats  # (K + 2,) ℓ: log evidence of each component for the user; −∞ if it does not exist
    responsibilities: Floats  # (K + 2,) responsibility of each component for the user; 0 if it does not exist
    means: Floats  # (K + 3, d) posterior mean under each component; the last row is that of the mixture
    gate_weights: Floats  # (3,) weights of everyone, the population and the mixture
    rows: Floats  # (6, d + p) the six rows below
    deviations: Floats  # (d, K + 2) of each component with a weight: (its mean − posterior mean) · root of its weight
    square: Floats  # (2d + 1, d) two full matrices, the upper and the lower half, and a vector
    workspace: Floats  # (d, 2d + 1) for ``decompose`` and ``solve``
    is_inverted: Ints  # (2,) whether rows UNDER_POPULATION and UNDER_EVERYONE have a covariance


# Rows of ``ELOCScratch.rows``: the user's posterior under the population, and under everyone, with a covariance only if
# ``is_inverted`` is set; the posterior (θ̄, V̄), mean and covariance of the gated mixture; a linear system; the solution
# of the system; the user's own ridge estimate for the safety screen.
UNDER_POPULATION, UNDER_EVERYONE, POSTERIOR, SYSTEM, SOLUTION, OWN = 0, 1, 2, 3, 4, 5

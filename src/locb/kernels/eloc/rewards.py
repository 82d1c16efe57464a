"""ELOC's statistics of rewards: their scale, and rewards without the effect of outliers.

The constants of the model are relative to the *scale*, an estimate of the variance of rewards. A *location* far from 0
is subtracted from rewards. Once scale and location are known, a linear function of the rewards therefore leads to about
the same choices as the rewards themselves.

Residuals of rewards with heavy tails are clipped at a limit c. If all residuals shift by a small amount, the mean of
clipped residuals shifts by ρ times this amount, where ρ is the share of residuals below c, so clipped residuals are
divided by ρ. Terms and symbols are defined in ``locb.kernels.eloc.state``.
"""

import math

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc
from locb.kernels.common.linear_algebra import count_used, packed_trace, solve
from locb.kernels.eloc.evidence import recompute_all_centres
from locb.kernels.eloc.population import derive_population
from locb.kernels.eloc.state import (
    BIAS_WEIGHT,
    CENTRE,
    INITIAL_SCALE,
    LEAST_SQUARES,
    LIMIT_INTERVAL,
    LIMIT_RATIO,
    LOCATION_DEVIATIONS,
    MAX_VARIANCE_RATIO,
    MIN_BINARY_NOISE,
    MIN_INSIDE,
    MIN_NOISE,
    N_LIMITS,
    NOISE,
    NOISE_PRIOR_ROUNDS,
    POPULATION_VARIANCE,
    POSTERIOR,
    R_CLIPPED,
    R_DEVIATION,
    R_DISTINCT,
    R_FIRST,
    R_INSIDE,
    R_LIMIT,
    R_LOCATION,
    R_MEAN,
    R_RESIDUALS,
    R_SCALE,
    R_SECOND,
    R_VARIANCE,
    RESIDUAL_ROUNDS,
    ROBUST_ROUNDS,
    SCALE_ROUNDS,
    SCREEN,
    SCREEN_THEORY,
    SMALLEST_LIMIT,
    SOLUTION,
    SYSTEM,
    ELOCScratch,
    ELOCState,
    T,
)


@inline
def track_reward(stats: Floats, t: int, reward: float) -> None:
    """Update mean, variance, mean absolute deviation and the number of distinct values of the rewards of t rounds."""
    before = reward - stats[R_MEAN]
    stats[R_MEAN] += before / t
    after = reward - stats[R_MEAN]
    stats[R_VARIANCE] += (before * after - stats[R_VARIANCE]) / t
    stats[R_DEVIATION] += (abs(after) - stats[R_DEVIATION]) / t
    if stats[R_DISTINCT] == 0.0:
        stats[R_DISTINCT] = 1.0
        stats[R_FIRST] = reward
    elif stats[R_DISTINCT] == 1.0 and reward != stats[R_FIRST]:
        stats[R_DISTINCT] = 2.0
        stats[R_SECOND] = reward
    elif stats[R_DISTINCT] == 2.0 and reward != stats[R_FIRST] and reward != stats[R_SECOND]:
        stats[R_DISTINCT] = 3.0


@inline
def is_scale_open(state: ELOCState) -> bool:
    """Return whether the scale of rewards is estimated in this round, before ``track_reward`` adds its reward."""
    return bool(state.int_params[T] <= SCALE_ROUNDS or state.reward_stats[R_DISTINCT] < 2.0)


@no_alloc
def set_scale(state: ELOCState, scratch: ELOCScratch) -> None:
    """Estimate the scale, and give σ² and Σ_0 their initial values for this scale.

    With three or more distinct rewards, the scale is estimated from the mean absolute deviation, which outliers affect
    less. The factor 1.25 converts it to the standard deviation for normally distributed rewards.
    """
    stats, population = state.reward_stats, state.population
    d = scratch.workspace.shape[0]
    scale = stats[R_VARIANCE]
    if stats[R_DISTINCT] > 2.0:
        scale = 1.25 * 1.25 * stats[R_DEVIATION] * stats[R_DEVIATION]
    stats[R_SCALE] = scale if scale > 0.0 else INITIAL_SCALE
    state.learned_scalars[NOISE] = stats[R_SCALE]
    for q in range(d, population.shape[1]):
        population[CENTRE, q] = 0.0
    used = count_used(state.pooled_sums, state.seeds.size, d)
    q = d
    for a in range(d):
        population[CENTRE, q] = POPULATION_VARIANCE * stats[R_SCALE] / used
        q += d - a
    derive_population(state, scratch.rows, scratch.square, scratch.workspace)


@no_alloc
def set_location(state: ELOCState, scratch: ELOCScratch) -> None:
    """Set the location to the mean reward if that is far from 0, as if it had been subtracted from all rewards.

    A linear model can represent rewards far from 0 only if some u has uᵀx = 1 for all contexts x. Then Σ x = G u, so b
    becomes b − location · G u. u is estimated by least squares. With the screen "theory", the location is always 0.
    """
    stats, rows = state.reward_stats, scratch.rows
    d = scratch.workspace.shape[0]
    deviation = math.sqrt(stats[R_SCALE])
    if abs(stats[R_MEAN]) <= LOCATION_DEVIATIONS * deviation or state.int_params[SCREEN] == SCREEN_THEORY:
        return
    stats[R_LOCATION] = stats[R_MEAN]
    everyone = state.seeds.size
    ridge = 1e-9 * packed_trace(state.pooled_sums, everyone, d) + 1e-100
    for q in range(d, rows.shape[1]):
        rows[SYSTEM, q] = state.pooled_sums[everyone, q]
    q = d
    for a in range(d):
        rows[SYSTEM, a] = state.context_sum[a]
        rows[SYSTEM, q] += ridge
        q += d - a
    solve(rows, SYSTEM, rows, SOLUTION, scratch.workspace)
    for i in range(state.n_users[0]):
        if state.served[i] > 0:
            for c in range(state.memories.shape[0]):
                subtract_location(state.sums, i, c * rows.shape[1], stats[R_LOCATION], rows, d)
            subtract_location(state.centre_terms, i, 0, stats[R_LOCATION], rows, d)
    for s in range(everyone + 1):
        for c in range(state.memories.shape[0]):
            subtract_location(state.pooled_sums, s, c * rows.shape[1], stats[R_LOCATION], rows, d)
    recompute_all_centres(state)
    subtract_location(state.population, LEAST_SQUARES, 0, stats[R_LOCATION], rows, d)


@inline
def subtract_location(sums: Floats, i: int, first: int, location: float, rows: Floats, d: int) -> None:
    """Subtract location · M u from v, where row i of ``sums`` has (v, M) from column ``first`` on.

    u is in row SOLUTION of ``rows``.
    """
    q = first + d
    for a in range(d):
        for b in range(a, d):
            sums[i, first + a] -= location * sums[i, q] * rows[SOLUTION, b]
            if b > a:
                sums[i, first + b] -= location * sums[i, q] * rows[SOLUTION, a]
            q += 1


@inline
def residual_spread(noise: float, x: Floats, rows: Floats) -> float:
    """Return the standard deviation of the residual of a reward, relative to that of the noise: √(1 + xᵀV̄x / σ²)."""
    d = x.size
    variance = 0.0
    q = d
    for a in range(d):
        variance += rows[POSTERIOR, q] * x[a] * x[a]
        q += 1
        for b in range(a + 1, d):
            variance += 2.0 * rows[POSTERIOR, q] * x[a] * x[b]
            q += 1
    return math.sqrt(1.0 + max(variance, 0.0) / noise)


@inline
def residual_limit(scale: float, j: int) -> float:
    """Return limit number j of residuals; the last limit is infinite."""
    return SMALLEST_LIMIT * LIMIT_RATIO**j * math.sqrt(scale) if j < N_LIMITS - 1 else np.inf


@inline
def update_residual_stats(stats: Floats, residual_stats: Floats, residual: float) -> None:
    """Add a residual to the statistics of all limits."""
    stats[R_RESIDUALS] += 1.0
    rate = 1.0 / min(stats[R_RESIDUALS], RESIDUAL_ROUNDS)
    limit = residual_limit(stats[R_SCALE], 0)
    for j in range(N_LIMITS):
        if j == N_LIMITS - 1:
            limit = np.inf
        clipped = min(max(residual, -limit), limit)
        residual_stats[j, 0] += rate * ((1.0 if abs(residual) < limit else 0.0) - residual_stats[j, 0])
        residual_stats[j, 1] += rate * (clipped - residual_stats[j, 1])
        residual_stats[j, 2] += rate * (clipped * clipped - residual_stats[j, 2])
        limit *= LIMIT_RATIO


@inline
def choose_limit(stats: Floats, residual_stats: Floats) -> None:
    """Choose the limit with the smallest variance of estimates plus a penalty for bias.

    No limit is chosen if none reduces the variance below MAX_VARIANCE_RATIO times the variance without a limit.
    """
    last = N_LIMITS - 1
    stats[R_LIMIT], stats[R_INSIDE] = 0.0, 1.0
    smallest = MAX_VARIANCE_RATIO * residual_stats[last, 2]
    for j in range(last):
        inside = residual_stats[j, 0]
        if inside > MIN_INSIDE:
            shift = (residual_stats[j, 1] - residual_stats[last, 1]) / inside
            chance = 2.0 * (residual_stats[last, 2] - residual_stats[j, 2]) / min(stats[R_RESIDUALS], RESIDUAL_ROUNDS)
            value = residual_stats[j, 2] / (inside * inside) + BIAS_WEIGHT * max(0.0, shift * shift - chance)
            if value < smallest:
                smallest = value
                stats[R_LIMIT], stats[R_INSIDE] = residual_limit(stats[R_SCALE], j), inside


@inline
def robust_reward(state: ELOCState, error: float, spread: float, reward: float) -> float:
    """Return the reward to learn, in place of a reward with the residual ``error``; update statistics and limit.

    The reward is returned unchanged before the third distinct reward, so rewards with two values are never clipped.
    """
    stats = state.reward_stats
    if stats[R_DISTINCT] < 3.0:
        return reward
    update_residual_stats(stats, state.residual_stats, error / spread)
    if stats[R_RESIDUALS] >= ROBUST_ROUNDS and stats[R_RESIDUALS] % LIMIT_INTERVAL == 0.0:
        choose_limit(stats, state.residual_stats)
    limit = stats[R_LIMIT] * spread
    if limit == 0.0:
        return reward
    stats[R_CLIPPED] += 1.0
    learned: float = reward - error + min(max(error, -limit), limit) / stats[R_INSIDE]
    return learned


@inline
def update_noise(state: ELOCState, error: float, spread: float) -> None:
    """Move σ² towards the squared residual, without the part that the posterior variance explains."""
    scalars, stats = state.learned_scalars, state.reward_stats
    target = error / spread * (error / spread)
    step = 2.0 / (state.int_params[T] + NOISE_PRIOR_ROUNDS)
    scalars[NOISE] = max(scalars[NOISE] + step * (target - scalars[NOISE]), MIN_NOISE * stats[R_SCALE])
    if stats[R_DISTINCT] < 3.0:
        scalars[NOISE] = max(scalars[NOISE], MIN_BINARY_NOISE * stats[R_VARIANCE])

"""ELOC's state: initial arrays, and new rows for users who are added later.

Terms and symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``.
"""

from __future__ import annotations

import math

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.kernels.common.linear_algebra import packed_identity, packed_size, unpack_symmetric
from locb.kernels.eloc.state import (
    BETA,
    CENTRE,
    CENTRE_VARIANCE_SHARE,
    DELTA,
    EVERYONE_VARIANCE_RATIO,
    INITIAL_GATE,
    INITIAL_PRIOR_WEIGHTS,
    INITIAL_SCALE,
    LOG_DET,
    MAX_NEIGHBOURHOODS,
    N_LIMITS,
    N_SERVED_USERS,
    NOISE,
    NORM_BOUND,
    POPULATION_VARIANCE,
    PRECISION,
    PRIOR_VARIANCE,
    R_INSIDE,
    R_SCALE,
    REFRESH_COUNTER,
    ROBUST,
    SIGMA,
    UNCERTAINTY,
    VARIANCE_STEP,
    WITHIN_VARIANCE,
    ELOCState,
    T,
)
from locb.policies.state.user_rows import grow_rows, grown_capacity

MAX_DUPLICATE_DIFFERENCE = 0.3  # limit of the difference between duplicates, relative to that between two users
USER_ROWS = (
    "sums",
    "centre_terms",
    "user_neighbourhoods",
    "weights",
    "evidence_gaps",
    "served",
    "seed_of",
)  # arrays with one row per user


def pack_float_params(beta: float, sigma: float, norm_bound: float, delta: float, robust: bool) -> Floats:
    """Return the array ``float_params`` of these parameters of ELOC."""
    float_params = np.zeros(5)
    float_params[BETA] = beta
    float_params[SIGMA], float_params[NORM_BOUND], float_params[DELTA] = sigma, norm_bound, delta
    float_params[ROBUST] = float(robust)
    return float_params


def initial_state(
    n: int,
    dim: int,
    dtype: str,
    seeds: Ints,
    memories: Floats,
    float_params: Floats,
    int_params: Ints,
    generator: Words,
) -> ELOCState:
    """Return the state of n users before the first round: all centres are 0, all neighbourhoods have equal weight."""
    n_seeds, columns = len(seeds), dim + packed_size(dim)
    sum_columns = len(memories) * columns
    seed_of = np.full(n, -1)
    seed_of[seeds] = np.arange(n_seeds)
    reward_stats = np.zeros(12)
    reward_stats[R_INSIDE] = 1.0
    state = ELOCState(
        sums=np.zeros((n, sum_columns), dtype),
        centre_terms=np.zeros((n, columns), dtype),
        user_neighbourhoods=np.full((n, MAX_NEIGHBOURHOODS), -1, np.int32),
        weights=np.zeros((n, MAX_NEIGHBOURHOODS), dtype),
        evidence_gaps=np.zeros(n, dtype),
        served=np.zeros(n, np.int64),
        seed_of=seed_of,
        seeds=seeds,
        neighbourhood_ids=np.arange(n_seeds),
        pooled_sums=np.zeros((n_seeds + 1, sum_columns)),
        centres=np.zeros((n_seeds + 1, columns)),
        centre_posteriors=np.zeros((n_seeds + 1, columns)),
        trace_change=np.zeros(n_seeds + 1),
        variance_levels=np.zeros(n_seeds + 1, np.int64),
        population=np.zeros((4, columns)),
        prior_weights=np.concatenate(
            [np.full(n_seeds, (1.0 - sum(INITIAL_PRIOR_WEIGHTS)) / n_seeds), INITIAL_PRIOR_WEIGHTS]
        ),
        learned_scalars=np.array([*INITIAL_GATE, 0.0, 0.0, 0.0]),
        context_sum=np.zeros(dim),
        reward_stats=reward_stats,
        residual_stats=np.zeros((N_LIMITS, 3)),
        memories=memories,
        int_params=int_params,
        float_params=float_params,
        generator=generator,
        contributors=np.zeros((n_seeds, 2), np.int64),
        components=np.arange(-1, n_seeds + 2),
        n_users=np.array([n]),
    )
    rebuild_derived(state)
    _set_initial_population(state, dim)
    return state


def _set_initial_population(state: ELOCState, dim: int) -> None:
    """Set the population, and the covariances and variance levels of all centres, to their values before all rounds.

    All matrices are multiples of I. The values equal those of ``set_scale`` and ``update_centres`` in the kernel to
    the last bit, but need no compiled code.
    """
    on_diagonal = dim + np.flatnonzero(packed_identity(dim))
    variance = _sum(POPULATION_VARIANCE * INITIAL_SCALE / dim, dim) / dim
    precision, centre_covariance = 1.0 / variance, 1.0 / (1.0 / (PRIOR_VARIANCE * INITIAL_SCALE))
    population, learned_scalars = state.population, state.learned_scalars
    population[CENTRE, on_diagonal] = POPULATION_VARIANCE * INITIAL_SCALE / dim
    population[PRECISION, on_diagonal] = precision
    population[UNCERTAINTY, 0] = _sum(precision * centre_covariance, dim)
    population[UNCERTAINTY, on_diagonal] = precision * centre_covariance * precision
    state.reward_stats[R_SCALE] = learned_scalars[NOISE] = INITIAL_SCALE
    learned_scalars[LOG_DET] = _log_power(variance, dim)
    covariance = INITIAL_SCALE * (1.0 / (INITIAL_SCALE * precision))
    uncertain_mean = covariance * (precision * centre_covariance * precision) * covariance
    state.centre_posteriors[:, on_diagonal] = covariance + uncertain_mean
    within = WITHIN_VARIANCE * _sum(POPULATION_VARIANCE * INITIAL_SCALE / dim, dim) / dim
    further = CENTRE_VARIANCE_SHARE * _sum(covariance, dim) / dim
    state.variance_levels[:-1] = _variance_level(within + further)
    state.variance_levels[-1] = _variance_level(within * EVERYONE_VARIANCE_RATIO + further)


def _sum(value: float, count: int) -> float:
    """Return ``count`` times ``value``, with the rounding errors of a sum of ``count`` terms."""
    return float(np.full(count, value).cumsum()[-1])


def _log_power(value: float, count: int) -> float:
    """Return ``count`` times the log of ``value``, with the rounding errors of ``decompose`` in the kernel."""
    product, total = 1.0, 0.0
    for _ in range(count):
        product *= value
        if not 1e-100 < product < 1e100:
            product, total = 1.0, total + math.log(product)
    return total + math.log(product)


def _variance_level(variance: float) -> int:
    return math.floor(math.log(variance) / VARIANCE_STEP + 0.5)


def grow(state: ELOCState, needed: int) -> ELOCState:
    """Return the state with a capacity of at least ``needed`` users. The new rows hold initial values."""
    rows = grown_capacity(len(state.served), needed)
    return state._replace(**grow_rows(state, USER_ROWS, rows, {"user_neighbourhoods": -1, "seed_of": -1}))


def shift_sums(state: ELOCState, user: int, change: Floats) -> None:
    """Add ``change`` (d,) to b of a user, and to c of its neighbourhoods and of everyone."""
    d = len(change)
    before = state.sums[user, :d].astype(np.float64)
    state.sums[user, :d] += change
    step = state.sums[user, :d] - before
    state.pooled_sums[-1, :d] += step
    ids, weights = state.user_neighbourhoods[user].tolist(), state.weights[user].tolist()
    for neighbourhood_id, weight in zip(ids, weights, strict=True):
        s = neighbourhood_id % len(state.seeds)
        if neighbourhood_id >= 0 and state.neighbourhood_ids[s] == neighbourhood_id:
            state.pooled_sums[s, :d] += weight * step


def find_duplicates(state: ELOCState, dim: int) -> Ints:
    """Return for each neighbourhood the neighbourhood of which it is a duplicate, or itself, and K for "everyone".

    Seeds that are alike have neighbourhoods with nearly the same centre. Two neighbourhoods differ by the mean of
    ((μ_s − μ_r)ᵀx)² over the contexts x so far, relative to the expected difference of two users, which is
    2 tr(Σ_0 xxᵀ). In the order of decreasing tr A, each neighbourhood is a duplicate of the most similar one before it
    that is no duplicate, if they differ by less than MAX_DUPLICATE_DIFFERENCE. Inactive seeds have no duplicates.
    """
    n_seeds = len(state.seeds)
    centres, pooled = state.centres[:n_seeds, :dim], state.pooled_sums[:, dim : dim + packed_size(dim)]
    contexts = unpack_symmetric(pooled[-1:], dim)[0]
    products = centres @ contexts @ centres.T
    norms = products.diagonal()
    differences = norms[:, None] + norms - 2.0 * products
    between_users = 2.0 * float(np.sum(unpack_symmetric(state.population[[CENTRE], dim:], dim)[0] * contexts))
    same_as, originals = np.arange(n_seeds + 1), np.zeros(0, np.int64)
    for s in np.argsort(-(pooled[:n_seeds] @ packed_identity(dim)), kind="stable").tolist():
        if state.seeds[s] < 0:
            continue
        if len(originals) and differences[s, originals].min() < MAX_DUPLICATE_DIFFERENCE * between_users:
            same_as[s] = originals[differences[s, originals].argmin()]
        else:
            originals = np.append(originals, s)
    return same_as


def rebuild_derived(state: ELOCState) -> None:
    """Recompute ``components`` from the seeds, and ``contributors`` from the users' neighbourhoods."""
    components = np.append(np.flatnonzero(state.seeds >= 0), [len(state.seeds), len(state.seeds) + 1])
    state.components[:] = -1
    state.components[0], state.components[1 : len(components) + 1] = len(components), components
    ids, contributors = state.user_neighbourhoods, state.contributors
    n_seeds = len(contributors)
    is_current = (ids >= 0) & (state.neighbourhood_ids[ids % n_seeds] == ids)
    users, _ = np.nonzero(is_current)
    contributors[:] = 0
    counts = np.stack([np.ones_like(users), state.served[users]], axis=1)
    np.add.at(contributors, ids[is_current] % n_seeds, counts)


def index_limits(n_seeds: int, n_users: int) -> dict[str, tuple[int, int]]:
    """Return the lowest value and one more than the highest value of each array of indices."""
    return {
        "user_neighbourhoods": (-1, 2**31),
        "neighbourhood_ids": (0, 2**31),
        "seed_of": (-1, n_seeds),
        "seeds": (-1, n_users),
    }


def consistency(state: ELOCState) -> dict[str, bool]:
    """Return for each array that can be checked whether its values are consistent with the other arrays."""
    int_params, n_seeds, ids = state.int_params, len(state.seeds), state.user_neighbourhoods
    active = np.flatnonzero(state.seeds >= 0)
    return {
        "weights": bool(((state.weights >= 0.0) & (state.weights <= 1.0)).all()) and not state.weights[ids < 0].any(),
        "neighbourhood_ids": bool((state.neighbourhood_ids % n_seeds == np.arange(n_seeds)).all()),
        "user_neighbourhoods": bool((ids <= state.neighbourhood_ids[ids % n_seeds]).all()),
        "seeds": active.size > 0 and len(np.unique(state.seeds[active])) == active.size,
        "seed_of": int((state.seed_of >= 0).sum()) == active.size
        and bool((state.seed_of[state.seeds[active]] == active).all()),
        "prior_weights": bool(((state.prior_weights > 0.0) == np.append(state.seeds >= 0, [True, True])).all()),
        "learned_scalars": bool(state.learned_scalars[NOISE] > 0.0),
        "reward_stats": bool(state.reward_stats[R_SCALE] > 0.0 and state.reward_stats[R_INSIDE] > 0.0),
        "variance_levels": bool((np.abs(state.variance_levels) < 2_000).all()),
        "int_params": bool(0 <= int_params[REFRESH_COUNTER] <= int_params[T])
        and int((state.served > 0).sum()) == int(int_params[N_SERVED_USERS]),
    }

"""ELOC's state: initial arrays, and new rows for users who are added later."""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.kernels.common.linear_algebra import packed_identity, packed_size
from locb.kernels.eloc import loop as kernel
from locb.kernels.eloc.state import INITIAL_GATE, INITIAL_NOISE, INITIAL_PRIOR_WEIGHTS, MAX_NEIGHBOURHOODS, ELOCState
from locb.policies.state.user_rows import grow_rows

USER_ROWS = (
    "sums",
    "centre_terms",
    "user_neighbourhoods",
    "weights",
    "served",
    "seed_of",
)  # arrays with one row per user


def initial_state(
    n: int, dim: int, dtype: str, seeds: Ints, float_params: Floats, tie_rule: int, generator: Words
) -> ELOCState:
    """Return the state of n users before the first round: all centres are 0, all neighbourhoods have equal weight."""
    n_seeds, columns = len(seeds), dim + packed_size(dim)
    seed_of = np.full(n, -1)
    seed_of[seeds] = np.arange(n_seeds)
    population = np.zeros((3, columns))
    population[0, dim:] = packed_identity(dim) / dim
    state = ELOCState(
        sums=np.zeros((n, columns), dtype),
        centre_terms=np.zeros((n, columns), dtype),
        user_neighbourhoods=np.full((n, MAX_NEIGHBOURHOODS), -1, np.int32),
        weights=np.zeros((n, MAX_NEIGHBOURHOODS), dtype),
        served=np.zeros(n, np.int64),
        seed_of=seed_of,
        seeds=seeds,
        neighbourhood_ids=np.arange(n_seeds),
        pooled_sums=np.zeros((n_seeds + 1, columns)),
        centres=np.zeros((n_seeds + 1, columns)),
        trace_change=np.zeros(n_seeds + 1),
        variance_levels=np.zeros(n_seeds + 1, np.int64),
        population=population,
        prior_weights=np.concatenate(
            [np.full(n_seeds, (1.0 - sum(INITIAL_PRIOR_WEIGHTS)) / n_seeds), INITIAL_PRIOR_WEIGHTS]
        ),
        learned_scalars=np.array([*INITIAL_GATE, INITIAL_NOISE, 0.0]),
        int_params=np.array([0, 0, 0, tie_rule]),
        float_params=float_params,
        generator=generator,
        contributors=np.zeros((n_seeds, 2), np.int64),
        n_users=np.array([n]),
    )
    kernel.rebuild_derived(state, dim)
    return state


def grow(state: ELOCState, rows: int) -> ELOCState:
    """Return the state with a capacity of ``rows`` users. The new rows hold initial values."""
    return state._replace(**grow_rows(state, USER_ROWS, rows, {"user_neighbourhoods": -1, "seed_of": -1}))

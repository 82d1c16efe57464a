"""ELOC's state before any round, and with room for more users."""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.kernels.common.linear_algebra import packed_identity, packed_size
from locb.kernels.eloc import loop as kernel
from locb.kernels.eloc.state import FIRST_GATE, FIRST_NOISE, FIRST_SHARES, SLOTS, EvidenceState
from locb.policies.state.user_rows import with_room

USER_ROWS = ("sums", "terms", "slots", "weights", "served", "seed_of")  # one row a user


def blank_state(
    n: int, dim: int, dtype: str, seeds: Ints, float_params: Floats, tie_rule: int, generator: Words
) -> EvidenceState:
    """The state before any round: every centre is at 0, every user as likely to be in one neighbourhood as another."""
    n_seeds, columns = len(seeds), dim + packed_size(dim)
    seed_of = np.full(n, -1)
    seed_of[seeds] = np.arange(n_seeds)
    population = np.zeros((3, columns))
    population[0, dim:] = packed_identity(dim) / dim
    state = EvidenceState(
        sums=np.zeros((n, columns), dtype),
        terms=np.zeros((n, columns), dtype),
        slots=np.full((n, SLOTS), -1, np.int32),
        weights=np.zeros((n, SLOTS), dtype),
        served=np.zeros(n, np.int64),
        seed_of=seed_of,
        seeds=seeds,
        names=np.arange(n_seeds),
        pooled=np.zeros((n_seeds + 1, columns)),
        centres=np.zeros((n_seeds + 1, columns)),
        moved=np.zeros(n_seeds + 1),
        levels=np.zeros(n_seeds + 1, np.int64),
        population=population,
        shares=np.concatenate([np.full(n_seeds, (1.0 - sum(FIRST_SHARES)) / n_seeds), FIRST_SHARES]),
        learned=np.array([*FIRST_GATE, FIRST_NOISE, 0.0]),
        int_params=np.array([0, 0, 0, tie_rule]),
        float_params=float_params,
        generator=generator,
        lent=np.zeros((n_seeds, 2), np.int64),
        n_users=np.array([n]),
    )
    kernel.renew(state, dim)
    return state


def more_room(state: EvidenceState, rows: int) -> EvidenceState:
    """The same state with rows for more users, blank until they come."""
    return state._replace(**with_room(state, USER_ROWS, rows, {"slots": -1, "seed_of": -1}))

"""LOCB's state: initial arrays, and new rows for users and seed users who are added later."""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.kernels.common.bit_sets import n_words, pack_bits
from locb.kernels.locb import loop as kernel
from locb.kernels.locb.state import DRIFT_BOUND_MIN_USERS, LOCBState
from locb.policies.state.user_rows import grow_rows, grown_capacity, initial_estimates

USER_ROWS = (
    "estimates",
    "log_det",
    "radius_widths",
    "served",
    "added_at",
    "hash_keys",
    "cluster_bits",
    "seed_of",
)  # arrays with one row per user
# Arrays that are saved. ``LOCB._rebuild_derived`` computes all other arrays from them.
SAVED = (
    "estimates",
    "log_det",
    "served",
    "added_at",
    "members",
    "sums",
    "returned",
    "int_params",
    "float_params",
    "generator",
)


def random_hash_keys(count: int) -> Words:
    """Return one pseudorandom 64-bit hash key for each of ``count`` users, the same in every process.

    The key of user i is output number i + 1 of the SplitMix64 generator with seed 0.
    """
    word = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def initial_state(
    n: int, dim: int, dtype: str, seeds: Ints, float_params: Floats, modes: list[int], generator: Words
) -> LOCBState:
    """Return the state of n users before the first round: every user is in every cluster."""
    n_seeds = len(seeds)
    everyone = pack_bits(np.ones((1, n), bool))
    every_seed = pack_bits(np.ones((1, n_seeds), bool))
    estimates = initial_estimates(n, dim, dtype)
    words = random_hash_keys(n)
    seed_of = np.full(n, -1)
    seed_of[seeds] = np.arange(n_seeds)
    state = LOCBState(
        estimates=estimates,
        log_det=np.zeros(n),
        radius_widths=np.zeros(n),
        served=np.zeros(n, np.int64),
        added_at=np.zeros(n, np.int64),
        hash_keys=words,
        cluster_bits=np.tile(every_seed, (n, 1)),
        seeds=seeds,
        members=np.tile(everyone, (n_seeds, 1)),
        sizes=np.full(n_seeds, n),
        member_hashes=np.full(n_seeds, np.bitwise_xor.reduce(words)),
        sums=np.tile(
            n * estimates[0].astype(np.float64), (n_seeds, 1)
        ),  # float64 for any dtype: rounding errors accumulate in sums, and these arrays are small
        unserved=np.full(n_seeds, n),
        cluster_served=np.zeros(n_seeds, np.int64),
        reference=np.tile(estimates[0].astype(np.float64), (2, 1)),
        drift_bound=np.zeros(n_seeds + 1),
        seed_of=seed_of,
        seed_points=np.zeros((dim + 1, n_seeds)),
        returned=np.zeros(n_seeds, np.int64),
        active=every_seed[0].copy(),
        blocking_member=np.full((n_seeds, 2), -1),
        distinct=np.zeros(n_words(n_seeds), np.uint64),
        drift_bound_min_users=np.array([DRIFT_BOUND_MIN_USERS]),
        int_params=np.array([0, n, n_seeds, 0, *modes]),
        float_params=float_params,
        generator=generator,
    )
    state.distinct[0] = 1
    kernel.recompute_widths(state, 0, n, dim)
    return state


def add_seeds(state: LOCBState, users: Ints, n: int) -> LOCBState:
    """Return the state with ``users`` as additional seed users, and with all n users in their clusters.

    The caller must rebuild the derived arrays. A user can become a seed user only in the round in which it is added.
    """
    old, more = len(state.seeds), len(users)
    dim = state.seed_points.shape[0] - 1
    everyone = np.zeros((1, 64 * state.members.shape[1]), bool)
    everyone[:, :n] = True
    state.seed_of[users] = np.arange(old, old + more)
    per_seed = {
        "seeds": users,
        "members": np.tile(pack_bits(everyone), (more, 1)),
        "sums": np.tile(state.estimates[:n].sum(axis=0, dtype=np.float64), (more, 1)),
    }
    rows = ("sizes", "member_hashes", "unserved", "cluster_served", "drift_bound", "returned", "blocking_member")
    per_seed |= {name: np.zeros((more, *getattr(state, name).shape[1:]), getattr(state, name).dtype) for name in rows}
    grown = {name: np.concatenate([getattr(state, name), row]) for name, row in per_seed.items()}
    words = n_words(old + more)
    return state._replace(
        **grown,
        cluster_bits=np.zeros((len(state.served), words), np.uint64),
        seed_points=np.zeros((dim + 1, old + more)),
        active=np.zeros(words, np.uint64),
        distinct=np.zeros(words, np.uint64),
    )


def grow(state: LOCBState, needed: int) -> LOCBState:
    """Return the state with a capacity of at least ``needed`` users. The new rows hold initial values."""
    rows = grown_capacity(len(state.served), needed)
    dim = state.seed_points.shape[0] - 1
    new = slice(len(state.served), rows)
    initial_values = {"estimates": initial_estimates(1, dim), "hash_keys": random_hash_keys(rows)[new], "seed_of": -1}
    members = np.zeros((len(state.seeds), n_words(rows)), np.uint64)
    members[:, : state.members.shape[1]] = state.members
    return state._replace(members=members, **grow_rows(state, USER_ROWS, rows, initial_values))

"""LOCB's state and the bookkeeping of its sets.

Why LOCB is fast and changes no choice (more in docs/architecture.md):
  - every set keeps the sum of its members' θ̂ and A⁻¹, moved by the served user's step;
  - mean of roots ≤ root of the mean, so sums bound each (set, arm) score, and members are visited only where bounds
    cannot tell the best arm; the roots of an arm are shared by all sets;
  - with many users the pooled score of a set is bounded by a common reference and how far the set's mean can have moved
    from it, so that all but a few sets are ruled out by d products instead of d + p;
  - sets with the same members (equal XOR of one random word a user) are scored once;
  - one open member is proof that a set cannot be returned yet, so the others are looked at only when it closes.
"""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import alloc, no_alloc
from locb.kernels.common.bit_sets import ONE, flip_bit, has_bit, trailing_zeros

# Places in the two short arrays of a state.
T, N_USERS, N_ACTIVE, REFRESH_COUNTER, RADIUS_KIND, STOP_RULE, BONUS_KIND, TIES = 0, 1, 2, 3, 4, 5, 6, 7
GAMMA, ALPHA, TAU, DELTA, SIGMA, MIN_EIGENVALUE = 0, 1, 2, 3, 4, 5
BY_RADIUS, BY_CERTIFICATE, AS_PUBLISHED = 0, 1, 2  # stopping rules
MEAN, POOLED = 0, 1  # bonuses
DRIFT_BOUND_MIN_USERS = 256  # from here on sets are so large, and move so little, that bounds by their departures pay


class LOCBState(NamedTuple):
    """Everything LOCB knows. c: rows kept for users (c ≥ n, so that users can join), p = d (d + 1) / 2."""

    estimates: Floats  # (c, d + p) θ̂ and A⁻¹, packed
    log_det: Floats  # (c,) log det A, kept with the ellipsoid radius alone
    radius_widths: Floats  # (c,) radius = scale(t) · width
    served: Ints  # (c,) m
    added_at: Ints  # (c,) round after which the user came; 0 for those of the start
    hash_keys: Words  # (c,) one random word a user, for the hashes
    cluster_bits: Words  # (c, ⌈K/64⌉) bits: the seeds whose sets hold the user
    seeds: Ints  # (K,)
    members: Words  # (K, ⌈c/64⌉) bits: the users in the set
    sizes: Ints  # (K,)
    member_hashes: Words  # (K,) XOR of the members' words
    sums: Floats  # (K, d + p) of the members' estimates
    unserved: Ints  # (K,) members never served
    cluster_served: Ints  # (K,) rounds in which members were served, all together
    reference: Floats  # (2, d + p) an estimate near the means of the sets, and room for a difference from it
    # (K + 1,) at least the norm of (the set's mean A⁻¹ − the reference's), but for what learning added: the last is the
    # norms of all steps since, and these have moved the mean of a set by at most their sum / size.
    drift_bound: Floats
    seed_of: Ints  # (c,) which seed the user is; −1 for none
    seed_points: Floats  # (d + 1, K) θ̂ and width of the seeds, side by side so that one test takes them all
    returned: Ints  # (K,) round in which the set was returned; 0 while active
    active: Words  # (⌈K/64⌉,) bits: the seeds not returned
    blocking_member: Ints  # (K, 2) members that keep the set from being returned; −1 where none is known
    distinct: Words  # (⌈K/64⌉,) bits: the first seed of each group of equal sets
    drift_bound_min_users: Ints  # (1,) from this many users on, departures are kept and used
    int_params: Ints  # t, n, active seeds, rounds in this cycle of refreshing the sums; radius, stop, bonus, ties
    float_params: Floats  # γ, α, τ, δ, σ, λ
    generator: Words  # (1,) for random ties


class ScoringScratch(NamedTuple):
    """Room for choosing an arm, so that a loop over rounds allocates nothing."""

    arms: Floats  # (k, d + p) x and x xᵀ, packed
    bounds: Floats  # (K, k) upper bounds of scores; −inf once exact
    sets: Ints  # (K,) the different sets that hold the user
    top: Floats  # (k,) highest bound left of each arm
    low: Floats  # (k,) what its score is at least
    lengths: Floats  # (k,) ‖x‖
    caps: Floats  # (k, K) upper bounds of pooled scores
    centres: Floats  # (d + 1, K) mean estimates and departures of the sets, side by side
    roots: Floats  # (k, users) √(xᵀ A_j⁻¹ x) of the users j in known; only for the mean bonus
    known: Words  # (k, ⌈c/64⌉) bits
    scores: Floats  # (k,)


class UpdateScratch(NamedTuple):
    """Room for learning from a reward."""

    step: Floats  # (d + p,) what the served user's estimate moved by
    room: Floats  # (d + 3, d) for eigenvalues
    table: Ints  # (a power of two ≥ 2K,) to find equal sets
    gaps: Floats  # (K,) how much farther than its radii allow the user is from each seed, squared


@alloc
def allocate_scoring_scratch(state: LOCBState, n_arms: int, dim: int) -> ScoringScratch:
    """Room for rounds of ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    n_seeds = state.seeds.size
    n_words = state.members.shape[1] if state.int_params[BONUS_KIND] == MEAN else 0
    return ScoringScratch(
        np.empty((n_arms, columns)),
        np.empty((n_seeds, n_arms)),
        np.empty(n_seeds, np.int64),
        np.empty(n_arms),
        np.empty(n_arms),
        np.empty(n_arms),
        np.empty((n_arms, n_seeds)),
        np.empty((dim + 1, n_seeds)),
        np.empty((n_arms, 64 * n_words)),
        np.empty((n_arms, n_words), np.uint64),
        np.empty(n_arms),
    )


@alloc
def allocate_update_scratch(state: LOCBState, dim: int) -> UpdateScratch:
    """Room for learning."""
    n_seeds = state.seeds.size
    slots = 2
    while slots < 2 * n_seeds:
        slots *= 2
    return UpdateScratch(
        np.empty(state.estimates.shape[1]),
        np.empty((dim + 3, dim)),
        np.empty(slots, np.int64),
        np.empty(n_seeds),
    )


@no_alloc
def toggle(state: LOCBState, s: int, i: int) -> None:
    """Move user i into set s or out of it."""
    sign = -1.0 if has_bit(state.members, s, i) else 1.0
    flip_bit(state.members, s, i)
    flip_bit(state.cluster_bits, i, s)
    state.sizes[s] += np.int64(sign)
    state.cluster_served[s] += np.int64(sign) * state.served[i]
    if state.served[i] == 0:
        state.unserved[s] += np.int64(sign)
    # The mean moves by (A_i⁻¹ − mean) / size, and no A⁻¹ is above I, but for rounding.
    state.drift_bound[s] += 1.0001 / state.sizes[s]
    state.member_hashes[s] ^= state.hash_keys[i]
    for q in range(state.sums.shape[1]):
        state.sums[s, q] += sign * state.estimates[i, q]


@no_alloc
def find_distinct(state: LOCBState, table: Ints) -> None:
    """Mark the first seed of each group of equal sets, by open addressing in ``table``."""
    member_hashes, sizes, distinct = state.member_hashes, state.sizes, state.distinct
    for w in range(distinct.size):
        distinct[w] = np.uint64(0)
    table[:] = -1
    mask = np.uint64(table.size - 1)
    for s in range(member_hashes.size):
        place = np.int64(member_hashes[s] & mask)
        while True:
            r = table[place]
            if r < 0:
                table[place] = s
                distinct[s >> 6] |= ONE << np.uint64(s & 63)
                break
            if member_hashes[r] == member_hashes[s] and sizes[r] == sizes[s]:
                break
            place = (place + 1) & (table.size - 1)


@no_alloc
def refresh_sums(state: LOCBState, s: int) -> None:
    """Add the sums of set s up anew, so that rounding does not build up."""
    estimates, members, sums = state.estimates, state.members, state.sums
    for q in range(sums.shape[1]):
        sums[s, q] = 0.0
    for w in range(members.shape[1]):
        word = members[s, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            for q in range(sums.shape[1]):
                sums[s, q] += estimates[j, q]
            word &= word - ONE

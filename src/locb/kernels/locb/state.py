"""LOCB's state arrays and workspace, and the bookkeeping of its clusters.

Why LOCB is fast without changing any choice (details in docs/explanation/optimizations.md):
  - Every cluster keeps the sum of its members' θ̂ and A⁻¹. It is updated by the change of the served user's estimate.
  - A mean of square roots is at most the root of the mean, so the sums bound each score of a cluster and an arm.
    Members are visited only if the bounds do not determine the best arm. All clusters share the roots of an arm.
  - With many users, the pooled score of a cluster is bounded by a common reference and by how far the mean of the
    cluster may have drifted from it. This excludes most clusters with d products instead of d + p.
  - Clusters with the same members (equal XOR of one random hash key per member) are scored once.
  - A single blocking member proves that a cluster cannot be returned yet. The others are tested only when it no longer
    blocks.
"""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import alloc, no_alloc
from locb.kernels.common.bit_sets import ONE, flip_bit, has_bit, trailing_zeros

# Entries of ``int_params`` and of ``float_params``.
T, N_USERS, N_ACTIVE, REFRESH_COUNTER, RADIUS_KIND, STOP_RULE, BONUS_KIND, TIES = 0, 1, 2, 3, 4, 5, 6, 7
GAMMA, ALPHA, TAU, DELTA, SIGMA, MIN_EIGENVALUE = 0, 1, 2, 3, 4, 5
BY_RADIUS, BY_CERTIFICATE, AS_PUBLISHED = 0, 1, 2  # stop rules
MEAN, POOLED = 0, 1  # kinds of bonus
DRIFT_BOUND_MIN_USERS = 256  # with fewer users, clusters are small and change too fast for drift bounds to save time


class LOCBState(NamedTuple):
    """The state of LOCB. c: capacity for users (c ≥ n, so that users can be added), p = d (d + 1) / 2, K: seeds."""

    estimates: Floats  # (c, d + p) θ̂ and A⁻¹ of each user, packed
    log_det: Floats  # (c,) log det A, maintained only for the ellipsoid radius
    radius_widths: Floats  # (c,) radius of a user = radius_scale(t) · width
    served: Ints  # (c,) m: rounds per user
    added_at: Ints  # (c,) round after which the user was added; 0 for the initial users
    hash_keys: Words  # (c,) one random 64-bit hash key per user, for the member hashes
    cluster_bits: Words  # (c, ⌈K/64⌉) bit sets: the clusters of each user
    seeds: Ints  # (K,) the seed users
    members: Words  # (K, ⌈c/64⌉) bit sets: the users in each cluster
    sizes: Ints  # (K,) users in each cluster
    member_hashes: Words  # (K,) XOR of the members' hash keys
    sums: Floats  # (K, d + p) sum of the members' estimates
    unserved: Ints  # (K,) members that were never served
    cluster_served: Ints  # (K,) rounds in which members were served
    reference: Floats  # (2, d + p) an estimate close to the means of the clusters; workspace for a difference from it
    # (K + 1,) upper bound of ‖mean A⁻¹ of the cluster − reference‖, without the changes by learning. The last entry is
    # the sum of the norms of all such changes since. They have moved the mean of a cluster by at most their sum / size.
    drift_bound: Floats
    seed_of: Ints  # (c,) the seed that the user is; −1 for none
    seed_points: Floats  # (d + 1, K) θ̂ and width of the seeds, contiguous per feature, so that one pass tests all seeds
    returned: Ints  # (K,) round in which the cluster was returned; 0 while it is active
    active: Words  # (⌈K/64⌉,) bit set: the clusters that are not returned
    blocking_member: Ints  # (K, 2) members that keep the cluster from being returned; −1 if none is known
    distinct: Words  # (⌈K/64⌉,) bit set: the first of each group of equal clusters
    drift_bound_min_users: Ints  # (1,) drift bounds are maintained and used from this many users on
    int_params: (
        Ints  # t, n, active clusters, rounds in this refresh cycle; radius kind, stop rule, bonus kind, tie rule
    )
    float_params: Floats  # γ, α, τ, δ, σ, λ
    generator: Words  # (1,) random generator for ties


class ScoringScratch(NamedTuple):
    """Workspace for the choice of an arm, so that a loop over rounds allocates nothing."""

    arms: Floats  # (k, d + p) x and x xᵀ, packed
    upper_bounds: Floats  # (K, k) upper bounds of the scores; −inf once the exact score is known
    clusters: Ints  # (K,) the distinct clusters of the user
    best_bound: Floats  # (k,) highest remaining upper bound of each arm
    lower_bound: Floats  # (k,) lower bound of its score
    norms: Floats  # (k,) ‖x‖
    pooled_bounds: Floats  # (k, K) upper bounds of pooled scores
    cluster_means: Floats  # (d + 1, K) mean estimates and drift bounds of the clusters, contiguous per feature
    roots: Floats  # (k, users) √(xᵀ A_j⁻¹ x) of the users j in has_root; only for the mean bonus
    has_root: Words  # (k, ⌈c/64⌉) bit sets
    scores: Floats  # (k,)


class UpdateScratch(NamedTuple):
    """Workspace for learning from a reward."""

    step: Floats  # (d + p,) change of the served user's estimate
    workspace: Floats  # (d + 3, d) for eigenvalues
    hash_table: Ints  # (a power of two ≥ 2K,) to find equal clusters
    margins: Floats  # (K,) squared distance to each seed minus the squared sum of the two radii


@alloc
def allocate_update_scratch(state: LOCBState, dim: int) -> UpdateScratch:
    """Allocate the workspace for learning."""
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
def toggle_member(state: LOCBState, s: int, i: int) -> None:
    """Add user i to cluster s, or remove it if it is a member."""
    sign = -1.0 if has_bit(state.members, s, i) else 1.0
    flip_bit(state.members, s, i)
    flip_bit(state.cluster_bits, i, s)
    state.sizes[s] += np.int64(sign)
    state.cluster_served[s] += np.int64(sign) * state.served[i]
    if state.served[i] == 0:
        state.unserved[s] += np.int64(sign)
    # The mean moves by (A_i⁻¹ − mean) / size, and every A⁻¹ ≤ I, up to rounding.
    state.drift_bound[s] += 1.0001 / state.sizes[s]
    state.member_hashes[s] ^= state.hash_keys[i]
    for q in range(state.sums.shape[1]):
        state.sums[s, q] += sign * state.estimates[i, q]


@no_alloc
def find_distinct(state: LOCBState, hash_table: Ints) -> None:
    """Mark the first of each group of equal clusters, by open addressing in ``hash_table``."""
    member_hashes, sizes, distinct = state.member_hashes, state.sizes, state.distinct
    for w in range(distinct.size):
        distinct[w] = np.uint64(0)
    hash_table[:] = -1
    mask = np.uint64(hash_table.size - 1)
    for s in range(member_hashes.size):
        index = np.int64(member_hashes[s] & mask)
        while True:
            r = hash_table[index]
            if r < 0:
                hash_table[index] = s
                distinct[s >> 6] |= ONE << np.uint64(s & 63)
                break
            if member_hashes[r] == member_hashes[s] and sizes[r] == sizes[s]:
                break
            index = (index + 1) & (hash_table.size - 1)


@no_alloc
def refresh_sums(state: LOCBState, s: int) -> None:
    """Recompute the sums of cluster s, so that rounding errors do not accumulate."""
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

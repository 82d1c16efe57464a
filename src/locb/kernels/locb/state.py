"""LOCB's state arrays and work arrays, and functions that keep the arrays of a cluster consistent.

There is one cluster per seed user. A cluster is *active* until it meets the stop rule; then it is *returned*, that is,
final. The score of an arm is the highest over the clusters of the user: the mean of θ̂_jᵀx over the members j plus a
bonus. The *mean bonus* is α times the mean of √(xᵀA_j⁻¹x). The *pooled bonus* is α √(xᵀMx) with M, the mean of A_j⁻¹.
Symbols are defined in ``locb.kernels``.

These optimizations do not change any choice (details in docs/explanation/optimizations.md):
  - Every cluster keeps the sum of its members' estimates (θ̂, A⁻¹), to which each round adds the change of one estimate.
  - These sums give bounds of each score, because a mean of roots is at most the root of the mean. Members are visited
    only if the bounds do not determine the best arm. The roots √(xᵀA_j⁻¹x) are computed once for all clusters.
  - With many users, pooled scores are first bounded with a common reference matrix. The bound uses the *drift bound* of
    the cluster, which limits the distance of M from the reference. The bound takes d products instead of d + p.
  - Clusters with the same members (equal XOR of one random hash key per member) are scored once.
  - A single *blocking member*, which violates the stop rule, proves that a cluster cannot be returned yet. The other
    members are tested only when the blocking member meets the rule.
"""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import alloc, no_alloc
from locb.kernels.common.bit_sets import ONE, flip_bit, has_bit, trailing_zeros

# Entries of ``int_params`` and of ``float_params``.
T, N_USERS, N_ACTIVE, REFRESH_COUNTER, RADIUS_KIND, STOP_RULE, BONUS_KIND, TIES = 0, 1, 2, 3, 4, 5, 6, 7
GAMMA, ALPHA, TAU, DELTA, SIGMA, MIN_EIGENVALUE, SCREEN_WIDTH = 0, 1, 2, 3, 4, 5, 6
BY_RADIUS, BY_CERTIFICATE, AS_PUBLISHED = 0, 1, 2  # stop rules
MEAN, POOLED = 0, 1  # kinds of bonus
DRIFT_BOUND_MIN_USERS = 256  # with fewer users, clusters are small and change too fast for drift bounds to save time


class LOCBState(NamedTuple):
    """The arrays of LOCB's state. The capacity N, n, K, d, p and m are defined in ``locb.kernels``."""

    estimates: Floats  # (N, d + p) θ̂ and A⁻¹ of each user
    log_det: Floats  # (N,) log det A of each user, maintained only for the ellipsoid radius
    radius_widths: Floats  # (N,) width of each user; the radius of a user is radius_scale · width
    served: Ints  # (N,) m: rounds per user
    added_at: Ints  # (N,) round after which the user was added; 0 for the initial users
    hash_keys: Words  # (N,) one random 64-bit hash key per user, for the member hashes
    cluster_bits: Words  # (N, ⌈K/64⌉) bit sets: the clusters of each user
    seeds: Ints  # (K,) the seed users
    members: Words  # (K, ⌈N/64⌉) bit sets: the users in each cluster
    sizes: Ints  # (K,) users in each cluster
    member_hashes: Words  # (K,) XOR of the members' hash keys
    sums: Floats  # (K, d + p) sum of the members' estimates
    unserved: Ints  # (K,) members that were never served
    cluster_served: Ints  # (K,) rounds in which members were served
    reference: Floats  # (2, d + p) mean of the clusters' mean estimates when last computed; a row for temporary values
    # (K + 1,) drift bounds: upper bound of ‖M − reference‖ of each cluster, without the changes of A⁻¹ by learning. The
    # last entry is the sum of the norms of these changes; they have moved M by at most this sum / size of the cluster.
    drift_bound: Floats
    seed_of: Ints  # (N,) index of each user among the seed users; −1 for a user who is not a seed user
    seed_points: Floats  # (d + 1, K) θ̂ and width of each seed user, one row per feature, to test all in one pass
    returned: Ints  # (K,) round in which the cluster was returned; 0 while it is active
    active: Words  # (⌈K/64⌉,) bit set: the clusters that are not returned
    blocking_member: Ints  # (K, 2) blocking members of each cluster, two for the certificate rule; −1 if unknown
    distinct: Words  # (⌈K/64⌉,) bit set: the first of all clusters that have the same members
    drift_bound_min_users: Ints  # (1,) smallest n for which drift bounds are maintained and used
    int_params: (
        Ints  # t, n, active clusters, rounds in this refresh cycle; radius kind, stop rule, bonus kind, tie rule
    )
    float_params: Floats  # the parameters γ, α, τ, δ, σ and min_eigenvalue; width of the safety screen, or 0
    generator: Words  # (1,) random generator for ties


class ScoringScratch(NamedTuple):
    """Work arrays for the choice of an arm, allocated once for many rounds of k arms."""

    arms: Floats  # (k, d + p) x and x xᵀ of each arm, from ``expand_contexts``
    upper_bounds: Floats  # (K, k) upper bound of the score of each cluster and arm; −inf once the exact score is known
    clusters: Ints  # (K,) the distinct clusters of the user
    best_bound: Floats  # (k,) highest upper bound of each arm, over the clusters whose exact score is not known
    lower_bound: Floats  # (k,) lower bound of the score of each arm
    norms: Floats  # (k,) ‖x‖
    pooled_bounds: Floats  # (k, K) upper bound of the pooled score of each arm and cluster
    cluster_means: Floats  # (d + 1, K) mean θ̂ and drift bound of each cluster, one row per feature
    roots: Floats  # (k, 64 ⌈N/64⌉) √(xᵀA_j⁻¹x) of each arm and each user j in has_root; only for the mean bonus
    has_root: Words  # (k, ⌈N/64⌉) bit sets: the users for whom ``roots`` is valid
    scores: Floats  # (k,)


class UpdateScratch(NamedTuple):
    """Work arrays for learning a reward, allocated once for many rounds."""

    step: Floats  # (d + p,) change of the served user's estimate
    workspace: Floats  # (d + 3, d) for ``largest_eigenvalue``
    hash_table: Ints  # (a power of two ≥ 2K,) to find clusters with the same members
    margins: Floats  # (K,) squared distance of the served user to each seed user, minus the squared sum of their radii


@alloc
def allocate_update_scratch(state: LOCBState, dim: int) -> UpdateScratch:
    """Return new work arrays for learning."""
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
    """Add user i to cluster s, or remove i if it is a member."""
    sign = -1.0 if has_bit(state.members, s, i) else 1.0
    flip_bit(state.members, s, i)
    flip_bit(state.cluster_bits, i, s)
    state.sizes[s] += np.int64(sign)
    state.cluster_served[s] += np.int64(sign) * state.served[i]
    if state.served[i] == 0:
        state.unserved[s] += np.int64(sign)
    # The mean M moves by (A_i⁻¹ − M) / size. Its norm is at most 1 / size, up to rounding, because 0 ≤ A⁻¹ ≤ I.
    state.drift_bound[s] += 1.0001 / state.sizes[s]
    state.member_hashes[s] ^= state.hash_keys[i]
    for q in range(state.sums.shape[1]):
        state.sums[s, q] += sign * state.estimates[i, q]


@no_alloc
def find_distinct(state: LOCBState, hash_table: Ints) -> None:
    """Set ``state.distinct``: mark the first of all clusters with the same members, found with ``hash_table``."""
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
    """Recompute the sums of cluster s from the estimates of its members, so that rounding errors do not accumulate."""
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

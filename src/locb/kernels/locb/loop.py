"""LOCB's rounds: recommend, update and play; adding users; rebuilding derived arrays.

Terms and symbols are defined in ``locb.kernels.locb.state`` and ``locb.kernels``.
"""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc, plain
from locb.kernels.common.arm_scoring import apply_screen, pick_arm
from locb.kernels.common.bit_sets import ONE, flip_bit, trailing_zeros
from locb.kernels.common.eigenvalues import largest_eigenvalue
from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import rank_one_update
from locb.kernels.confidence_radii import ELLIPSOID, THEORY, radius_width
from locb.kernels.locb.clustering import update_clusters
from locb.kernels.locb.drift_bounds import recompute_drift_bounds, refresh_drift_bounds
from locb.kernels.locb.scoring import allocate_scoring_scratch, score
from locb.kernels.locb.state import (
    DELTA,
    MIN_EIGENVALUE,
    N_USERS,
    RADIUS_KIND,
    REFRESH_COUNTER,
    SCREEN_WIDTH,
    SIGMA,
    TIES,
    LOCBState,
    ScoringScratch,
    T,
    UpdateScratch,
    allocate_update_scratch,
    find_distinct,
    refresh_sums,
)

REFRESH_ROUNDS = 16_384  # refresh cycle: the sums of all clusters are recomputed in max(this, 64 n) rounds


@inline
def compute_width(state: LOCBState, i: int, d: int, workspace: Floats) -> float:
    """Return the width of user i, the factor of the confidence radius that depends on the user."""
    int_params = state.int_params
    float_params = state.float_params
    largest = largest_eigenvalue(state.estimates, i, workspace) if int_params[RADIUS_KIND] == ELLIPSOID else 0.0
    return radius_width(
        int_params[RADIUS_KIND],
        state.served[i],
        int_params[N_USERS],
        d,
        float_params[SIGMA],
        float_params[DELTA],
        float_params[MIN_EIGENVALUE],
        state.log_det[i],
        largest,
    )


@inline
def refresh_in_turn(state: LOCBState) -> None:
    """Recompute the sums of one cluster if this is due. In a refresh cycle, each cluster is due once, evenly spaced."""
    int_params = state.int_params
    n_seeds = state.seeds.size
    cycle = max(REFRESH_ROUNDS, 64 * int_params[N_USERS])
    before = int_params[REFRESH_COUNTER] * n_seeds // cycle
    int_params[REFRESH_COUNTER] += 1
    turn = int_params[REFRESH_COUNTER] * n_seeds // cycle
    if turn > before:
        refresh_sums(state, before)
    if int_params[REFRESH_COUNTER] >= cycle:
        int_params[REFRESH_COUNTER] = 0


@inline
def choose(state: LOCBState, user: int, contexts: Floats, scratch: ScoringScratch) -> int:
    """Return the arm with the highest score, or its replacement by the safety screen; −1 if the scores are NaN."""
    score(state, user, contexts, scratch)
    ties, width = state.int_params[TIES], state.float_params[SCREEN_WIDTH]
    arm = pick_arm(scratch.scores, ties, state.generator)
    if width == 0.0 or arm < 0:
        return arm
    d = contexts.shape[1]
    return apply_screen(scratch.arms, state.estimates, user, d, width, arm, ties, state.generator, scratch.scores)


@inline
def learn_round(state: LOCBState, i: int, x: Floats, reward: float, scratch: UpdateScratch) -> None:
    """Learn one observation: update the estimate of user i and the sums of its clusters, then the clusters."""
    d = x.size
    step = scratch.step
    sums, cluster_bits, int_params = state.sums, state.cluster_bits, state.int_params
    det_ratio = rank_one_update(state.estimates, i, x, reward, step)
    int_params[T] += 1
    state.served[i] += 1
    first_time = state.served[i] == 1
    q = d
    for a in range(d):
        state.drift_bound[state.seeds.size] -= step[q]  # the change of A⁻¹ has rank one, so its norm is −trace
        q += d - a
    if int_params[RADIUS_KIND] == ELLIPSOID:
        state.log_det[i] += math.log(det_ratio)
    state.radius_widths[i] = compute_width(state, i, d, scratch.workspace)
    seed = state.seed_of[i]
    if seed >= 0:
        for q in range(d):
            state.seed_points[q, seed] = state.estimates[i, q]
        state.seed_points[d, seed] = state.radius_widths[i]
    for w in range(cluster_bits.shape[1]):
        word = cluster_bits[i, w]
        while word != 0:
            s = (w << 6) + trailing_zeros(word)
            for q in range(step.size):
                sums[s, q] += step[q]
            state.unserved[s] -= first_time
            state.cluster_served[s] += 1
            word &= word - ONE
    update_clusters(state, i, d, scratch)
    refresh_in_turn(state)
    refresh_drift_bounds(state, d)


def allocate_scratch(state: LOCBState, n_arms: int, dim: int) -> tuple[ScoringScratch, UpdateScratch]:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    return plain(allocate_scoring_scratch)(state, n_arms, dim), plain(allocate_update_scratch)(state, dim)


@no_alloc
def choose_round(state: LOCBState, scratch: tuple[ScoringScratch, UpdateScratch], i: int, contexts: Floats) -> int:
    """Return the arm to recommend to user i (see ``locb.kernels.common.handles``)."""
    return choose(state, i, contexts, scratch[0])


@no_alloc
def run_rounds(
    state: LOCBState,
    scratch: tuple[ScoringScratch, UpdateScratch],
    steps: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
) -> None:
    """Run T rounds (see ``locb.kernels.common.handles``)."""
    scoring_scratch, update_scratch = scratch
    for t in range(users.size):
        if steps & CHOOSE:
            chosen[t] = choose(state, users[t], contexts[t], scoring_scratch)
        if steps & LEARN:
            learn_round(state, users[t], contexts[t, chosen[t]], rewards[t, chosen[t]], update_scratch)


@entry_point
def recompute_widths(state: LOCBState, start: int, stop: int, dim: int) -> None:
    """Recompute the widths of the users from ``start`` to ``stop`` − 1, also in the arrays of the seed users."""
    workspace = np.empty((dim + 3, dim))
    for i in range(start, stop):
        state.radius_widths[i] = compute_width(state, i, dim, workspace)
        if state.seed_of[i] >= 0:
            state.seed_points[dim, state.seed_of[i]] = state.radius_widths[i]


@entry_point
def add_users(state: LOCBState, old: int, new: int, dim: int) -> None:
    """Add the users from ``old`` to ``new`` − 1 to every active cluster. Their rows must hold initial values."""
    int_params = state.int_params
    int_params[N_USERS] = new
    depends_on_n = int_params[RADIUS_KIND] == THEORY or int_params[RADIUS_KIND] == ELLIPSOID
    recompute_widths(state, 0 if depends_on_n else old, new, dim)
    for i in range(old, new):
        state.added_at[i] = int_params[T]
        for w in range(state.active.size):
            word = state.active[w]
            state.cluster_bits[i, w] = word
            while word != 0:
                s = (w << 6) + trailing_zeros(word)
                word &= word - ONE
                flip_bit(state.members, s, i)
                state.sizes[s] += 1
                state.unserved[s] += 1
                state.drift_bound[s] += 1.0001 / state.sizes[s]
                state.member_hashes[s] ^= state.hash_keys[i]
                state.blocking_member[s] = -1  # a radius may shrink when n grows, so no blocking member is known
                for q in range(state.sums.shape[1]):
                    state.sums[s, q] += state.estimates[i, q]
    find_distinct(state, allocate_update_scratch(state, dim).hash_table)
    if old < state.drift_bound_min_users[0]:
        recompute_drift_bounds(state, dim)  # the bounds are not maintained for fewer users


@entry_point
def rebuild_derived(state: LOCBState, dim: int) -> None:
    """Recompute the arrays derived from ``estimates``, ``served`` and ``members``, after these have changed."""
    cluster_bits, members, hash_keys = state.cluster_bits, state.members, state.hash_keys
    state.sizes[:] = 0
    state.unserved[:] = 0
    state.cluster_served[:] = 0
    state.member_hashes[:] = np.uint64(0)
    for w in range(members.shape[1]):  # 64 users at a time, so that their rows stay in the CPU cache
        for s in range(members.shape[0]):
            word = members[s, w]
            while word != 0:
                j = (w << 6) + trailing_zeros(word)
                word &= word - ONE
                flip_bit(cluster_bits, j, s)
                state.sizes[s] += 1
                state.unserved[s] += state.served[j] == 0
                state.cluster_served[s] += state.served[j]
                state.member_hashes[s] ^= hash_keys[j]
    recompute_widths(state, 0, state.int_params[N_USERS], dim)
    find_distinct(state, allocate_update_scratch(state, dim).hash_table)
    recompute_drift_bounds(state, dim)

"""LOCB's clustering module: which users belong to which cluster, and when a cluster is returned.

``scale`` is the factor of all radii in this round: the radius of user j is B(j, t) = scale · width of j. Terms and
symbols are defined in ``locb.kernels.locb.state`` and ``locb.kernels``.
"""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline, no_alloc
from locb.kernels.common.bit_sets import ONE, has_bit, trailing_zeros
from locb.kernels.common.linear_algebra import squared_distance
from locb.kernels.confidence_radii import radius_scale
from locb.kernels.locb.state import (
    AS_PUBLISHED,
    BY_CERTIFICATE,
    DELTA,
    GAMMA,
    N_ACTIVE,
    N_USERS,
    RADIUS_KIND,
    SIGMA,
    STOP_RULE,
    TAU,
    LOCBState,
    T,
    UpdateScratch,
    find_distinct,
    toggle_member,
)


@inline
def estimates_differ(estimates: Floats, radius_widths: Floats, i: int, j: int, d: int, scale: float) -> bool:
    """Return whether the distance between the estimates of users i and j exceeds the sum of their radii."""
    reach: float = scale * (radius_widths[i] + radius_widths[j])
    return squared_distance(estimates, i, estimates, j, d) > reach * reach


@inline
def is_blocking(served: Ints, radius_widths: Floats, j: int, scale: float, max_radius: float) -> bool:
    """Return whether user j blocks the return of its clusters: never served, or a radius of at least ``max_radius``."""
    is_small: bool = served[j] > 0 and scale * radius_widths[j] < max_radius
    return not is_small


@no_alloc
def find_blocking_member(state: LOCBState, s: int, scale: float, max_radius: float) -> bool:
    """Return whether a member blocks the return of cluster s (``is_blocking``), and store the member in the state.

    The scan starts at the last blocking member.
    """
    n_words = state.members.shape[1]
    start = max(state.blocking_member[s, 0], 0) >> 6
    for step in range(n_words):
        w = start + step
        if w >= n_words:
            w -= n_words
        word = state.members[s, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            if is_blocking(state.served, state.radius_widths, j, scale, max_radius):
                state.blocking_member[s, 0] = j
                return True
            word &= word - ONE
    return False


@inline
def distance_bound(state: LOCBState, s: int, j: int, d: int, scale: float) -> float:
    """Return ‖θ̂_j − θ̂_s‖ + B(j, t), an upper bound of the distance of θ_j from the estimate θ̂_s of the seed user.

    The bound is +inf before j is served.
    """
    if state.served[j] == 0:
        return np.inf
    radius: float = scale * state.radius_widths[j]
    return math.sqrt(squared_distance(state.estimates, j, state.estimates, state.seeds[s], d)) + radius


@no_alloc
def is_certified(state: LOCBState, s: int, d: int, scale: float) -> bool:
    """Return whether cluster s meets the certificate rule: its two largest distance bounds add up to less than γ.

    Stores the two members with these bounds as blocking members.
    """
    gamma: float = state.float_params[GAMMA]
    first = state.blocking_member[s, 0]
    second = state.blocking_member[s, 1]
    if min(first, second) >= 0 and has_bit(state.members, s, first) and has_bit(state.members, s, second):
        if not distance_bound(state, s, first, d, scale) + distance_bound(state, s, second, d, scale) < gamma:
            return False
    state.blocking_member[s] = -1
    largest = 0.0
    runner_up = 0.0
    for w in range(state.members.shape[1]):
        word = state.members[s, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            bound = distance_bound(state, s, j, d, scale)
            if bound > largest:
                state.blocking_member[s, 1] = state.blocking_member[s, 0]
                state.blocking_member[s, 0] = j
                runner_up = largest
                largest = bound
            elif bound > runner_up:
                state.blocking_member[s, 1] = j
                runner_up = bound
            word &= word - ONE
    return largest + runner_up < gamma


@no_alloc
def remove_distant_members(state: LOCBState, s: int, d: int, scale: float) -> bool:
    """Remove members of cluster s for whom ``estimates_differ`` from the seed user; return whether any was removed."""
    changed = False
    seed = state.seeds[s]
    for w in range(state.members.shape[1]):
        word = state.members[s, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            word &= word - ONE
            if j != seed and estimates_differ(state.estimates, state.radius_widths, j, seed, d, scale):
                toggle_member(state, s, j)
                changed = True
    return changed


@no_alloc
def accepts_late_user(state: LOCBState, s: int, i: int, d: int, scale: float, max_radius: float) -> bool:
    """Return whether the returned cluster s accepts user i, who is not a member.

    A returned cluster accepts only users who were added after its return, are close to the seed user, and meet the stop
    rule.
    """
    if state.added_at[i] < state.returned[s]:
        return False
    if estimates_differ(state.estimates, state.radius_widths, i, state.seeds[s], d, scale):
        return False
    if state.int_params[STOP_RULE] != BY_CERTIFICATE:
        is_small: bool = scale * state.radius_widths[i] < max_radius
        return is_small
    bound = distance_bound(state, s, i, d, scale)
    for w in range(state.members.shape[1]):
        word = state.members[s, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            if not bound + distance_bound(state, s, j, d, scale) < state.float_params[GAMMA]:
                return False
            word &= word - ONE
    return True


@inline
def update_memberships(state: LOCBState, i: int, d: int, scale: float, margins: Floats) -> bool:
    """Test user i against the seed user of every active cluster, and add i to or remove i from the cluster.

    User i is a member if the distance between the estimates of user i and the seed user is at most the sum of their
    radii. Returns whether any cluster changed.
    """
    points, estimates = state.seed_points, state.estimates
    width = state.radius_widths[i]
    for s in range(margins.size):
        reach = scale * (width + points[d, s])
        margins[s] = -reach * reach
    for q in range(d):
        coordinate = estimates[i, q]
        for s in range(margins.size):
            margins[s] += (points[q, s] - coordinate) * (points[q, s] - coordinate)
    changed = False
    for w in range(state.active.size):
        near = np.uint64(0)
        first = w << 6
        for bit in range(min(64, margins.size - first)):
            near |= np.uint64(margins[first + bit] <= 0.0) << np.uint64(bit)
        wrong = (near ^ state.cluster_bits[i, w]) & state.active[w]
        while wrong != 0:
            toggle_member(state, first + trailing_zeros(wrong), i)
            changed = True
            wrong &= wrong - ONE
    return changed


@inline
def update_clusters(state: LOCBState, i: int, d: int, scratch: UpdateScratch) -> None:
    """Update the memberships of user i after learning, and mark clusters that meet the stop rule as returned."""
    int_params, float_params, blocking_member = state.int_params, state.float_params, state.blocking_member
    is_late_user = state.added_at[i] > 0
    if int_params[N_ACTIVE] == 0 and not is_late_user:
        return
    scale = radius_scale(
        int_params[RADIUS_KIND], int_params[T], int_params[N_USERS], d, float_params[SIGMA], float_params[DELTA]
    )
    max_radius = float_params[GAMMA] * float_params[TAU] / 8.0
    changed = update_memberships(state, i, d, scale, scratch.margins)
    by_certificate = int_params[STOP_RULE] == BY_CERTIFICATE
    for s in range(blocking_member.shape[0]):
        # A blocking member other than i still blocks: its radius cannot shrink in this round. With the certificate
        # rule, its distance bound changes only if i is the seed user.
        if blocking_member[s, 0] != i and blocking_member[s, 0] >= 0:
            if not by_certificate or (
                blocking_member[s, 1] != i and blocking_member[s, 1] >= 0 and state.seeds[s] != i
            ):
                continue
        if state.returned[s] > 0:
            continue
        if by_certificate:
            is_done = is_certified(state, s, d, scale)
        else:
            is_done = not find_blocking_member(state, s, scale, max_radius)
            if is_done and int_params[STOP_RULE] != AS_PUBLISHED:
                # Removing members cannot increase the largest radius, so the cluster still meets the stop rule.
                changed |= remove_distant_members(state, s, d, scale)
        if is_done:
            state.returned[s] = int_params[T]
            state.active[s >> 6] ^= ONE << np.uint64(s & 63)
            int_params[N_ACTIVE] -= 1
    if is_late_user:
        for s in range(blocking_member.shape[0]):
            is_candidate = state.returned[s] > 0 and not has_bit(state.members, s, i)
            if is_candidate and accepts_late_user(state, s, i, d, scale, max_radius):
                toggle_member(state, s, i)
                changed = True
    if changed:
        find_distinct(state, scratch.hash_table)

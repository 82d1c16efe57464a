"""LOCB's clustering module: who stays near which seed, and when a set is returned."""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline, no_alloc
from locb.evaluation.confidence import radius_scale
from locb.kernels.common.bit_sets import ONE, has_bit, trailing_zeros
from locb.kernels.common.linear_algebra import squared_distance
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
    toggle,
)


@inline
def apart(estimates: Floats, radius_widths: Floats, i: int, j: int, d: int, ball: float) -> bool:
    """Whether the estimates of i and j are farther apart than their radii allow."""
    reach: float = ball * (radius_widths[i] + radius_widths[j])
    return squared_distance(estimates, i, estimates, j, d) > reach * reach


@inline
def is_open(served: Ints, radius_widths: Floats, j: int, ball: float, limit: float) -> bool:
    """Whether user j alone keeps its sets from being returned under the radius rule."""
    closed: bool = served[j] > 0 and ball * radius_widths[j] < limit
    return not closed


@no_alloc
def has_open_member(state: LOCBState, s: int, ball: float, limit: float) -> bool:
    """Whether set s has an open member; keeps it as the witness. Looks first where the last one was found."""
    n_words = state.members.shape[1]
    start = max(state.blocking_member[s, 0], 0) >> 6
    for step in range(n_words):
        w = start + step
        if w >= n_words:
            w -= n_words
        word = state.members[s, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            if is_open(state.served, state.radius_widths, j, ball, limit):
                state.blocking_member[s, 0] = j
                return True
            word &= word - ONE
    return False


@inline
def reach_from(state: LOCBState, s: int, j: int, d: int, ball: float) -> float:
    """How far θ_j may be from the seed's estimate, ‖θ̂_j − θ̂_s‖ + B(j, t); +inf before j is served."""
    if state.served[j] == 0:
        return np.inf
    radius: float = ball * state.radius_widths[j]
    return math.sqrt(squared_distance(state.estimates, j, state.estimates, state.seeds[s], d)) + radius


@no_alloc
def is_certified(state: LOCBState, s: int, d: int, ball: float) -> bool:
    """Whether the two largest reaches in set s add up to less than γ. Keeps the two as the next witness."""
    gamma: float = state.float_params[GAMMA]
    first = state.blocking_member[s, 0]
    second = state.blocking_member[s, 1]
    if min(first, second) >= 0 and has_bit(state.members, s, first) and has_bit(state.members, s, second):
        if not reach_from(state, s, first, d, ball) + reach_from(state, s, second, d, ball) < gamma:
            return False
    state.blocking_member[s] = -1
    largest = 0.0
    runner_up = 0.0
    for w in range(state.members.shape[1]):
        word = state.members[s, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            reach = reach_from(state, s, j, d, ball)
            if reach > largest:
                state.blocking_member[s, 1] = state.blocking_member[s, 0]
                state.blocking_member[s, 0] = j
                runner_up = largest
                largest = reach
            elif reach > runner_up:
                state.blocking_member[s, 1] = j
                runner_up = reach
            word &= word - ONE
    return largest + runner_up < gamma


@no_alloc
def drop_strays(state: LOCBState, s: int, d: int, ball: float) -> bool:
    """Test every member of set s against the seed once more; whether any had to leave."""
    changed = False
    seed = state.seeds[s]
    for w in range(state.members.shape[1]):
        word = state.members[s, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            word &= word - ONE
            if j != seed and apart(state.estimates, state.radius_widths, j, seed, d, ball):
                toggle(state, s, j)
                changed = True
    return changed


@no_alloc
def takes_in(state: LOCBState, s: int, i: int, d: int, ball: float, limit: float) -> bool:
    """Whether the returned set s takes in user i, who came after it was returned and is not in it."""
    if state.added_at[i] < state.returned[s] or apart(state.estimates, state.radius_widths, i, state.seeds[s], d, ball):
        return False
    if state.int_params[STOP_RULE] != BY_CERTIFICATE:
        small: bool = ball * state.radius_widths[i] < limit
        return small
    reach = reach_from(state, s, i, d, ball)
    for w in range(state.members.shape[1]):
        word = state.members[s, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            if not reach + reach_from(state, s, j, d, ball) < state.float_params[GAMMA]:
                return False
            word &= word - ONE
    return True


@inline
def test_against_seeds(state: LOCBState, i: int, d: int, ball: float, gaps: Floats) -> bool:
    """Move user i out of the active sets whose seed it is apart from and into the others; whether any changed."""
    points, estimates = state.seed_points, state.estimates
    own = state.radius_widths[i]
    for s in range(gaps.size):
        reach = ball * (own + points[d, s])
        gaps[s] = -reach * reach
    for q in range(d):
        here = estimates[i, q]
        for s in range(gaps.size):
            gaps[s] += (points[q, s] - here) * (points[q, s] - here)
    changed = False
    for w in range(state.active.size):
        near = np.uint64(0)
        first = w << 6
        for bit in range(min(64, gaps.size - first)):
            near |= np.uint64(gaps[first + bit] <= 0.0) << np.uint64(bit)
        wrong = (near ^ state.cluster_bits[i, w]) & state.active[w]
        while wrong != 0:
            toggle(state, first + trailing_zeros(wrong), i)
            changed = True
            wrong &= wrong - ONE
    return changed


@inline
def cluster(state: LOCBState, i: int, d: int, scratch: UpdateScratch) -> None:
    """The clustering module after user i has learned: test i against every seed, return the sets that are done."""
    int_params, float_params, blocking_member = state.int_params, state.float_params, state.blocking_member
    newcomer = state.added_at[i] > 0
    if int_params[N_ACTIVE] == 0 and not newcomer:
        return
    ball = radius_scale(
        int_params[RADIUS_KIND], int_params[T], int_params[N_USERS], d, float_params[SIGMA], float_params[DELTA]
    )
    limit = float_params[GAMMA] * float_params[TAU] / 8.0
    changed = test_against_seeds(state, i, d, ball, scratch.gaps)
    by_certificate = int_params[STOP_RULE] == BY_CERTIFICATE
    for s in range(blocking_member.shape[0]):
        # Serving i can change nothing about a witness other than i (the scale never shrinks) unless i is the seed.
        if blocking_member[s, 0] != i and blocking_member[s, 0] >= 0:
            if not by_certificate or (
                blocking_member[s, 1] != i and blocking_member[s, 1] >= 0 and state.seeds[s] != i
            ):
                continue
        if state.returned[s] > 0:
            continue
        if by_certificate:
            done = is_certified(state, s, d, ball)
        else:
            done = not has_open_member(state, s, ball, limit)
            if done and int_params[STOP_RULE] != AS_PUBLISHED:
                # Leaving members cannot raise the largest radius, so the bound still holds after this.
                changed |= drop_strays(state, s, d, ball)
        if done:
            state.returned[s] = int_params[T]
            state.active[s >> 6] ^= ONE << np.uint64(s & 63)
            int_params[N_ACTIVE] -= 1
    if newcomer:
        for s in range(blocking_member.shape[0]):
            outside = state.returned[s] > 0 and not has_bit(state.members, s, i)
            if outside and takes_in(state, s, i, d, ball, limit):
                toggle(state, s, i)
                changed = True
    if changed:
        find_distinct(state, scratch.table)

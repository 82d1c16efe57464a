"""The sets of SCLUB: who is in which, and users who split off. Nothing in a round walks all users."""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints, Words
from locb.common.jit import entry_point, inline, no_alloc
from locb.evaluation.confidence import shrinkage
from locb.kernels.common.bit_sets import flip, trailing_zeros
from locb.kernels.common.cancellation import is_worn, note_peaks
from locb.kernels.common.cholesky import solve_ridge

# Places in the two short arrays of a state, and in the columns of others.
T, PHASE, PHASE_END, SLOTS, WAITING, TIES = 0, 1, 2, 3, 4, 5
ALPHA, ALPHA_THETA, ALPHA_P, WAKE = 0, 1, 2, 3
NEXT, LAST, FIRST = 0, 1, 2
LEAST, MOST = 0, 1
QUEUE, PARTNER, GROWN = 0, 1, 2
BLOCK = 64  # slots that are looked at together
NEVER = 1e300
# A first look at distances is taken in float32, so that it is quick, and with slack for its rounding.
AWAY = 1e18  # where a cluster that must not merge now seems to be
FARTHEST = 1e15  # no other seems to be farther than this
SLACK = np.float32(1.001)


class SetState(NamedTuple):
    """What SCLUB knows. A cluster lives in a slot; slots are reused, the lowest free one first."""

    estimates: Floats  # (n, d + p) each user's own θ̂ and A⁻¹
    sums: Floats  # (n, d + p) each user's own b and A − I
    served: Ints  # (n,) m
    checked: Ints  # (n,) 1 once served in this phase
    slot: Ints  # (n,) the user's cluster
    ring: (
        IndexArray  # (n, 3) the next and the last user of the same cluster, in a circle; some user of a slot's cluster
    )
    shared: Floats  # (n, d + p) θ̂ and A⁻¹ of the cluster in each slot
    shared_sums: Floats  # (n, d + p) its b and S
    shared_served: Ints  # (n,) its T
    sizes: Ints  # (n,) its users; 0 for a free slot
    unchecked: Ints  # (n,) its users not yet served in this phase
    moved: Ints  # (n,) 1 if it may have come close to another since the last look
    span: Ints  # (n, 2) no user of it was served less often, or more often, than this
    peaks: Floats  # (n, 3) the most users, trace of S and Σ|b| it had since it was last added up
    wake: Floats  # (n,) the smallest difference of mean rounds that alone kept it from merging when it was looked at
    phase_theta: Floats  # (n, d) its θ̂ when the phase began
    phase_served: Ints  # (n,) its T then
    int_params: Ints  # t, phase, last round of the phase, slots in use, clusters in the queue, ties
    float_params: Floats  # α, α_θ, α_p; no cluster's wake is smaller than this
    generator: Words  # (1,) for random ties
    lists: Ints  # (3, n) not saved: a queue of the clusters that have moved, whom each is to merge with, who has grown
    points: Floats  # (⌈n/64⌉, d + 1, 64) float32, not saved: θ̂ and reach of 64 slots a block; AWAY if not to merge now
    free: Words  # (1, ⌈n/64⌉) not saved: bits of the free slots


class SetScratch(NamedTuple):
    """Room for one round."""

    arms: Floats  # (k, d + p)
    scores: Floats  # (k,)
    step: Floats  # (d + p,)
    room: Floats  # (2d, d)
    near: Floats  # (64,) float32


@inline
def has_moved(state: SetState, c: int) -> None:
    """Have the cluster in slot c looked at."""
    if state.moved[c] == 0:
        state.moved[c] = 1
        state.lists[QUEUE, state.int_params[WAITING]] = c
        state.int_params[WAITING] += 1


@no_alloc
def begin_phase(state: SetState, room: Floats) -> None:
    """Phase s lasts 2^s rounds: nobody is checked, and every cluster remembers where it stands."""
    int_params = state.int_params
    int_params[PHASE] += 1
    int_params[PHASE_END] += 1 << int_params[PHASE]
    state.checked[:] = 0
    for c in range(int_params[SLOTS]):
        state.points[c >> 6, 0, c & 63] = AWAY
        if state.sizes[c] == 0:
            continue
        solve_ridge(state.shared_sums, c, state.shared, c, room)
        state.unchecked[c] = state.sizes[c]
        state.phase_served[c] = state.shared_served[c]
        for q in range(room.shape[1]):
            state.phase_theta[c, q] = state.shared[c, q]


@no_alloc
def find_span(state: SetState, c: int) -> None:
    """How often the users of a cluster were served at least and at most, from themselves."""
    start = state.ring[c, FIRST]
    low, high, j = state.served[start], state.served[start], state.ring[start, NEXT]
    while j != start:
        low, high = min(low, state.served[j]), max(high, state.served[j])
        j = state.ring[j, NEXT]
    state.span[c, LEAST], state.span[c, MOST] = low, high


@inline
def spans_unlike(state: SetState, i: int, t: int, limit: float) -> bool:
    """Whether the span of i's cluster reaches beyond the limit from i."""
    c, share = state.slot[i], state.served[i] / t
    below, above = state.span[c, LEAST] / t, state.span[c, MOST] / t
    return bool(abs(share - below) > limit or abs(share - above) > limit)


@inline
def is_served_unlike(state: SetState, i: int) -> bool:
    """Whether some user of i's cluster is served much more or much less often than i."""
    t = state.int_params[T]
    limit = 2.0 * state.float_params[ALPHA_P] * shrinkage(t)
    if not spans_unlike(state, i, t, limit):
        return False
    find_span(state, state.slot[i])  # the span may have been too wide
    return spans_unlike(state, i, t, limit)


@no_alloc
def add_up(state: SetState, c: int, d: int) -> None:
    """The sums of a cluster from those of its users."""
    total, sums, start = state.shared_sums, state.sums, state.ring[c, FIRST]
    for q in range(total.shape[1]):
        total[c, q] = sums[start, q]
    j = state.ring[start, NEXT]
    while j != start:
        for q in range(total.shape[1]):
            total[c, q] += sums[j, q]
        j = state.ring[j, NEXT]
    for q in range(3):
        state.peaks[c, q] = 0.0
    note_peaks(state.peaks, total, c, state.sizes[c], d)


@no_alloc
def lowest_free(state: SetState) -> int:
    """The lowest free slot; there is one, for each cluster has a user."""
    w = 0
    while state.free[0, w] == 0:
        w += 1
    return (w << 6) + trailing_zeros(state.free[0, w])


@no_alloc
def split_off(state: SetState, i: int, room: Floats) -> None:
    """Give user i a cluster of its own, and take what it brought out of the old one, so that nothing counts twice."""
    d, ring = room.shape[1], state.ring
    old, new = state.slot[i], lowest_free(state)
    flip(state.free, 0, new)
    state.int_params[SLOTS] = max(state.int_params[SLOTS], new + 1)
    after, before = ring[i, NEXT], ring[i, LAST]
    ring[before, NEXT], ring[after, LAST] = after, before
    ring[old, FIRST] = after
    ring[i, NEXT], ring[i, LAST], ring[new, FIRST] = i, i, i
    note_peaks(state.peaks, state.shared_sums, old, state.sizes[old], d)
    state.slot[i] = new
    state.sizes[new] = 1
    state.sizes[old] -= 1
    state.shared_served[new] = state.served[i]
    state.shared_served[old] -= state.served[i]
    state.unchecked[new] = 1 - state.checked[i]
    state.unchecked[old] -= state.unchecked[new]
    state.phase_served[new] = state.phase_served[old]
    state.span[new, LEAST], state.span[new, MOST] = state.served[i], state.served[i]
    state.wake[new] = NEVER
    for q in range(d):
        state.phase_theta[new, q] = state.phase_theta[old, q]
    for q in range(state.sums.shape[1]):
        state.shared[new, q] = state.estimates[i, q]
        state.shared_sums[old, q] -= state.sums[i, q]
    add_up(state, new, d)
    if is_worn(state.peaks, state.shared_sums, state.sums, old, state.sizes[old], d):
        add_up(state, old, d)
    solve_ridge(state.shared_sums, old, state.shared, old, room)
    has_moved(state, new)
    has_moved(state, old)


@entry_point
def is_circular(state: SetState) -> bool:
    """Whether the circle of each slot holds its users, all of them; what it leads to is in range."""
    ring = state.ring
    for c in range(state.sizes.size):
        start = ring[c, FIRST]
        j = start
        for step in range(state.sizes[c]):
            if state.slot[j] != c or ring[ring[j, NEXT], LAST] != j or (step > 0 and j == start):
                return False
            j = ring[j, NEXT]
        if j != start:
            return False
    return True

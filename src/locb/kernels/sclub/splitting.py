"""The sets of SCLUB: who is in which, and users who split off. Nothing in a round walks all users."""

from locb.common.arrays import Floats
from locb.common.jit import entry_point, inline, no_alloc
from locb.evaluation.confidence import shrinkage
from locb.kernels.common.bit_sets import flip_bit, trailing_zeros
from locb.kernels.common.cancellation import needs_recomputation, record_peaks
from locb.kernels.common.cholesky import solve_ridge
from locb.kernels.sclub.state import (
    ALPHA_P,
    EXCLUDED,
    HEAD,
    HIGH,
    LOW,
    N_QUEUED,
    N_SLOTS,
    NEXT,
    NO_GAP,
    PHASE,
    PHASE_END,
    PREVIOUS,
    QUEUE,
    SCLUBState,
    T,
)


@inline
def enqueue(state: SCLUBState, c: int) -> None:
    """Have the cluster in slot c looked at."""
    if state.queued[c] == 0:
        state.queued[c] = 1
        state.work_lists[QUEUE, state.int_params[N_QUEUED]] = c
        state.int_params[N_QUEUED] += 1


@no_alloc
def begin_phase(state: SCLUBState, room: Floats) -> None:
    """Phase s lasts 2^s rounds: nobody is checked, and every cluster remembers where it stands."""
    int_params = state.int_params
    int_params[PHASE] += 1
    int_params[PHASE_END] += 1 << int_params[PHASE]
    state.checked[:] = 0
    for c in range(int_params[N_SLOTS]):
        state.scan_points[c >> 6, 0, c & 63] = EXCLUDED
        if state.sizes[c] == 0:
            continue
        solve_ridge(state.cluster_sums, c, state.cluster_estimates, c, room)
        state.unchecked[c] = state.sizes[c]
        state.phase_served[c] = state.cluster_served[c]
        for q in range(room.shape[1]):
            state.phase_theta[c, q] = state.cluster_estimates[c, q]


@no_alloc
def find_span(state: SCLUBState, c: int) -> None:
    """How often the users of a cluster were served at least and at most, from themselves."""
    start = state.links[c, HEAD]
    low, high, j = state.served[start], state.served[start], state.links[start, NEXT]
    while j != start:
        low, high = min(low, state.served[j]), max(high, state.served[j])
        j = state.links[j, NEXT]
    state.served_range[c, LOW], state.served_range[c, HIGH] = low, high


@inline
def spans_unlike(state: SCLUBState, i: int, t: int, limit: float) -> bool:
    """Whether the span of i's cluster reaches beyond the limit from i."""
    c, share = state.slot[i], state.served[i] / t
    below, above = state.served_range[c, LOW] / t, state.served_range[c, HIGH] / t
    return bool(abs(share - below) > limit or abs(share - above) > limit)


@inline
def is_served_unlike(state: SCLUBState, i: int) -> bool:
    """Whether some user of i's cluster is served much more or much less often than i."""
    t = state.int_params[T]
    limit = 2.0 * state.float_params[ALPHA_P] * shrinkage(t)
    if not spans_unlike(state, i, t, limit):
        return False
    find_span(state, state.slot[i])  # the span may have been too wide
    return spans_unlike(state, i, t, limit)


@no_alloc
def recompute_sums(state: SCLUBState, c: int, d: int) -> None:
    """The sums of a cluster from those of its users."""
    total, sums, start = state.cluster_sums, state.sums, state.links[c, HEAD]
    for q in range(total.shape[1]):
        total[c, q] = sums[start, q]
    j = state.links[start, NEXT]
    while j != start:
        for q in range(total.shape[1]):
            total[c, q] += sums[j, q]
        j = state.links[j, NEXT]
    for q in range(3):
        state.peak_magnitudes[c, q] = 0.0
    record_peaks(state.peak_magnitudes, total, c, state.sizes[c], d)


@no_alloc
def lowest_free(state: SCLUBState) -> int:
    """The lowest free slot; there is one, for each cluster has a user."""
    w = 0
    while state.free_slots[0, w] == 0:
        w += 1
    return (w << 6) + trailing_zeros(state.free_slots[0, w])


@no_alloc
def split_off(state: SCLUBState, i: int, room: Floats) -> None:
    """Give user i a cluster of its own, and take what it brought out of the old one, so that nothing counts twice."""
    d, links = room.shape[1], state.links
    old, new = state.slot[i], lowest_free(state)
    flip_bit(state.free_slots, 0, new)
    state.int_params[N_SLOTS] = max(state.int_params[N_SLOTS], new + 1)
    after, before = links[i, NEXT], links[i, PREVIOUS]
    links[before, NEXT], links[after, PREVIOUS] = after, before
    links[old, HEAD] = after
    links[i, NEXT], links[i, PREVIOUS], links[new, HEAD] = i, i, i
    record_peaks(state.peak_magnitudes, state.cluster_sums, old, state.sizes[old], d)
    state.slot[i] = new
    state.sizes[new] = 1
    state.sizes[old] -= 1
    state.cluster_served[new] = state.served[i]
    state.cluster_served[old] -= state.served[i]
    state.unchecked[new] = 1 - state.checked[i]
    state.unchecked[old] -= state.unchecked[new]
    state.phase_served[new] = state.phase_served[old]
    state.served_range[new, LOW], state.served_range[new, HIGH] = state.served[i], state.served[i]
    state.frequency_gap[new] = NO_GAP
    for q in range(d):
        state.phase_theta[new, q] = state.phase_theta[old, q]
    for q in range(state.sums.shape[1]):
        state.cluster_estimates[new, q] = state.estimates[i, q]
        state.cluster_sums[old, q] -= state.sums[i, q]
    recompute_sums(state, new, d)
    if needs_recomputation(state.peak_magnitudes, state.cluster_sums, state.sums, old, state.sizes[old], d):
        recompute_sums(state, old, d)
    solve_ridge(state.cluster_sums, old, state.cluster_estimates, old, room)
    enqueue(state, new)
    enqueue(state, old)


@entry_point
def has_valid_links(state: SCLUBState) -> bool:
    """Whether the circle of each slot holds its users, all of them; what it leads to is in range."""
    links = state.links
    for c in range(state.sizes.size):
        start = links[c, HEAD]
        j = start
        for step in range(state.sizes[c]):
            if state.slot[j] != c or links[links[j, NEXT], PREVIOUS] != j or (step > 0 and j == start):
                return False
            j = links[j, NEXT]
        if j != start:
            return False
    return True

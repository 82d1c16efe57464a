"""Users who are split off from their clusters in SCLUB. ``locb.kernels.sclub.state`` defines the terms."""

from locb.common.arrays import Floats
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.bit_sets import flip_bit, trailing_zeros
from locb.kernels.common.cancellation import needs_recomputation, record_peaks
from locb.kernels.common.linear_algebra import solve_ridge, squared_distance
from locb.kernels.confidence_radii import shrinkage
from locb.kernels.sclub.state import (
    ALPHA_P,
    ALPHA_THETA,
    HEAD,
    HIGH,
    LOW,
    N_QUEUED,
    N_SLOTS,
    NEXT,
    NO_GAP,
    PREVIOUS,
    QUEUE,
    SCLUBState,
    T,
)


@inline
def enqueue(state: SCLUBState, c: int) -> None:
    """Add the cluster in slot c to the queue, unless it is already in the queue."""
    if state.queued[c] == 0:
        state.queued[c] = 1
        state.work_lists[QUEUE, state.int_params[N_QUEUED]] = c
        state.int_params[N_QUEUED] += 1


@no_alloc
def update_served_range(state: SCLUBState, c: int) -> None:
    """Recompute the smallest and the largest m over the users of the cluster in slot c."""
    start = state.links[c, HEAD]
    low, high, j = state.served[start], state.served[start], state.links[start, NEXT]
    while j != start:
        low, high = min(low, state.served[j]), max(high, state.served[j])
        j = state.links[j, NEXT]
    state.served_range[c, LOW], state.served_range[c, HIGH] = low, high


@inline
def range_exceeds(state: SCLUBState, i: int, t: int, limit: float) -> bool:
    """Return whether the frequency of user i differs by more than ``limit`` from one of the bounds of its cluster.

    The bounds of the frequencies in a cluster are ``served_range`` divided by t.
    """
    c, frequency = state.slot[i], state.served[i] / t
    below, above = state.served_range[c, LOW] / t, state.served_range[c, HIGH] / t
    return bool(abs(frequency - below) > limit or abs(frequency - above) > limit)


@inline
def is_far(state: SCLUBState, i: int, d: int) -> bool:
    """Return whether user i is far from its cluster: ‖θ̂_i − θ̃^j‖ > α_θ (F(m_i) + F(T̃^j))."""
    row = state.slot[i]
    widths = shrinkage(state.served[i]) + shrinkage(state.phase_served[row])
    reach = state.float_params[ALPHA_THETA] * widths
    return bool(squared_distance(state.estimates, i, state.phase_theta, row, d) > reach * reach)


@inline
def frequency_differs(state: SCLUBState, i: int) -> bool:
    """Return whether the frequencies of user i and of a user in the same cluster differ by more than 2 α_p F(t)."""
    t = state.int_params[T]
    limit = 2.0 * state.float_params[ALPHA_P] * shrinkage(t)
    if not range_exceeds(state, i, t, limit):
        return False
    update_served_range(state, state.slot[i])  # the stored bounds may be too wide, so test again with exact bounds
    return range_exceeds(state, i, t, limit)


@no_alloc
def recompute_sums(state: SCLUBState, c: int, d: int) -> None:
    """Recompute the sums of the cluster in slot c from the sums of its users."""
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
    """Return the lowest free slot. Before a split there is always one, because a cluster has at least two users."""
    w = 0
    while state.free_slots[0, w] == 0:
        w += 1
    return (w << 6) + trailing_zeros(state.free_slots[0, w])


@no_alloc
def split_off(state: SCLUBState, i: int, workspace: Floats) -> None:
    """Move user i to a new cluster without other users, and subtract the sums of i from those of the old cluster."""
    d, links = workspace.shape[1], state.links
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
    solve_ridge(state.cluster_sums, old, state.cluster_estimates, old, workspace)
    enqueue(state, new)
    enqueue(state, old)


@entry_point
def has_valid_links(state: SCLUBState) -> bool:
    """Return whether the linked list of each slot contains exactly the users of its cluster.

    All indices in the state must be in range.
    """
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

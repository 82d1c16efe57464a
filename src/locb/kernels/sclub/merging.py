"""Merging of SCLUB's clusters: which pairs are compared, and when. ``locb.kernels.sclub.state`` defines the terms."""

from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.bit_sets import flip_bit
from locb.kernels.common.linear_algebra import solve_ridge, squared_distance
from locb.kernels.confidence_radii import shrinkage
from locb.kernels.sclub.splitting import enqueue
from locb.kernels.sclub.state import (
    ALPHA_P,
    ALPHA_THETA,
    BLOCK,
    EXCLUDED,
    HEAD,
    HIGH,
    LOW,
    MAX_COORDINATE,
    MERGED,
    MIN_FREQUENCY_GAP,
    N_QUEUED,
    N_SLOTS,
    NEXT,
    NO_GAP,
    PARTNER,
    PREVIOUS,
    QUEUE,
    TOLERANCE,
    SCLUBState,
    T,
)


@inline
def is_close(state: SCLUBState, a: int, b: int, d: int) -> bool:
    """Return whether the cluster in slot b is checked and close enough to that in slot a, in estimate and frequency.

    If only the frequencies differ too much, the difference is recorded in the frequency gap of a.
    """
    sizes, cluster_served = state.sizes, state.cluster_served
    if sizes[b] == 0 or state.unchecked[b] > 0:
        return False
    reach = 0.5 * state.float_params[ALPHA_THETA] * (shrinkage(cluster_served[a]) + shrinkage(cluster_served[b]))
    if not squared_distance(state.cluster_estimates, a, state.cluster_estimates, b, d) < reach * reach:
        return False
    t = state.int_params[T]
    difference = abs(cluster_served[a] / sizes[a] - cluster_served[b] / sizes[b])
    if not difference / t < state.float_params[ALPHA_P] * shrinkage(t):
        state.frequency_gap[a] = min(state.frequency_gap[a], difference)
        state.float_params[MIN_FREQUENCY_GAP] = min(state.float_params[MIN_FREQUENCY_GAP], difference)
        return False
    return True


@inline
def next_block(scan_points: Floats, a: int, first: int, last: int, distances: Floats, d: int) -> int:
    """Return the first block from ``first`` to ``last`` − 1 with a slot that may be close to slot a, or ``last``.

    ``distances`` receives the squared distances between slot a and the slots of that block. The loop over blocks is
    inside this function, because one call per block would take half as long as the scan of a block.
    """
    block, lane = a >> 6, a & 63
    for w in range(np.uintp(first), np.uintp(last)):
        for s in range(np.uintp(BLOCK)):
            distances[s] = 0.0
        for q in range(np.uintp(d)):
            coordinate = scan_points[block, q, lane]
            for s in range(np.uintp(BLOCK)):
                gap = scan_points[w, q, s] - coordinate
                distances[s] += gap * gap
        hits = 0
        own_reach = scan_points[block, d, lane]
        for s in range(np.uintp(BLOCK)):
            reach = scan_points[w, np.uintp(d), s] + own_reach
            hits += distances[s] < reach * reach * TOLERANCE
        if hits > 0:
            found: Any = np.int64(w)
            return int(found)
    return last


@inline
def next_close(state: SCLUBState, a: int, begin: int, end: int, distances: Floats, d: int) -> int:
    """Return the lowest slot from ``begin`` to ``end`` − 1, except a, for which ``is_close`` is true, or −1."""
    scan_points, last = state.scan_points, (end + BLOCK - 1) >> 6
    own_reach = scan_points[a >> 6, d, a & 63]
    w = next_block(scan_points, a, begin >> 6, last, distances, d)
    while w < last:
        for s in range(BLOCK):
            b = (w << 6) + s
            reach = scan_points[w, d, s] + own_reach
            if begin <= b < end and b != a and distances[s] < reach * reach * TOLERANCE and is_close(state, a, b, d):
                return b
        w = next_block(scan_points, a, w + 1, last, distances, d)
    return -1


@inline
def update_scan_point(state: SCLUBState, c: int, d: int) -> None:
    """Write the estimate and the reach of the cluster in slot c to the scan points.

    The reach is enlarged, so that float32 rounding excludes no candidate.
    """
    scan_points, block, lane = state.scan_points, c >> 6, c & 63
    total = 0.0
    for q in range(d):
        # Clipping never makes a distance larger, so it excludes no candidate.
        scan_points[block, q, lane] = max(-MAX_COORDINATE, min(MAX_COORDINATE, state.cluster_estimates[c, q]))
        total += abs(scan_points[block, q, lane])
    reach = 0.5 * state.float_params[ALPHA_THETA] * shrinkage(state.cluster_served[c])
    scan_points[block, d, lane] = reach + 1e-6 * total


@no_alloc
def merge_into(state: SCLUBState, a: int, b: int, workspace: Floats) -> None:
    """Merge the cluster of slot b into the cluster of slot a, and free slot b."""
    links, d = state.links, workspace.shape[1]
    head, other = links[a, HEAD], links[b, HEAD]
    j = other
    while True:
        state.slot[j] = a
        j = links[j, NEXT]
        if j == other:
            break
    tail, end = links[head, PREVIOUS], links[other, PREVIOUS]
    links[tail, NEXT], links[other, PREVIOUS] = other, tail
    links[end, NEXT], links[head, PREVIOUS] = head, end
    state.sizes[a] += state.sizes[b]
    state.sizes[b] = 0
    state.cluster_served[a] += state.cluster_served[b]
    state.served_range[a, LOW] = min(state.served_range[a, LOW], state.served_range[b, LOW])
    state.served_range[a, HIGH] = max(state.served_range[a, HIGH], state.served_range[b, HIGH])
    state.frequency_gap[b] = NO_GAP
    state.scan_points[b >> 6, 0, b & 63] = EXCLUDED
    flip_bit(state.free_slots, 0, b)
    for q in range(3):
        state.peak_magnitudes[a, q] += state.peak_magnitudes[b, q]
    for q in range(state.sums.shape[1]):
        state.cluster_sums[a, q] += state.cluster_sums[b, q]
    solve_ridge(state.cluster_sums, a, state.cluster_estimates, a, workspace)
    update_scan_point(state, a, d)


@inline
def requeue_by_frequency(state: SCLUBState) -> None:
    """Queue the clusters whose merge failed only because of the frequencies, if the difference is now allowed."""
    t = state.int_params[T]
    allowed = state.float_params[ALPHA_P] * shrinkage(t) * t
    if not allowed > state.float_params[MIN_FREQUENCY_GAP]:
        return
    state.float_params[MIN_FREQUENCY_GAP] = NO_GAP
    for c in range(state.int_params[N_SLOTS]):
        if allowed > state.frequency_gap[c]:
            state.frequency_gap[c] = NO_GAP
            enqueue(state, c)
        state.float_params[MIN_FREQUENCY_GAP] = min(state.float_params[MIN_FREQUENCY_GAP], state.frequency_gap[c])


@inline
def filter_queue(state: SCLUBState, d: int) -> int:
    """Reduce the queue to checked clusters, sorted by slot; update their scan points; return their number."""
    queue, count = state.work_lists, 0
    for k in range(state.int_params[N_QUEUED]):
        c = queue[QUEUE, k]
        if state.sizes[c] == 0 or state.unchecked[c] > 0:
            state.queued[c] = 0  # the cluster is queued again when its last unchecked user is served
            continue
        update_scan_point(state, c, d)
        index = count
        while index > 0 and queue[QUEUE, index - 1] > c:
            queue[QUEUE, index] = queue[QUEUE, index - 1]
            index -= 1
        queue[QUEUE, index] = c
        count += 1
    return count


@inline
def find_partners(state: SCLUBState, begin: int, count: int, distances: Floats, d: int) -> None:
    """Find the merge partner of each queued cluster c > ``begin``: the lowest slot from ``begin`` to c − 1 close to c.

    Writes the partner to row PARTNER of the work lists; −1 if there is none.
    """
    for k in range(count):
        c = state.work_lists[QUEUE, k]
        partner = -1
        if c > begin and state.sizes[c] > 0:
            partner = next_close(state, c, begin, c, distances, d)
        state.work_lists[PARTNER, k] = partner


@inline
def merge_clusters(state: SCLUBState, workspace: Floats, distances: Floats) -> None:
    """Compare pairs of clusters in the order of their slots, and merge the pairs that are close.

    Comparing two clusters that have not changed gives the same result as before, with one exception: the allowed
    difference of mean rounds per user, α_p F(t) t, grows with t (see ``requeue_by_frequency``). Therefore only queued
    clusters are compared with all other clusters. Slots are processed in ascending order. A queued slot is compared
    with all higher slots, and any other slot with the higher queued slots. A slot that has merged is compared with all
    higher slots that remain.
    """
    requeue_by_frequency(state)
    d, int_params, queue = workspace.shape[1], state.int_params, state.work_lists
    count = filter_queue(state, d)
    n_merged = 0
    if count > 0:
        find_partners(state, 0, count, distances, d)
        begin = 0  # slots below ``begin`` were already compared
        while True:
            a, b, is_queued = int_params[N_SLOTS], -1, False
            for k in range(count):
                c = queue[QUEUE, k]
                if c < begin or state.sizes[c] == 0:
                    continue
                if begin <= queue[PARTNER, k] < a:
                    a, b, is_queued = queue[PARTNER, k], c, False
                if c <= a:
                    a, is_queued = c, True
            if a == int_params[N_SLOTS]:
                break
            begin = a + 1
            if is_queued:
                b = next_close(state, a, begin, int_params[N_SLOTS], distances, d)
            if b < 0:
                continue
            while b >= 0:
                merge_into(state, a, b, workspace)
                b = next_close(state, a, b + 1, int_params[N_SLOTS], distances, d)
            queue[MERGED, n_merged] = a
            n_merged += 1
            find_partners(state, begin, count, distances, d)
    for k in range(count):
        state.queued[queue[QUEUE, k]] = 0
    int_params[N_QUEUED] = 0
    for k in range(n_merged):  # comparisons with lower slots were before the merge, so repeat them in the next round
        enqueue(state, queue[MERGED, k])
    while int_params[N_SLOTS] > 0 and state.sizes[int_params[N_SLOTS] - 1] == 0:
        int_params[N_SLOTS] -= 1


@entry_point
def rebuild_scan_points(state: SCLUBState) -> None:
    """Rebuild the scan points of all slots. Slots without a checked cluster are excluded from the scan."""
    for c in range(state.sizes.size):
        state.scan_points[c >> 6, 0, c & 63] = EXCLUDED
        if state.sizes[c] > 0 and state.unchecked[c] == 0:
            update_scan_point(state, c, state.scan_points.shape[1] - 1)

"""The sets of SCLUB that merge: which pairs are looked at, and when."""

from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import entry_point, inline, no_alloc
from locb.evaluation.confidence import shrinkage
from locb.kernels.common.bit_sets import flip_bit
from locb.kernels.common.cholesky import solve_ridge
from locb.kernels.common.linear_algebra import squared_distance
from locb.kernels.sclub.splitting import enqueue
from locb.kernels.sclub.state import (
    ALPHA_P,
    ALPHA_THETA,
    BLOCK,
    EXCLUDED,
    FARTHEST,
    HEAD,
    HIGH,
    LOW,
    MERGED,
    MIN_FREQUENCY_GAP,
    N_QUEUED,
    N_SLOTS,
    NEXT,
    NO_GAP,
    PARTNER,
    PREVIOUS,
    QUEUE,
    SLACK,
    SCLUBState,
    T,
)


@no_alloc
def is_close(state: SCLUBState, a: int, b: int, d: int) -> bool:
    """Whether two clusters are checked and alike; where only their frequencies are not, a remembers by how much."""
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


@no_alloc
def next_block(scan_points: Floats, a: int, first: int, last: int, near: Floats, d: int) -> int:
    """The first block from ``first`` to ``last`` − 1 that may have a slot within reach of slot a; ``last`` if none has.

    ``near`` holds the squared distances of its slots. The loop over blocks is in here, for a call a block would cost
    half as much as looking at it.
    """
    block, place = a >> 6, a & 63
    for w in range(np.uintp(first), np.uintp(last)):
        for s in range(np.uintp(BLOCK)):
            near[s] = 0.0
        for q in range(np.uintp(d)):
            here = scan_points[block, q, place]
            for s in range(np.uintp(BLOCK)):
                gap = scan_points[w, q, s] - here
                near[s] += gap * gap
        hits = 0
        here = scan_points[block, d, place]
        for s in range(np.uintp(BLOCK)):
            reach = scan_points[w, np.uintp(d), s] + here
            hits += near[s] < reach * reach * SLACK
        if hits > 0:
            found: Any = np.int64(w)
            return int(found)
    return last


@no_alloc
def next_close(state: SCLUBState, a: int, begin: int, end: int, near: Floats, d: int) -> int:
    """The lowest slot from ``begin`` to ``end`` − 1, a left out, whose cluster is alike to that of a; −1 if none is."""
    scan_points, last = state.scan_points, (end + BLOCK - 1) >> 6
    here = scan_points[a >> 6, d, a & 63]
    w = next_block(scan_points, a, begin >> 6, last, near, d)
    while w < last:
        for s in range(BLOCK):
            b = (w << 6) + s
            reach = scan_points[w, d, s] + here
            if begin <= b < end and b != a and near[s] < reach * reach * SLACK and is_close(state, a, b, d):
                return b
        w = next_block(scan_points, a, w + 1, last, near, d)
    return -1


@no_alloc
def update_scan_point(state: SCLUBState, c: int, d: int) -> None:
    """Let a checked cluster be seen where it is, and its reach as wide as float32 may put it too far off."""
    scan_points, block, place = state.scan_points, c >> 6, c & 63
    total = 0.0
    for q in range(d):
        # Cutting off what is far never makes a distance larger.
        scan_points[block, q, place] = max(-FARTHEST, min(FARTHEST, state.cluster_estimates[c, q]))
        total += abs(scan_points[block, q, place])
    reach = 0.5 * state.float_params[ALPHA_THETA] * shrinkage(state.cluster_served[c])
    scan_points[block, d, place] = reach + 1e-6 * total


@no_alloc
def merge_into(state: SCLUBState, a: int, b: int, room: Floats) -> None:
    """Take the users of slot b into the cluster of slot a."""
    links, d = state.links, room.shape[1]
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
    solve_ridge(state.cluster_sums, a, state.cluster_estimates, a, room)
    update_scan_point(state, a, d)


@no_alloc
def wake_up(state: SCLUBState) -> None:
    """Have those clusters looked at again that frequencies alone kept apart, where the difference is allowed by now."""
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


@no_alloc
def gather(state: SCLUBState, d: int) -> int:
    """Keep those in the queue that may merge now, in the order of their slots, and show where they are; how many."""
    queue, count = state.work_lists, 0
    for place in range(state.int_params[N_QUEUED]):
        c = queue[QUEUE, place]
        if state.sizes[c] == 0 or state.unchecked[c] > 0:
            state.queued[c] = 0  # it is looked at when its last user is checked
            continue
        update_scan_point(state, c, d)
        spot = count
        while spot > 0 and queue[QUEUE, spot - 1] > c:
            queue[QUEUE, spot] = queue[QUEUE, spot - 1]
            spot -= 1
        queue[QUEUE, spot] = c
        count += 1
    return count


@no_alloc
def find_partners(state: SCLUBState, begin: int, count: int, near: Floats, d: int) -> None:
    """For each cluster in the queue, beyond slot ``begin``, the lowest slot between that it is to merge with."""
    for place in range(count):
        c = state.work_lists[QUEUE, place]
        partner = -1
        if c > begin and state.sizes[c] > 0:
            partner = next_close(state, c, begin, c, near, d)
        state.work_lists[PARTNER, place] = partner


@inline
def merge(state: SCLUBState, room: Floats, near: Floats) -> None:
    """Look at the pairs of clusters in the order of their slots and merge those that are alike.

    A pair of which neither has moved gives the answer it gave before, but for one thing: the allowed difference of
    frequencies, times t, grows; ``wake_up`` sees to that. So the clusters that have moved are compared with all, and
    slots take turns: one that has moved with all above it, another with those above it that have moved; and once a slot
    has merged in its turn, it is compared with all that are left above.
    """
    wake_up(state)
    d, int_params, queue = room.shape[1], state.int_params, state.work_lists
    count = gather(state, d)
    grown = 0
    if count > 0:
        find_partners(state, 0, count, near, d)
        begin = 0  # slots below have had their turns
        while True:
            a, b, own = int_params[N_SLOTS], -1, False
            for place in range(count):
                c = queue[QUEUE, place]
                if c < begin or state.sizes[c] == 0:
                    continue
                if begin <= queue[PARTNER, place] < a:
                    a, b, own = queue[PARTNER, place], c, False
                if c <= a:
                    a, own = c, True
            if a == int_params[N_SLOTS]:
                break
            begin = a + 1
            if own:
                b = next_close(state, a, begin, int_params[N_SLOTS], near, d)
            if b < 0:
                continue
            while b >= 0:
                merge_into(state, a, b, room)
                b = next_close(state, a, b + 1, int_params[N_SLOTS], near, d)
            queue[MERGED, grown] = a
            grown += 1
            find_partners(state, begin, count, near, d)
    for place in range(count):
        state.queued[queue[QUEUE, place]] = 0
    int_params[N_QUEUED] = 0
    for place in range(grown):  # pairs with the slots below were looked at before it grew: look again next round
        enqueue(state, queue[MERGED, place])
    while int_params[N_SLOTS] > 0 and state.sizes[int_params[N_SLOTS] - 1] == 0:
        int_params[N_SLOTS] -= 1


@entry_point
def rebuild_scan_points(state: SCLUBState) -> None:
    """Let all checked clusters be seen where they are, and no others."""
    for c in range(state.sizes.size):
        state.scan_points[c >> 6, 0, c & 63] = EXCLUDED
        if state.sizes[c] > 0 and state.unchecked[c] == 0:
            update_scan_point(state, c, state.scan_points.shape[1] - 1)

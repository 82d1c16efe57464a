"""The sets of SCLUB that merge: which pairs are looked at, and when."""

from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import entry_point, inline, no_alloc
from locb.evaluation.confidence import shrinkage
from locb.kernels.common.bit_sets import flip
from locb.kernels.common.cholesky import solve_ridge
from locb.kernels.common.linear_algebra import squared_distance
from locb.kernels.sclub.clusters import (
    ALPHA_P,
    ALPHA_THETA,
    AWAY,
    BLOCK,
    FARTHEST,
    FIRST,
    GROWN,
    LAST,
    LEAST,
    MOST,
    NEVER,
    NEXT,
    PARTNER,
    QUEUE,
    SLACK,
    SLOTS,
    WAITING,
    WAKE,
    SetState,
    T,
    has_moved,
)


@no_alloc
def is_close(state: SetState, a: int, b: int, d: int) -> bool:
    """Whether two clusters are checked and alike; where only their frequencies are not, a remembers by how much."""
    sizes, shared_served = state.sizes, state.shared_served
    if sizes[b] == 0 or state.unchecked[b] > 0:
        return False
    reach = 0.5 * state.float_params[ALPHA_THETA] * (shrinkage(shared_served[a]) + shrinkage(shared_served[b]))
    if not squared_distance(state.shared, a, state.shared, b, d) < reach * reach:
        return False
    t = state.int_params[T]
    difference = abs(shared_served[a] / sizes[a] - shared_served[b] / sizes[b])
    if not difference / t < state.float_params[ALPHA_P] * shrinkage(t):
        state.wake[a] = min(state.wake[a], difference)
        state.float_params[WAKE] = min(state.float_params[WAKE], difference)
        return False
    return True


@no_alloc
def next_block(points: Floats, a: int, first: int, last: int, near: Floats, d: int) -> int:
    """The first block from ``first`` to ``last`` − 1 that may have a slot within reach of slot a; ``last`` if none has.

    ``near`` holds the squared distances of its slots. The loop over blocks is in here, for a call a block would cost
    half as much as looking at it.
    """
    block, place = a >> 6, a & 63
    for w in range(np.uintp(first), np.uintp(last)):
        for s in range(np.uintp(BLOCK)):
            near[s] = 0.0
        for q in range(np.uintp(d)):
            here = points[block, q, place]
            for s in range(np.uintp(BLOCK)):
                gap = points[w, q, s] - here
                near[s] += gap * gap
        hits = 0
        here = points[block, d, place]
        for s in range(np.uintp(BLOCK)):
            reach = points[w, np.uintp(d), s] + here
            hits += near[s] < reach * reach * SLACK
        if hits > 0:
            found: Any = np.int64(w)
            return int(found)
    return last


@no_alloc
def next_close(state: SetState, a: int, begin: int, end: int, near: Floats, d: int) -> int:
    """The lowest slot from ``begin`` to ``end`` − 1, a left out, whose cluster is alike to that of a; −1 if none is."""
    points, last = state.points, (end + BLOCK - 1) >> 6
    here = points[a >> 6, d, a & 63]
    w = next_block(points, a, begin >> 6, last, near, d)
    while w < last:
        for s in range(BLOCK):
            b = (w << 6) + s
            reach = points[w, d, s] + here
            if begin <= b < end and b != a and near[s] < reach * reach * SLACK and is_close(state, a, b, d):
                return b
        w = next_block(points, a, w + 1, last, near, d)
    return -1


@no_alloc
def place_point(state: SetState, c: int, d: int) -> None:
    """Let a checked cluster be seen where it is, and its reach as wide as float32 may put it too far off."""
    points, block, place = state.points, c >> 6, c & 63
    total = 0.0
    for q in range(d):
        # Cutting off what is far never makes a distance larger.
        points[block, q, place] = max(-FARTHEST, min(FARTHEST, state.shared[c, q]))
        total += abs(points[block, q, place])
    reach = 0.5 * state.float_params[ALPHA_THETA] * shrinkage(state.shared_served[c])
    points[block, d, place] = reach + 1e-6 * total


@no_alloc
def merge_into(state: SetState, a: int, b: int, room: Floats) -> None:
    """Take the users of slot b into the cluster of slot a."""
    ring, d = state.ring, room.shape[1]
    head, other = ring[a, FIRST], ring[b, FIRST]
    j = other
    while True:
        state.slot[j] = a
        j = ring[j, NEXT]
        if j == other:
            break
    tail, end = ring[head, LAST], ring[other, LAST]
    ring[tail, NEXT], ring[other, LAST] = other, tail
    ring[end, NEXT], ring[head, LAST] = head, end
    state.sizes[a] += state.sizes[b]
    state.sizes[b] = 0
    state.shared_served[a] += state.shared_served[b]
    state.span[a, LEAST] = min(state.span[a, LEAST], state.span[b, LEAST])
    state.span[a, MOST] = max(state.span[a, MOST], state.span[b, MOST])
    state.wake[b] = NEVER
    state.points[b >> 6, 0, b & 63] = AWAY
    flip(state.free, 0, b)
    for q in range(3):
        state.peaks[a, q] += state.peaks[b, q]
    for q in range(state.sums.shape[1]):
        state.shared_sums[a, q] += state.shared_sums[b, q]
    solve_ridge(state.shared_sums, a, state.shared, a, room)
    place_point(state, a, d)


@no_alloc
def wake_up(state: SetState) -> None:
    """Have those clusters looked at again that frequencies alone kept apart, where the difference is allowed by now."""
    t = state.int_params[T]
    allowed = state.float_params[ALPHA_P] * shrinkage(t) * t
    if not allowed > state.float_params[WAKE]:
        return
    state.float_params[WAKE] = NEVER
    for c in range(state.int_params[SLOTS]):
        if allowed > state.wake[c]:
            state.wake[c] = NEVER
            has_moved(state, c)
        state.float_params[WAKE] = min(state.float_params[WAKE], state.wake[c])


@no_alloc
def gather(state: SetState, d: int) -> int:
    """Keep those in the queue that may merge now, in the order of their slots, and show where they are; how many."""
    queue, count = state.lists, 0
    for place in range(state.int_params[WAITING]):
        c = queue[QUEUE, place]
        if state.sizes[c] == 0 or state.unchecked[c] > 0:
            state.moved[c] = 0  # it is looked at when its last user is checked
            continue
        place_point(state, c, d)
        spot = count
        while spot > 0 and queue[QUEUE, spot - 1] > c:
            queue[QUEUE, spot] = queue[QUEUE, spot - 1]
            spot -= 1
        queue[QUEUE, spot] = c
        count += 1
    return count


@no_alloc
def find_partners(state: SetState, begin: int, count: int, near: Floats, d: int) -> None:
    """For each cluster in the queue, beyond slot ``begin``, the lowest slot between that it is to merge with."""
    for place in range(count):
        c = state.lists[QUEUE, place]
        partner = -1
        if c > begin and state.sizes[c] > 0:
            partner = next_close(state, c, begin, c, near, d)
        state.lists[PARTNER, place] = partner


@inline
def merge(state: SetState, room: Floats, near: Floats) -> None:
    """Look at the pairs of clusters in the order of their slots and merge those that are alike.

    A pair of which neither has moved gives the answer it gave before, but for one thing: the allowed difference of
    frequencies, times t, grows; ``wake_up`` sees to that. So the clusters that have moved are compared with all, and
    slots take turns: one that has moved with all above it, another with those above it that have moved; and once a slot
    has merged in its turn, it is compared with all that are left above.
    """
    wake_up(state)
    d, int_params, queue = room.shape[1], state.int_params, state.lists
    count = gather(state, d)
    grown = 0
    if count > 0:
        find_partners(state, 0, count, near, d)
        begin = 0  # slots below have had their turns
        while True:
            a, b, own = int_params[SLOTS], -1, False
            for place in range(count):
                c = queue[QUEUE, place]
                if c < begin or state.sizes[c] == 0:
                    continue
                if begin <= queue[PARTNER, place] < a:
                    a, b, own = queue[PARTNER, place], c, False
                if c <= a:
                    a, own = c, True
            if a == int_params[SLOTS]:
                break
            begin = a + 1
            if own:
                b = next_close(state, a, begin, int_params[SLOTS], near, d)
            if b < 0:
                continue
            while b >= 0:
                merge_into(state, a, b, room)
                b = next_close(state, a, b + 1, int_params[SLOTS], near, d)
            queue[GROWN, grown] = a
            grown += 1
            find_partners(state, begin, count, near, d)
    for place in range(count):
        state.moved[queue[QUEUE, place]] = 0
    int_params[WAITING] = 0
    for place in range(grown):  # pairs with the slots below were looked at before it grew: look again next round
        has_moved(state, queue[GROWN, place])
    while int_params[SLOTS] > 0 and state.sizes[int_params[SLOTS] - 1] == 0:
        int_params[SLOTS] -= 1


@entry_point
def place_points(state: SetState) -> None:
    """Let all checked clusters be seen where they are, and no others."""
    for c in range(state.sizes.size):
        state.points[c >> 6, 0, c & 63] = AWAY
        if state.sizes[c] > 0 and state.unchecked[c] == 0:
            place_point(state, c, state.points.shape[1] - 1)

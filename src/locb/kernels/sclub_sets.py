"""The sets of SCLUB: who is in which, users who split off, sets that merge. Nothing here walks all users."""

from typing import Any, NamedTuple

import numpy as np

from locb.arrays import Floats, Ints, Places, Words
from locb.confidence import shrinkage
from locb.jit import borrowing, entry, part
from locb.kernels.bits import flip, trailing_zeros
from locb.kernels.linear import solve_ridge, squared_distance
from locb.kernels.peaks import is_worn, note_peaks

# Places in the two short arrays of a state, and in the columns of others.
T, PHASE, PHASE_END, SLOTS, WAITING, TIES = 0, 1, 2, 3, 4, 5
ALPHA, ALPHA_THETA, ALPHA_P, WAKE = 0, 1, 2, 3
NEXT, LAST, FIRST = 0, 1, 2
LEAST, MOST = 0, 1
QUEUE, PARTNER, GROWN = 0, 1, 2
BLOCK = 64  # slots that are looked at together
NEVER = 1e300
# A first look at distances is taken in float32, so that it is quick, and with slack for its rounding.
AWAY, FARTHEST = (
    1e18,
    1e15,
)  # where a cluster that must not merge now seems to be; no other seems to be farther than this
SLACK = np.float32(1.001)


class SetState(NamedTuple):
    """What SCLUB knows. A cluster lives in a slot; slots are reused, the lowest free one first."""

    estimates: Floats  # (n, d + p) each user's own θ̂ and A⁻¹
    sums: Floats  # (n, d + p) each user's own b and A − I
    served: Ints  # (n,) m
    checked: Ints  # (n,) 1 once served in this phase
    slot: Ints  # (n,) the user's cluster
    ring: (
        Places  # (n, 3) the next and the last user of the same cluster, in a circle; some user of the cluster of a slot
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
    whole: Ints  # t, phase, last round of the phase, slots in use, clusters in the queue, ties
    real: Floats  # α, α_θ, α_p; no cluster's wake is smaller than this
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


@part
def has_moved(state: SetState, c: int) -> None:
    """Have the cluster in slot c looked at."""
    if state.moved[c] == 0:
        state.moved[c] = 1
        state.lists[QUEUE, state.whole[WAITING]] = c
        state.whole[WAITING] += 1


@borrowing
def begin_phase(state: SetState, room: Floats) -> None:
    """Phase s lasts 2^s rounds: nobody is checked, and every cluster remembers where it stands."""
    whole = state.whole
    whole[PHASE] += 1
    whole[PHASE_END] += 1 << whole[PHASE]
    state.checked[:] = 0
    for c in range(whole[SLOTS]):
        state.points[c >> 6, 0, c & 63] = AWAY
        if state.sizes[c] == 0:
            continue
        solve_ridge(state.shared_sums, c, state.shared, c, room)
        state.unchecked[c] = state.sizes[c]
        state.phase_served[c] = state.shared_served[c]
        for q in range(room.shape[1]):
            state.phase_theta[c, q] = state.shared[c, q]


@borrowing
def find_span(state: SetState, c: int) -> None:
    """How often the users of a cluster were served at least and at most, from themselves."""
    start = state.ring[c, FIRST]
    low, high, j = state.served[start], state.served[start], state.ring[start, NEXT]
    while j != start:
        low, high = min(low, state.served[j]), max(high, state.served[j])
        j = state.ring[j, NEXT]
    state.span[c, LEAST], state.span[c, MOST] = low, high


@part
def spans_unlike(state: SetState, i: int, t: int, limit: float) -> bool:
    """Whether the span of i's cluster reaches beyond the limit from i."""
    c, share = state.slot[i], state.served[i] / t
    below, above = state.span[c, LEAST] / t, state.span[c, MOST] / t
    return bool(abs(share - below) > limit or abs(share - above) > limit)


@part
def is_served_unlike(state: SetState, i: int) -> bool:
    """Whether some user of i's cluster is served much more or much less often than i."""
    t = state.whole[T]
    limit = 2.0 * state.real[ALPHA_P] * shrinkage(t)
    if not spans_unlike(state, i, t, limit):
        return False
    find_span(state, state.slot[i])  # the span may have been too wide
    return spans_unlike(state, i, t, limit)


@borrowing
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


@borrowing
def lowest_free(state: SetState) -> int:
    """The lowest free slot; there is one, for each cluster has a user."""
    w = 0
    while state.free[0, w] == 0:
        w += 1
    return (w << 6) + trailing_zeros(state.free[0, w])


@borrowing
def split_off(state: SetState, i: int, room: Floats) -> None:
    """Give user i a cluster of its own, and take what it brought out of the old one, so that nothing counts twice."""
    d, ring = room.shape[1], state.ring
    old, new = state.slot[i], lowest_free(state)
    flip(state.free, 0, new)
    state.whole[SLOTS] = max(state.whole[SLOTS], new + 1)
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


@borrowing
def is_close(state: SetState, a: int, b: int, d: int) -> bool:
    """Whether two clusters are checked and alike; where only their frequencies are not, a remembers by how much."""
    sizes, shared_served = state.sizes, state.shared_served
    if sizes[b] == 0 or state.unchecked[b] > 0:
        return False
    reach = 0.5 * state.real[ALPHA_THETA] * (shrinkage(shared_served[a]) + shrinkage(shared_served[b]))
    if not squared_distance(state.shared, a, state.shared, b, d) < reach * reach:
        return False
    t = state.whole[T]
    difference = abs(shared_served[a] / sizes[a] - shared_served[b] / sizes[b])
    if not difference / t < state.real[ALPHA_P] * shrinkage(t):
        state.wake[a] = min(state.wake[a], difference)
        state.real[WAKE] = min(state.real[WAKE], difference)
        return False
    return True


@borrowing
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


@borrowing
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


@borrowing
def place_point(state: SetState, c: int, d: int) -> None:
    """Let a checked cluster be seen where it is, and its reach as wide as float32 may put it too far off."""
    points, block, place = state.points, c >> 6, c & 63
    total = 0.0
    for q in range(d):
        # Cutting off what is far never makes a distance larger.
        points[block, q, place] = max(-FARTHEST, min(FARTHEST, state.shared[c, q]))
        total += abs(points[block, q, place])
    reach = 0.5 * state.real[ALPHA_THETA] * shrinkage(state.shared_served[c])
    points[block, d, place] = reach + 1e-6 * total


@borrowing
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


@borrowing
def wake_up(state: SetState) -> None:
    """Have those clusters looked at again that frequencies alone kept apart, where the difference is allowed by now."""
    t = state.whole[T]
    allowed = state.real[ALPHA_P] * shrinkage(t) * t
    if not allowed > state.real[WAKE]:
        return
    state.real[WAKE] = NEVER
    for c in range(state.whole[SLOTS]):
        if allowed > state.wake[c]:
            state.wake[c] = NEVER
            has_moved(state, c)
        state.real[WAKE] = min(state.real[WAKE], state.wake[c])


@borrowing
def gather(state: SetState, d: int) -> int:
    """Keep those in the queue that may merge now, in the order of their slots, and show where they are; how many."""
    queue, count = state.lists, 0
    for place in range(state.whole[WAITING]):
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


@borrowing
def find_partners(state: SetState, begin: int, count: int, near: Floats, d: int) -> None:
    """For each cluster in the queue, beyond slot ``begin``, the lowest slot between that it is to merge with."""
    for place in range(count):
        c = state.lists[QUEUE, place]
        partner = -1
        if c > begin and state.sizes[c] > 0:
            partner = next_close(state, c, begin, c, near, d)
        state.lists[PARTNER, place] = partner


@part
def merge(state: SetState, room: Floats, near: Floats) -> None:
    """Look at the pairs of clusters in the order of their slots and merge those that are alike.

    A pair of which neither has moved gives the answer it gave before, but for one thing: the allowed difference of
    frequencies, times t, grows; ``wake_up`` sees to that. So the clusters that have moved are compared with all, and
    slots take turns: one that has moved with all above it, another with those above it that have moved; and once a slot
    has merged in its turn, it is compared with all that are left above.
    """
    wake_up(state)
    d, whole, queue = room.shape[1], state.whole, state.lists
    count = gather(state, d)
    grown = 0
    if count > 0:
        find_partners(state, 0, count, near, d)
        begin = 0  # slots below have had their turns
        while True:
            a, b, own = whole[SLOTS], -1, False
            for place in range(count):
                c = queue[QUEUE, place]
                if c < begin or state.sizes[c] == 0:
                    continue
                if begin <= queue[PARTNER, place] < a:
                    a, b, own = queue[PARTNER, place], c, False
                if c <= a:
                    a, own = c, True
            if a == whole[SLOTS]:
                break
            begin = a + 1
            if own:
                b = next_close(state, a, begin, whole[SLOTS], near, d)
            if b < 0:
                continue
            while b >= 0:
                merge_into(state, a, b, room)
                b = next_close(state, a, b + 1, whole[SLOTS], near, d)
            queue[GROWN, grown] = a
            grown += 1
            find_partners(state, begin, count, near, d)
    for place in range(count):
        state.moved[queue[QUEUE, place]] = 0
    whole[WAITING] = 0
    for place in range(grown):  # pairs with the slots below were looked at before it grew: look again next round
        has_moved(state, queue[GROWN, place])
    while whole[SLOTS] > 0 and state.sizes[whole[SLOTS] - 1] == 0:
        whole[SLOTS] -= 1


@entry
def place_points(state: SetState) -> None:
    """Let all checked clusters be seen where they are, and no others."""
    for c in range(state.sizes.size):
        state.points[c >> 6, 0, c & 63] = AWAY
        if state.sizes[c] > 0 and state.unchecked[c] == 0:
            place_point(state, c, state.points.shape[1] - 1)


@entry
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

"""The components of CLUB's graph: the estimate that each shares, and what is left when one falls apart."""

import numpy as np

from locb.arrays import Floats
from locb.jit import borrowing, entry
from locb.kernels.club_graph import (
    COMPLETE,
    CUTS,
    GRAPH,
    NAMES,
    QUEUE,
    SPARSE,
    GraphState,
    expand,
    label,
    seen,
    start_search,
    start_second,
    walk,
)
from locb.kernels.peaks import is_worn, note_peaks
from locb.kernels.solving import solve_ridge


@borrowing
def add_up(state: GraphState, name: int, first: int, count: int, d: int) -> None:
    """The sums of a component from those of its users, who are in the queue."""
    total, sums = state.shared_sums, state.sums
    for q in range(total.shape[1]):
        total[name, q] = 0.0
    for place in range(first, first + count):
        u = state.room[QUEUE, place]
        for q in range(total.shape[1]):
            total[name, q] += sums[u, q]
    for q in range(3):
        state.peaks[name, q] = 0.0
    note_peaks(state.peaks, total, name, count, d)


@entry
def rebuild(state: GraphState, dim: int) -> None:
    """Find all components anew, and their estimates from the users' sums."""
    room = np.empty((2 * dim, dim))
    total, component = state.shared_sums, state.component
    count = label(state, component)
    state.whole[NAMES] = count
    total[:count] = 0.0
    state.sizes[:] = 0
    state.observed[:] = 0
    state.peaks[:] = 0.0
    for u in range(component.size):
        state.sizes[component[u]] += 1
        state.observed[component[u]] += state.served[u]
        for q in range(total.shape[1]):
            total[component[u], q] += state.sums[u, q]
    for name in range(count):
        note_peaks(state.peaks, total, name, state.sizes[name], dim)
        solve_ridge(total, name, state.shared, name, room)


@borrowing
def share_neighbour(state: GraphState, i: int, j: int) -> bool:
    """Whether two users of a complete graph have a neighbour in common: mostly they do, and no search is needed."""
    for w in range(state.neighbours.shape[1]):
        if state.neighbours[i, w] & state.neighbours[j, w] != 0:
            return True
    return False


@borrowing
def part_with(state: GraphState, old: int, first: int, count: int, room: Floats) -> None:
    """Make some users of the queue, who were of the component ``old``, one of their own."""
    d = room.shape[1]
    total = state.shared_sums
    name = state.whole[NAMES]
    state.whole[NAMES] += 1
    note_peaks(state.peaks, total, old, state.sizes[old], d)
    state.sizes[name] = count
    state.sizes[old] -= count
    state.observed[name] = 0
    for place in range(first, first + count):
        u = state.room[QUEUE, place]
        state.component[u] = name
        state.observed[name] += state.served[u]
    state.observed[old] -= state.observed[name]
    add_up(state, name, first, count, d)
    for q in range(total.shape[1]):
        total[old, q] -= total[name, q]
    solve_ridge(total, name, state.shared, name, room)


@borrowing
def split(state: GraphState, i: int, n_cut: int, room: Floats) -> None:
    """After edges of user i were cut: if its component fell apart, part the pieces.

    From a reference, first user i, and from each user that was cut off, two searches go on in turns. If they meet, the
    two are connected. If one has nobody left to look at, it has seen a whole piece: the cost follows the smaller one.
    """
    n, queue, component = state.served.size, state.room, state.component
    old, reference = component[i], i
    begun, fell = False, False
    head, count = 0, 1
    for c in range(n_cut):
        j = queue[CUTS, c]
        if component[j] != old:
            continue
        if state.whole[GRAPH] == COMPLETE and share_neighbour(state, reference, j):
            continue
        if not begun:
            start_search(state, reference)
            begun = True
        if seen(state, j):
            continue
        start_second(state, j)
        place, end = n - 1, n - 2  # the second queue: from n − 1 down to end + 1, looked at down to place + 1
        effort, second_effort = 0, 0
        met = False
        while not met and head < count and place > end:
            if effort <= second_effort:
                count, looked, met = expand(state, queue[QUEUE, head], False, count)
                effort += looked
                head += 0 if met else 1
            else:
                end, looked, met = expand(state, queue[QUEUE, place], True, end)
                second_effort += looked
                place -= 0 if met else 1
        fell = fell or not met
        if not met and place == end:
            part_with(state, old, end + 1, n - 1 - end, room)
            continue
        if not met:
            part_with(state, old, 0, count, room)
            reference = j
            head, count = 0, 0
            if state.whole[GRAPH] == SPARSE:
                state.marks[n + 1] = state.marks[n]
        # What the second search has seen is the reference's now.
        for q in range(end + 1, n):
            queue[QUEUE, count] = queue[QUEUE, q]
            count += 1
    if not fell:
        return
    if is_worn(state.peaks, state.shared_sums, state.sums, old, state.sizes[old], room.shape[1]):
        add_up(state, old, 0, walk(state, reference), room.shape[1])
    solve_ridge(state.shared_sums, old, state.shared, old, room)

"""The graph of CLUB, which only loses edges: walking its components, and noticing when one falls apart.

A complete graph is kept as bits, a sparse one as lists of neighbours, one user's after the other's in one array.
"""

from typing import NamedTuple

import numpy as np

from locb.arrays import Floats, Ints, Places, Words
from locb.jit import borrowing, entry, part
from locb.kernels.bits import ONE, flip, has, trailing_zeros
from locb.kernels.linear import solve_ridge, squared_distance
from locb.kernels.peaks import is_worn, note_peaks

T, NAMES, TIES, GRAPH = 0, 1, 2, 3
ALPHA, ALPHA2 = 0, 1
COMPLETE, SPARSE = 0, 1
QUEUE, CUTS = 0, 1
LEFT, BACK = 0, 1
NOTHING = np.uint64(0)
EVERYTHING = ~NOTHING


class GraphState(NamedTuple):
    """What CLUB knows. Components are named 0, 1, … in the order in which they came about."""

    estimates: Floats  # (n, d + p) each user's own θ̂ and A⁻¹
    sums: Floats  # (n, d + p) each user's own b and A − I
    served: Ints  # (n,) m
    width: Floats  # (n,) F(m)
    neighbours: Words  # (n, ⌈n/64⌉) bits: the edges; (0, 0) if the graph is sparse
    start: Ints  # (n,) where each user's list begins; (0,) if the graph is complete
    degree: Places  # (n,) its length
    lists: Places  # (2 edges at the start,) each user's neighbours, ascending
    component: Ints  # (n,)
    shared: Floats  # (n, d + p) θ̂ and A⁻¹ of the component, in the row of its name
    shared_sums: Floats  # (n, d + p) its b and A − I
    sizes: Ints  # (n,) its users
    peaks: Floats  # (n, 3) the most users, trace of A − I and Σ|b| it had since it was last added up
    whole: Ints  # t, names in use, ties, graph
    real: Floats  # α, α₂
    generator: Words  # (1,) for random ties
    room: Ints  # (2, n) for work within one round: a queue, and the users whose edges were cut
    marks: Ints  # (n + 2,) for work, if sparse: who saw a user last; the newest mark, the reference's first mark
    words: Words  # (2, ⌈n/64⌉) for work, if complete: users whom no search has seen, users whom the second has


@part
def start_search(state: GraphState, i: int) -> None:
    """Forget all searches; begin one, the reference, at user i: the first of the queue."""
    state.room[QUEUE, 0] = i
    if state.whole[GRAPH] == SPARSE:
        newest = state.served.size
        state.marks[newest] += 1
        state.marks[newest + 1] = state.marks[newest]
        state.marks[i] = state.marks[newest]
        return
    for w in range(state.words.shape[1]):
        state.words[LEFT, w] = EVERYTHING
        state.words[BACK, w] = NOTHING
    flip(state.words, LEFT, i)


@part
def start_second(state: GraphState, j: int) -> None:
    """Begin a second search at user j: the last of the queue, which it fills from the end."""
    newest = state.served.size
    state.room[QUEUE, newest - 1] = j
    if state.whole[GRAPH] == SPARSE:
        state.marks[newest] += 1
        state.marks[j] = state.marks[newest]
        return
    for w in range(state.words.shape[1]):
        state.words[BACK, w] = NOTHING
    flip(state.words, BACK, j)
    flip(state.words, LEFT, j)


@part
def seen(state: GraphState, j: int) -> bool:
    """Whether a search since ``start_search`` has seen user j."""
    if state.whole[GRAPH] == SPARSE:
        first: bool = state.marks[j] >= state.marks[state.served.size + 1]
        return first
    return not has(state.words, LEFT, j)


@borrowing
def expand_list(state: GraphState, u: int, second: bool, place: int) -> tuple[int, int, bool]:
    """As ``expand``, for a sparse graph."""
    marks, lists, queue = state.marks, state.lists, state.room
    n = state.served.size
    newest, first = marks[n], marks[n + 1]
    own, step = (newest, -1) if second else (first, 1)
    start, length = state.start[u], state.degree[u]
    for e in range(start, start + length):
        v = lists[e]
        if marks[v] < first:
            marks[v] = own
            queue[QUEUE, place] = v
            place += step
        elif (marks[v] == newest) != second and newest > first:
            return place, e - start, True
    return place, length, False


@borrowing
def expand_bits(state: GraphState, u: int, second: bool, place: int) -> tuple[int, int, bool]:
    """As ``expand``, for a complete graph."""
    neighbours, words, queue = state.neighbours, state.words, state.room
    step = -1 if second else 1
    start = place
    for w in range(words.shape[1]):
        row = neighbours[u, w]
        back = words[BACK, w]
        if row & (~words[LEFT, w] & ~back if second else back) != 0:
            return place, w + abs(place - start), True
        found = row & words[LEFT, w]
        words[LEFT, w] ^= found
        if second:
            words[BACK, w] |= found
        while found != 0:
            queue[QUEUE, place] = (w << 6) + trailing_zeros(found)
            place += step
            found &= found - ONE
    return place, words.shape[1] + abs(place - start), False


@borrowing
def expand(state: GraphState, u: int, second: bool, place: int) -> tuple[int, int, bool]:
    """Queue those neighbours of u whom no search has seen, from ``place`` on: upwards, or downwards for the second.

    Returns the next place, how much was looked at, and whether the other search has seen one of them: then the two have
    met, and u is not done with.
    """
    if state.whole[GRAPH] == SPARSE:
        return expand_list(state, u, second, place)
    return expand_bits(state, u, second, place)


@borrowing
def walk(state: GraphState, start: int) -> int:
    """Put the users of the component of ``start`` into the queue; how many there are."""
    start_search(state, start)
    count = 1
    place = 0
    while place < count:
        count = expand(state, state.room[QUEUE, place], False, count)[0]
        place += 1
    return count


@entry
def label(state: GraphState, names: Ints) -> int:
    """Name all components in the order of their first users, (n,); how many there are."""
    names[:] = -1
    count = 0
    for u in range(names.size):
        if names[u] < 0:
            size = walk(state, u)
            for place in range(size):
                names[state.room[QUEUE, place]] = count
            count += 1
    return count


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
    state.peaks[:] = 0.0
    for u in range(component.size):
        state.sizes[component[u]] += 1
        for q in range(total.shape[1]):
            total[component[u], q] += state.sums[u, q]
    for name in range(count):
        note_peaks(state.peaks, total, name, state.sizes[name], dim)
        solve_ridge(total, name, state.shared, name, room)


@borrowing
def cut_bits(state: GraphState, i: int, d: int) -> int:
    """As ``cut``, for a complete graph."""
    estimates, widths, neighbours = state.estimates, state.width, state.neighbours
    count = 0
    for w in range(neighbours.shape[1]):
        word = neighbours[i, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            word &= word - ONE
            reach = state.real[ALPHA2] * (widths[i] + widths[j])
            if squared_distance(estimates, i, estimates, j, d) > reach * reach:
                flip(neighbours, i, j)
                flip(neighbours, j, i)
                state.room[CUTS, count] = j
                count += 1
    return count


@borrowing
def leave_out(state: GraphState, j: int, i: int) -> None:
    """Take user i out of the list of user j; the others stay in order."""
    place = state.start[j]
    last = place + state.degree[j] - 1
    while state.lists[place] != i:
        place += 1
    for e in range(place, last):
        state.lists[e] = state.lists[e + 1]
    state.degree[j] -= 1


@borrowing
def cut_list(state: GraphState, i: int, d: int) -> int:
    """As ``cut``, for a sparse graph."""
    estimates, widths, lists = state.estimates, state.width, state.lists
    start, kept = state.start[i], state.start[i]
    count = 0
    for e in range(start, start + state.degree[i]):
        j = lists[e]
        reach = state.real[ALPHA2] * (widths[i] + widths[j])
        if squared_distance(estimates, i, estimates, j, d) > reach * reach:
            leave_out(state, j, i)
            state.room[CUTS, count] = j
            count += 1
        else:
            lists[kept] = j
            kept += 1
    state.degree[i] = kept - start
    return count


@part
def cut(state: GraphState, i: int, d: int) -> int:
    """Cut the edges of user i to those who prove different, and remember these; how many they are."""
    return cut_list(state, i, d) if state.whole[GRAPH] == SPARSE else cut_bits(state, i, d)


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
    for place in range(first, first + count):
        state.component[state.room[QUEUE, place]] = name
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


@entry
def fill_lists(edges: Places, start: Ints, degree: Places, lists: Places) -> None:
    """Lists of neighbours from edges (lower user, higher user), in the order of the higher, then of the lower."""
    degree[:] = 0
    for k in range(edges.shape[0]):
        degree[edges[k, 0]] += 1
        degree[edges[k, 1]] += 1
    place = 0
    for u in range(start.size):
        start[u] = place
        place += degree[u]
    degree[:] = 0
    for k in range(edges.shape[0]):
        for side in range(2):
            u = edges[k, side]
            lists[start[u] + degree[u]] = edges[k, 1 - side]
            degree[u] += 1


@entry
def list_edges(state: GraphState, edges: Places) -> None:
    """The edges that were not cut, as ``fill_lists`` takes them: (living edges, 2)."""
    count = 0
    for high in range(state.start.size):
        for e in range(state.start[high], state.start[high] + state.degree[high]):
            if state.lists[e] < high:
                edges[count, 0] = state.lists[e]
                edges[count, 1] = high
                count += 1

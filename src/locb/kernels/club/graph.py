"""The graph of CLUB, which only loses edges: searching it, and cutting.

A complete graph is kept as bits, a sparse one as lists of neighbours, one user's after the other's in one array.
"""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints, Words
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.bit_sets import ONE, flip, has, trailing_zeros
from locb.kernels.common.linear_algebra import squared_distance

T, NAMES, TIES, GRAPH = 0, 1, 2, 3
ALPHA, ALPHA2 = 0, 1
COMPLETE, SPARSE = 0, 1
QUEUE, CUTS = 0, 1
LEFT, BACK = 0, 1
NOTHING = np.uint64(0)
EVERYTHING = ~NOTHING


class GraphState(NamedTuple):
    """What CLUB knows. c: rows kept for users (c ≥ n, so that users can join). Components are named 0, 1, …"""

    estimates: Floats  # (c, d + p) each user's own θ̂ and A⁻¹
    sums: Floats  # (c, d + p) each user's own b and A − I
    served: Ints  # (c,) m
    width: Floats  # (c,) F(m)
    neighbours: Words  # (c, ⌈c/64⌉) bits: the edges; (0, 0) if the graph is sparse
    start: Ints  # (c,) where each user's list begins; (0,) if the graph is complete
    degree: IndexArray  # (c,) its length
    space: Ints  # (c + 1,) places that the list may take; the last is how many of all are taken
    lists: IndexArray  # (places,) each user's neighbours, ascending
    component: Ints  # (c,)
    shared: Floats  # (c, d + p) θ̂ and A⁻¹ of the component, in the row of its name
    shared_sums: Floats  # (c, d + p) its b and A − I
    sizes: Ints  # (c,) its users
    observed: Ints  # (c,) rounds in which they were served, all together; not saved
    peaks: Floats  # (c, 3) the most users, trace of A − I and Σ|b| it had since it was last added up
    int_params: Ints  # t, names in use, ties, graph
    float_params: Floats  # α, α₂
    generator: Words  # (1,) for random ties
    room: Ints  # (2, c) for work within one round: a queue, and the users whose edges were cut
    marks: Ints  # (c + 2,) for work, if sparse: who saw a user last; the newest mark, the reference's first mark
    words: Words  # (2, ⌈c/64⌉) for work, if complete: users whom no search has seen, users whom the second has


@inline
def start_search(state: GraphState, i: int) -> None:
    """Forget all searches; begin one, the reference, at user i: the first of the queue."""
    state.room[QUEUE, 0] = i
    if state.int_params[GRAPH] == SPARSE:
        newest = state.served.size
        state.marks[newest] += 1
        state.marks[newest + 1] = state.marks[newest]
        state.marks[i] = state.marks[newest]
        return
    for w in range(state.words.shape[1]):
        state.words[LEFT, w] = EVERYTHING
        state.words[BACK, w] = NOTHING
    flip(state.words, LEFT, i)


@inline
def start_second(state: GraphState, j: int) -> None:
    """Begin a second search at user j: the last of the queue, which it fills from the end."""
    newest = state.served.size
    state.room[QUEUE, newest - 1] = j
    if state.int_params[GRAPH] == SPARSE:
        state.marks[newest] += 1
        state.marks[j] = state.marks[newest]
        return
    for w in range(state.words.shape[1]):
        state.words[BACK, w] = NOTHING
    flip(state.words, BACK, j)
    flip(state.words, LEFT, j)


@inline
def seen(state: GraphState, j: int) -> bool:
    """Whether a search since ``start_search`` has seen user j."""
    if state.int_params[GRAPH] == SPARSE:
        first: bool = state.marks[j] >= state.marks[state.served.size + 1]
        return first
    return not has(state.words, LEFT, j)


@no_alloc
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


@no_alloc
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


@no_alloc
def expand(state: GraphState, u: int, second: bool, place: int) -> tuple[int, int, bool]:
    """Queue those neighbours of u whom no search has seen, from ``place`` on: upwards, or downwards for the second.

    Returns the next place, how much was looked at, and whether the other search has seen one of them: then the two have
    met, and u is not done with.
    """
    if state.int_params[GRAPH] == SPARSE:
        return expand_list(state, u, second, place)
    return expand_bits(state, u, second, place)


@no_alloc
def walk(state: GraphState, start: int) -> int:
    """Put the users of the component of ``start`` into the queue; how many there are."""
    start_search(state, start)
    count = 1
    place = 0
    while place < count:
        count = expand(state, state.room[QUEUE, place], False, count)[0]
        place += 1
    return count


@entry_point
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


@no_alloc
def cut_bits(state: GraphState, i: int, d: int) -> int:
    """As ``cut``, for a complete graph."""
    estimates, widths, neighbours = state.estimates, state.width, state.neighbours
    count = 0
    for w in range(neighbours.shape[1]):
        word = neighbours[i, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            word &= word - ONE
            reach = state.float_params[ALPHA2] * (widths[i] + widths[j])
            if squared_distance(estimates, i, estimates, j, d) > reach * reach:
                flip(neighbours, i, j)
                flip(neighbours, j, i)
                state.room[CUTS, count] = j
                count += 1
    return count


@no_alloc
def leave_out(state: GraphState, j: int, i: int) -> None:
    """Take user i out of the list of user j; the others stay in order."""
    place = state.start[j]
    last = place + state.degree[j] - 1
    while state.lists[place] != i:
        place += 1
    for e in range(place, last):
        state.lists[e] = state.lists[e + 1]
    state.degree[j] -= 1


@no_alloc
def cut_list(state: GraphState, i: int, d: int) -> int:
    """As ``cut``, for a sparse graph."""
    estimates, widths, lists = state.estimates, state.width, state.lists
    start, kept = state.start[i], state.start[i]
    count = 0
    for e in range(start, start + state.degree[i]):
        j = lists[e]
        reach = state.float_params[ALPHA2] * (widths[i] + widths[j])
        if squared_distance(estimates, i, estimates, j, d) > reach * reach:
            leave_out(state, j, i)
            state.room[CUTS, count] = j
            count += 1
        else:
            lists[kept] = j
            kept += 1
    state.degree[i] = kept - start
    return count


@inline
def cut(state: GraphState, i: int, d: int) -> int:
    """Cut the edges of user i to those who prove different, and remember these; how many they are."""
    return cut_list(state, i, d) if state.int_params[GRAPH] == SPARSE else cut_bits(state, i, d)


@entry_point
def fill_lists(edges: IndexArray, start: Ints, degree: IndexArray, lists: IndexArray) -> None:
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


@inline
def append(start: Ints, degree: IndexArray, space: Ints, lists: IndexArray, u: int, v: int) -> None:
    """Put v at the end of the list of u, which moves to where there is room, for twice as many, if it has none."""
    last = space.size - 1
    if degree[u] == space[u]:
        first = space[last]
        for e in range(degree[u]):
            lists[first + e] = lists[start[u] + e]
        start[u] = first
        space[u] = 2 * degree[u] + 4
        space[last] += space[u]
    lists[start[u] + degree[u]] = v
    degree[u] += 1


@entry_point
def add_edges(edges: IndexArray, start: Ints, degree: IndexArray, space: Ints, lists: IndexArray) -> None:
    """Add the edges of users who join to the lists, which have room for them; in the order of ``fill_lists``."""
    for k in range(edges.shape[0]):
        append(start, degree, space, lists, edges[k, 0], edges[k, 1])
        append(start, degree, space, lists, edges[k, 1], edges[k, 0])


@entry_point
def list_edges(state: GraphState, edges: IndexArray) -> None:
    """The edges that were not cut, as ``fill_lists`` takes them: (living edges, 2)."""
    count = 0
    for high in range(state.start.size):
        for e in range(state.start[high], state.start[high] + state.degree[high]):
            if state.lists[e] < high:
                edges[count, 0] = state.lists[e]
                edges[count, 1] = high
                count += 1

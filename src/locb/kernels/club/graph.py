"""The graph of CLUB, which only loses edges: searching it, and cutting.

A complete graph is kept as bits, a sparse one as lists of neighbours, one user's after the other's in one array.
"""

from locb.common.arrays import IndexArray, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.club.state import ALPHA2, BACK, CUTS, EVERYTHING, GRAPH, LEFT, NOTHING, QUEUE, SPARSE, CLUBState
from locb.kernels.common.bit_sets import ONE, flip_bit, has_bit, trailing_zeros
from locb.kernels.common.linear_algebra import squared_distance


@inline
def start_search(state: CLUBState, i: int) -> None:
    """Forget all searches; begin one, the reference, at user i: the first of the queue."""
    state.work_lists[QUEUE, 0] = i
    if state.int_params[GRAPH] == SPARSE:
        newest = state.served.size
        state.search_marks[newest] += 1
        state.search_marks[newest + 1] = state.search_marks[newest]
        state.search_marks[i] = state.search_marks[newest]
        return
    for w in range(state.search_bits.shape[1]):
        state.search_bits[LEFT, w] = EVERYTHING
        state.search_bits[BACK, w] = NOTHING
    flip_bit(state.search_bits, LEFT, i)


@inline
def start_second(state: CLUBState, j: int) -> None:
    """Begin a second search at user j: the last of the queue, which it fills from the end."""
    newest = state.served.size
    state.work_lists[QUEUE, newest - 1] = j
    if state.int_params[GRAPH] == SPARSE:
        state.search_marks[newest] += 1
        state.search_marks[j] = state.search_marks[newest]
        return
    for w in range(state.search_bits.shape[1]):
        state.search_bits[BACK, w] = NOTHING
    flip_bit(state.search_bits, BACK, j)
    flip_bit(state.search_bits, LEFT, j)


@inline
def seen(state: CLUBState, j: int) -> bool:
    """Whether a search since ``start_search`` has seen user j."""
    if state.int_params[GRAPH] == SPARSE:
        first: bool = state.search_marks[j] >= state.search_marks[state.served.size + 1]
        return first
    return not has_bit(state.search_bits, LEFT, j)


@no_alloc
def expand_list(state: CLUBState, u: int, second: bool, place: int) -> tuple[int, int, bool]:
    """As ``expand``, for a sparse graph."""
    search_marks, neighbour_lists, queue = state.search_marks, state.neighbour_lists, state.work_lists
    n = state.served.size
    newest, first = search_marks[n], search_marks[n + 1]
    own, step = (newest, -1) if second else (first, 1)
    start, length = state.list_start[u], state.degree[u]
    for e in range(start, start + length):
        v = neighbour_lists[e]
        if search_marks[v] < first:
            search_marks[v] = own
            queue[QUEUE, place] = v
            place += step
        elif (search_marks[v] == newest) != second and newest > first:
            return place, e - start, True
    return place, length, False


@no_alloc
def expand_bits(state: CLUBState, u: int, second: bool, place: int) -> tuple[int, int, bool]:
    """As ``expand``, for a complete graph."""
    neighbour_bits, search_bits, queue = state.neighbour_bits, state.search_bits, state.work_lists
    step = -1 if second else 1
    start = place
    for w in range(search_bits.shape[1]):
        row = neighbour_bits[u, w]
        back = search_bits[BACK, w]
        if row & (~search_bits[LEFT, w] & ~back if second else back) != 0:
            return place, w + abs(place - start), True
        found = row & search_bits[LEFT, w]
        search_bits[LEFT, w] ^= found
        if second:
            search_bits[BACK, w] |= found
        while found != 0:
            queue[QUEUE, place] = (w << 6) + trailing_zeros(found)
            place += step
            found &= found - ONE
    return place, search_bits.shape[1] + abs(place - start), False


@no_alloc
def expand(state: CLUBState, u: int, second: bool, place: int) -> tuple[int, int, bool]:
    """Queue those neighbours of u whom no search has seen, from ``place`` on: upwards, or downwards for the second.

    Returns the next place, how much was looked at, and whether the other search has seen one of them: then the two have
    met, and u is not done with.
    """
    if state.int_params[GRAPH] == SPARSE:
        return expand_list(state, u, second, place)
    return expand_bits(state, u, second, place)


@no_alloc
def walk(state: CLUBState, start: int) -> int:
    """Put the users of the component of ``start`` into the queue; how many there are."""
    start_search(state, start)
    count = 1
    place = 0
    while place < count:
        count = expand(state, state.work_lists[QUEUE, place], False, count)[0]
        place += 1
    return count


@entry_point
def label_components(state: CLUBState, names: Ints) -> int:
    """Name all components in the order of their first users, (n,); how many there are."""
    names[:] = -1
    count = 0
    for u in range(names.size):
        if names[u] < 0:
            size = walk(state, u)
            for place in range(size):
                names[state.work_lists[QUEUE, place]] = count
            count += 1
    return count


@no_alloc
def cut_bits(state: CLUBState, i: int, d: int) -> int:
    """As ``cut``, for a complete graph."""
    estimates, radius_widths, neighbour_bits = state.estimates, state.radius_widths, state.neighbour_bits
    count = 0
    for w in range(neighbour_bits.shape[1]):
        word = neighbour_bits[i, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            word &= word - ONE
            reach = state.float_params[ALPHA2] * (radius_widths[i] + radius_widths[j])
            if squared_distance(estimates, i, estimates, j, d) > reach * reach:
                flip_bit(neighbour_bits, i, j)
                flip_bit(neighbour_bits, j, i)
                state.work_lists[CUTS, count] = j
                count += 1
    return count


@no_alloc
def leave_out(state: CLUBState, j: int, i: int) -> None:
    """Take user i out of the list of user j; the others stay in order."""
    place = state.list_start[j]
    last = place + state.degree[j] - 1
    while state.neighbour_lists[place] != i:
        place += 1
    for e in range(place, last):
        state.neighbour_lists[e] = state.neighbour_lists[e + 1]
    state.degree[j] -= 1


@no_alloc
def cut_list(state: CLUBState, i: int, d: int) -> int:
    """As ``cut``, for a sparse graph."""
    estimates, radius_widths, neighbour_lists = state.estimates, state.radius_widths, state.neighbour_lists
    start, kept = state.list_start[i], state.list_start[i]
    count = 0
    for e in range(start, start + state.degree[i]):
        j = neighbour_lists[e]
        reach = state.float_params[ALPHA2] * (radius_widths[i] + radius_widths[j])
        if squared_distance(estimates, i, estimates, j, d) > reach * reach:
            leave_out(state, j, i)
            state.work_lists[CUTS, count] = j
            count += 1
        else:
            neighbour_lists[kept] = j
            kept += 1
    state.degree[i] = kept - start
    return count


@inline
def cut(state: CLUBState, i: int, d: int) -> int:
    """Cut the edges of user i to those who prove different, and remember these; how many they are."""
    return cut_list(state, i, d) if state.int_params[GRAPH] == SPARSE else cut_bits(state, i, d)


@entry_point
def fill_lists(edges: IndexArray, start: Ints, degree: IndexArray, neighbour_lists: IndexArray) -> None:
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
            neighbour_lists[start[u] + degree[u]] = edges[k, 1 - side]
            degree[u] += 1


@inline
def append(start: Ints, degree: IndexArray, list_capacity: Ints, neighbour_lists: IndexArray, u: int, v: int) -> None:
    """Put v at the end of the list of u, which moves to where there is room, for twice as many, if it has none."""
    last = list_capacity.size - 1
    if degree[u] == list_capacity[u]:
        first = list_capacity[last]
        for e in range(degree[u]):
            neighbour_lists[first + e] = neighbour_lists[start[u] + e]
        start[u] = first
        list_capacity[u] = 2 * degree[u] + 4
        list_capacity[last] += list_capacity[u]
    neighbour_lists[start[u] + degree[u]] = v
    degree[u] += 1


@entry_point
def add_edges(
    edges: IndexArray, start: Ints, degree: IndexArray, list_capacity: Ints, neighbour_lists: IndexArray
) -> None:
    """Add the edges of users who join to the lists, which have room for them; in the order of ``fill_lists``."""
    for k in range(edges.shape[0]):
        append(start, degree, list_capacity, neighbour_lists, edges[k, 0], edges[k, 1])
        append(start, degree, list_capacity, neighbour_lists, edges[k, 1], edges[k, 0])


@entry_point
def list_edges(state: CLUBState, edges: IndexArray) -> None:
    """The edges that were not cut, as ``fill_lists`` takes them: (living edges, 2)."""
    count = 0
    for high in range(state.list_start.size):
        for e in range(state.list_start[high], state.list_start[high] + state.degree[high]):
            if state.neighbour_lists[e] < high:
                edges[count, 0] = state.neighbour_lists[e]
                edges[count, 1] = high
                count += 1

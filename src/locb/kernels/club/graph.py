"""The graph of CLUB: breadth-first search, removal of edges, and the edges of new users.

A complete graph is stored as a bit matrix, a sparse graph as neighbour lists in one array. A search *visits* a user
when it adds the user to its queue, and *expands* a user when it reads the user's neighbours. Symbols are defined in
``locb.kernels.club.state`` and ``locb.kernels``.
"""

from locb.common.arrays import IndexArray, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.club.state import ALL_BITS, ALPHA2, CUTS, GRAPH, NO_BITS, QUEUE, SECOND, SPARSE, UNVISITED, CLUBState
from locb.kernels.common.bit_sets import ONE, flip_bit, has_bit, trailing_zeros
from locb.kernels.common.linear_algebra import squared_distance


@inline
def start_search(state: CLUBState, i: int) -> None:
    """Reset all searches and start the reference search at user i, which fills the queue from the start upwards."""
    state.work_lists[QUEUE, 0] = i
    if state.int_params[GRAPH] == SPARSE:
        newest = state.served.size
        state.search_marks[newest] += 1
        state.search_marks[newest + 1] = state.search_marks[newest]
        state.search_marks[i] = state.search_marks[newest]
        return
    for w in range(state.search_bits.shape[1]):
        state.search_bits[UNVISITED, w] = ALL_BITS
        state.search_bits[SECOND, w] = NO_BITS
    flip_bit(state.search_bits, UNVISITED, i)


@inline
def start_second_search(state: CLUBState, j: int) -> None:
    """Start a second search at user j, which fills the same queue from the end downwards."""
    newest = state.served.size
    state.work_lists[QUEUE, newest - 1] = j
    if state.int_params[GRAPH] == SPARSE:
        state.search_marks[newest] += 1
        state.search_marks[j] = state.search_marks[newest]
        return
    for w in range(state.search_bits.shape[1]):
        state.search_bits[SECOND, w] = NO_BITS
    flip_bit(state.search_bits, SECOND, j)
    flip_bit(state.search_bits, UNVISITED, j)


@inline
def is_visited(state: CLUBState, j: int) -> bool:
    """Return whether a search since ``start_search`` has visited user j."""
    if state.int_params[GRAPH] == SPARSE:
        visited: bool = state.search_marks[j] >= state.search_marks[state.served.size + 1]
        return visited
    return not has_bit(state.search_bits, UNVISITED, j)


@no_alloc
def expand_list(state: CLUBState, u: int, second: bool, end: int) -> tuple[int, int, bool]:
    """Implement ``expand_user`` for a sparse graph."""
    marks, neighbour_lists, queue = state.search_marks, state.neighbour_lists, state.work_lists
    n = state.served.size
    newest, first = marks[n], marks[n + 1]
    own_mark, step = (newest, -1) if second else (first, 1)
    start, length = state.list_start[u], state.degree[u]
    for e in range(start, start + length):
        v = neighbour_lists[e]
        if marks[v] < first:
            marks[v] = own_mark
            queue[QUEUE, end] = v
            end += step
        elif (marks[v] == newest) != second and newest > first:
            return end, e - start, True
    return end, length, False


@no_alloc
def expand_bits(state: CLUBState, u: int, second: bool, end: int) -> tuple[int, int, bool]:
    """Implement ``expand_user`` for a complete graph."""
    neighbour_bits, search_bits, queue = state.neighbour_bits, state.search_bits, state.work_lists
    step = -1 if second else 1
    start = end
    for w in range(search_bits.shape[1]):
        row = neighbour_bits[u, w]
        by_second = search_bits[SECOND, w]
        if row & (~search_bits[UNVISITED, w] & ~by_second if second else by_second) != 0:
            return end, w + abs(end - start), True
        found = row & search_bits[UNVISITED, w]
        search_bits[UNVISITED, w] ^= found
        if second:
            search_bits[SECOND, w] |= found
        while found != 0:
            queue[QUEUE, end] = (w << 6) + trailing_zeros(found)
            end += step
            found &= found - ONE
    return end, search_bits.shape[1] + abs(end - start), False


@no_alloc
def expand_user(state: CLUBState, u: int, second: bool, end: int) -> tuple[int, int, bool]:
    """Expand user u: append its unvisited neighbours to the queue, from index ``end`` upwards.

    If ``second`` is true, u belongs to the second search, and the queue grows downwards. Returns the new end, the
    number of entries that were read, and whether the two searches have met. The searches meet if the other search has
    visited a neighbour of u. The expansion then stops early.
    """
    if state.int_params[GRAPH] == SPARSE:
        return expand_list(state, u, second, end)
    return expand_bits(state, u, second, end)


@no_alloc
def collect_component(state: CLUBState, start: int) -> int:
    """Put the users of the component of user ``start`` into the queue and return their number."""
    start_search(state, start)
    count = 1
    head = 0
    while head < count:
        count = expand_user(state, state.work_lists[QUEUE, head], False, count)[0]
        head += 1
    return count


@entry_point
def label_components(state: CLUBState, labels: Ints) -> int:
    """Write the component of each user to ``labels`` (n,) and return the number of components.

    Components are numbered 0, 1, … in the order of their lowest users.
    """
    labels[:] = -1
    count = 0
    for u in range(labels.size):
        if labels[u] < 0:
            size = collect_component(state, u)
            for k in range(size):
                labels[state.work_lists[QUEUE, k]] = count
            count += 1
    return count


@no_alloc
def cut_bits(state: CLUBState, i: int, d: int) -> int:
    """Implement ``cut_edges`` for a complete graph."""
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
def remove_neighbour(state: CLUBState, j: int, i: int) -> None:
    """Remove user i from the neighbour list of user j, and keep the order of the list."""
    index = state.list_start[j]
    last = index + state.degree[j] - 1
    while state.neighbour_lists[index] != i:
        index += 1
    for e in range(index, last):
        state.neighbour_lists[e] = state.neighbour_lists[e + 1]
    state.degree[j] -= 1


@no_alloc
def cut_list(state: CLUBState, i: int, d: int) -> int:
    """Implement ``cut_edges`` for a sparse graph."""
    estimates, radius_widths, neighbour_lists = state.estimates, state.radius_widths, state.neighbour_lists
    start, kept = state.list_start[i], state.list_start[i]
    count = 0
    for e in range(start, start + state.degree[i]):
        j = neighbour_lists[e]
        reach = state.float_params[ALPHA2] * (radius_widths[i] + radius_widths[j])
        if squared_distance(estimates, i, estimates, j, d) > reach * reach:
            remove_neighbour(state, j, i)
            state.work_lists[CUTS, count] = j
            count += 1
        else:
            neighbour_lists[kept] = j
            kept += 1
    state.degree[i] = kept - start
    return count


@inline
def cut_edges(state: CLUBState, i: int, d: int) -> int:
    """Cut the edges between user i and users j with ‖θ̂_i − θ̂_j‖ > α₂ (F(m_i) + F(m_j)), where F is ``shrinkage``.

    Writes the users j to row CUTS of the work lists and returns their number.
    """
    return cut_list(state, i, d) if state.int_params[GRAPH] == SPARSE else cut_bits(state, i, d)


@entry_point
def fill_lists(edges: IndexArray, start: Ints, degree: IndexArray, neighbour_lists: IndexArray) -> None:
    """Build the neighbour lists from edges (lower user, higher user), sorted by the higher user, then by the lower."""
    degree[:] = 0
    for k in range(edges.shape[0]):
        degree[edges[k, 0]] += 1
        degree[edges[k, 1]] += 1
    total = 0
    for u in range(start.size):
        start[u] = total
        total += degree[u]
    degree[:] = 0
    for k in range(edges.shape[0]):
        for side in range(2):
            u = edges[k, side]
            neighbour_lists[start[u] + degree[u]] = edges[k, 1 - side]
            degree[u] += 1


@inline
def append_neighbour(
    start: Ints, degree: IndexArray, list_capacity: Ints, neighbour_lists: IndexArray, u: int, v: int
) -> None:
    """Append user v to the neighbour list of user u. A full list moves to the end of the array with double capacity."""
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
    """Add the edges of new users to the neighbour lists. ``edges`` has the order that ``fill_lists`` requires.

    The array ``neighbour_lists`` must have enough capacity.
    """
    for k in range(edges.shape[0]):
        append_neighbour(start, degree, list_capacity, neighbour_lists, edges[k, 0], edges[k, 1])
        append_neighbour(start, degree, list_capacity, neighbour_lists, edges[k, 1], edges[k, 0])


@entry_point
def list_edges(state: CLUBState, edges: IndexArray) -> None:
    """Write the edges that were not cut to ``edges`` (edges, 2), in the order that ``fill_lists`` requires."""
    count = 0
    for high in range(state.list_start.size):
        for e in range(state.list_start[high], state.list_start[high] + state.degree[high]):
            if state.neighbour_lists[e] < high:
                edges[count, 0] = state.neighbour_lists[e]
                edges[count, 1] = high
                count += 1

"""The components of CLUB's graph: the estimate that each shares, and what is left when one falls apart."""

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.club.graph import expand, label_components, seen, start_search, start_second, walk
from locb.kernels.club.state import COMPLETE, CUTS, GRAPH, N_COMPONENTS, QUEUE, SPARSE, CLUBState
from locb.kernels.common.cancellation import needs_recomputation, record_peaks
from locb.kernels.common.cholesky import solve_ridge


@no_alloc
def recompute_sums(state: CLUBState, name: int, first: int, count: int, d: int) -> None:
    """The sums of a component from those of its users, who are in the queue."""
    total, sums = state.cluster_sums, state.sums
    for q in range(total.shape[1]):
        total[name, q] = 0.0
    for place in range(first, first + count):
        u = state.work_lists[QUEUE, place]
        for q in range(total.shape[1]):
            total[name, q] += sums[u, q]
    for q in range(3):
        state.peak_magnitudes[name, q] = 0.0
    record_peaks(state.peak_magnitudes, total, name, count, d)


@entry_point
def rebuild_components(state: CLUBState, dim: int) -> None:
    """Find all components, and their estimates from the users' sums, in a state without room for users to come."""
    room = np.empty((2 * dim, dim))
    total, component = state.cluster_sums, state.component
    count = label_components(state, component)
    state.int_params[N_COMPONENTS] = count
    total[:count] = 0.0
    state.sizes[:] = 0
    state.cluster_served[:] = 0
    state.peak_magnitudes[:] = 0.0
    for u in range(component.size):
        state.sizes[component[u]] += 1
        state.cluster_served[component[u]] += state.served[u]
        for q in range(total.shape[1]):
            total[component[u], q] += state.sums[u, q]
    for name in range(count):
        record_peaks(state.peak_magnitudes, total, name, state.sizes[name], dim)
        solve_ridge(total, name, state.cluster_estimates, name, room)


@inline
def root_of(parent: Ints, v: int) -> int:
    """The lowest node that v is known to be connected with."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@no_alloc
def connect(state: CLUBState, edges: IndexArray, old: int, parent: Ints) -> None:
    """Which components, and which users from ``old`` on (nodes after the components), the new edges connect."""
    names = state.int_params[N_COMPONENTS]
    for v in range(parent.size):
        parent[v] = 0 if state.int_params[GRAPH] == COMPLETE else v  # a new user of a complete graph knows everybody
    for k in range(edges.shape[0]):
        low, high = edges[k, 0], edges[k, 1]
        a = root_of(parent, state.component[low] if low < old else names + low - old)
        b = root_of(parent, names + high - old)
        parent[max(a, b)] = min(a, b)


@no_alloc
def take_row(state: CLUBState, name: int, other: int, sign: int) -> None:
    """Put the sums of one component into the row of another: in place of what is there, or (sign 1) added to it."""
    for q in range(state.cluster_sums.shape[1]):
        state.cluster_sums[name, q] = sign * state.cluster_sums[name, q] + state.cluster_sums[other, q]
        state.cluster_estimates[name, q] = state.cluster_estimates[other, q]
    for q in range(3):
        state.peak_magnitudes[name, q] = sign * state.peak_magnitudes[name, q] + state.peak_magnitudes[other, q]
    state.sizes[name] = sign * state.sizes[name] + state.sizes[other]
    state.cluster_served[name] = sign * state.cluster_served[name] + state.cluster_served[other]


@entry_point
def add_users(state: CLUBState, edges: IndexArray, old: int, new: int, dim: int) -> None:
    """Let the users from old to new − 1 in, whose rows are blank: their new edges may make one component of many.

    Names stay in order: each component has the place of the lowest name among those that it is made of. Where nothing
    becomes one, nobody but the new users is looked at.
    """
    names, component = state.int_params[N_COMPONENTS], state.component
    room = np.empty((2 * dim, dim))
    parent = np.empty(names + new - old, np.int64)
    labels = np.empty(parent.size, np.int64)
    mixed = np.zeros(parent.size, np.bool_)
    connect(state, edges, old, parent)
    count = 0
    for v in range(parent.size):
        root = root_of(parent, v)
        fresh = root == v
        labels[v] = count if fresh else labels[root]
        count += fresh
        if v < names:
            if not fresh:
                take_row(state, labels[v], v, 1)
                mixed[labels[v]] = True
            elif labels[v] != v:
                take_row(state, labels[v], v, 0)
    for name in range(min(count, names), names):
        state.sizes[name], state.cluster_served[name] = 0, 0
        for q in range(3):
            state.peak_magnitudes[name, q] = 0.0
    if mixed.any():
        for u in range(old):
            component[u] = labels[component[u]]
    for u in range(old, new):
        name = labels[names + u - old]
        component[u] = name
        if root_of(parent, names + u - old) == names + u - old:
            for q in range(state.cluster_estimates.shape[1]):
                state.cluster_estimates[name, q] = state.estimates[u, q]
                state.cluster_sums[name, q] = 0.0
            for q in range(3):
                state.peak_magnitudes[name, q] = 0.0
            state.sizes[name], state.cluster_served[name] = 0, 0
        state.sizes[name] += 1
    state.int_params[N_COMPONENTS] = count
    for name in range(count):
        if mixed[name]:
            solve_ridge(state.cluster_sums, name, state.cluster_estimates, name, room)


@no_alloc
def share_neighbour(state: CLUBState, i: int, j: int) -> bool:
    """Whether two users of a complete graph have a neighbour in common: mostly they do, and no search is needed."""
    for w in range(state.neighbour_bits.shape[1]):
        if state.neighbour_bits[i, w] & state.neighbour_bits[j, w] != 0:
            return True
    return False


@no_alloc
def part_with(state: CLUBState, old: int, first: int, count: int, room: Floats) -> None:
    """Make some users of the queue, who were of the component ``old``, one of their own."""
    d = room.shape[1]
    total = state.cluster_sums
    name = state.int_params[N_COMPONENTS]
    state.int_params[N_COMPONENTS] += 1
    record_peaks(state.peak_magnitudes, total, old, state.sizes[old], d)
    state.sizes[name] = count
    state.sizes[old] -= count
    state.cluster_served[name] = 0
    for place in range(first, first + count):
        u = state.work_lists[QUEUE, place]
        state.component[u] = name
        state.cluster_served[name] += state.served[u]
    state.cluster_served[old] -= state.cluster_served[name]
    recompute_sums(state, name, first, count, d)
    for q in range(total.shape[1]):
        total[old, q] -= total[name, q]
    solve_ridge(total, name, state.cluster_estimates, name, room)


@no_alloc
def split(state: CLUBState, i: int, n_cut: int, room: Floats) -> None:
    """After edges of user i were cut: if its component fell apart, part the pieces.

    From a reference, first user i, and from each user that was cut off, two searches go on in turns. If they meet, the
    two are connected. If one has nobody left to look at, it has seen a whole piece: the cost follows the smaller one.
    """
    n, queue, component = state.served.size, state.work_lists, state.component
    old, reference = component[i], i
    begun, fell = False, False
    head, count = 0, 1
    for c in range(n_cut):
        j = queue[CUTS, c]
        if component[j] != old:
            continue
        if state.int_params[GRAPH] == COMPLETE and share_neighbour(state, reference, j):
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
            if state.int_params[GRAPH] == SPARSE:
                state.search_marks[n + 1] = state.search_marks[n]
        # What the second search has seen is the reference's now.
        for q in range(end + 1, n):
            queue[QUEUE, count] = queue[QUEUE, q]
            count += 1
    if not fell:
        return
    if needs_recomputation(state.peak_magnitudes, state.cluster_sums, state.sums, old, state.sizes[old], room.shape[1]):
        recompute_sums(state, old, 0, walk(state, reference), room.shape[1])
    solve_ridge(state.cluster_sums, old, state.cluster_estimates, old, room)

"""The connected components of CLUB's graph: their shared estimates, splits, and merges when users are added.

Terms and symbols are defined in ``locb.kernels.club.state`` and ``locb.kernels``.
"""

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.club.graph import (
    collect_component,
    expand_user,
    is_visited,
    label_components,
    start_search,
    start_second_search,
)
from locb.kernels.club.state import COMPLETE, CUTS, GRAPH, N_COMPONENTS, QUEUE, SPARSE, CLUBState
from locb.kernels.common.cancellation import needs_recomputation, record_peaks
from locb.kernels.common.linear_algebra import solve_ridge


@no_alloc
def recompute_sums(state: CLUBState, c: int, first: int, count: int, d: int) -> None:
    """Recompute the sums of component c from its ``count`` users, who are in the queue from index ``first`` on."""
    total, sums = state.cluster_sums, state.sums
    for q in range(total.shape[1]):
        total[c, q] = 0.0
    for k in range(first, first + count):
        u = state.work_lists[QUEUE, k]
        for q in range(total.shape[1]):
            total[c, q] += sums[u, q]
    for q in range(3):
        state.peak_magnitudes[c, q] = 0.0
    record_peaks(state.peak_magnitudes, total, c, count, d)


@entry_point
def rebuild_components(state: CLUBState, dim: int) -> None:
    """Find all components and compute their estimates from the users' sums. The capacity N must equal n."""
    workspace = np.empty((2 * dim, dim))
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
    for c in range(count):
        record_peaks(state.peak_magnitudes, total, c, state.sizes[c], dim)
        solve_ridge(total, c, state.cluster_estimates, c, workspace)


@inline
def find_root(parent: Ints, v: int) -> int:
    """Return the root of node v in the union-find forest ``parent``: the lowest node of the tree that contains v."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@no_alloc
def connect(state: CLUBState, edges: IndexArray, old: int, parent: Ints) -> None:
    """Fill the union-find forest ``parent``, which connects the components and the new users by the new ``edges``.

    The first nodes are the components, and the following nodes are the users from ``old`` on. A row of ``edges`` holds
    the lower and the higher of two users; the higher user is new.
    """
    n_components = state.int_params[N_COMPONENTS]
    for v in range(parent.size):
        # In a complete graph, a new user connects all components.
        parent[v] = 0 if state.int_params[GRAPH] == COMPLETE else v
    for k in range(edges.shape[0]):
        low, high = edges[k, 0], edges[k, 1]
        a = find_root(parent, state.component[low] if low < old else n_components + low - old)
        b = find_root(parent, n_components + high - old)
        parent[max(a, b)] = min(a, b)


@no_alloc
def copy_component(state: CLUBState, c: int, source: int, keep: int) -> None:
    """Copy component ``source`` to row c of the arrays. If ``keep`` is 1 instead of 0, merge it into component c.

    A merge adds sums and counts. The caller must recompute the estimate of the merged component.
    """
    for q in range(state.cluster_sums.shape[1]):
        state.cluster_sums[c, q] = keep * state.cluster_sums[c, q] + state.cluster_sums[source, q]
        state.cluster_estimates[c, q] = state.cluster_estimates[source, q]
    for q in range(3):
        state.peak_magnitudes[c, q] = keep * state.peak_magnitudes[c, q] + state.peak_magnitudes[source, q]
    state.sizes[c] = keep * state.sizes[c] + state.sizes[source]
    state.cluster_served[c] = keep * state.cluster_served[c] + state.cluster_served[source]


@entry_point
def add_users(state: CLUBState, edges: IndexArray, old: int, new: int, dim: int) -> None:
    """Add the users from ``old`` to ``new`` − 1, and merge the components that their ``edges`` connect.

    The rows of the new users must hold initial values. The order of the components is kept: a merged component takes
    the lowest number among the components that it consists of. If no components merge, only the new users are visited.
    """
    n_components, component = state.int_params[N_COMPONENTS], state.component
    workspace = np.empty((2 * dim, dim))
    parent = np.empty(n_components + new - old, np.int64)
    labels = np.empty(parent.size, np.int64)
    merged = np.zeros(parent.size, np.bool_)
    connect(state, edges, old, parent)
    count = 0
    for v in range(parent.size):
        root = find_root(parent, v)
        is_root = root == v
        labels[v] = count if is_root else labels[root]
        count += is_root
        if v < n_components:
            if not is_root:
                copy_component(state, labels[v], v, 1)
                merged[labels[v]] = True
            elif labels[v] != v:
                copy_component(state, labels[v], v, 0)
    for c in range(min(count, n_components), n_components):
        state.sizes[c], state.cluster_served[c] = 0, 0
        for q in range(3):
            state.peak_magnitudes[c, q] = 0.0
    if merged.any():
        for u in range(old):
            component[u] = labels[component[u]]
    for u in range(old, new):
        c = labels[n_components + u - old]
        component[u] = c
        if find_root(parent, n_components + u - old) == n_components + u - old:
            for q in range(state.cluster_estimates.shape[1]):
                state.cluster_estimates[c, q] = state.estimates[u, q]
                state.cluster_sums[c, q] = 0.0
            for q in range(3):
                state.peak_magnitudes[c, q] = 0.0
            state.sizes[c], state.cluster_served[c] = 0, 0
        state.sizes[c] += 1
    state.int_params[N_COMPONENTS] = count
    for c in range(count):
        if merged[c]:
            solve_ridge(state.cluster_sums, c, state.cluster_estimates, c, workspace)


@no_alloc
def share_neighbour(state: CLUBState, i: int, j: int) -> bool:
    """Return whether two users of a complete graph have a common neighbour, and so are in the same component."""
    for w in range(state.neighbour_bits.shape[1]):
        if state.neighbour_bits[i, w] & state.neighbour_bits[j, w] != 0:
            return True
    return False


@no_alloc
def split_off(state: CLUBState, old: int, first: int, count: int, workspace: Floats) -> None:
    """Move ``count`` users, in the queue from index ``first`` on, from component ``old`` to a new component."""
    d = workspace.shape[1]
    total = state.cluster_sums
    new = state.int_params[N_COMPONENTS]
    state.int_params[N_COMPONENTS] += 1
    record_peaks(state.peak_magnitudes, total, old, state.sizes[old], d)
    state.sizes[new] = count
    state.sizes[old] -= count
    state.cluster_served[new] = 0
    for k in range(first, first + count):
        u = state.work_lists[QUEUE, k]
        state.component[u] = new
        state.cluster_served[new] += state.served[u]
    state.cluster_served[old] -= state.cluster_served[new]
    recompute_sums(state, new, first, count, d)
    for q in range(total.shape[1]):
        total[old, q] -= total[new, q]
    solve_ridge(total, new, state.cluster_estimates, new, workspace)


@no_alloc
def split_component(state: CLUBState, i: int, n_cut: int, workspace: Floats) -> None:
    """Split the component of user i into its connected parts, after ``n_cut`` edges of i were cut.

    For each user j whose edge was cut, two breadth-first searches alternate: the reference search, which starts at user
    i, and a second search, which starts at j. If the searches meet, i and j are still connected. If one search ends, it
    has visited a whole part. The time is therefore proportional to the size of the smaller part.
    """
    n, queue, component = state.served.size, state.work_lists, state.component
    old, reference = component[i], i
    started, was_split = False, False
    head, count = 0, 1  # the reference search has visited queue[:count] and expanded queue[:head]
    for c in range(n_cut):
        j = queue[CUTS, c]
        if component[j] != old:
            continue
        if state.int_params[GRAPH] == COMPLETE and share_neighbour(state, reference, j):
            continue
        if not started:
            start_search(state, reference)
            started = True
        if is_visited(state, j):
            continue
        start_second_search(state, j)
        second_head, end = (
            n - 1,
            n - 2,
        )  # the second search has visited queue[end + 1 :] and expanded queue[second_head + 1 :]
        effort, second_effort = 0, 0
        met = False
        while not met and head < count and second_head > end:
            if effort <= second_effort:
                count, n_read, met = expand_user(state, queue[QUEUE, head], False, count)
                effort += n_read
                head += 0 if met else 1
            else:
                end, n_read, met = expand_user(state, queue[QUEUE, second_head], True, end)
                second_effort += n_read
                second_head -= 0 if met else 1
        was_split = was_split or not met
        if not met and second_head == end:
            split_off(state, old, end + 1, n - 1 - end, workspace)
            continue
        if not met:
            split_off(state, old, 0, count, workspace)
            reference = j
            head, count = 0, 0
            if state.int_params[GRAPH] == SPARSE:
                state.search_marks[n + 1] = state.search_marks[n]
        # The reference search takes over the users that the second search has visited.
        for k in range(end + 1, n):
            queue[QUEUE, count] = queue[QUEUE, k]
            count += 1
    if not was_split:
        return
    d, sums = workspace.shape[1], state.cluster_sums
    if needs_recomputation(state.peak_magnitudes, sums, state.sums, old, state.sizes[old], d):
        recompute_sums(state, old, 0, collect_component(state, reference), d)
    solve_ridge(sums, old, state.cluster_estimates, old, workspace)

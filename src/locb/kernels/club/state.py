"""CLUB's state arrays and work arrays, and the constants that name their entries.

CLUB keeps a graph of users and cuts edges between users whose estimates differ. The users of a connected *component* of
the graph share one estimate. Components are searched breadth first, by two searches that alternate (see
``components.split_component``). Symbols are defined in ``locb.kernels``.
"""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints, Words

T, N_COMPONENTS, TIES, GRAPH = 0, 1, 2, 3  # entries of ``int_params``
ALPHA, ALPHA2, SCREEN_WIDTH = 0, 1, 2  # entries of ``float_params``
COMPLETE, SPARSE = 0, 1  # values of ``int_params[GRAPH]``: how the graph is stored
QUEUE, CUTS = 0, 1  # rows of ``work_lists``
UNVISITED, SECOND = 0, 1  # rows of ``search_bits``
NO_BITS = np.uint64(0)
ALL_BITS = ~NO_BITS


class CLUBState(NamedTuple):
    """The arrays of CLUB's state. The capacity N, n, d, p and m are defined in ``locb.kernels``.

    A complete graph is stored as a bit matrix, a sparse graph as neighbour lists in one array. Components are numbered
    0, 1, …; the arrays of components have N rows too, because there are at most as many components as users.
    """

    estimates: Floats  # (N, d + p) θ̂ and A⁻¹ of each user
    sums: Floats  # (N, d + p) b and A − I of each user
    served: Ints  # (N,) m: rounds per user
    radius_widths: Floats  # (N,) F(m), computed by ``shrinkage``
    neighbour_bits: Words  # (N, ⌈N/64⌉) bit sets: the edges; (0, 0) if the graph is sparse
    list_start: Ints  # (N,) start of each user's list in neighbour_lists; (0,) if the graph is complete
    degree: IndexArray  # (N,) length of each user's list
    list_capacity: Ints  # (N + 1,) entries reserved for each user's list; the last entry is their total
    neighbour_lists: IndexArray  # (entries,) each user's neighbours, ascending
    component: Ints  # (N,) component of each user
    cluster_estimates: Floats  # (N, d + p) θ̂ and A⁻¹ of each component
    cluster_sums: Floats  # (N, d + p) b and A − I of each component
    sizes: Ints  # (N,) users in each component
    cluster_served: Ints  # (N,) rounds in which users of the component were served; not saved
    peak_magnitudes: Floats  # (N, 3) largest size, trace of A − I and Σ|b| since the sums were last recomputed
    int_params: Ints  # t, number of components, tie rule, COMPLETE or SPARSE
    float_params: Floats  # α; α₂, the factor of the distance at which edges are cut; width of the safety screen, or 0
    generator: Words  # (1,) random generator for ties
    work_lists: Ints  # (2, N) not saved: the search queue, and the users whose edges were cut in this round
    # (N + 2,) for a sparse graph, not saved. Each search has a number, its mark. The first N entries are the mark of
    # the last search that visited each user, followed by the newest mark and by the mark of the reference search.
    search_marks: Ints
    search_bits: Words  # (2, ⌈N/64⌉) for a complete graph, not saved: unvisited users; users of the second search


class CLUBScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms."""

    arms: Floats  # (k, d + p) x and x xᵀ of each arm, from ``expand_contexts``
    scores: Floats  # (k,)
    step: Floats  # (d + p,) change of an estimate
    workspace: Floats  # (2d, d) for ``solve_ridge``


def allocate_scratch(state: CLUBState, n_arms: int, dim: int) -> CLUBScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return CLUBScratch(np.empty((n_arms, columns)), np.empty(n_arms), np.empty(columns), np.empty((2 * dim, dim)))

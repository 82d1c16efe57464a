"""CLUB's state arrays and workspace, and the constants that name their entries."""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints, Words
from locb.common.jit import alloc

T, N_COMPONENTS, TIES, GRAPH = 0, 1, 2, 3  # entries of ``int_params``
ALPHA, ALPHA2 = 0, 1  # entries of ``float_params``
COMPLETE, SPARSE = 0, 1  # values of GRAPH: how the graph is stored
QUEUE, CUTS = 0, 1  # rows of ``work_lists``
UNVISITED, SECOND = 0, 1  # rows of ``search_bits``
NO_BITS = np.uint64(0)
ALL_BITS = ~NO_BITS


class CLUBState(NamedTuple):
    """The state of CLUB. c: capacity for users (c ≥ n, so that users can be added), p = d (d + 1) / 2.

    A complete graph is stored as a bit matrix, a sparse one as neighbour lists in one array. Components are numbered
    0, 1, …; the arrays of components have c rows too, because there are at most as many components as users.
    """

    estimates: Floats  # (c, d + p) θ̂ and A⁻¹ of each user
    sums: Floats  # (c, d + p) b and A − I of each user
    served: Ints  # (c,) m: rounds per user
    radius_widths: Floats  # (c,) F(m), computed by ``shrinkage``
    neighbour_bits: Words  # (c, ⌈c/64⌉) bit sets: the edges; (0, 0) if the graph is sparse
    list_start: Ints  # (c,) start of each user's list in neighbour_lists; (0,) if the graph is complete
    degree: IndexArray  # (c,) length of the list
    list_capacity: Ints  # (c + 1,) entries reserved for the list; the last entry is the total of all reservations
    neighbour_lists: IndexArray  # (entries,) each user's neighbours, ascending
    component: Ints  # (c,) component of each user
    cluster_estimates: Floats  # (c, d + p) θ̂ and A⁻¹ of each component
    cluster_sums: Floats  # (c, d + p) b and A − I of each component
    sizes: Ints  # (c,) users in each component
    cluster_served: Ints  # (c,) rounds in which users of the component were served; not saved
    peak_magnitudes: Floats  # (c, 3) largest size, trace of A − I and Σ|b| since the sums were last recomputed
    int_params: Ints  # t, number of components, tie rule, graph storage
    float_params: Floats  # α, α₂
    generator: Words  # (1,) random generator for ties
    work_lists: Ints  # (2, c) workspace: the search queue, and the users whose edges were cut in this round
    # Workspace of a sparse graph, (c + 2,): the mark of the last search that visited each user; then the newest mark,
    # and the first mark of the reference search.
    search_marks: Ints
    search_bits: Words  # (2, ⌈c/64⌉) workspace of a complete graph: unvisited users, users visited by the second search


class CLUBScratch(NamedTuple):
    """Workspace of one round, so that a loop over rounds allocates nothing."""

    arms: Floats  # (k, d + p) x and x xᵀ, packed
    scores: Floats  # (k,)
    step: Floats  # (d + p,) change of an estimate
    workspace: Floats  # (2d, d) for solve_ridge


@alloc
def allocate_scratch(state: CLUBState, n_arms: int, dim: int) -> CLUBScratch:
    """Allocate the workspace of rounds with ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return CLUBScratch(np.empty((n_arms, columns)), np.empty(n_arms), np.empty(columns), np.empty((2 * dim, dim)))

"""CLUB's state arrays, and the constants that name their columns."""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints, Words
from locb.common.jit import alloc

T, N_COMPONENTS, TIES, GRAPH = 0, 1, 2, 3
ALPHA, ALPHA2 = 0, 1
COMPLETE, SPARSE = 0, 1
QUEUE, CUTS = 0, 1
LEFT, BACK = 0, 1
NOTHING = np.uint64(0)
EVERYTHING = ~NOTHING


class CLUBState(NamedTuple):
    """What CLUB knows. c: rows kept for users (c ≥ n, so that users can join). Components are named 0, 1, …"""

    estimates: Floats  # (c, d + p) each user's own θ̂ and A⁻¹
    sums: Floats  # (c, d + p) each user's own b and A − I
    served: Ints  # (c,) m
    radius_widths: Floats  # (c,) F(m)
    neighbour_bits: Words  # (c, ⌈c/64⌉) bits: the edges; (0, 0) if the graph is sparse
    list_start: Ints  # (c,) where each user's list begins; (0,) if the graph is complete
    degree: IndexArray  # (c,) its length
    list_capacity: Ints  # (c + 1,) places that the list may take; the last is how many of all are taken
    neighbour_lists: IndexArray  # (places,) each user's neighbours, ascending
    component: Ints  # (c,)
    cluster_estimates: Floats  # (c, d + p) θ̂ and A⁻¹ of the component, in the row of its name
    cluster_sums: Floats  # (c, d + p) its b and A − I
    sizes: Ints  # (c,) its users
    cluster_served: Ints  # (c,) rounds in which they were served, all together; not saved
    peak_magnitudes: Floats  # (c, 3) the most users, trace of A − I and Σ|b| it had since it was last added up
    int_params: Ints  # t, names in use, ties, graph
    float_params: Floats  # α, α₂
    generator: Words  # (1,) for random ties
    work_lists: Ints  # (2, c) for work within one round: a queue, and the users whose edges were cut
    search_marks: Ints  # (c + 2,) for work, if sparse: who saw a user last; the newest mark, the reference's first mark
    search_bits: Words  # (2, ⌈c/64⌉) for work, if complete: users whom no search has seen, users whom the second has


class CLUBScratch(NamedTuple):
    """Room for one round."""

    arms: Floats  # (k, d + p)
    scores: Floats  # (k,)
    step: Floats  # (d + p,)
    room: Floats  # (2d, d)


@alloc
def allocate_scratch(state: CLUBState, n_arms: int, dim: int) -> CLUBScratch:
    """Room for rounds of ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return CLUBScratch(np.empty((n_arms, columns)), np.empty(n_arms), np.empty(columns), np.empty((2 * dim, dim)))

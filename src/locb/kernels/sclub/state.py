"""SCLUB's state arrays, and the constants that name their columns."""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints, Words
from locb.common.jit import alloc

# Places in the two short arrays of a state, and in the columns of others.
T, PHASE, PHASE_END, N_SLOTS, N_QUEUED, TIES = 0, 1, 2, 3, 4, 5
ALPHA, ALPHA_THETA, ALPHA_P, MIN_FREQUENCY_GAP = 0, 1, 2, 3
NEXT, PREVIOUS, HEAD = 0, 1, 2
LOW, HIGH = 0, 1
QUEUE, PARTNER, MERGED = 0, 1, 2
BLOCK = 64  # slots that are looked at together
NO_GAP = 1e300
# A first look at distances is taken in float32, so that it is quick, and with slack for its rounding.
EXCLUDED = 1e18  # where a cluster that must not merge now seems to be
FARTHEST = 1e15  # no other seems to be farther than this
SLACK = np.float32(1.001)


class SCLUBState(NamedTuple):
    """What SCLUB knows. A cluster lives in a slot; slots are reused, the lowest free one first."""

    estimates: Floats  # (n, d + p) each user's own θ̂ and A⁻¹
    sums: Floats  # (n, d + p) each user's own b and A − I
    served: Ints  # (n,) m
    checked: Ints  # (n,) 1 once served in this phase
    slot: Ints  # (n,) the user's cluster
    links: (
        IndexArray  # (n, 3) the next and the last user of the same cluster, in a circle; some user of a slot's cluster
    )
    cluster_estimates: Floats  # (n, d + p) θ̂ and A⁻¹ of the cluster in each slot
    cluster_sums: Floats  # (n, d + p) its b and S
    cluster_served: Ints  # (n,) its T
    sizes: Ints  # (n,) its users; 0 for a free slot
    unchecked: Ints  # (n,) its users not yet served in this phase
    queued: Ints  # (n,) 1 if it may have come close to another since the last look
    served_range: Ints  # (n, 2) no user of it was served less often, or more often, than this
    peak_magnitudes: Floats  # (n, 3) the most users, trace of S and Σ|b| it had since it was last added up
    frequency_gap: (
        Floats  # (n,) the smallest difference of mean rounds that alone kept it from merging when it was looked at
    )
    phase_theta: Floats  # (n, d) its θ̂ when the phase began
    phase_served: Ints  # (n,) its T then
    int_params: Ints  # t, phase, last round of the phase, slots in use, clusters in the queue, ties
    float_params: Floats  # α, α_θ, α_p; no cluster's wake is smaller than this
    generator: Words  # (1,) for random ties
    work_lists: (
        Ints  # (3, n) not saved: a queue of the clusters that have moved, whom each is to merge with, who has grown
    )
    scan_points: (
        Floats  # (⌈n/64⌉, d + 1, 64) float32, not saved: θ̂ and reach of 64 slots a block; AWAY if not to merge now
    )
    free_slots: Words  # (1, ⌈n/64⌉) not saved: bits of the free slots


class SCLUBScratch(NamedTuple):
    """Room for one round."""

    arms: Floats  # (k, d + p)
    scores: Floats  # (k,)
    step: Floats  # (d + p,)
    room: Floats  # (2d, d)
    near: Floats  # (64,) float32


@alloc
def allocate_scratch(state: SCLUBState, n_arms: int, dim: int) -> SCLUBScratch:
    """Room for rounds of ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return SCLUBScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty(columns),
        np.empty((2 * dim, dim)),
        np.empty(BLOCK, np.float32),
    )

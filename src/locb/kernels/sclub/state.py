"""SCLUB's state arrays and workspace, and the constants that name their entries."""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints, Words
from locb.common.jit import alloc

T, PHASE, PHASE_END, N_SLOTS, N_QUEUED, TIES = 0, 1, 2, 3, 4, 5  # entries of ``int_params``
ALPHA, ALPHA_THETA, ALPHA_P, MIN_FREQUENCY_GAP = 0, 1, 2, 3  # entries of ``float_params``
NEXT, PREVIOUS, HEAD = 0, 1, 2  # columns of ``links``
LOW, HIGH = 0, 1  # columns of ``served_range``
QUEUE, PARTNER, MERGED = 0, 1, 2  # rows of ``work_lists``
NO_GAP = 1e300  # in ``frequency_gap``: frequencies alone do not keep the cluster from merging
# Candidates for merging are first found by a fast float32 scan, with a tolerance for its rounding errors.
BLOCK = 64  # slots per block of the scan
EXCLUDED = 1e18  # first coordinate of a slot that must not merge now: far away from every cluster
MAX_COORDINATE = 1e15  # coordinates of all other clusters are clipped to this
TOLERANCE = np.float32(1.001)


class SCLUBState(NamedTuple):
    """The state of SCLUB. Each cluster occupies a slot; the lowest free slot is reused first. p = d (d + 1) / 2."""

    estimates: Floats  # (n, d + p) θ̂ and A⁻¹ of each user
    sums: Floats  # (n, d + p) b and A − I of each user
    served: Ints  # (n,) m: rounds per user
    checked: Ints  # (n,) 1 once the user was served in this phase
    slot: Ints  # (n,) slot of the user's cluster
    # (n, 3) circular doubly linked list of each cluster: next and previous user; in the row of a slot, its first user.
    links: IndexArray
    cluster_estimates: Floats  # (n, d + p) θ̂ and A⁻¹ of the cluster in each slot
    cluster_sums: Floats  # (n, d + p) b and S = A − I of the cluster
    cluster_served: Ints  # (n,) the paper's T: rounds in which users of the cluster were served
    sizes: Ints  # (n,) users in the cluster; 0 for a free slot
    unchecked: Ints  # (n,) users of the cluster who were not yet served in this phase
    queued: Ints  # (n,) 1 if the cluster is in the queue, because it may have come close to another one
    served_range: Ints  # (n, 2) bounds: each user of the cluster was served at least and at most this often
    peak_magnitudes: Floats  # (n, 3) largest size, trace of S and Σ|b| since the sums were last recomputed
    frequency_gap: Floats  # (n,) smallest difference of mean rounds that was the only reason against a merge, or NO_GAP
    phase_theta: Floats  # (n, d) θ̂ of the cluster at the start of the phase
    phase_served: Ints  # (n,) its T at the start of the phase
    int_params: Ints  # t, phase, last round of the phase, slots in use, length of the queue, tie rule
    float_params: Floats  # α, α_θ, α_p; a lower bound of all frequency gaps
    generator: Words  # (1,) random generator for ties
    work_lists: Ints  # (3, n) not saved: the queue of clusters, the merge partner of each, slots that merged this round
    scan_points: Floats  # (⌈n/64⌉, d + 1, 64) float32, not saved: θ̂ and reach of 64 slots per block, or EXCLUDED
    free_slots: Words  # (1, ⌈n/64⌉) not saved: bit set of the free slots


class SCLUBScratch(NamedTuple):
    """Workspace of one round, so that a loop over rounds allocates nothing."""

    arms: Floats  # (k, d + p) x and x xᵀ, packed
    scores: Floats  # (k,)
    step: Floats  # (d + p,) change of an estimate
    workspace: Floats  # (2d, d) for solve_ridge
    distances: Floats  # (64,) float32: squared distances to the slots of one block


@alloc
def allocate_scratch(state: SCLUBState, n_arms: int, dim: int) -> SCLUBScratch:
    """Allocate the workspace of rounds with ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return SCLUBScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty(columns),
        np.empty((2 * dim, dim)),
        np.empty(BLOCK, np.float32),
    )

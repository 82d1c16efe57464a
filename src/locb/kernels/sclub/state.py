"""SCLUB's state arrays and work arrays, and the constants that name their entries.

- *Slot*: index of a cluster in the arrays. A merge frees a slot; a new cluster takes the lowest free slot.
- *Phase*: phase s lasts 2^s rounds. A user is *checked* once it was served in the current phase. A cluster is checked
  once all its users are; only checked clusters merge.
- *Frequency* of a user: the share m / t of the rounds in which the user was served. Frequency of a cluster: the mean
  over its users.
- *Reach* of a cluster: ½ α_θ F(T), where T is its number of rounds and F is ``shrinkage``. Two clusters merge if the
  distance of their estimates is below the sum of their reaches, and their frequencies differ by less than α_p F(t).
- *Queue*: the clusters that have changed and must be compared with the other clusters.
- *Scan points*: float32 copies of estimates and reaches, which find candidates for a merge quickly. The exact test
  follows.

Further symbols are defined in ``locb.kernels``.
"""

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints, Words

T, PHASE, PHASE_END, N_SLOTS, N_QUEUED, TIES = 0, 1, 2, 3, 4, 5  # entries of ``int_params``
ALPHA, ALPHA_THETA, ALPHA_P, SCREEN_WIDTH, MIN_FREQUENCY_GAP = 0, 1, 2, 3, 4  # entries of ``float_params``
NEXT, PREVIOUS, HEAD = 0, 1, 2  # columns of ``links``
LOW, HIGH = 0, 1  # columns of ``served_range``
QUEUE, PARTNER, MERGED = 0, 1, 2  # rows of ``work_lists``
NO_GAP = 1e300  # value of ``frequency_gap`` if no merge failed because of the frequencies alone
BLOCK = 64  # slots per block of ``scan_points``
EXCLUDED = 1e18  # first coordinate of a slot that must not merge now: far away from every cluster
MAX_COORDINATE = 1e15  # largest absolute coordinate of all other slots; larger coordinates are clipped
TOLERANCE = np.float32(1.001)  # factor of the squared reach that allows for rounding errors of the float32 scan


class SCLUBState(NamedTuple):
    """The arrays of SCLUB's state. There are N slots, because there are at most as many clusters as users."""

    estimates: Floats  # (N, d + p) θ̂ and A⁻¹ of each user
    sums: Floats  # (N, d + p) b and A − I of each user
    served: Ints  # (N,) m: rounds per user
    checked: Ints  # (N,) 1 if the user was served in this phase, else 0
    slot: Ints  # (N,) slot of the user's cluster
    # (N, 3) circular doubly linked list of the users of each cluster. Columns 0 and 1 of the row of a user: the next
    # and the previous user. Column 2 of the row of a slot: the first user of its cluster.
    links: IndexArray
    cluster_estimates: Floats  # (N, d + p) θ̂ and A⁻¹ of the cluster in each slot
    cluster_sums: Floats  # (N, d + p) b and S = A − I of the cluster in each slot
    cluster_served: Ints  # (N,) T of each cluster: rounds in which its users were served
    sizes: Ints  # (N,) users in each cluster; 0 for a free slot
    unchecked: Ints  # (N,) users of each cluster who were not yet served in this phase
    queued: Ints  # (N,) 1 if the cluster is in the queue, else 0
    served_range: Ints  # (N, 2) lower bound and upper bound of m over the users of each cluster
    peak_magnitudes: Floats  # (N, 3) largest size, trace of S and Σ|b| since the sums were last recomputed
    # (N,) smallest difference of mean rounds per user, over the merges that failed only because of the frequencies.
    frequency_gap: Floats
    phase_theta: Floats  # (N, d) θ̂ of each cluster at the start of the phase
    phase_served: Ints  # (N,) T of each cluster at the start of the phase
    int_params: Ints  # t, phase, last round of the phase, highest slot in use + 1, length of the queue, tie rule
    float_params: (
        Floats  # α, α_θ, α_p, width of the safety screen or 0, and a lower bound of all entries of frequency_gap
    )
    generator: Words  # (1,) random generator for ties
    work_lists: Ints  # (3, N) not saved: queue, merge partner of each queued cluster, slots that merged in this round
    scan_points: Floats  # (⌈N/64⌉, d + 1, 64) float32, not saved: θ̂ and reach of 64 slots per block, or EXCLUDED
    free_slots: Words  # (1, ⌈N/64⌉) not saved: bit set of the free slots


class SCLUBScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms."""

    arms: Floats  # (k, d + p) x and x xᵀ of each arm, from ``expand_contexts``
    scores: Floats  # (k,)
    step: Floats  # (d + p,) change of an estimate
    workspace: Floats  # (2d, d) for ``solve_ridge``
    distances: Floats  # (64,) float32: squared distances to the slots of one block

"""SCLUB's state: initial arrays, new rows for users who are added later, and arrays that are not saved.

``locb.kernels.sclub.state`` defines the terms slot, queue and scan point.
"""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Floats, Words
from locb.kernels.common.bit_sets import ONE, n_words, pack_bits, unpack_bits
from locb.kernels.sclub.merging import rebuild_scan_points
from locb.kernels.sclub.state import BLOCK, EXCLUDED, HEAD, N_QUEUED, N_SLOTS, NO_GAP, QUEUE, SCLUBState
from locb.policies.state.user_rows import grow_rows, grown_capacity, initial_estimates

NOT_SAVED = ("work_lists", "scan_points", "free_slots")  # work arrays, and arrays that follow from other arrays
# Arrays with one row per user or per slot: there are as many slots as users.
USER_ROWS = tuple(
    name for name in SCLUBState._fields if name not in (*NOT_SAVED, "int_params", "float_params", "generator")
)


def initial_state(n: int, dim: int, dtype: str, float_params: Floats, tie_rule: int, generator: Words) -> SCLUBState:
    """Return the state of n users before the first round: all users are in one cluster, in slot 0."""
    sizes = np.zeros(n, np.int64)
    sizes[0] = n
    estimates = initial_estimates(n, dim, dtype)
    cluster_estimates = np.zeros_like(estimates)  # rows of free slots are never read
    cluster_estimates[0] = estimates[0]
    users = np.arange(n)
    state = SCLUBState(
        estimates=estimates,
        sums=np.zeros_like(estimates),
        served=np.zeros(n, np.int64),
        checked=np.zeros(n, np.int64),
        slot=np.zeros(n, np.int64),
        links=np.stack([(users + 1) % n, (users - 1) % n, np.zeros(n)], axis=1).astype(np.int32),
        cluster_estimates=cluster_estimates,
        cluster_sums=np.zeros(estimates.shape),
        cluster_served=np.zeros(n, np.int64),
        sizes=sizes,
        unchecked=sizes.copy(),
        queued=np.zeros(n, np.int64),
        served_range=np.zeros((n, 2), np.int64),
        peak_magnitudes=np.zeros((n, 3)),
        frequency_gap=np.full(n, NO_GAP),
        phase_theta=np.zeros((n, dim)),
        phase_served=np.zeros(n, np.int64),
        int_params=np.array([0, 0, 0, 1, 0, tie_rule]),
        float_params=float_params,
        generator=generator,
        work_lists=np.zeros((3, 0), np.int64),
        scan_points=np.zeros((0, 0, 64), "float32"),
        free_slots=np.zeros((1, 0), np.uint64),
    )
    return rebuild_derived(state)


def grow(state: SCLUBState, needed: int, dim: int) -> SCLUBState:
    """Return the state with a capacity of at least ``needed`` users. The new rows hold initial values."""
    rows = grown_capacity(len(state.served), needed)
    initial_values = {"estimates": initial_estimates(1, dim), "frequency_gap": NO_GAP}
    return rebuild_derived(state._replace(**grow_rows(state, USER_ROWS, rows, initial_values)))


def add_singletons(state: SCLUBState, old: int, new: int) -> None:
    """Put each of the users from ``old`` to ``new`` − 1 into a new cluster of one user, in the lowest free slots."""
    count, users = new - old, np.arange(old, new)
    words = np.flatnonzero(state.free_slots[0])[:count]  # these words suffice, because each has at least one free slot
    bits = np.argwhere(unpack_bits(state.free_slots[0, words, None], 64))[:count]
    slots = 64 * words[bits[:, 0]] + bits[:, 1]
    np.bitwise_xor.at(state.free_slots[0], slots >> 6, ONE << (slots & 63).astype(np.uint64))
    state.slot[users] = slots
    state.links[users, :2] = users[:, None]
    state.links[slots, HEAD] = users
    state.cluster_estimates[slots] = state.estimates[users]
    for name in ("cluster_sums", "cluster_served", "served_range", "peak_magnitudes", "phase_theta", "phase_served"):
        getattr(state, name)[slots] = 0
    state.sizes[slots] = 1
    state.unchecked[slots] = 1
    state.frequency_gap[slots] = NO_GAP
    state.int_params[N_SLOTS] = max(state.int_params[N_SLOTS], slots.max(initial=-1) + 1)


def enqueue_cluster(state: SCLUBState, c: int) -> None:
    """Add the cluster in slot c to the queue, unless it is already in the queue."""
    if state.queued[c] == 0:
        state.queued[c] = 1
        state.work_lists[QUEUE, state.int_params[N_QUEUED]] = c
        state.int_params[N_QUEUED] += 1


def rebuild_derived(state: SCLUBState) -> SCLUBState:
    """Return the state with the arrays in ``NOT_SAVED`` recomputed from the other arrays."""
    n, dim = state.phase_theta.shape
    work_lists = np.zeros((3, n), np.int64)
    queue = np.flatnonzero(state.queued)
    work_lists[QUEUE, : len(queue)] = queue
    scan_points = np.full((n_words(n), dim + 1, BLOCK), EXCLUDED, "float32")
    free_slots = pack_bits(state.sizes[np.newaxis] == 0)
    state = state._replace(work_lists=work_lists, scan_points=scan_points, free_slots=free_slots)
    rebuild_scan_points(state)
    return state

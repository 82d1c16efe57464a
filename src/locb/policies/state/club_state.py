"""CLUB's state: initial arrays, and new rows for users who are added later."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.kernels.club.components import rebuild_components
from locb.kernels.club.state import CLUBState
from locb.kernels.common.bit_sets import n_words
from locb.policies.state.club_graph import initial_graph
from locb.policies.state.user_rows import grow_rows, initial_estimates

# Not saved: work arrays, counts that follow from other arrays, and neighbour lists, which follow from the saved edges.
NOT_SAVED = (
    "work_lists",
    "search_marks",
    "search_bits",
    "list_start",
    "degree",
    "list_capacity",
    "neighbour_lists",
    "cluster_served",
)
# Arrays with one row per user.
USER_ROWS = (
    "estimates",
    "sums",
    "served",
    "radius_widths",
    "component",
    "cluster_estimates",
    "cluster_sums",
    "sizes",
    "cluster_served",
    "peak_magnitudes",
)


def initial_state(
    n: int, dim: int, dtype: str, graph: str, seed: int, int_params: Ints, float_params: Floats, generator: Words
) -> CLUBState:
    """Return the state of n users before the first round: the initial graph and its components."""
    edges = initial_graph(n, graph, seed)  # before all allocations, because it rejects graphs that are too large
    estimates = initial_estimates(n, dim, dtype)
    state = CLUBState(
        estimates=estimates,
        sums=np.zeros_like(estimates),
        served=np.zeros(n, np.int64),
        radius_widths=np.ones(n),
        **edges,
        component=np.zeros(n, np.int64),
        cluster_estimates=np.zeros_like(estimates),
        cluster_sums=np.zeros(estimates.shape),
        sizes=np.zeros(n, np.int64),
        cluster_served=np.zeros(n, np.int64),
        peak_magnitudes=np.zeros((n, 3)),
        int_params=int_params,
        float_params=float_params,
        generator=generator,
        **_work_arrays(n),
    )
    rebuild_components(state, dim)
    return state


def grow(state: CLUBState, rows: int, dim: int) -> CLUBState:
    """Return the state with a capacity of ``rows`` users. The new rows hold initial values."""
    initial_values = {"estimates": initial_estimates(1, dim), "radius_widths": 1.0}
    names: tuple[str, ...] = USER_ROWS
    more: dict[str, Any] = {}
    if len(state.neighbour_bits):
        more["neighbour_bits"] = np.zeros((rows, n_words(rows)), np.uint64)
        more["neighbour_bits"][: len(state.neighbour_bits), : state.neighbour_bits.shape[1]] = state.neighbour_bits
    else:
        names = (*USER_ROWS, "list_start", "degree")
        more["list_capacity"] = np.zeros(rows + 1, np.int64)
        more["list_capacity"][: len(state.list_start)] = state.list_capacity[:-1]
        more["list_capacity"][-1] = state.list_capacity[-1]
    return state._replace(**grow_rows(state, names, rows, initial_values), **more, **_work_arrays(rows))


def _work_arrays(n: int) -> dict[str, Any]:
    """Return new work arrays, whose contents are not part of the state."""
    return {
        "work_lists": np.zeros((2, n), np.int64),
        "search_marks": np.zeros(n + 2, np.int64),
        "search_bits": np.zeros((2, n_words(n)), np.uint64),
    }

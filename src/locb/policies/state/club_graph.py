"""The edges of CLUB's graph: initial edges, edges of added users, and checks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locb.common.arrays import IndexArray, Words
from locb.common.validation import ParameterError, ParameterName
from locb.kernels.club.graph import add_edges, fill_lists
from locb.kernels.club.state import CLUBState
from locb.kernels.common.bit_sets import ONE, n_words, pack_bits, unpack_bits

MAX_GRAPH_BITS = 2**35  # largest bit matrix of a complete graph: 4 GiB
MAX_GRAPH_EDGES = 2**30  # largest number of edges of a random graph: 8 GiB
NO_EDGES: IndexArray = np.zeros((0, 2), np.int32)


def check_graph_size(n: int, graph: str) -> None:
    """Raise a ValueError if the graph of n users is too large to store."""
    if graph == "complete" and n * 64 * n_words(n) > MAX_GRAPH_BITS:
        size = f"{n * n_words(n) / 2**27:,.1f} GiB"
        reason = f'="complete" with {n} users needs {size} of memory, but the limit is 4 GiB: use '
        raise ParameterError("graph", reason, ParameterName("graph"), '="erdos-renyi"')
    if graph == "erdos-renyi" and 1.5 * n * math.log(n) > MAX_GRAPH_EDGES:
        raise ParameterError(
            "n_users",
            f" must be smaller, not {n}: the random graph would have about {1.5 * n * math.log(n):,.0f} edges, but the "
            f"maximum is {MAX_GRAPH_EDGES:,}",
        )


def max_users(graph: str) -> int:
    """Return the largest number of user rows to allocate: about 185,000 for a complete graph, else 2³⁰."""
    return math.isqrt(MAX_GRAPH_BITS) - 63 if graph == "complete" else MAX_GRAPH_EDGES


def initial_graph(n: int, graph: str, seed: int) -> dict[str, Any]:
    """Return the edge arrays of the initial graph: the bit matrix of a complete graph, or neighbour lists."""
    check_graph_size(n, graph)
    if graph == "erdos-renyi":
        return {"neighbour_bits": np.zeros((0, 0), np.uint64), **build_neighbour_lists(sample_edges(0, n, seed), n)}
    bits = np.zeros((n, n_words(n)), np.uint64)
    connect_to_all(bits, 0, n)
    return {"neighbour_bits": bits, **build_neighbour_lists(NO_EDGES, 0)}


def connect_to_all(bits: Words, old: int, n: int) -> None:
    """Set the bits of all edges between the users from ``old`` to n − 1 and all other users."""
    width = n_words(n)
    is_new = np.zeros((1, n), bool)
    is_new[0, old:] = True
    bits[:old, old >> 6 : width] |= pack_bits(is_new)[0, old >> 6 :]
    bits[old:n, :width] = pack_bits(np.ones((1, n), bool))
    new = np.arange(old, n)
    bits[new, new >> 6] ^= ONE << (new & 63).astype(np.uint64)


def is_symmetric(bits: Words) -> bool:
    """Return whether the bit matrix is a valid adjacency matrix: symmetric, no self-loops, no bits beyond the n users.

    Tests 512 users at a time, to limit memory.
    """
    n, width = bits.shape
    for first in range(0, width, 8):
        rows = unpack_bits(bits[64 * first : 64 * first + 512], 64 * width)
        columns = unpack_bits(bits[:, first : first + 8], 512 if first + 8 <= width else 64 * (width - first))
        if rows[:, n:].any() or not np.array_equal(rows[:, :n], columns[:, : len(rows)].T):
            return False
        if rows[:, 64 * first :].diagonal().any():
            return False
    return True


def sample_edges(old: int, n: int, seed: int) -> IndexArray:
    """Sample the edges of a random graph of n users, but only the edges with at least one user from ``old`` on.

    Returns pairs (lower user, higher user) of shape (edges, 2), sorted by the higher, then the lower user. Each pair is
    an edge with probability 3 log n / n. The gaps between sampled pairs are drawn from a geometric distribution, so
    that memory is proportional to the number of edges, not of pairs. Each call has its own generator, so a loaded
    policy samples the same edges as the policy that was saved.
    """
    begin, end = old * (old - 1) // 2, n * (n - 1) // 2
    probability = 3.0 * math.log(n) / n
    if probability >= 1.0:
        pairs = np.arange(begin, end)
    elif probability == 0.0:
        pairs = np.arange(0)
    else:
        rng = np.random.default_rng([seed, old])
        blocks = [np.array([begin - 1])]
        while blocks[-1][-1] < end:
            gaps = rng.geometric(probability, size=int(1.05 * probability * (end - blocks[-1][-1])) + 100)
            blocks.append(blocks[-1][-1] + np.cumsum(gaps))
        pairs = np.concatenate(blocks[1:]) if len(blocks) > 1 else np.arange(0)
        pairs = pairs[pairs < end]
    high = ((1.0 + np.sqrt(1.0 + 8.0 * pairs)) / 2.0).astype(np.int64)
    high -= high * (high - 1) // 2 > pairs  # the rounded square root may be one too large
    high += high * (high + 1) // 2 <= pairs
    return np.stack([pairs - high * (high - 1) // 2, high], axis=1).astype(np.int32)


def build_neighbour_lists(edges: IndexArray, n: int) -> dict[str, Any]:
    """Return the arrays of neighbour lists for edges in the order of ``sample_edges``."""
    start, degree, lists = np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(2 * len(edges), np.int32)
    fill_lists(np.ascontiguousarray(edges), start, degree, lists)
    return {
        "list_start": start,
        "degree": degree,
        "list_capacity": np.append(degree, np.int64(len(lists))),
        "neighbour_lists": lists,
    }


def append_edges(state: CLUBState, edges: IndexArray) -> CLUBState:
    """Return the state with the edges of added users appended to its neighbour lists."""
    users, added = np.unique(edges, return_counts=True)
    # The last reservation for a list of l neighbours has at most 2 l + 4 entries, and each earlier reservation has at
    # most half of the entries of the next one.
    needed = int(state.list_capacity[-1]) + int((4 * (state.degree[users] + added) + 16).sum())
    if needed > len(state.neighbour_lists):
        lists = np.zeros(max(needed, 2 * len(state.neighbour_lists)), np.int32)
        lists[: len(state.neighbour_lists)] = state.neighbour_lists
        state = state._replace(neighbour_lists=lists)
    add_edges(edges, state.list_start, state.degree, state.list_capacity, state.neighbour_lists)
    return state

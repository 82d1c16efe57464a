"""The edges of CLUB's graph: those at the start, and those of users who join."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locb.common.arrays import IndexArray, Words
from locb.kernels.club.graph import add_edges, fill_lists
from locb.kernels.club.state import CLUBState
from locb.kernels.common.bit_sets import ONE, n_words, pack_bits, unpack_bits

MAX_GRAPH_BITS = 2**35  # of a complete graph: 4 GiB
MAX_GRAPH_EDGES = 2**30  # of a random one: 8 GiB
NO_EDGES: IndexArray = np.zeros((0, 2), np.int32)


def check_graph_size(n: int, graph: str) -> None:
    """A ValueError if the graph of so many users is too large to keep."""
    if graph == "complete" and n * 64 * n_words(n) > MAX_GRAPH_BITS:
        size = f"{n * n_words(n) / 2**27:,.1f} GiB"
        raise ValueError(f'graph="complete" of {n} users takes {size} of bits, more than 4: use graph="erdos-renyi"')
    if graph == "erdos-renyi" and 1.5 * n * math.log(n) > MAX_GRAPH_EDGES:
        raise ValueError(f"n_users is {n}: a random graph of so many users has more than {MAX_GRAPH_EDGES} edges")


def max_users(graph: str) -> int:
    """For so many users there may be room without going beyond these sizes; some 185,000 if the graph is complete."""
    return math.isqrt(MAX_GRAPH_BITS) - 63 if graph == "complete" else MAX_GRAPH_EDGES


def initial_graph(n: int, graph: str, seed: int) -> dict[str, Any]:
    """Bits of a complete graph and no lists, or no bits and the lists of a random graph."""
    check_graph_size(n, graph)
    if graph == "erdos-renyi":
        return {"neighbour_bits": np.zeros((0, 0), np.uint64), **build_neighbour_lists(sample_edges(0, n, seed), n)}
    bits = np.zeros((n, n_words(n)), np.uint64)
    connect_to_all(bits, 0, n)
    return {"neighbour_bits": bits, **build_neighbour_lists(NO_EDGES, 0)}


def connect_to_all(bits: Words, old: int, n: int) -> None:
    """Give bits for n users edges between everybody and those from ``old`` on."""
    width = n_words(n)
    is_new = np.zeros((1, n), bool)
    is_new[0, old:] = True
    bits[:old, old >> 6 : width] |= pack_bits(is_new)[0, old >> 6 :]
    bits[old:n, :width] = pack_bits(np.ones((1, n), bool))
    new = np.arange(old, n)
    bits[new, new >> 6] ^= ONE << (new & 63).astype(np.uint64)


def is_symmetric(bits: Words) -> bool:
    """Whether each edge has both its directions, inside the users, and nobody one to itself; 512 users at a time."""
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
    """Edges of a random graph on n users, of those that join a user beyond the first ``old``: (edges, 2), low and high.

    The pairs are numbered with the higher user first, and the gaps between those that are drawn are geometric, so that
    nothing as large as all pairs is made. A generator of its own for each growth: a loaded policy draws what the saved
    one would have drawn.
    """
    begin, end = old * (old - 1) // 2, n * (n - 1) // 2
    chance = 3.0 * math.log(n) / n
    if chance >= 1.0:
        pairs = np.arange(begin, end)
    elif chance == 0.0:
        pairs = np.arange(0)
    else:
        rng = np.random.default_rng([seed, old])
        parts = [np.array([begin - 1])]
        while parts[-1][-1] < end:
            gaps = rng.geometric(chance, size=int(1.05 * chance * (end - parts[-1][-1])) + 100)
            parts.append(parts[-1][-1] + np.cumsum(gaps))
        pairs = np.concatenate(parts[1:]) if len(parts) > 1 else np.arange(0)
        pairs = pairs[pairs < end]
    high = ((1.0 + np.sqrt(1.0 + 8.0 * pairs)) / 2.0).astype(np.int64)
    high -= high * (high - 1) // 2 > pairs  # the root may be off by its rounding
    high += high * (high + 1) // 2 <= pairs
    return np.stack([pairs - high * (high - 1) // 2, high], axis=1).astype(np.int32)


def build_neighbour_lists(edges: IndexArray, n: int) -> dict[str, Any]:
    """Lists of neighbours from edges in the order of ``sample_edges``."""
    start, degree, lists = np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(2 * len(edges), np.int32)
    fill_lists(np.ascontiguousarray(edges), start, degree, lists)
    return {
        "list_start": start,
        "degree": degree,
        "list_capacity": np.append(degree, np.int64(len(lists))),
        "neighbour_lists": lists,
    }


def append_edges(state: CLUBState, edges: IndexArray) -> CLUBState:
    """The state with the edges of users who join added to its lists."""
    users, added = np.unique(edges, return_counts=True)
    # A list of l neighbours has moved to 2 l + 4 places at last, and to half as many and less before.
    needed = int(state.list_capacity[-1]) + int((4 * (state.degree[users] + added) + 16).sum())
    if needed > len(state.neighbour_lists):
        lists = np.zeros(max(needed, 2 * len(state.neighbour_lists)), np.int32)
        lists[: len(state.neighbour_lists)] = state.neighbour_lists
        state = state._replace(neighbour_lists=lists)
    add_edges(edges, state.list_start, state.degree, state.list_capacity, state.neighbour_lists)
    return state

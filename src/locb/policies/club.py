"""CLUB: online clustering of bandits by a graph that loses edges (Gentile, Li, Zappella, 2014)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.arrays import Floats, Ints, Places, Words
from locb.clusters import Cluster, Membership, groups_by_name
from locb.kernels import club as kernel
from locb.kernels import club_components, club_graph
from locb.kernels.bits import ONE, pack, unpack, words_for
from locb.policies.checks import TIE_RULES, number_type, one_of, real_number, whole_number
from locb.policies.compiled import CompiledPolicy, new_generator
from locb.policies.corrections import move_estimate
from locb.policies.explanations import Lender, Loan
from locb.policies.rows import blank_estimates, only_first

GRAPHS = {"complete": club_graph.COMPLETE, "erdos-renyi": club_graph.SPARSE}
MOST_BITS = 2**35  # of a complete graph: 4 GiB
MOST_EDGES = 2**30  # of a random one: 8 GiB
# What a file does not hold: room for work, counts, and the lists of neighbours, which are made from the edges.
NOT_SAVED = ("room", "marks", "words", "start", "degree", "lists", "observed")


class CLUB(CompiledPolicy):
    """Users are nodes of a graph; edges between users who prove different are cut; components share an estimate.

    Parameters
    ----------
    n_users, dim : int
        Users and features.
    alpha : float
        Weight of the bonus: score θ_Vᵀx + α √(xᵀA_V⁻¹x · log(t + 1)).
    alpha2 : float
        An edge is cut when two estimates are farther apart than alpha2 (F(m_i) + F(m_j)).
    graph : "complete" or "erdos-renyi"
        The graph at the start; the random one has an edge with probability 3 log n / n. The complete one takes n²/8
        bytes, and is refused beyond 4 GiB (185,000 users); the random one some 12 n log n.
    ties : "first" or "random"
        Which of the arms within 1e-9 of the highest score to take.
    dtype : "float64" or "float32"
        Of what is kept for every user; "float32" takes half of the memory, and rewards may be at most 1e30 in size.
    seed : int
        For the random graph and random ties.

    Examples
    --------
    >>> policy = CLUB(n_users=3, dim=2)
    >>> policy.clusters()[0].members.tolist()
    [0, 1, 2]
    """

    _kernel: ClassVar[Any] = kernel
    _not_saved: ClassVar[tuple[str, ...]] = NOT_SAVED
    _settings: ClassVar[dict[str, slice]] = {"whole": slice(club_graph.TIES, None), "real": slice(None)}

    def __init__(
        self,
        *,
        n_users: int,
        dim: int,
        alpha: float = 1.0,
        alpha2: float = 1.0,
        graph: str = "complete",
        ties: str = "first",
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim)
        dtype = number_type(dtype)
        alpha = real_number("alpha", alpha, 0.0)
        alpha2 = real_number("alpha2", alpha2, 0.0)
        graph_kind = one_of("graph", graph, GRAPHS)
        tie_rule = one_of("ties", ties, TIE_RULES)
        seed = whole_number("seed", seed, 0)
        self._parameters = {
            "n_users": self._n_users,
            "dim": self._dim,
            "alpha": alpha,
            "alpha2": alpha2,
            "graph": graph,
            "ties": ties,
            "dtype": dtype,
            "seed": seed,
        }
        n = self._n_users
        neighbours, edges = _first_graph(n, graph, seed)
        estimates = blank_estimates(n, self._dim, dtype)
        self._state = club_graph.GraphState(
            estimates=estimates,
            sums=np.zeros_like(estimates),
            served=np.zeros(n, np.int64),
            width=np.ones(n),
            neighbours=neighbours,
            **_lists(edges, n if graph_kind == club_graph.SPARSE else 0),
            component=np.zeros(n, np.int64),
            shared=np.zeros_like(estimates),
            shared_sums=np.zeros(estimates.shape),
            sizes=np.zeros(n, np.int64),
            observed=np.zeros(n, np.int64),
            peaks=np.zeros((n, 3)),
            whole=np.array([0, 0, tie_rule, graph_kind]),
            real=np.array([alpha, alpha2]),
            generator=new_generator(np.random.default_rng(seed)),
            **_room(n),
        )
        club_components.rebuild(self._state, self._dim)

    def clusters(self) -> list[Cluster]:
        """The connected components, in the order of their first members."""
        groups = groups_by_name(self._state.component)
        return [Cluster(None, members) for members in sorted(groups, key=lambda members: int(members[0]))]

    def memberships(self, user: int) -> Sequence[Membership]:
        """The component of this user, without its members."""
        return [Membership(None, int(self._state.sizes[self._state.component[self.check_user(user)]]))]

    def group_sizes(self) -> Ints:
        """How many users each component holds, in the order of ``clusters``."""
        _, first, counts = np.unique(self._state.component, return_index=True, return_counts=True)
        sizes: Ints = counts[np.argsort(first)]
        return sizes

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in, with edges to the others as if they had been there, unserved, from the start."""
        count = whole_number("count", count, 0)
        if count == 0:
            return
        state, old = self._state, self._n_users
        n = old + count
        _check_size(n, self._parameters["graph"])
        blank = blank_estimates(count, self._dim, self._parameters["dtype"])
        neighbours, lists = state.neighbours, {}
        if self._parameters["graph"] == "complete":
            neighbours = _complete(neighbours, n)
        else:
            lists = _lists(np.concatenate([self._edges(), _drawn(old, n, self._parameters["seed"])]), n)
        grown = state._replace(
            estimates=np.concatenate([state.estimates, blank]),
            sums=np.concatenate([state.sums, np.zeros_like(blank)]),
            served=np.concatenate([state.served, np.zeros(count, np.int64)]),
            width=np.concatenate([state.width, np.ones(count)]),
            neighbours=neighbours,
            **lists,
            component=np.zeros(n, np.int64),
            shared=np.zeros((n, blank.shape[1]), blank.dtype),
            shared_sums=np.zeros((n, blank.shape[1])),
            sizes=np.zeros(n, np.int64),
            observed=np.zeros(n, np.int64),
            peaks=np.zeros((n, 3)),
            whole=state.whole.copy(),
            **_room(n),
        )
        club_components.rebuild(grown, self._dim)
        self._state = grown
        self._n_users = self._parameters["n_users"] = n

    def _lent(self, user: int) -> Loan:
        state = self._state
        name = int(state.component[user])
        lender = Lender("component", None, 1.0, int(state.sizes[name]), int(state.observed[name]))
        log_round = math.log(state.whole[club_graph.T] + 2.0)  # as the kernel has it
        return Loan(state.shared, name, self._parameters["alpha"], log_round, (lender,))

    def _edges(self) -> Places:
        """The edges of a random graph that were not cut, by the higher user, then by the lower: (edges, 2)."""
        edges = np.empty((int(self._state.degree.sum()) // 2, 2), np.int32)
        club_graph.list_edges(self._state, edges)
        return edges

    def _move_sums(self, user: int, change: Floats) -> None:
        state = self._state
        group = int(state.component[user])
        for estimates, sums, row in ((state.estimates, state.sums, user), (state.shared, state.shared_sums, group)):
            move_estimate(estimates, row, change)
            sums[row, : self._dim] += change

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = super()._arrays()
        names = int(self._state.whole[club_graph.NAMES])  # rows beyond are of no component
        kept = {name: only_first(arrays[name], names) for name in ("shared", "shared_sums")}
        return {**arrays, **kept, "edges": self._edges()}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        if "edges" not in arrays:
            raise ValueError(f"its arrays are {sorted(arrays)}, without edges")
        edges = arrays["edges"]
        sparse = self._parameters["graph"] == "erdos-renyi"
        if edges.dtype != np.int32 or edges.ndim != 2 or edges.shape[1] != 2 or (len(edges) and not sparse):
            raise ValueError(f"edges is {edges.dtype} of shape {edges.shape}, not pairs of int32")
        low, high = edges.astype(np.int64).T
        if len(edges) and not ((low >= 0) & (low < high) & (high < self._n_users)).all():
            raise ValueError(f"edges joins users outside 0 … {self._n_users - 1}, or not the lower one to the higher")
        if (np.diff(high * self._n_users + low) <= 0).any():
            raise ValueError("edges is not in order, or holds an edge twice")
        self._state = self._state._replace(**_lists(edges, self._n_users if sparse else 0))
        super()._restore({name: array for name, array in arrays.items() if name != "edges"})

    def _settle(self) -> None:
        self._state.observed[:] = 0
        np.add.at(self._state.observed, self._state.component, self._state.served)

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        return {"component": (0, self._n_users)}

    def _consistency(self, state: Any) -> dict[str, bool]:
        fine = super()._consistency(state) | {
            "neighbours": self._parameters["graph"] == "erdos-renyi" or _is_symmetric(state.neighbours)
        }
        if not fine["neighbours"]:
            return fine  # no walk before the bits are known to lead nowhere else
        names = np.empty(self._n_users, np.int64)
        count = club_graph.label(state, names)
        first = state.component[np.unique(names, return_index=True)[1]]  # what the file calls each component
        return fine | {
            "component": np.array_equal(np.sort(first), np.arange(count))
            and np.array_equal(first[names], state.component),
            "whole": state.whole[club_graph.NAMES] == count,
            "sizes": np.array_equal(np.bincount(state.component, minlength=self._n_users), state.sizes),
        }


def _room(n: int) -> dict[str, Any]:
    """Arrays for work within a round."""
    return {
        "room": np.zeros((2, n), np.int64),
        "marks": np.zeros(n + 2, np.int64),
        "words": np.zeros((2, words_for(n)), np.uint64),
    }


def _check_size(n: int, graph: str) -> None:
    """A ValueError if the graph of so many users is too large to keep."""
    if graph == "complete" and n * 64 * words_for(n) > MOST_BITS:
        size = f"{n * words_for(n) / 2**27:,.1f} GiB"
        raise ValueError(f'graph="complete" of {n} users takes {size} of bits, more than 4: use graph="erdos-renyi"')
    if graph == "erdos-renyi" and 1.5 * n * math.log(n) > MOST_EDGES:
        raise ValueError(f"n_users is {n}: a random graph of so many users has more than {MOST_EDGES} edges")


def _first_graph(n: int, graph: str, seed: int) -> tuple[Words, Places]:
    """Bits of a complete graph and no edges, or no bits and the edges of a random graph."""
    _check_size(n, graph)
    nothing = np.zeros((0, 0), np.uint64)
    if graph == "complete":
        return _complete(nothing, n), np.zeros((0, 2), np.int32)
    return nothing, _drawn(0, n, seed)


def _complete(bits: Words, n: int) -> Words:
    """The bits of the old users' edges, and of edges between everybody and the new users: (n, ⌈n/64⌉)."""
    old = len(bits)
    is_new = np.ones((1, n), bool)
    words = np.tile(pack(is_new), (n, 1))
    is_new[0, :old] = False
    words[:old] = pack(is_new)
    words[:old, : bits.shape[1]] |= bits
    new = np.arange(old, n)
    words[new, new >> 6] ^= ONE << (new & 63).astype(np.uint64)
    return words


def _is_symmetric(bits: Words) -> bool:
    """Whether each edge has both its directions, inside the users, and nobody one to itself; 512 users at a time."""
    n, width = bits.shape
    for first in range(0, width, 8):
        rows = unpack(bits[64 * first : 64 * first + 512], 64 * width)
        columns = unpack(bits[:, first : first + 8], 512 if first + 8 <= width else 64 * (width - first))
        if rows[:, n:].any() or not np.array_equal(rows[:, :n], columns[:, : len(rows)].T):
            return False
        if rows[:, 64 * first :].diagonal().any():
            return False
    return True


def _drawn(old: int, n: int, seed: int) -> Places:
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


def _lists(edges: Places, n: int) -> dict[str, Any]:
    """Lists of neighbours from edges in the order of ``_edges``."""
    start, degree, lists = np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(2 * len(edges), np.int32)
    club_graph.fill_lists(np.ascontiguousarray(edges), start, degree, lists)
    return {"start": start, "degree": degree, "lists": lists}

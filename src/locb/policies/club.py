"""CLUB: online clustering of bandits by a graph that loses edges (Gentile, Li, Zappella, 2014)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, IndexArray, Ints
from locb.evaluation.clusters import Cluster, Membership, group_by_label
from locb.kernels.club import components as club_components
from locb.kernels.club import graph as club_graph
from locb.kernels.club import loop as kernel
from locb.kernels.club.state import COMPLETE, N_COMPONENTS, SPARSE, TIES, T
from locb.kernels.common.bit_sets import n_words
from locb.policies.base.compiled import CompiledPolicy, new_generator
from locb.policies.base.explanations import EvidenceSource, ScoringRow
from locb.policies.base.user_batch import BatchMembership, GroupSummary, Partition, summarize_open_groups
from locb.policies.base.validation import TIE_RULES, check_float, check_int, number_type, one_of
from locb.policies.state.club_graph import (
    NO_EDGES,
    append_edges,
    build_neighbour_lists,
    check_graph_size,
    connect_to_all,
    is_symmetric,
    max_users,
    sample_edges,
)
from locb.policies.state.club_state import NOT_SAVED, USER_ROWS, grow, initial_state
from locb.policies.state.corrections import shift_estimate
from locb.policies.state.user_rows import keep_first_rows

GRAPHS = {"complete": COMPLETE, "erdos-renyi": SPARSE}


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
    _user_rows: ClassVar[tuple[str, ...]] = USER_ROWS
    _settings: ClassVar[dict[str, slice]] = {"int_params": slice(TIES, None), "float_params": slice(None)}

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
        alpha = check_float("alpha", alpha, 0.0)
        alpha2 = check_float("alpha2", alpha2, 0.0)
        graph_kind = one_of("graph", graph, GRAPHS)
        tie_rule = one_of("ties", ties, TIE_RULES)
        seed = check_int("seed", seed, 0)
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
        self._state = initial_state(
            self._n_users,
            self._dim,
            dtype,
            graph,
            seed,
            np.array([0, 0, tie_rule, graph_kind]),
            np.array([alpha, alpha2]),
            new_generator(np.random.default_rng(seed)),
        )

    def clusters(self) -> list[Cluster]:
        """The connected components, in the order of their first members."""
        groups = group_by_label(self._state.component[: self._n_users])
        return [Cluster(None, members) for members in sorted(groups, key=lambda members: int(members[0]))]

    def memberships(self, user: int) -> Sequence[Membership]:
        """The component of this user, without its members."""
        return [Membership(None, int(self._state.sizes[self._state.component[self.check_user(user)]]))]

    def group_summary(self) -> GroupSummary:
        """The components, in the order of their first members; they are never complete."""
        names, first = np.unique(self._state.component[: self._n_users], return_index=True)
        return summarize_open_groups(names[np.argsort(first)])

    def _batch_membership(self, users: Ints) -> BatchMembership:
        return Partition(self._state.component[users])

    def cluster_sizes(self) -> Ints:
        """How many users each component holds, in the order of ``clusters``."""
        _, first, counts = np.unique(self._state.component[: self._n_users], return_index=True, return_counts=True)
        sizes: Ints = counts[np.argsort(first)]
        return sizes

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in, with edges to the others as if they had been there, unserved, from the start.

        Components that these edges connect become one. In a complete graph that is all of them, and each new user takes
        time in proportion to the users there are.
        """
        count = check_int("count", count, 0)
        if count == 0:
            return
        state, old, new = self._state, self._n_users, self._n_users + count
        check_graph_size(new, self._parameters["graph"])
        if new > len(state.served):
            most = max_users(self._parameters["graph"])
            state = grow(state, max(new, min(2 * len(state.served), most)), self._dim)
        edges = NO_EDGES
        if self._parameters["graph"] == "complete":
            connect_to_all(state.neighbour_bits, old, new)
        else:
            edges = sample_edges(old, new, self._parameters["seed"])
            state = append_edges(state, edges)
        club_components.add_users(state, edges, old, new, self._dim)
        self._state = state
        self._n_users = self._parameters["n_users"] = new

    def _scoring_row(self, user: int) -> ScoringRow:
        state = self._state
        name = int(state.component[user])
        source = EvidenceSource("component", None, 1.0, int(state.sizes[name]), int(state.cluster_served[name]))
        log_round = math.log(state.int_params[T] + 2.0)  # as the kernel has it
        return ScoringRow(state.cluster_estimates, name, self._parameters["alpha"], log_round, (source,))

    def _edges(self) -> IndexArray:
        """The edges of a random graph that were not cut, by the higher user, then by the lower: (edges, 2)."""
        edges = np.empty((int(self._state.degree.sum()) // 2, 2), np.int32)
        club_graph.list_edges(self._state, edges)
        return edges

    def _move_sums(self, user: int, change: Floats) -> None:
        state = self._state
        group = int(state.component[user])
        for estimates, sums, row in (
            (state.estimates, state.sums, user),
            (state.cluster_estimates, state.cluster_sums, group),
        ):
            shift_estimate(estimates, row, change)
            sums[row, : self._dim] += change

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = super()._arrays()
        names = int(self._state.int_params[N_COMPONENTS])  # rows beyond are of no component
        kept = {name: keep_first_rows(arrays[name], names) for name in ("cluster_estimates", "cluster_sums")}
        bits = arrays["neighbour_bits"][: self._n_users, : n_words(self._n_users)]
        return {**arrays, **kept, "neighbour_bits": bits, "edges": self._edges()}

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
        self._state = self._state._replace(**build_neighbour_lists(edges, self._n_users if sparse else 0))
        super()._restore({name: array for name, array in arrays.items() if name != "edges"})

    def _rebuild_derived(self) -> None:
        self._state.cluster_served[:] = 0
        np.add.at(self._state.cluster_served, self._state.component, self._state.served)

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        return {"component": (0, self._n_users)}

    def _consistency(self, state: Any) -> dict[str, bool]:
        fine = super()._consistency(state) | {
            "neighbour_bits": self._parameters["graph"] == "erdos-renyi" or is_symmetric(state.neighbour_bits)
        }
        if not fine["neighbour_bits"]:
            return fine  # no walk before the bits are known to lead nowhere else
        names = np.empty(self._n_users, np.int64)
        count = club_graph.label_components(state, names)
        first = state.component[np.unique(names, return_index=True)[1]]  # what the file calls each component
        return fine | {
            "component": np.array_equal(np.sort(first), np.arange(count))
            and np.array_equal(first[names], state.component),
            "int_params": state.int_params[N_COMPONENTS] == count,
            "sizes": np.array_equal(np.bincount(state.component, minlength=self._n_users), state.sizes),
        }

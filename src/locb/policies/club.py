"""CLUB: online clustering of bandits by deleting edges of a graph (Gentile, Li, Zappella, 2014)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, IndexArray, Ints
from locb.common.validation import check_int
from locb.evaluation.clusters import Cluster, Membership, group_by_label
from locb.kernels.club import components as club_components
from locb.kernels.club import graph as club_graph
from locb.kernels.club import loop as kernel
from locb.kernels.club.state import COMPLETE, N_COMPONENTS, SCREEN_WIDTH, SPARSE, TIES, T
from locb.kernels.common.bit_sets import n_words
from locb.policies.base.compiled import ScoringRowPolicy, ScoringRows, new_generator
from locb.policies.base.correction import CorrectionMixin
from locb.policies.base.explanations import EvidenceSource
from locb.policies.base.user_batch import BatchMembership, GroupSummary, Partition, summarize_open_groups
from locb.policies.parameters import (
    TIE_RULES,
    Alpha,
    Dim,
    Dtype,
    NUsers,
    Parameter,
    RewardRange,
    Safe,
    Seed,
    Ties,
    screen_width,
    validate_parameters,
)
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
from locb.policies.state.user_rows import grown_capacity, keep_first_rows

GRAPHS = {"complete": COMPLETE, "erdos-renyi": SPARSE}


Alpha2 = Annotated[
    float,
    Parameter(
        "Factor of the distance above which the edge between two users is deleted. Users with m and m' rounds lose "
        "their edge if the distance of their estimates is more than alpha2 · (F(m) + F(m')), where "
        "F(m) = √((1 + log(1 + m)) / (1 + m)).",
        minimum=0.0,
    ),
]
Graph = Annotated[
    str,
    Parameter(
        "The initial graph of n users. complete: all users are connected; takes n²/8 bytes, at most 4 GiB (185,000 "
        "users). erdos-renyi: each edge exists with probability 3 log n / n; takes about 12 n log n bytes.",
        choices=tuple(GRAPHS),
    ),
]


class CLUB(CorrectionMixin, ScoringRowPolicy):
    """CLUB policy: clusters are the connected components of a graph that loses edges between users who differ too much.

    The users of a component V share a ridge estimate θ_V. In round t, the score of an arm with context x is
    θ_Vᵀx + α √(xᵀA_V⁻¹x · log(t + 1)). V is the component of the user, A_V is I plus the sum of x xᵀ over the rounds of
    the users of V, and α is ``alpha``.

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

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        alpha: Alpha = 1.0,
        alpha2: Alpha2 = 1.0,
        graph: Graph = "complete",
        safe: Safe = False,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim, reward_range=reward_range)
        self._state = initial_state(
            n_users,
            dim,
            dtype,
            graph,
            seed,
            np.array([0, 0, TIE_RULES[ties], GRAPHS[graph]]),
            np.array([alpha, alpha2, screen_width(safe, alpha)]),
            new_generator(np.random.default_rng(seed)),
        )

    def clusters(self) -> list[Cluster]:
        """Return the connected components of the graph, in the order of their first members."""
        groups = group_by_label(self._state.component[: self._n_users])
        return [Cluster(None, members) for members in sorted(groups, key=lambda members: int(members[0]))]

    def memberships(self, user: int) -> Sequence[Membership]:
        """Return a list with the component of a user, described without its members."""
        return [Membership(None, int(self._state.sizes[self._state.component[self.check_user(user)]]))]

    def group_summary(self) -> GroupSummary:
        """Return a summary of the components, in the order of their first members. Components are never final."""
        component, users = self._state.component[: self._n_users], np.arange(self._n_users)
        first = np.empty(self._n_users, np.int64)
        first[component[::-1]] = users[::-1]  # of several assignments, the last one remains
        return summarize_open_groups(component[first[component] == users])

    def _batch_membership(self, users: Ints) -> BatchMembership:
        return Partition(self._state.component[users])

    def cluster_sizes(self) -> Ints:
        """Return the number of users per component, in the order of ``clusters``."""
        _, first, counts = np.unique(self._state.component[: self._n_users], return_index=True, return_counts=True)
        sizes: Ints = counts[np.argsort(first)]
        return sizes

    def add_users(self, count: int) -> None:
        """Add ``count`` users, and the edges that the initial graph would contain for them.

        Components that the new edges connect are merged. In a complete graph, all components are merged, and adding a
        user takes time proportional to the number of users.
        """
        count = check_int("count", count, 0)
        if count == 0:
            return
        state, old, new = self._state, self._n_users, self._n_users + count
        check_graph_size(new, self._parameters["graph"])
        if new > len(state.served):
            rows = grown_capacity(len(state.served), new, max_users(self._parameters["graph"]))
            state = grow(state, rows, self._dim)
        if self._parameters["graph"] == "complete":
            connect_to_all(state.neighbour_bits, old, new)
            club_components.add_users(state, NO_EDGES, old, new, self._dim)
        else:
            for user in range(old, new):  # the random edges of a user do not depend on the users of the same call
                edges = sample_edges(user, user + 1, self._parameters["seed"])
                state = append_edges(state, edges)
                club_components.add_users(state, edges, user, user + 1, self._dim)
        self._state = state
        self._n_users = self._parameters["n_users"] = new

    def _scoring_rows(self, users: Ints) -> ScoringRows:
        state = self._state
        components = state.component[users].astype(np.int64)
        sizes, served = state.sizes[components].tolist(), state.cluster_served[components].tolist()
        log_round = math.log(state.int_params[T] + 2.0)  # the same expression as in the kernel
        sources = [(EvidenceSource("component", None, 1.0, *counts),) for counts in zip(sizes, served, strict=True)]
        alphas = np.full(len(users), self._parameters["alpha"])
        memberships = [[Membership(None, size)] for size in sizes]
        screen = self._safety_screen(users, state.float_params[SCREEN_WIDTH])
        return ScoringRows(state.cluster_estimates, components, alphas, log_round, sources, memberships, screen)

    def _edges(self) -> IndexArray:
        """Return the remaining edges of a random graph: pairs (lower, higher user), sorted by the higher, then lower.

        With ``graph="complete"`` the result is empty, because the edges are in ``neighbour_bits``.
        """
        edges = np.empty((int(self._state.degree.sum()) // 2, 2), np.int32)
        club_graph.list_edges(self._state, edges)
        return edges

    def _shift_sums(self, user: int, change: Floats) -> None:
        state = self._state
        component = int(state.component[user])
        for estimates, sums, row in (
            (state.estimates, state.sums, user),
            (state.cluster_estimates, state.cluster_sums, component),
        ):
            shift_estimate(estimates, row, change)
            sums[row, : self._dim] += change

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = super()._arrays()
        count = int(self._state.int_params[N_COMPONENTS])  # later rows belong to no component
        kept = {name: keep_first_rows(arrays[name], count) for name in ("cluster_estimates", "cluster_sums")}
        bits = arrays["neighbour_bits"][: self._n_users, : n_words(self._n_users)]
        return {**arrays, **kept, "neighbour_bits": bits, "edges": self._edges()}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        if "edges" not in arrays:
            raise ValueError(f"the array 'edges' is missing; the arrays are {sorted(arrays)}")
        edges = arrays["edges"]
        sparse = self._parameters["graph"] == "erdos-renyi"
        if edges.dtype != np.int32 or edges.ndim != 2 or edges.shape[1] != 2 or (len(edges) and not sparse):
            expected = "int32 of shape (any, 2)" if sparse else 'int32 of shape (0, 2) with graph="complete"'
            raise ValueError(f"array 'edges' is {edges.dtype} of shape {edges.shape}, not {expected}")
        low, high = edges.astype(np.int64).T
        if len(edges) and not ((low >= 0) & (low < high) & (high < self._n_users)).all():
            raise ValueError(f"array 'edges' must connect a lower to a higher user, both from 0 to {self._n_users - 1}")
        if (np.diff(high * self._n_users + low) <= 0).any():
            raise ValueError("array 'edges' must be sorted by the higher, then by the lower user, without duplicates")
        self._state = self._state._replace(**build_neighbour_lists(edges, self._n_users if sparse else 0))
        super()._restore({name: array for name, array in arrays.items() if name != "edges"})

    def _rebuild_derived(self) -> None:
        self._state.cluster_served[:] = 0
        np.add.at(self._state.cluster_served, self._state.component, self._state.served)

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        return {"component": (0, self._n_users)}

    def _consistency(self, state: Any) -> dict[str, bool]:
        checks = super()._consistency(state) | {
            "neighbour_bits": self._parameters["graph"] == "erdos-renyi" or is_symmetric(state.neighbour_bits)
        }
        if not checks["neighbour_bits"]:
            return checks  # label_components would read outside the arrays
        labels = np.empty(self._n_users, np.int64)
        count = club_graph.label_components(state, labels)
        first = state.component[np.unique(labels, return_index=True)[1]]  # number of each component in the file
        return checks | {
            "component": np.array_equal(np.sort(first), np.arange(count))
            and np.array_equal(first[labels], state.component),
            "int_params": state.int_params[N_COMPONENTS] == count,
            "sizes": np.array_equal(np.bincount(state.component, minlength=self._n_users), state.sizes),
        }

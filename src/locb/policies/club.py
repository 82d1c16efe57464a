"""CLUB: online clustering of bandits by a graph that loses edges (Gentile, Li, Zappella, 2014)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from locb.arrays import Ints, Words
from locb.clusters import Cluster
from locb.kernels import club as kernel
from locb.kernels.bits import pack, unpack
from locb.policies.base import CompiledPolicy, new_generator
from locb.policies.checks import TIE_RULES, number_type, one_of, real_number, whole_number
from locb.policies.linucb import blank_estimates

GRAPHS = {"complete": 0, "erdos-renyi": 1}


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
        The graph at the start; the random one has an edge with probability 3 log n / n.
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
    _settings: ClassVar[dict[str, slice]] = {"whole": slice(kernel.TIES, None), "real": slice(None)}

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
        one_of("graph", graph, GRAPHS)
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
        n, columns = self._n_users, blank_estimates(1, self._dim).shape[1]
        self._state = kernel.GraphState(
            estimates=blank_estimates(n, self._dim, dtype),
            sums=np.zeros((n, columns), dtype),
            served=np.zeros(n, np.int64),
            width=np.ones(n),
            neighbours=_with_new_edges(np.zeros((0, 0), bool), n, graph, seed),
            component=np.zeros(n, np.int64),
            shared=blank_estimates(n, self._dim, dtype),
            whole=np.array([0, tie_rule]),
            real=np.array([alpha, alpha2]),
            generator=new_generator(np.random.default_rng(seed)),
        )
        kernel.rebuild(self._state, self._dim)

    def clusters(self) -> list[Cluster]:
        """The connected components."""
        component = self._state.component
        return [Cluster(None, np.flatnonzero(component == name)) for name in np.unique(component)]

    def group_sizes(self) -> Ints:
        """How many users each component holds."""
        return np.unique(self._state.component, return_counts=True)[1]

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in, with edges to the others as if they had been there, unserved, from the start."""
        count = whole_number("count", count, 0)
        state, old = self._state, self._n_users
        edges = unpack(state.neighbours, old)
        blank = blank_estimates(count, self._dim, self._parameters["dtype"])
        grown = state._replace(
            estimates=np.concatenate([state.estimates, blank]),
            sums=np.concatenate([state.sums, np.zeros_like(blank)]),
            served=np.concatenate([state.served, np.zeros(count, np.int64)]),
            width=np.concatenate([state.width, np.ones(count)]),
            neighbours=_with_new_edges(edges, old + count, self._parameters["graph"], self._parameters["seed"]),
            component=np.zeros(old + count, np.int64),
            shared=np.concatenate([state.shared, blank]),
        )
        kernel.rebuild(grown, self._dim)
        self._state = grown
        self._n_users = self._parameters["n_users"] = old + count

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        return {"component": (0, self._n_users)}

    def _consistency(self, state: Any) -> dict[str, bool]:
        edges = unpack(state.neighbours, 64 * state.neighbours.shape[1])
        inside = edges[:, : self._n_users]
        return super()._consistency(state) | {
            "neighbours": not edges[:, self._n_users :].any() and np.array_equal(inside, inside.T)
        }


def _with_new_edges(edges: Any, n: int, graph: str, seed: int) -> Words:
    """Bits of the old edges and of those that the users beyond them get: (n, ⌈n/64⌉)."""
    old = len(edges)
    full = np.ones((n, n), bool)
    if graph == "erdos-renyi":
        # A generator of its own for each growth, so that a loaded policy draws what the saved one would have drawn.
        drawn = np.random.default_rng([seed, old]).random((n, n)) < 3.0 * math.log(n) / n
        full = np.triu(drawn, 1) | np.triu(drawn, 1).T
    full[:old, :old] = edges
    np.fill_diagonal(full, False)
    return pack(full)

"""RCLUMB: CLUB for users whose rewards are not exactly linear (Wang, Xie, Liu, Li, Lui, 2023)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np

from locb.common.arrays import Ints
from locb.kernels.club import rclumb as kernel
from locb.kernels.club.state import SCREEN_WIDTH
from locb.policies.base.compiled import ScoringRows
from locb.policies.base.explanations import EvidenceSource
from locb.policies.club import CLUB, Graph
from locb.policies.parameters import (
    Alpha,
    Dim,
    Dtype,
    NUsers,
    Parameter,
    RewardRange,
    Safe,
    Seed,
    Ties,
    validate_parameters,
)

Alpha2 = Annotated[
    float,
    Parameter(
        "Factor of the distance above which the edge between two users is deleted. Users with m and m' rounds lose "
        "their edge if the distance of their estimates is more than alpha2 · (F(m) + F(m') + epsilon), where "
        "F(m) = √((1 + log(1 + m)) / (1 + m)).",
        minimum=0.0,
    ),
]
Epsilon = Annotated[
    float,
    Parameter("Level of misspecification: largest difference of a mean reward from a linear function.", minimum=0.0),
]


class RCLUMB(CLUB):
    """RCLUMB policy: a robust version of CLUB. A user shares an estimate with the users to whom it still has an edge.

    The score of an arm with context x is θ_Vᵀx + (α + ε √T_V) √(xᵀA_V⁻¹x). V is the user and its neighbours in the
    graph, and T_V is the number of their rounds. θ_V and A_V are as in CLUB, α is ``alpha``, and ε is ``epsilon``.
    Edges are deleted as in CLUB, with a larger threshold. ``clusters`` returns the connected components of the graph.

    Examples
    --------
    >>> policy = RCLUMB(n_users=3, dim=2)
    >>> policy.clusters()[0].members.tolist()
    [0, 1, 2]
    """

    _kernel: ClassVar[Any] = kernel

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        alpha: Alpha = 1.0,
        alpha2: Alpha2 = 1.0,
        epsilon: Epsilon = 0.05,
        graph: Graph = "complete",
        safe: Safe = False,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(
            n_users=n_users,
            dim=dim,
            alpha=alpha,
            alpha2=alpha2,
            graph=graph,
            safe=safe,
            ties=ties,
            reward_range=reward_range,
            dtype=dtype,
            seed=seed,
        )
        self._state = self._state._replace(float_params=np.append(self._state.float_params, epsilon))
        self._state.radius_widths[:] += 0.5 * epsilon

    def add_users(self, count: int) -> None:
        """Add ``count`` users, and the edges that the initial graph would contain for them; see ``CLUB.add_users``."""
        old = self._n_users
        super().add_users(count)
        self._state.radius_widths[old : self._n_users] = 1.0 + 0.5 * self._parameters["epsilon"]

    def _scoring_rows(self, users: Ints) -> ScoringRows:
        state = self._state
        rows, alphas = np.empty((len(users), state.estimates.shape[1])), np.empty(len(users))
        counts = np.empty((len(users), 2), np.int64)
        kernel.describe_neighbours(state, users, rows, alphas, counts, self._dim)
        sources = [(EvidenceSource("neighbourhood", None, 1.0, *count),) for count in counts.tolist()]
        memberships = [self.memberships(user) for user in users.tolist()]
        screen = self._safety_screen(users, state.float_params[SCREEN_WIDTH])
        return ScoringRows(rows, np.arange(len(users)), alphas, 1.0, sources, memberships, screen)

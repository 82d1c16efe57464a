"""Hybrid LinUCB: coefficients that all users share, and coefficients of each user (Li et al., 2010)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import check_int
from locb.kernels.common.linear_algebra import diagonal
from locb.kernels.hybrid import loop as kernel
from locb.kernels.hybrid.state import TIES, HybridState, T
from locb.policies.base.compiled import ScoringRowPolicy, ScoringRows, new_generator
from locb.policies.base.correction import CorrectionMixin
from locb.policies.base.explanations import EvidenceSource, by_weight
from locb.policies.base.inspectable import MAX_DEVIATION
from locb.policies.parameters import (
    TIE_RULES,
    Alpha,
    Dim,
    Dtype,
    NUsers,
    RewardRange,
    Seed,
    Ties,
    validate_parameters,
)
from locb.policies.state.corrections import shift_estimate
from locb.policies.state.user_rows import grow_rows, grown_capacity, initial_estimates


class HybridLinUCB(CorrectionMixin, ScoringRowPolicy):
    """Hybrid LinUCB policy: the mean reward of an arm is βᵀx + θ_uᵀx, with β shared by all users and θ_u of one user u.

    x is the context of the arm. All coefficients are estimated together by ridge regression with the penalty
    ‖β‖² + Σ_u ‖θ_u‖². The score of an arm is w_uᵀx + α √(xᵀS_u x): w_u is the sum of the estimates of β and θ_u, S_u is
    the inverse of the matrix of the regression, restricted to β + θ_u, and α is ``alpha``. Li, Chu, Langford and
    Schapire (2010) have coefficients per arm instead of coefficients per user.

    Examples
    --------
    >>> policy = HybridLinUCB(n_users=2, dim=2)
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.recommend(1, [[0.0, 1.0], [1.0, 0.0]])  # the other user's reward counts, too
    1
    """

    _kernel: ClassVar[Any] = kernel
    _user_rows: ClassVar[tuple[str, ...]] = ("estimates", "served")
    _settings: ClassVar[dict[str, slice]] = {"int_params": slice(TIES, None), "float_params": slice(None)}

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        alpha: Alpha = 1.0,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim, reward_range=reward_range)
        self._state = HybridState(
            estimates=initial_estimates(n_users, dim, dtype),
            shared=initial_estimates(1, dim),
            served=np.zeros(n_users, np.int64),
            int_params=np.array([0, TIE_RULES[ties]]),
            float_params=np.array([alpha]),
            generator=new_generator(np.random.default_rng(seed)),
        )

    @property
    def _theta(self) -> Floats:
        return self._theta_of(np.arange(self._n_users))

    def _theta_of(self, users: Ints) -> Floats:
        return np.ascontiguousarray(self._combined(users)[:, : self._dim])

    def _deviation(self, user: int) -> Floats:
        return MAX_DEVIATION * np.sqrt(diagonal(self._combined(np.array([user]))[0, self._dim :]))

    def _combined(self, users: Ints) -> Floats:
        """Return w_u and the packed S_u of u users: (u, d + p)."""
        rows = np.empty((len(users), self._state.estimates.shape[1]))
        kernel.combine_users(self._state, users, rows, self._dim)
        return rows

    def add_users(self, count: int) -> None:
        """Add ``count`` users, for whom the policy starts with the shared coefficients."""
        new = self._n_users + check_int("count", count, 0)
        state = self._state
        if new > len(state.served):
            blanks = {"estimates": initial_estimates(1, self._dim)}
            self._state = state._replace(
                **grow_rows(state, self._user_rows, grown_capacity(len(state.served), new), blanks)
            )
        self._n_users = self._parameters["n_users"] = new

    def _scoring_rows(self, users: Ints) -> ScoringRows:
        state = self._state
        prior = diagonal(state.estimates[users, self._dim :].astype(np.float64)).mean(axis=1).tolist()
        everyone = self._n_users, int(state.int_params[T])
        sources = [
            by_weight(
                EvidenceSource("everyone", None, share, *everyone), EvidenceSource("user", None, 1.0 - share, 1, served)
            )
            for share, served in zip(prior, state.served[users].tolist(), strict=True)
        ]
        alphas = np.full(len(users), self._parameters["alpha"])
        memberships = [self.memberships(user) for user in users.tolist()]
        return ScoringRows(self._combined(users), np.arange(len(users)), alphas, 1.0, sources, memberships)

    def _shift_sums(self, user: int, change: Floats) -> None:
        shift_estimate(self._state.shared, 0, shift_estimate(self._state.estimates, user, change))

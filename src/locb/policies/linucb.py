"""LinUCB and linear Thompson sampling (LinTS), with one estimate per user (-IND) or one for all users (-ONE)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import check_int
from locb.kernels.linucb import lints_loop
from locb.kernels.linucb import loop as kernel
from locb.kernels.linucb.state import TIES, LinUCBState, T
from locb.policies.base.capabilities import UnavailableError
from locb.policies.base.compiled import ScoringRowPolicy, ScoringRows, new_generator
from locb.policies.base.correction import CorrectionMixin
from locb.policies.base.explanations import EvidenceSource
from locb.policies.parameters import (
    TIE_RULES,
    Alpha,
    Dim,
    DrawScale,
    Dtype,
    NUsers,
    Parameter,
    RewardRange,
    Seed,
    Ties,
    validate_parameters,
)
from locb.policies.state.corrections import shift_estimate
from locb.policies.state.user_rows import grow_rows, grown_capacity, initial_estimates

Shared = Annotated[
    bool,
    Parameter("True: all users share one estimate (LinUCB-ONE). False: each user has a separate one (LinUCB-IND)."),
]
SharedDraw = Annotated[
    bool, Parameter("True: all users share one estimate (LinTS-ONE). False: each user has a separate one (LinTS-IND).")
]


class LinUCB(CorrectionMixin, ScoringRowPolicy):
    """LinUCB policy: a linear bandit with upper confidence bounds. The score of an arm is θ̂ᵀx + α √(xᵀA⁻¹x).

    x is the context of the arm, and α is ``alpha``. A is I plus the sum of x xᵀ over the rounds of the user, or, with
    ``shared=True``, over the rounds of all users. θ̂ is the ridge estimate from the same rounds.

    Examples
    --------
    >>> policy = LinUCB(n_users=2, dim=2)
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.recommend(0, [[0.0, 1.0], [1.0, 0.0]])
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
        shared: Shared = False,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim, reward_range=reward_range)
        self._shared = shared
        self._state = LinUCBState(
            estimates=initial_estimates(1 if shared else n_users, dim, dtype),
            served=np.zeros(n_users, np.int64),
            int_params=np.array([0, TIE_RULES[ties], int(shared)]),
            float_params=np.array([alpha]),
            generator=new_generator(np.random.default_rng(seed)),
        )

    @property
    def _theta(self) -> Floats:
        return np.broadcast_to(super()._theta, (self._n_users, self._dim)) if self._shared else super()._theta

    def _deviation(self, user: int) -> Floats:
        return super()._deviation(0 if self._shared else user)

    def add_users(self, count: int) -> None:
        """Add ``count`` users."""
        new = self._n_users + check_int("count", count, 0)
        state = self._state
        if new > len(state.served):
            names = ("served",) if self._shared else self._user_rows
            blanks = {"estimates": initial_estimates(1, self._dim)}
            self._state = state._replace(**grow_rows(state, names, grown_capacity(len(state.served), new), blanks))
        self._n_users = self._parameters["n_users"] = new

    def _scoring_rows(self, users: Ints) -> ScoringRows:
        state = self._state
        sources: list[tuple[EvidenceSource, ...]]
        if self._shared:
            rows = np.zeros_like(users)
            sources = [(EvidenceSource("everyone", None, 1.0, self._n_users, int(state.int_params[T])),)] * len(users)
        else:
            rows = users
            sources = [(EvidenceSource("user", None, 1.0, 1, served),) for served in state.served[users].tolist()]
        alphas = np.full(len(users), self._parameters["alpha"])
        memberships = [self.memberships(user) for user in users.tolist()]
        return ScoringRows(state.estimates, rows, alphas, 1.0, sources, memberships)

    def _shift_sums(self, user: int, change: Floats) -> None:
        shift_estimate(self._state.estimates, 0 if self._shared else user, change)

    def _own_estimates(self, users: Ints) -> Callable[[], Floats]:
        if self._shared:
            raise UnavailableError("certificates need one estimate per user: shared must be False, not True")
        return super()._own_estimates(users)


class LinTS(LinUCB):
    """Linear Thompson sampling: a linear bandit that scores arms with a random draw. The score of an arm is θ̃ᵀx.

    In each round, θ̃ is drawn from the normal distribution with mean θ̂ and covariance α² A⁻¹. θ̂, A and ``shared`` are
    those of LinUCB, x is the context of the arm, and α is ``alpha`` (Agrawal and Goyal, 2013). In an explanation, the
    bonus of an arm is θ̃ᵀx − θ̂ᵀx, which may be negative. A service does not accept the policy, because a service cannot
    replay random choices.

    Examples
    --------
    >>> policy = LinTS(n_users=2, dim=2, alpha=0.1)
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.recommend(0, [[0.0, 1.0], [1.0, 0.0]])
    1
    """

    _kernel: ClassVar[Any] = lints_loop

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        alpha: DrawScale = 1.0,
        shared: SharedDraw = False,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(
            n_users=n_users,
            dim=dim,
            alpha=alpha,
            shared=shared,
            ties=ties,
            reward_range=reward_range,
            dtype=dtype,
            seed=seed,
        )

    @property
    def has_random_choices(self) -> bool:
        """Whether ``recommend`` draws random numbers: always."""
        return True

    def _scoring_rows(self, users: Ints) -> ScoringRows:
        return super()._scoring_rows(users)._replace(is_sampled=True)

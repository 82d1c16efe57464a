"""CAB: clusters of users that depend on the context (Gentile, Li, Kar, Karatzoglou, Zappella, Etrue, 2017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import check_int
from locb.kernels.cab import loop as kernel
from locb.kernels.cab.state import N_USERS, TIES, CABState
from locb.policies.base.capabilities import UnavailableError
from locb.policies.base.compiled import CompiledPolicy, new_generator
from locb.policies.base.explanations import EvidenceSource, Explanation
from locb.policies.parameters import (
    TIE_RULES,
    Alpha,
    Dim,
    Dtype,
    NUsers,
    Parameter,
    RewardRange,
    Seed,
    Ties,
    validate_parameters,
)
from locb.policies.state.user_rows import grow_rows, grown_capacity, initial_estimates

Gamma = Annotated[
    float,
    Parameter(
        "Smallest difference of mean rewards between users who do not belong together. Users learn each other's "
        "rewards once their confidence widths for the arm are below gamma / 4.",
        minimum=0.0,
    ),
]


class CAB(CompiledPolicy):
    """CAB policy: for each arm, a user shares the estimates of all users whose predictions for this arm are similar.

    In round t, the confidence width of user j for an arm with context x is c_j(x) = α √(xᵀA_j⁻¹x · log(t + 1)), with
    α = ``alpha``. θ̂_j is the ridge estimate of user j, and A_j is I plus the sum of x xᵀ over the rewards that user j
    has learned. The neighbourhood of user i is the set of all users j whose θ̂_jᵀx differs from θ̂_iᵀx by at most
    c_i(x) + c_j(x). The score of the arm is the mean of θ̂_jᵀx + c_j(x) over the neighbourhood. If c_i(x) of the chosen
    arm is below ``gamma`` / 4, the reward is also learned by all neighbours j with c_j(x) below ``gamma`` / 4.
    There are no clusters of users that do not depend on the arm. The time per round is proportional to the number of
    users times the number of arms.

    Examples
    --------
    >>> policy = CAB(n_users=3, dim=2)
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.explain(0, [[1.0, 0.0]]).sources[0].users
    3
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
        gamma: Gamma = 0.2,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim, reward_range=reward_range)
        self._state = CABState(
            estimates=initial_estimates(n_users, dim, dtype),
            served=np.zeros(n_users, np.int64),
            int_params=np.array([0, n_users, TIE_RULES[ties]]),
            float_params=np.array([alpha, gamma]),
            generator=new_generator(np.random.default_rng(seed)),
        )

    def explain(self, user: int, contexts: Any) -> Explanation:
        """Return the arm that ``recommend`` returns, with the scores of all arms and the sources of the estimates.

        ``theta`` and ``sources`` belong to the neighbourhood of the chosen arm. Other arms have other neighbourhoods.
        """
        return self.explain_batch([user], [contexts])[0]

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """Return the result of ``explain`` for each of several users, each with its own contexts."""
        choices, ends, arms = self._check_choices(users, contexts)
        count = len(choices)
        estimate, bonus, chosen = np.empty(len(arms)), np.empty(len(arms)), np.empty(count, np.int64)
        theta, counts = np.zeros((count, self._dim)), np.zeros((count, 2), np.int64)
        checked_users = np.array([user for user, _ in choices], np.int64)
        kernel.explain(self._state, checked_users, ends, arms, estimate, bonus, chosen, theta, counts)
        scale = self._reward_scale
        if not scale.is_identity:
            estimate, bonus, theta = scale.unmap_scores(estimate, bonus, theta)
        explanations = []
        for i, (arm, stop) in enumerate(zip(chosen.tolist(), ends.tolist(), strict=True)):
            user, offered = choices[i]
            self._check_arm(arm, user, offered)
            own = slice(stop - len(offered), stop)
            source = EvidenceSource("neighbourhood", None, 1.0, *counts[i].tolist())
            explanations.append(
                Explanation(arm, estimate[own], bonus[own], theta[i], (source,), scale.low, self.memberships(user))
            )
        return explanations

    def add_users(self, count: int) -> None:
        """Add ``count`` users."""
        new = self._n_users + check_int("count", count, 0)
        state = self._state
        if new > len(state.served):
            blanks = {"estimates": initial_estimates(1, self._dim)}
            self._state = state._replace(
                **grow_rows(state, self._user_rows, grown_capacity(len(state.served), new), blanks)
            )
        self._n_users = self._parameters["n_users"] = self._state.int_params[N_USERS] = new

    def _own_estimates(self, users: Ints) -> Callable[[], Floats]:  # noqa: ARG002 - raises for all users
        raise UnavailableError(
            "certificates need estimates from the rewards of each user alone, but users of CAB also learn the rewards "
            "of similar users; use another policy, such as LOCB"
        )

    def _rebuild_derived(self) -> None:
        self._state.int_params[N_USERS] = self._n_users

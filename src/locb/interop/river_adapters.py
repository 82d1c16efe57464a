"""Adapter for river: a policy of locb with the interface of contextual bandits."""

from __future__ import annotations

from typing import Any

from river.bandit.base import ContextualPolicy

from locb.common.validation import ParameterError
from locb.interop.policy_adapter import PolicyAdapter
from locb.policies import Policy

ARMS = "arms"  # key of the features of the arms in a context


class RiverPolicy(ContextualPolicy):  # type: ignore[misc]  # the type of the base class is not known
    """Contextual bandit policy of river that uses a policy of locb: ``pull`` chooses an arm, ``update`` learns.

    The context is a dictionary. Its key "user" has the user; without it, there is one user. Its key "arms" has one row
    of features per arm, in the order of the arms. Without it, the other entries of the context are features, which are
    learned for each arm separately. Users get the indices of the policy as with ``CobaLearner``.

    Parameters
    ----------
    policy : Policy or str
        A policy, which learns in place, or a name in ``locb.POLICIES``.
    dim : int, optional
        Number of features, for a name. By default, the length of the first row of features under the key "arms".
    n_users : int, optional
        Initial number of users, for a name. By default, users are added as they arrive, and the first ``n_seeds`` users
        (30 by default) become seed users if the policy has seed users, as in ``locb.Recommender``.
    **parameters
        Further parameters of the policy, for a name.

    Examples
    --------
    >>> policy = RiverPolicy("linucb-ind", dim=16)
    >>> arm = policy.pull(["drama", "crime"], context={"user": "ann", "hour": 9})
    >>> policy.update(arm, {"user": "ann", "hour": 9}, 1.0)
    """

    def __init__(
        self, policy: Policy | str, *, dim: int | None = None, n_users: int | None = None, **parameters: Any
    ) -> None:
        super().__init__()
        self._adapter = PolicyAdapter(policy, dim=dim, n_users=n_users, **parameters)
        self._new_users = policy.n_users if isinstance(policy, Policy) else None
        self._offered: list[Any] = []

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self._adapter.policy

    @property
    def user_ids(self) -> list[Any]:
        """Id of the user at each index of the policy; None for an index without a user."""
        return self._adapter.user_ids

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> RiverPolicy:
        """Return an untrained copy. The arguments are not used."""
        del new_params, include_attributes
        if self._new_users is None:
            return RiverPolicy(**self._adapter.arguments)
        policy = self._adapter.policy
        return RiverPolicy(type(policy)(**policy.get_params() | {"n_users": self._new_users}))

    def _pull(self, arm_ids: Any, context: dict[str, Any] | None = None) -> Any:
        self._offered = list(arm_ids)
        return self._offered[self._adapter.choose(*self._split(self._offered, context))]

    def update(self, arm_id: Any, context: dict[str, Any] | None, reward: float, **_: Any) -> None:
        """Learn the reward of an arm. If the context has features of arms, they are those of the last ``pull``."""
        offered = self._offered if ARMS in (context or {}) else [arm_id]
        if arm_id not in offered:
            raise ParameterError("arm_id", f" must be one of the arms of the last pull, not {arm_id!r}")
        described, arms = self._split(offered, context)
        self._adapter.learn(described, arms[offered.index(arm_id)], reward)
        super().update(arm_id, context, reward)

    def _split(self, arm_ids: list[Any], context: dict[str, Any] | None) -> tuple[dict[str, Any], list[Any]]:
        """Return the context without the features of the arms, and the arms: their features, or their ids."""
        described = dict(context or {})
        arms = described.pop(ARMS, None)
        if arms is None:
            return described, arm_ids
        if len(arms) != len(arm_ids):
            raise ParameterError("context", f" must have one row of {ARMS!r} per arm, {len(arm_ids)}, not {len(arms)}")
        return described, list(arms)

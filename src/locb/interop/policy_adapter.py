"""Adapter of a policy for libraries in which users, contexts and actions have other types than in locb."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.common.feature_hashing import features
from locb.common.validation import ParameterError
from locb.policies import Policy, make_policy
from locb.policies.base.capabilities import SupportsNewUsers

USER = "user"  # key of the user in a context that is a mapping


class PolicyAdapter:
    """A policy with users of any id, and contexts and actions as numbers, texts, sequences or mappings.

    A user who is an integer below the initial ``n_users`` of the policy keeps this index. Any other id gets the next
    index, for which a user is added to the policy.

    Parameters
    ----------
    policy : Policy or str
        The policy, which learns in place; or the name of a policy, which is created.
    dim, n_users : int, optional
        Number of features and initial number of users, for a name.
    **parameters
        Further parameters of the policy, for a name.
    """

    def __init__(
        self, policy: Policy | str, *, dim: int | None = None, n_users: int | None = None, **parameters: Any
    ) -> None:
        if isinstance(policy, str):
            if dim is None:
                raise ParameterError(
                    "dim", f" is required if policy is a name ({policy!r}): pass the number of features of an arm"
                )
            policy = make_policy(policy, n_users=1 if n_users is None else n_users, dim=dim, **parameters)
        elif dim is not None or n_users is not None or parameters:
            given = ", ".join([*(["dim"] if dim is not None else []), *(["n_users"] if n_users else []), *parameters])
            raise ParameterError("policy", f" {policy!r} has its own parameters; omit {given}")
        if not isinstance(policy, Policy):
            raise ParameterError("policy", f" must be a locb.Policy or the name of one, not {policy!r}")
        self.policy = policy
        self._first_users = policy.n_users
        self._index: dict[Hashable, int] = {}

    def user_index(self, user: Any) -> int:
        """Return the index of a user, and add an unknown user to the policy."""
        if isinstance(user, Integral) and 0 <= int(user) < self._first_users:
            return int(user)
        if user not in self._index:
            if not isinstance(self.policy, SupportsNewUsers):
                unknown = f" {user!r} is unknown, and the policy does not support new users"
                raise ParameterError("user", f"{unknown}; use a user from 0 to {self._first_users - 1}")
            self._index[user] = self.policy.n_users
            self.policy.add_users(1)
        return self._index[user]

    def choose(self, context: Any, actions: Sequence[Any]) -> int:
        """Return the position of the recommended action."""
        user, described = split_context(context)
        return int(self.policy.recommend(self.user_index(user), self.encode(described, actions)))

    def learn(self, context: Any, action: Any, reward: float) -> None:
        """Learn the reward of an action."""
        user, described = split_context(context)
        self.policy.update(self.user_index(user), self.encode(described, [action])[0], float(reward))

    def encode(self, described: Mapping[str, Any], actions: Sequence[Any]) -> Floats:
        """Return the features of each action, (k, dim).

        Actions that are sequences of ``dim`` numbers, in a context without features, are used as they are. Otherwise,
        the features of the action, and those of the context in combination with the action, are hashed with
        ``locb.features``.
        """
        dim = self.policy.dim
        if not described and all(_is_vector(action, dim) for action in actions):
            return np.array([list(action) for action in actions], dtype=np.float64)
        return np.array([features(_combine(described, action), dim) for action in actions])


def split_context(context: Any) -> tuple[Any, dict[str, Any]]:
    """Return the user and the features of a context.

    None is user 0 without features. An integer or a text is the user. A mapping may have the user under the key "user".
    The numbers of a sequence, or a number with decimals, are features of user 0.

    Examples
    --------
    >>> split_context({"user": "ann", "hour": 9}), split_context((0.5, 1.0)), split_context(7)
    (('ann', {'hour': 9}), (0, {'x0': 0.5, 'x1': 1.0}), (7, {}))
    """
    if context is None:
        return 0, {}
    if isinstance(context, str | Integral):
        return context, {}
    if isinstance(context, Mapping):
        return context.get(USER, 0), {str(key): value for key, value in context.items() if key != USER}
    values = [context] if isinstance(context, Real) else list(context)
    return 0, {f"x{index}": value for index, value in enumerate(values)}


def _is_vector(action: Any, dim: int) -> bool:
    if isinstance(action, str | Mapping | Real) or not hasattr(action, "__len__") or len(action) != dim:
        return False
    return all(isinstance(value, Real) for value in action)


def _combine(described: Mapping[str, Any], action: Any) -> dict[str, Any]:
    """Return the features of an action in a context, by name."""
    if isinstance(action, Mapping):
        own = {f"action {key}": value for key, value in action.items()}
    elif isinstance(action, str | Real):
        own = {"action": str(action)}
    else:
        own = {f"action {index}": value for index, value in enumerate(action)}
    name = ",".join(f"{key}={value}" for key, value in own.items())
    return own | {f"{name} {key}": value for key, value in described.items()}

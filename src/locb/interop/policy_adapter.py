"""Adapter of a policy for libraries in which users, contexts and actions have other types than in locb."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.common.feature_hashing import features
from locb.common.validation import ParameterError, check_int
from locb.policies import Policy, make_policy
from locb.policies.base.capabilities import SupportsEstimates, SupportsNewUsers
from locb.policies.parameters import DEFAULT_SEEDS
from locb.policies.registry import policy_spec

USER = "user"  # key of the user in a context that is a mapping


class PolicyAdapter:
    """A policy with users of any id, and contexts and actions as numbers, texts, sequences or mappings.

    With ``n_users`` or a policy object, a user who is an integer below the initial number of users keeps this index.
    Any other user gets the first index without a user and without rewards, or a new index, for which a user is added to
    the policy. Without ``n_users``, this applies to all users, and the first users become seed users.

    Parameters
    ----------
    policy : Policy or str
        The policy, which learns in place; or the name of a policy, which is created.
    dim : int, optional
        Number of features, for a name. By default, the length of the first action, which must be a sequence of numbers;
        the policy is then created when this action is encoded.
    n_users : int, optional
        Initial number of users, for a name.
    **parameters
        Further parameters of the policy, for a name.
    """

    def __init__(
        self, policy: Policy | str, *, dim: int | None = None, n_users: int | None = None, **parameters: Any
    ) -> None:
        self._policy: Policy | None = None
        self._index: dict[Hashable, int] = {}  # of each user
        self._ids: dict[int, Hashable] = {}  # of each index with a user
        self._free: list[int] | None = None  # indices for new users, in descending order; None until they are needed
        if isinstance(policy, str):
            policy_spec(policy)
            self.arguments = {"policy": policy, "dim": dim, "n_users": n_users, **parameters}
            self._integers = n_users or 0  # integers below this number are indices
            if dim is not None:
                self._create(dim)
            return
        if dim is not None or n_users is not None or parameters:
            given = ", ".join([*(["dim"] if dim is not None else []), *(["n_users"] if n_users else []), *parameters])
            raise ParameterError("policy", f" {policy!r} has its own parameters; omit {given}")
        if not isinstance(policy, Policy):
            raise ParameterError("policy", f" must be a locb.Policy or the name of one, not {policy!r}")
        self._policy, self._integers, self.arguments = policy, policy.n_users, {"policy": policy}

    @property
    def policy(self) -> Policy:
        """The policy. Raise a ValueError if it waits for the first action, whose length is its number of features."""
        if self._policy is None:
            needed = f" is required if policy is a name ({self.arguments['policy']!r})"
            raise ParameterError("dim", f"{needed}, unless the first action is a sequence of numbers")
        return self._policy

    @property
    def name(self) -> str:
        """Text that describes the policy, also before it is created."""
        if self._policy is not None:
            return repr(self._policy)
        return str(getattr(policy_spec(self.arguments["policy"]).policy_class, "__name__", self.arguments["policy"]))

    @property
    def user_ids(self) -> list[Any]:
        """Id of the user at each index of the policy; None for an index without a user."""
        return [self._ids.get(index) for index in range(self.policy.n_users)]

    def _create(self, dim: int) -> None:
        """Create the policy. Without ``n_users``, the first users who arrive become seed users, as in a service."""
        name, n_users = self.arguments["policy"], self.arguments["n_users"]
        parameters = {key: value for key, value in self.arguments.items() if key not in ("policy", "dim", "n_users")}
        spec = policy_spec(name)
        if n_users is None and spec.has_seeds and not {"seeds", "late_seeds"} & set(parameters):
            parameters = {"n_seeds": DEFAULT_SEEDS, **parameters}
            check_int("n_seeds", parameters["n_seeds"], 1)
            capacity = spec.initial_capacity(parameters)
            self._policy = spec.make_for_service(n_users=capacity, dim=dim, parameters=parameters)
        else:
            self._policy = make_policy(name, n_users=1 if n_users is None else n_users, dim=dim, **parameters)
        self._free = list(range(self._policy.n_users))[::-1]

    def user_index(self, user: Any) -> int:
        """Return the index of a user, and assign an index to an unknown user."""
        index = self._index.get(user)
        if index is None:
            index = self._new_index(user)
            self._index[user], self._ids[index] = index, user
        return index

    def _new_index(self, user: Any) -> int:
        if isinstance(user, Integral) and 0 <= int(user) < self._integers and int(user) not in self._ids:
            return int(user)
        policy = self.policy
        if self._free is None:
            self._free = _indices_without_rewards(policy)
        while self._free:
            index = self._free.pop()
            if index not in self._ids:
                return index
        if not isinstance(policy, SupportsNewUsers):
            unknown = f" {user!r} is unknown, and the policy does not support new users"
            raise ParameterError("user", f"{unknown}; use a user from 0 to {policy.n_users - 1}")
        policy.add_users(1)
        return policy.n_users - 1

    def choose(self, context: Any, actions: Sequence[Any]) -> int:
        """Return the position of the recommended action."""
        user, described = split_context(context)
        contexts = self.encode(described, actions)
        return int(self.policy.recommend(self.user_index(user), contexts))

    def learn(self, context: Any, action: Any, reward: float) -> None:
        """Learn the reward of an action."""
        user, described = split_context(context)
        features_of_action = self.encode(described, [action])[0]
        self.policy.update(self.user_index(user), features_of_action, float(reward))

    def encode(self, described: Mapping[str, Any], actions: Sequence[Any]) -> Floats:
        """Return the features of each action, (k, dim).

        Actions that are sequences of numbers, in a context without features, are used as they are. Otherwise, the
        features of the action, and those of the context in combination with the action, are hashed with
        ``locb.features``. Raises a ValueError if a sequence that is used as it is has another length than ``dim``.
        """
        are_vectors = not described and all(map(_is_vector, actions))
        if self._policy is None and are_vectors and len(actions):
            self._create(len(actions[0]))
        dim = self.policy.dim
        if not are_vectors:
            return np.array([features(_combine(described, action), dim) for action in actions])
        for action in actions:
            if len(action) != dim:
                raise ParameterError("actions", f" must have {dim} features, the dim of the policy, not {len(action)}")
        return np.array([list(action) for action in actions], dtype=np.float64)


def _indices_without_rewards(policy: Policy) -> list[int]:
    """Return the indices without rewards in descending order; [] if the policy does not count its rounds."""
    if not isinstance(policy, SupportsEstimates):
        return []
    served = policy.user_batch(np.arange(policy.n_users)).served
    return [int(index) for index in np.flatnonzero(served == 0)[::-1]]


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


def _is_vector(action: Any) -> bool:
    if isinstance(action, str | Mapping | Real) or not hasattr(action, "__len__"):
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

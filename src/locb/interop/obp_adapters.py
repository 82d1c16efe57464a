"""Adapter for the Open Bandit Pipeline (OBP): a policy of locb with the interface of its contextual policies."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import check_array, check_int
from locb.interop.policy_adapter import PolicyAdapter
from locb.policies import Policy


class ObpPolicy:
    """Contextual policy of OBP that uses a policy of locb, for the replay and the simulator of OBP.

    The features of an action are those of the context in the block of the action: a linear model per action, as in the
    policies of OBP. With ``action_context``, they are the products of the features of the context and of the action.

    Parameters
    ----------
    policy : str
        A name in ``locb.POLICIES``.
    dim : int
        Number of features of a context of OBP.
    n_actions : int
        Number of actions.
    action_context : (n_actions, m) floats, optional
        Features of the actions.
    user_column : int, optional
        Column of the context with the number of the user, which is then no feature. By default, there is one user.
    n_users : int, optional
        Initial number of users. The default is 1 without ``user_column``. With it, users are added as they arrive, and
        the first users become seed users, as with ``CobaLearner``.
    **parameters
        Further parameters of the policy.
    """

    def __init__(
        self,
        policy: str,
        *,
        dim: int,
        n_actions: int,
        action_context: Any = None,
        user_column: int | None = None,
        n_users: int | None = None,
        **parameters: Any,
    ) -> None:
        self.dim, self.n_actions, self.len_list, self.batch_size = dim, n_actions, 1, 1
        self._user_column = None if user_column is None else check_int("user_column", user_column, 0, dim - 1)
        self._items = np.eye(n_actions) if action_context is None else np.asarray(action_context, np.float64)
        check_array("action_context", self._items, (n_actions, None))
        used = dim - (self._user_column is not None)
        n_users = 1 if n_users is None and user_column is None else n_users
        self._setup = {"dim": used * self._items.shape[1], "n_users": n_users, **parameters}
        self._name = policy
        self.initialize()

    def initialize(self) -> None:
        """Discard everything that was learned."""
        self._adapter = PolicyAdapter(self._name, **self._setup)
        self.n_trial, self.action_counts = 0, np.zeros(self.n_actions, np.int64)

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self._adapter.policy

    @property
    def policy_name(self) -> str:
        """Name of the policy in OBP."""
        return f"locb_{self._name}"

    @property
    def policy_type(self) -> Any:
        """Type of the policy in OBP, contextual."""
        return import_module("obp.policy.policy_type").PolicyType.CONTEXTUAL

    def select_action(self, context: Any) -> Ints:
        """Return an array with the recommended action, for a context (1, dim)."""
        user, arms = self._encode(context)
        return np.array([self.policy.recommend(user, arms)])

    def update_params(self, action: int, reward: float, context: Any) -> None:
        """Learn the reward of an action in a context (1, dim)."""
        user, arms = self._encode(context)
        self.policy.update(user, arms[int(action)], float(reward))
        self.n_trial += 1
        self.action_counts[int(action)] += 1

    def _encode(self, context: Any) -> tuple[int, Floats]:
        row = check_array("context", context, (1, self.dim))[0]
        user = 0
        if self._user_column is not None:
            user = int(row[self._user_column])
            row = np.delete(row, self._user_column)
        arms = np.einsum("am,p->amp", self._items, row).reshape(self.n_actions, -1)
        return self._adapter.user_index(user), np.ascontiguousarray(arms)

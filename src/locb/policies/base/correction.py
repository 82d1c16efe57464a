"""Mixin that replaces rewards that a policy has already learned."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from locb.common.arrays import Floats
from locb.common.validation import check_array, check_float
from locb.policies.base.inspectable import InspectablePolicy
from locb.policies.parameters import MAX_REWARDS


class CorrectionMixin(InspectablePolicy):
    """Mixin that adds ``correct`` to a policy whose estimates depend on rewards only through b = Σ reward · context."""

    def correct(self, user: int, context: Any, learned: float, reward: float) -> None:
        """Replace the reward ``learned`` of an earlier observation of ``context`` by ``reward``.

        Estimates become what they would be with the new reward: b changes by (reward − learned) · context, and all
        quantities that depend on b are updated. The number of rounds does not change. Clusters change only in later
        rounds.

        Parameters
        ----------
        user : int
            The user, from 0 to ``n_users`` − 1, with at least one observation.
        context : (d,) array_like
            The features of the observation.
        learned : float
            The reward that the policy has learned for this observation. The policy cannot check this value.
        reward : float
            The correct reward.

        Raises
        ------
        ValueError
            If an argument is invalid, or if the user has no observations.
        """
        user = self.check_user(user)
        context = check_array("context", context, (self._dim,))
        limit = MAX_REWARDS[self._parameters["dtype"]]
        learned = check_float("learned", learned, -limit, limit)
        reward = check_float("reward", reward, -limit, limit)
        if self._state.served[user] == 0:
            raise ValueError(f"user {user} has no observations, so there is no reward to correct; call update first")
        scale = self._reward_scale
        change = scale.map_one("reward", reward, limit) - scale.map_one("learned", learned, limit)
        self._shift_sums(user, change * context)
        low, high = scale.passed
        if not low <= reward <= high:
            scale.check(reward)

    @abstractmethod
    def _shift_sums(self, user: int, change: Floats) -> None:
        """Add ``change`` (d,) to the sum b of a user, and update everything that depends on b."""

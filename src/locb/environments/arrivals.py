"""Arrival of users: which user each round of a synthetic environment serves."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError, check_choice, check_float, check_int

ARRIVALS = ("uniform", "zipf")
_LATE = 6  # key of the random generator of late users; synthetic.py lists the keys of the other generators


class Arrivals:
    """Distribution of the users over the rounds.

    Parameters
    ----------
    weights : (n,) array of float
        Relative frequency of each user.
    late_share, late_after : float and int
        Share of the users who arrive only from round ``late_after`` on.
    seed : int
        Random seed of the environment, which determines the late users.

    Attributes
    ----------
    late_users : (count,) array of int
        The users who arrive late, in ascending order.

    Raises
    ------
    ValueError
        If the share or the round is out of range, or if every user would be late.
    """

    def __init__(self, weights: Floats, late_share: Any, late_after: Any, seed: int) -> None:
        share = check_float("late_share", late_share, 0.0, 1.0)
        self.late_after = check_int("late_after", late_after, 0)
        count = round(share * len(weights))
        if count == len(weights):
            message = (
                f" must be smaller, not {share:g}: all {len(weights)} users would be late, but at least 1 must not be"
            )
            raise ParameterError("late_share", message)
        self.late_users: Ints = np.empty(0, np.int64)
        self._cumulative = np.cumsum(weights / weights.sum())  # (n,)
        self._cumulative_early = self._cumulative
        if count:
            rng = np.random.default_rng([seed, _LATE])
            self.late_users = np.sort(rng.choice(len(weights), size=count, replace=False))
            early = weights.copy()
            early[self.late_users] = 0.0
            self._cumulative_early = np.cumsum(early / early.sum())

    def draw(self, rng: np.random.Generator, count: int, start: int) -> Ints:
        """Return the users of rounds ``start`` to ``start + count − 1``, counted from 0 and drawn with ``rng``."""
        points = rng.random(count)
        users = self._users_at(self._cumulative, points)
        early = min(max(self.late_after - start, 0), count) if self.late_users.size else 0
        users[:early] = self._users_at(self._cumulative_early, points[:early])
        return users

    @staticmethod
    def _users_at(cumulative: Floats, points: Floats) -> Ints:
        """Return the user at each point from 0 to 1 of a cumulative distribution."""
        last = np.searchsorted(cumulative, cumulative[-1])  # the last user whose weight is not 0
        users: Ints = np.minimum(np.searchsorted(cumulative, points, side="right"), last)
        return users


def draw_weights(rng: np.random.Generator, n_users: int, arrivals: Any) -> Floats:
    """Return the relative frequency of each user (n_users,): equal, or 1/rank in a random order for "zipf"."""
    if check_choice("arrivals", arrivals, ARRIVALS) == "uniform":
        return np.ones(n_users)
    weights: Floats = 1.0 / rng.permutation(np.arange(1, n_users + 1))
    return weights

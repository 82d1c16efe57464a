"""Environment of recorded rewards: each round offers items for which the user has a reward of any size."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.item_contexts import NO_ARM
from locb.common.rounds import Rounds
from locb.common.validation import MAX_REWARD, check_array, check_int
from locb.environments.recorded_users import RecordedUsers, check_integers, ridge_estimates

DEFAULT_ARMS = 10


class RecordedRewards(RecordedUsers):
    """Environment of recorded rewards: each round offers items for which the user has a reward of any size.

    Round t belongs to record t of the users of the environment, in the order of the records, and offers the item of the
    record with its reward. The other arms are random items of further records of the same user, with the mean of their
    rewards. All rewards of a round are therefore known, and the random seed changes only the other arms and their
    order. A user with records of fewer than ``n_arms`` items has rounds with fewer arms.

    The rewards are no estimate of what a policy would earn with all items, because users have rewards only for items
    that were shown to them. :func:`locb.evaluate` computes such estimates.

    Parameters
    ----------
    users, items : (r,) ints
        User and item of each of r records in the order of time, numbered from 0.
    rewards : (r,) floats
        Reward of each record.
    item_features : (items, d) floats
        The d features of each item.
    n_users : int, default 100
        Number of users: the eligible users with the most records. A user is eligible if the mean rewards of at least
        two items differ. If there are fewer eligible users, a warning is issued.
    n_arms : int, optional
        Largest number of arms per round, at least 2. The default is 10, or the largest number of items of a user if
        that is smaller.

    Attributes
    ----------
    user_ids : (n,) ints
        The number that each of the n users of the environment has in ``users``.
    user_names, item_names : list of str
        Names of the users and of all items. By default, their numbers as text.
    theta : (n, d) floats
        Ridge estimate θ of each user from the records of the user. The true clusters are computed from ``theta``.
    records_per_user : (n,) ints
        Number of records, and therefore of rounds, of each user.
    excluded_users : dict
        Number of users who are not eligible, by reason: "fewer than two items" or "equal rewards for all items".
    max_rounds : int
        Number of records of the users of the environment.

    Examples
    --------
    >>> env = RecordedRewards([0, 1, 0, 1], [0, 1, 2, 2], [12.5, 3.0, 0.0, 8.0], np.eye(3), n_users=2)
    >>> rounds = env.rounds(4)
    >>> env, rounds.users.tolist(), rounds.rewards.max(axis=1).tolist()
    (RecordedRewards(2 users, 2 arms per round, 3 features), [0, 1, 0, 1], [12.5, 8.0, 12.5, 8.0])
    """

    max_rounds: int

    def __init__(
        self, users: Any, items: Any, rewards: Any, item_features: Any, *, n_users: int = 100, n_arms: int | None = None
    ) -> None:
        self.item_features: Floats = check_array("item_features", item_features, (None, None))
        n_items, self.dim = self.item_features.shape
        user = check_integers("users", users, None)
        item = check_integers("items", items, n_items).astype(np.int64)
        reward = check_array("rewards", rewards, (len(user),), MAX_REWARD, f", because users has length {len(user)}")
        if len(item) != len(user):
            raise ValueError(f"items must have as many elements as users, {len(user)}, not {len(item)}")
        self.user_ids = self._select_users(user, item, reward, check_int("n_users", n_users, 1))
        self.n_users = len(self.user_ids)
        index_of = np.full(int(user.max()) + 1, -1)
        index_of[self.user_ids] = np.arange(self.n_users)
        kept = np.flatnonzero(index_of[user] >= 0)
        self._users: Ints = index_of[user[kept]]
        self._items, self._rewards, self.max_rounds = item[kept], reward[kept], len(kept)
        pairs, self._pair, counts = np.unique(
            self._users * n_items + self._items, return_inverse=True, return_counts=True
        )
        self._item_of_pair = pairs % n_items  # pairs of a user and an item, sorted by user
        self._mean_of_pair: Floats = np.bincount(self._pair, self._rewards) / counts
        self._first_pair = np.searchsorted(pairs // n_items, np.arange(self.n_users + 1))
        largest = int(np.diff(self._first_pair).max())
        self.n_arms = min(DEFAULT_ARMS, largest) if n_arms is None else min(check_int("n_arms", n_arms, 2), largest)
        self.records_per_user = np.bincount(self._users, minlength=self.n_users).astype(np.int64)
        weight = np.ones(len(kept), np.int64)
        self.theta = ridge_estimates(self._users, self._items, self._rewards, weight, self.item_features, self.n_users)
        self.user_names = [str(user_id) for user_id in self.user_ids]
        self.item_names: list[str] = [str(number) for number in range(n_items)]
        self.about: dict[str, Any] = {}

    def _select_users(self, user: Any, item: Ints, reward: Floats, n_users: int) -> Ints:
        """Return the eligible users with the most records."""
        if len(user) == 0:
            raise ValueError("users, items and rewards must have at least one element, not 0")
        pairs, pair, counts = np.unique(
            user.astype(np.int64) * len(self.item_features) + item, return_inverse=True, return_counts=True
        )
        owner, means = pairs // len(self.item_features), np.bincount(pair, reward) / counts
        records = np.bincount(user)
        n_items = np.bincount(owner, minlength=len(records))
        low, high = np.full(len(records), np.inf), np.full(len(records), -np.inf)
        np.minimum.at(low, owner, means)
        np.maximum.at(high, owner, means)
        reasons = {
            "fewer than two items": int(((records > 0) & (n_items < 2)).sum()),
            "equal rewards for all items": int(((n_items >= 2) & (low == high)).sum()),
        }
        self.excluded_users = {reason: count for reason, count in reasons.items() if count}
        excluded = ", ".join(f"{reason}: {count:,}" for reason, count in self.excluded_users.items())
        eligible = np.flatnonzero(low < high)
        if not eligible.size:
            raise ValueError(
                "no user is eligible; an eligible user has different rewards for at least two items (number of users "
                f"with {excluded})"
            )
        selected = np.argsort(-records[eligible], kind="stable")[:n_users]
        if len(selected) < n_users:
            message = f"n_users is {n_users}, but the number of eligible users is {len(selected)}"
            warnings.warn(f"{message}{f' (excluded users: {excluded})' if excluded else ''}", stacklevel=3)
        found: Ints = eligible[selected]
        return found

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """Return the first ``count`` rounds. The other arms are drawn with ``rng``."""
        return self.draw_at(rng, count, 0)

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> Rounds:
        """Return rounds ``start`` to ``start + count − 1``, or fewer at the end, with other arms drawn with ``rng``."""
        records = slice(start, min(start + count, self.max_rounds))
        users = self._users[records]
        first = self._first_pair[users]
        own = self._pair[records] - first  # position of the item of the record among the items of the user
        others = draw_subsets_of(rng, self._first_pair[users + 1] - first - 1, self.n_arms - 1)
        others[others >= own[:, None]] += 1
        positions = np.concatenate([own[:, None], others], axis=1)
        keys = np.where(positions >= 0, rng.random(positions.shape), 2.0)
        positions = np.take_along_axis(positions, np.argsort(keys, axis=1), axis=1)
        is_arm, pairs = positions >= 0, first[:, None] + positions
        pairs[~is_arm] = 0
        arms = np.where(is_arm, self._item_of_pair[pairs], NO_ARM).astype(np.int32)
        is_own = positions == own[:, None]
        rewards = np.where(is_own, self._rewards[records, None], self._mean_of_pair[pairs])
        rewards[~is_arm] = np.nan
        names = {"user_ids": self.user_names, "arm_ids": self.item_names}
        return Rounds.of_items(users, self.item_features, rewards, arms=arms, **names)


def draw_subsets_of(rng: np.random.Generator, populations: Ints, size: int) -> Ints:
    """Return random subsets of 0 to population − 1, one row per population, (T, size).

    A row has ``size`` different numbers, or all numbers followed by −1 if there are fewer. Floyd's algorithm, as in
    :func:`locb.environments.arm_features.draw_subsets`.
    """
    wanted = np.minimum(size, populations)
    chosen = np.full((len(populations), size), NO_ARM, np.int64)
    for index in range(size):
        is_drawn = index < wanted
        last = np.where(is_drawn, populations - wanted + index, 0)
        drawn = rng.integers(last + 1)
        repeated = (chosen[:, :index] == drawn[:, None]).any(axis=1)
        chosen[:, index] = np.where(is_drawn, np.where(repeated, last, drawn), NO_ARM)
    return chosen

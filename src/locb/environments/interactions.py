"""Environment of recorded interactions: which user liked which item."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError, check_array
from locb.environments.recorded_users import RecordedUsers, check_integers, ridge_estimates
from locb.kernels import interaction_sampling as sampling
from locb.kernels.common.bit_sets import pack_bit_indices

DEFAULT_ARMS = 10
ZEROS = {"any": sampling.ANY, "rated": sampling.RATED, "shown": sampling.RATED}


class Interactions(RecordedUsers):
    """Environment of recorded interactions: each round offers one item that the user liked, and items with reward 0.

    Parameters
    ----------
    users, items : (r,) ints
        User and item of each of r records, numbered from 0.
    rewards : (r,) ints
        1 if the user liked the item, else 0.
    item_features : (items, d) floats
        The d features of each item.
    n_users : int, default 100
        Size of the pool, the users of the environment. The pool consists of the eligible users with the most records.
        A user is eligible if there is at least one liked item, and at least one item that can be an arm with reward 0.
        If there are fewer eligible users, the pool has all of them, and a warning is issued.
    n_arms : int, optional
        Arms per round, at least 2: one liked item, and n_arms − 1 items with reward 0. The default is 10, or the number
        of items if there are fewer. If a user has too few items with reward 0, an item can appear twice in a round.
    zeros : {"any", "rated", "shown"}, default "any"
        Which items can be arms with reward 0 for a user. "any": all items that the user never liked, with or without a
        record of the user. "rated": items that have a record of the user, but no like. "shown": items that have a
        record of the user with reward 0, even if the user liked the item in another record. Use "shown" for click logs.
    counts : (r,) ints, optional
        Number of occurrences of each record, at least 1. By default, each record occurred once.
    excluded : (users, items), optional
        Two arrays of the same length: pairs of a user and an item that are never an arm of this user. Use it for
        records from which ``item_features`` were computed, because such features would reveal the reward.

    Attributes
    ----------
    user_ids : (n,) ints
        The number that each of the n users of the pool has in ``users``.
    user_names : list of str
        Name of each user of the pool in the data set. By default, the numbers of ``user_ids`` as text.
    theta : (n, d) floats
        Ridge estimate θ of each user from all records of the user. The true clusters are computed from ``theta``.
    records_per_user : (n,) ints
        Number of records of each user of the pool, counted with ``counts``.
    excluded_users : dict
        Number of users who are not eligible, by reason: "no liked item" or "no zero-reward item". Reasons without users
        are omitted.
    about : dict
        Facts about the data set, set by the readers in :mod:`locb.datasets`; empty by default.

    Examples
    --------
    >>> env = Interactions([0, 0, 0, 1, 1], [0, 1, 2, 0, 2], [1, 0, 0, 0, 1], np.eye(3), n_users=2, n_arms=2)
    >>> rounds = env.rounds(4, seed=1)
    >>> rounds.rewards.sum(axis=1).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        users: Any,
        items: Any,
        rewards: Any,
        item_features: Any,
        *,
        n_users: int = 100,
        n_arms: int | None = None,
        zeros: str = "any",
        counts: Any = None,
        excluded: tuple[Any, Any] | None = None,
    ) -> None:
        self.item_features: Floats = check_array("item_features", item_features, (None, None))
        self.n_arms, self.zeros = _check_options(n_users, n_arms, zeros, len(self.item_features)), zeros
        n_items, self.dim = self.item_features.shape
        user, item, liked, weight = _check_records(users, items, rewards, counts, n_items)
        zero = ~liked  # records that may be arms with reward 0
        if zeros == "rated":
            pair = user.astype(np.int64) * n_items + item
            zero &= ~np.isin(pair, pair[liked])
        never = (np.empty(0, np.int64), np.empty(0, np.int64))
        if excluded is not None:
            never = check_integers("excluded", excluded[0], None), check_integers("excluded", excluded[1], n_items)
            if len(never[0]) != len(never[1]):
                raise ValueError(f"excluded must have as many users as items, not {len(never[0])} and {len(never[1])}")
        # Pairs that cannot have reward 0: likes, and excluded pairs, which cannot be an arm at all.
        blocked = np.concatenate([user[liked], never[0]]), np.concatenate([item[liked], never[1]])
        self.user_ids, self.excluded_users = self._select_pool(user, liked, zero, weight, int(n_users), blocked)
        self.n_users = len(self.user_ids)
        self.user_names: list[str] = [str(user_id) for user_id in self.user_ids]
        self.about: dict[str, Any] = {}

        index_of = np.full(int(max(user.max(), blocked[0].max(initial=0))) + 1, -1)
        index_of[self.user_ids] = np.arange(self.n_users)
        in_pool = index_of[blocked[0]] >= 0
        blocked = index_of[blocked[0][in_pool]], blocked[1][in_pool].astype(np.int64)
        kept = np.flatnonzero(index_of[user] >= 0)
        user, item, liked, zero = index_of[user[kept]], item[kept].astype(np.int64), liked[kept], zero[kept]
        weight = np.ones(len(kept), np.int64) if weight is None else weight[kept].astype(np.int64)
        self.records_per_user: Ints = np.bincount(user, weight, minlength=self.n_users).astype(np.int64)
        self.theta: Floats = ridge_estimates(user, item, liked, weight, self.item_features, self.n_users)
        self._pool = sampling.InteractionPool(
            *_group_by_user(user[liked], item[liked], weight[liked], self.n_users),
            *_group_by_user(user[zero], item[zero], weight[zero], self.n_users),
            pack_bit_indices(*blocked, self.n_users, n_items),
            self.item_features,
        )

    def _select_pool(
        self, user: Any, liked: Any, zero: Any, weight: Any, n_users: int, blocked: tuple[Any, Any]
    ) -> tuple[Ints, dict[str, int]]:
        """Return the eligible users with the most records, and the number of users who are not eligible, by reason.

        ``blocked`` has the users and the items of all pairs that cannot be an arm with reward 0.
        """
        n_items = len(self.item_features)
        if len(user) == 0:
            raise ValueError("users, items and rewards must have at least one element, not 0")
        records = np.bincount(user, weight)
        has_records = np.bincount(user) > 0
        likes = np.bincount(user[liked], minlength=len(records))
        if self.zeros != "any":
            has_zero = np.bincount(user[zero], minlength=len(records)) > 0
        else:
            has_zero = np.bincount(blocked[0], minlength=len(records))[: len(records)] < n_items
            for candidate in np.flatnonzero(~has_zero):  # several pairs may be equal
                has_zero[candidate] = len(np.unique(blocked[1][blocked[0] == candidate])) < n_items
        excluded = {
            "no liked item": int((has_records & (likes == 0)).sum()),
            "no zero-reward item": int(((likes > 0) & ~has_zero).sum()),
        }
        eligible = np.flatnonzero((likes > 0) & has_zero)
        if eligible.size == 0:
            raise ValueError(
                "no user is eligible; an eligible user has at least one liked item and one item with reward 0 "
                f"(number of users with {_format_reasons(excluded)})"
            )
        selected = np.argsort(-records[eligible], kind="stable")[:n_users]
        if len(selected) < n_users:
            reasons = _format_reasons(excluded)
            message = f"n_users is {n_users}, but the number of eligible users is {len(selected)}"
            warnings.warn(f"{message}{f' (excluded users: {reasons})' if reasons else ''}", stacklevel=3)
        return eligible[selected], {reason: count for reason, count in excluded.items() if count}

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """Return ``count`` rounds drawn with ``rng``."""
        users = np.empty(count, np.int64)
        contexts, rewards = np.empty((count, self.n_arms, self.dim)), np.empty((count, self.n_arms))
        generator = rng.integers(0, 2**64, size=1, dtype=np.uint64) | np.uint64(1)
        sampling.draw_rounds(generator, ZEROS[self.zeros], self._pool, users, contexts, rewards)
        return Rounds(users, contexts, rewards)


def _check_options(n_users: Any, n_arms: Any, zeros: Any, n_items: int) -> int:
    """Return the number of arms; raise a ValueError if an option is invalid."""
    for name, value, minimum in (("n_users", n_users, 1), ("n_arms", DEFAULT_ARMS if n_arms is None else n_arms, 2)):
        if not isinstance(value, int | np.integer) or value < minimum:
            raise ParameterError(name, f" must be an integer of at least {minimum}, not {value!r}")
    if zeros not in ZEROS:
        raise ParameterError("zeros", f" must be one of {', '.join(map(repr, ZEROS))}, not {zeros!r}")
    if n_items < 2:
        raise ValueError(f"item_features must have at least 2 rows, one per item, not {n_items}")
    if n_arms is None:
        if n_items < DEFAULT_ARMS:
            message = f"the number of items is {n_items}, so a round has {n_items} arms instead of {DEFAULT_ARMS}"
            warnings.warn(message, stacklevel=3)
        return min(DEFAULT_ARMS, n_items)
    if n_arms > n_items:
        raise ParameterError("n_arms", f" must be at most the number of items, {n_items}, not {n_arms}")
    return int(n_arms)


def _check_records(users: Any, items: Any, rewards: Any, counts: Any, n_items: int) -> tuple[Any, Any, Any, Any]:
    """Return four arrays with the user, item, like (bool) and count of each record; the last is None without counts.

    Raise a ValueError if an array is invalid.
    """
    user = check_integers("users", users, None)
    item = check_integers("items", items, n_items)
    liked = _check_rewards(rewards)
    weight = None if counts is None else check_integers("counts", counts, None)
    for name, array in (("items", item), ("rewards", liked), ("counts", weight)):
        if array is not None and len(array) != len(user):
            raise ValueError(f"{name} must have as many elements as users, {len(user)}, not {len(array)}")
    if weight is not None and weight.size and weight.min() < 1:
        raise ValueError(f"counts must be at least 1, but counts[{weight.argmin()}] is {weight.min()}")
    if len(user) and user.max() >= max(10 * len(user), 100_000_000):
        raise ValueError(
            f"users must be numbered consecutively from 0, but users[{user.argmax()}] is {user.max()} with {len(user)} "
            "records"
        )
    return user, item, liked, weight


def _format_reasons(excluded: dict[str, int]) -> str:
    return ", ".join(f"{reason}: {count:,}" for reason, count in excluded.items() if count)


def _check_rewards(rewards: Any) -> Any:
    """Return ``rewards`` as an array of bool; raise a ValueError unless each reward is 0 or 1."""
    array = np.asarray(rewards)
    if array.ndim == 1 and array.dtype == bool:
        return array
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise ValueError(f"rewards must have one number per record, not {array.dtype} of shape {array.shape}")
    wrong = np.flatnonzero((array != 0) & (array != 1))
    if wrong.size:
        raise ValueError(f"rewards must be 0 or 1, but rewards[{wrong[0]}] is {array[wrong[0]]}")
    return array.astype(bool)


def _group_by_user(user: Ints, item: Ints, weight: Ints, n_users: int) -> tuple[Ints, Ints, Ints]:
    """Return the records sorted by user: the start of each user's records (n_users + 1,), items, cumulative weights.

    Cumulative weights restart at each user. The last start is the number of records.
    """
    order = np.argsort(user, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=n_users))]).astype(np.int64)
    total = np.cumsum(weight[order])
    before = np.concatenate([[0], total])[start[:-1]]
    return start, item[order], total - np.repeat(before, np.diff(start))

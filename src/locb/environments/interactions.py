"""A world made of records: who liked which item. MovieLens, Yelp, Yahoo and any table of likes become this."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.rounds import Rounds, check_array
from locb.environments.base import Environment
from locb.evaluation.clusters import maximum_clique
from locb.kernels import sampling
from locb.kernels.common.bit_sets import pack_bit_indices

ZEROS = {"any": sampling.ANY, "rated": sampling.RATED, "shown": sampling.RATED}


class Interactions(Environment):
    """Users with the most records; a round shows one item that the user liked among others that it did not.

    Parameters
    ----------
    users, items : (r,) ints
        Who met which item in each record, numbered from 0.
    rewards : (r,) 0 or 1
        Whether the user liked it.
    item_features : (items, d) floats
        What an arm of this item looks like.
    n_users : int
        Size of the pool: the users with the most records, among those with a liked item and one that is not.
    n_arms : int
        Arms a round: one liked, the others not.
    zeros : "any", "rated" or "shown"
        The others are any items that the user never liked, met or not; or only items it met and never liked; or items
        of records that were not liked, though the user may have liked the same item another time (for logs of clicks).
    counts : (r,) ints, optional
        How many times each record happened.

    Attributes
    ----------
    user_ids : (n,) ints
        Which of the numbered users each user of the pool is.
    theta : (n, d) floats
        Ridge estimate of each user from all its records: the truth that clusters are judged by.
    left_out : dict
        How many users were left out of the pool, by reason.

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
        n_arms: int = 10,
        zeros: str = "any",
        counts: Any = None,
    ) -> None:
        for name, value, least in (("n_users", n_users, 1), ("n_arms", n_arms, 2)):
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if zeros not in ZEROS:
            raise ValueError(f"zeros must be one of {', '.join(map(repr, ZEROS))}, not {zeros!r}")
        self.item_features: Floats = check_array("item_features", item_features, (None, None))
        n_items, self.dim = self.item_features.shape
        if n_arms > n_items:
            raise ValueError(f"n_arms must be at most the number of items, {n_items}, not {n_arms}")
        who = _codes("users", users, None)
        what = _codes("items", items, n_items)
        liked = _likes(rewards)
        weight = None if counts is None else _codes("counts", counts, None)
        for name, array in (("items", what), ("rewards", liked), ("counts", weight)):
            if array is not None and len(array) != len(who):
                raise ValueError(f"{name} must be as many as users, {len(who)}, not {len(array)}")
        if weight is not None and weight.size and weight.min() < 1:
            raise ValueError(f"counts must be at least 1, but counts[{weight.argmin()}] is {weight.min()}")
        if len(who) and who.max() >= max(10 * len(who), 100_000_000):
            raise ValueError(f"users must be numbered from 0 without such gaps: users[{who.argmax()}] is {who.max()}")
        self.n_arms, self.zeros = int(n_arms), zeros
        pure = ~liked
        if zeros == "rated":  # an item that a user liked once is no zero item of that user
            pair = who.astype(np.int64) * n_items + what
            pure &= ~np.isin(pair, pair[liked])
        self.user_ids, self.left_out = self._choose_pool(who, what, liked, pure, weight, int(n_users), n_items)
        self.n_users = len(self.user_ids)
        self.user_names: list[str] = [str(user) for user in self.user_ids]  # as the data call them, if a reader knows
        self.about: dict[str, Any] = {}  # what a reader says of the data it made this world from

        place = np.full(int(who.max()) + 1, -1)
        place[self.user_ids] = np.arange(self.n_users)
        mine = np.flatnonzero(place[who] >= 0)
        who, what, liked, pure = place[who[mine]], what[mine].astype(np.int64), liked[mine], pure[mine]
        weight = np.ones(len(mine), np.int64) if weight is None else weight[mine].astype(np.int64)
        self.records_per_user: Ints = np.bincount(who, weight, minlength=self.n_users).astype(np.int64)
        self.theta: Floats = _ridge(who, what, liked, weight, self.item_features, self.n_users)
        self._pool = sampling.InteractionPool(
            *_by_user(who[liked], what[liked], weight[liked], self.n_users),
            *_by_user(who[pure], what[pure], weight[pure], self.n_users),
            pack_bit_indices(who[liked], what[liked], self.n_users, n_items),
            self.item_features,
        )

    def _choose_pool(
        self, who: Any, what: Any, liked: Any, pure: Any, weight: Any, n_users: int, n_items: int
    ) -> tuple[Ints, dict[str, int]]:
        """The users with the most records that can be played, and how many could not."""
        if len(who) == 0:
            raise ValueError("users must hold at least one record, not none")
        records = np.bincount(who, weight)
        met = np.bincount(who)
        likes = np.bincount(who[liked], minlength=len(records))
        if self.zeros != "any":
            can_lose = np.bincount(who[pure], minlength=len(records)) > 0
        else:
            can_lose = likes < n_items
            for user in np.flatnonzero(~can_lose):  # as many likes as there are items: of different ones?
                can_lose[user] = len(np.unique(what[liked & (who == user)])) < n_items
        left_out = {
            "no liked item": int(((met > 0) & (likes == 0)).sum()),
            "no zero item": int(((likes > 0) & ~can_lose).sum()),
        }
        playable = np.flatnonzero((likes > 0) & can_lose)
        if playable.size == 0:
            raise ValueError(f"no user can be played: {_told(left_out)}")
        order = np.argsort(-records[playable], kind="stable")[:n_users]
        if len(order) < n_users:
            why = _told(left_out)
            told = f"asked for {n_users} users, but only {len(order)} can be played{f' ({why})' if why else ''}"
            warnings.warn(told, stacklevel=3)
        return playable[order], {reason: count for reason, count in left_out.items() if count}

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """``count`` rounds from this generator."""
        users = np.empty(count, np.int64)
        contexts, rewards = np.empty((count, self.n_arms, self.dim)), np.empty((count, self.n_arms))
        generator = rng.integers(0, 2**64, size=1, dtype=np.uint64) | np.uint64(1)
        sampling.draw_rounds(generator, ZEROS[self.zeros], self._pool, users, contexts, rewards)
        return Rounds(users, contexts, rewards)

    def true_clusters(self, gamma: float = 0.2, n_groups: int = 5) -> list[Ints]:
        """K-means groups of the users' θ, and in each the largest set whose users are all nearer than gamma."""
        if not gamma > 0.0:
            raise ValueError(f"gamma must be above 0, not {gamma!r}")
        return [members[maximum_clique(self.theta[members], gamma)] for members in self.groups(n_groups)]

    def groups(self, n_groups: int = 5) -> list[Ints]:
        """K-means groups of the users' θ; fewer if there are fewer different users."""
        from sklearn.cluster import KMeans

        n_groups = min(n_groups, len(np.unique(self.theta.round(12), axis=0)))
        labels = KMeans(n_groups, n_init=10, random_state=0).fit_predict(self.theta)
        return [np.flatnonzero(labels == group) for group in range(n_groups)]

    def users_in_groups(self, gamma: float, n_groups: int = 5) -> int:
        """How many users the true clusters of at least two hold at this gamma."""
        return sum(len(cluster) for cluster in self.true_clusters(gamma, n_groups) if len(cluster) > 1)

    def scaled_gamma(self, share: float = 0.5, n_groups: int = 5) -> float:
        """The smallest gamma, to 1%, at which true clusters of at least two hold this share of the users.

        Infinite where no gamma does, as with fewer users than groups.
        """
        groups = [self.theta[members] for members in self.groups(n_groups)]

        def held(gamma: float) -> bool:
            sizes = [len(maximum_clique(theta, gamma)) for theta in groups]
            return sum(size for size in sizes if size > 1) >= share * self.n_users

        low, high = 0.0, 1e-3
        while not held(high):
            if high > 1e9:
                return float("inf")
            low, high = high, 2.0 * high
        while high - low > 0.01 * high and high > 1e-9:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if held(middle) else (middle, high)
        # Three digits, upwards, so that what is printed holds.
        digits = 2 - math.floor(math.log10(high))
        return float(math.ceil(high * 10.0**digits) / 10.0**digits)


def _told(left_out: dict[str, int]) -> str:
    """Reasons and counts in words."""
    return ", ".join(f"{reason}: {count:,}" for reason, count in left_out.items() if count)


def _codes(name: str, values: Any, limit: int | None) -> Any:
    """Whole numbers from 0 below ``limit``, one a record."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be one whole number a record, not {array.dtype} of shape {array.shape}")
    if array.size and array.min() < 0:
        raise ValueError(f"{name} must not be negative, but {name}[{array.argmin()}] is {array.min()}")
    if limit is not None and array.size and array.max() >= limit:
        place = int(array.argmax())
        raise ValueError(
            f"{name} must be below {limit}, the rows of item_features, but {name}[{place}] is {array[place]}"
        )
    return array


def _likes(rewards: Any) -> Any:
    """Rewards as Booleans."""
    array = np.asarray(rewards)
    if array.ndim == 1 and array.dtype == bool:
        return array
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise ValueError(f"rewards must be one number a record, not {array.dtype} of shape {array.shape}")
    wrong = np.flatnonzero((array != 0) & (array != 1))
    if wrong.size:
        raise ValueError(f"rewards must be 0 or 1, but rewards[{wrong[0]}] is {array[wrong[0]]}")
    return array.astype(bool)


def _by_user(who: Ints, what: Ints, weight: Ints, n_users: int) -> tuple[Ints, Ints, Ints]:
    """Records grouped by user: where each user's begin (n + 1,), their items, their weights added up in each user."""
    order = np.argsort(who, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(who, minlength=n_users))]).astype(np.int64)
    total = np.cumsum(weight[order])
    before = np.concatenate([[0], total])[start[:-1]]
    return start, what[order], total - np.repeat(before, np.diff(start))


def _ridge(who: Ints, what: Ints, liked: Any, weight: Ints, features: Floats, n_users: int) -> Floats:
    """θ_i = (I + Σ x xᵀ)⁻¹ Σ r x over all records of each user."""
    dim = features.shape[1]
    gram, vector = np.tile(np.eye(dim), (n_users, 1, 1)), np.zeros((n_users, dim))
    order = np.argsort(who, kind="stable")
    bounds = np.cumsum(np.bincount(who, minlength=n_users))[:-1]
    for user, mine in enumerate(np.split(order, bounds)):
        x = features[what[mine]]
        gram[user] += (x * weight[mine, None]).T @ x
        vector[user] = x.T @ (weight[mine] * liked[mine])
    theta: Any = np.linalg.solve(gram, vector[:, :, None])
    return np.asarray(theta[:, :, 0], dtype=np.float64)

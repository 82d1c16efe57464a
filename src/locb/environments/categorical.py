"""Synthetic environment of arms with categorical features, such as the brand and the colour of a product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError, check_float, check_int
from locb.environments import preferences
from locb.environments.arm_features import check_catalogue, draw_subsets
from locb.environments.arrivals import Arrivals, draw_weights
from locb.environments.base import Environment
from locb.environments.rewards import check_mean_range, make_reward_model
from locb.environments.synthetic import check_sizes

MAX_ITEMS = 10_000
# Keys of random generators, so that an option does not change what other generators draw. rewards.py has 3, and
# arrivals.py has 6.
_CATALOGUE, _HASHING = 5, 7


class Categorical(Environment):
    """Synthetic environment whose arms have categorical features, as one-hot or hashed vectors.

    An item is a combination of one category per categorical feature, and a round offers different items. Each user
    has a preference in [0, 1] for each category. The mean reward of an item is the mean of the user's preferences for
    its categories.

    The feature vector of an item is the concatenation of one one-hot vector per categorical feature, divided by the
    square root of the number of categorical features. It has length 1, unless categories are hashed.

    Parameters
    ----------
    categories : int or sequence of int, default 10
        Number of categories of each categorical feature. For example, 10 is one feature with 10 categories, and
        (6, 4) are two features, whose 24 combinations are the items. There are at most 10,000 combinations.
    n_users, n_clusters : int, default 100 and 5
        Number of users and of clusters, as in :class:`locb.Synthetic`. If the two numbers are equal, every user has
        preferences of its own. For each categorical feature, all clusters have different favourite categories if there
        are enough categories.
    n_arms : int, default 10
        Items per round, at most the number of items.
    spread : float, default 0.1
        Upper limit of the difference between the preferences of two users of a cluster for the same category.
    constant : bool, default False
        Whether to append a constant feature. The constant feature is 1/√2, and the other features are divided by √2.
    hash_dim : int, optional
        Number of columns into which the categories are hashed, instead of one column per category. Each category has
        a random column, and several categories can have the same column (collision). The columns of an item are added.
        By default, categories are not hashed.
    signed : bool, default True
        Whether hashing also gives each category a random sign. Without hashing, the argument has no effect.
    catalogue : int, optional
        Number of items of a fixed catalogue, at least ``n_arms``: a random selection of the combinations. By default,
        all combinations are items.
    noise, degrees_of_freedom, outlier_share, outlier_factor
        Distribution of the rewards, see :class:`locb.Synthetic`.
    arrivals, late_share, late_after
        Arrival of the users, see :class:`locb.Synthetic`.
    mean_range, reward_scale, reward_shift
        Range of the mean rewards, and mapping of the rewards, see :class:`locb.Synthetic`.
    seed : int, default 0
        Random seed of users, clusters, hashing and catalogue.

    Attributes
    ----------
    items : (n_items, d) array of float
        Feature vectors of the items.
    item_categories : (n_items, features) array of int
        Category of each categorical feature of the items.
    item_means : (n, n_items) array of float
        Mean reward of each item for each user.
    theta : (n, d) array of float
        Preference vector θ of each user, the shortest vector with the least squared error of θᵀx over the items x.
    linear : bool
        Whether the mean reward of every item x is θᵀx. Hash collisions can make it False.

    Examples
    --------
    >>> env = Categorical(categories=(3, 2), n_users=20, n_clusters=2, n_arms=4, seed=7)
    >>> env.dim, len(env.items), env.linear
    (5, 6, True)
    >>> (env.items[0] * 2**0.5).round(12).tolist()
    [1.0, 0.0, 0.0, 1.0, 0.0]
    >>> hashed = Categorical(categories=(3, 2), hash_dim=3, n_users=20, n_clusters=2, n_arms=4, seed=7)
    >>> hashed.dim, hashed.linear
    (3, False)
    """

    def __init__(
        self,
        *,
        categories: int | tuple[int, ...] = 10,
        n_users: int = 100,
        n_clusters: int = 5,
        n_arms: int = 10,
        spread: float = 0.1,
        constant: bool = False,
        hash_dim: int | None = None,
        signed: bool = True,
        catalogue: int | None = None,
        noise: str | float | tuple[float, float] = "bernoulli",
        degrees_of_freedom: float | None = None,
        outlier_share: float = 0.0,
        outlier_factor: float = 10.0,
        arrivals: str = "uniform",
        late_share: float = 0.0,
        late_after: int = 25_000,
        mean_range: tuple[float, float] = (0.0, 1.0),
        reward_scale: float = 1.0,
        reward_shift: float = 0.0,
        seed: int = 0,
    ) -> None:
        check_sizes(n_users=n_users, n_clusters=n_clusters, n_arms=n_arms, seed=seed)
        counts = _check_categories(categories)
        low, high = check_mean_range(mean_range)
        self.n_users, self.n_arms = int(n_users), int(n_arms)
        outliers, mapping = (outlier_share, outlier_factor), (reward_scale, reward_shift)
        self._rewards = make_reward_model(seed, self.n_users, noise, degrees_of_freedom, outliers, mapping)
        self.deviations: Floats | None = self._rewards.deviations  # (n,) standard deviations of the noise
        rng = np.random.default_rng(seed)
        self.labels: Ints = preferences.draw_labels(rng, self.n_users, int(n_clusters))
        width = check_float("spread", spread, 0.0, 1.0)
        liking = _draw_preferences(rng, counts, self.labels, int(n_clusters), width)  # (n, names)
        self._arrivals = Arrivals(draw_weights(rng, self.n_users, arrivals), late_share, late_after, seed)
        self.item_categories: Ints = _draw_items(seed, counts, self.n_arms, catalogue)
        names = self.item_categories + np.cumsum([0, *counts[:-1]])  # (n_items, features) index among all categories
        self.items: Floats = _encode(names, _name_vectors(seed, sum(counts), hash_dim, signed), constant)
        self.dim = self.items.shape[1]
        self._base_means = low + (high - low) * liking[:, names].mean(axis=2)  # (n, n_items)
        self.item_means: Floats = self._rewards.transform(self._base_means)
        self.theta: Floats = self.item_means @ np.linalg.pinv(self.items).T
        self.linear = bool(np.allclose(self.theta @ self.items.T, self.item_means, rtol=0, atol=1e-9 * mapping[0]))

    @property
    def late_users(self) -> Ints:
        """Indices of the users who arrive only from round ``late_after`` on, in ascending order."""
        return self._arrivals.late_users

    def true_clusters(self) -> list[Ints]:
        """Return the clusters from which the users were drawn."""
        return [np.flatnonzero(self.labels == cluster) for cluster in range(self.labels.max() + 1)]

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """Return rounds 0 to ``count − 1``, drawn with ``rng``."""
        return self.draw_at(rng, count, 0)

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> Rounds:
        """Return rounds ``start`` to ``start + count − 1``, counted from 0 and drawn with ``rng``."""
        users = self._arrivals.draw(rng, count, start)
        arms = draw_subsets(rng, count, len(self.items), self.n_arms)
        rewards, means = self._rewards.draw(rng, users, self._base_means[users[:, None], arms])
        return Rounds(users, self.items[arms], rewards, means)


def _draw_preferences(
    rng: np.random.Generator, counts: tuple[int, ...], labels: Ints, n_clusters: int, spread: float
) -> Floats:
    """Return the preference of each user for each category of each categorical feature: (n, sum of ``counts``).

    The preferences of a cluster are uniform in [0, 1]. The highest one is exchanged with that of the favourite category
    of the cluster, which is different in every cluster until all categories are used.
    """
    centres = []
    for count in counts:
        values = rng.random((n_clusters, count))
        rounds = math.ceil(n_clusters / count)
        favourites = np.concatenate([rng.permutation(count) for _ in range(rounds)])[:n_clusters]
        rows, best = np.arange(n_clusters), values.argmax(axis=1)
        highest = values[rows, best]
        values[rows, best] = values[rows, favourites]
        values[rows, favourites] = highest
        centres.append(values)
    liking = np.concatenate(centres, axis=1)[labels]
    liking += rng.uniform(-spread / 2, spread / 2, size=liking.shape)
    return np.clip(liking, 0.0, 1.0)


def _draw_items(seed: int, counts: tuple[int, ...], n_arms: int, catalogue: Any) -> Ints:
    """Return the categories of the items, (n_items, features): all combinations, or the random items of a catalogue."""
    combinations = math.prod(counts)
    limit = f"{combinations}, the number of combinations of categories"
    if n_arms > combinations:
        raise ParameterError("n_arms", f" must be at most {limit}, not {n_arms}")
    items = np.arange(combinations)
    if catalogue is not None:
        n_items = check_catalogue(catalogue, n_arms)
        if n_items > combinations:
            raise ParameterError("catalogue", f" must be at most {limit}, not {n_items}")
        rng = np.random.default_rng([seed, _CATALOGUE])
        items = np.sort(rng.choice(combinations, size=n_items, replace=False))
    return np.stack(np.unravel_index(items, counts), axis=1)


def _name_vectors(seed: int, n_names: int, hash_dim: Any, signed: Any) -> Floats:
    """Return the vector of each category, (n_names, columns): one-hot, or with a random column and sign if hashed."""
    if hash_dim is None:
        return np.eye(n_names)
    columns = check_int("hash_dim", hash_dim, 1)
    rng = np.random.default_rng([seed, _HASHING])
    vectors = np.zeros((n_names, columns))
    signs = rng.choice([-1.0, 1.0], size=n_names)
    vectors[np.arange(n_names), rng.integers(columns, size=n_names)] = signs if signed else 1.0
    return vectors


def _encode(names: Ints, vectors: Floats, constant: Any) -> Floats:
    """Return the feature vectors of items (n_items, d) from the indices of their categories (n_items, features)."""
    encoded: Floats = vectors[names].sum(axis=1) / math.sqrt(names.shape[1])
    if not constant:
        return encoded
    return math.sqrt(0.5) * np.concatenate([encoded, np.ones((len(encoded), 1))], axis=1)


def _check_categories(categories: Any) -> tuple[int, ...]:
    values = categories if isinstance(categories, tuple | list) else (categories,)
    if not values:
        raise ParameterError("categories", " must have at least one number of categories, not ()")
    counts = tuple(check_int("categories", value, 2) for value in values)
    if math.prod(counts) > MAX_ITEMS:
        raise ParameterError("categories", f" must have at most {MAX_ITEMS:,} combinations, not {math.prod(counts):,}")
    return counts

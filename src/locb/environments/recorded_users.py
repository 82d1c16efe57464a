"""Environments of recorded users: estimates of their preferences, and the true clusters that follow from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError
from locb.environments.base import Environment
from locb.evaluation.clusters import maximum_clique


class RecordedUsers(Environment):
    """Base class of environments of recorded users, whose true clusters are computed from estimated preferences.

    Attributes
    ----------
    theta : (n, d) floats
        Ridge estimate θ of each user from the records of the user.
    user_names : list of str
        Name of each user in the data set.
    records_per_user : (n,) ints
        Number of records of each user.
    excluded_users : dict
        Number of users who are not eligible, by reason.
    about : dict
        Facts about the data set, set by the readers in :mod:`locb.datasets`; empty by default.
    """

    theta: Floats
    user_ids: Ints
    user_names: list[str]
    records_per_user: Ints
    excluded_users: dict[str, int]
    about: dict[str, Any]

    def true_clusters(self, gamma: float = 0.2, n_groups: int = 5) -> list[Ints]:
        """Return one true cluster per K-means group of the users' θ, as arrays of user indices.

        A true cluster is a largest set of users of its K-means group such that the distance between the θ of any two of
        them is below gamma. A true cluster can have a single user.

        Parameters
        ----------
        gamma : float, default 0.2
            Limit of the distance, above 0. The distance must be smaller.
        n_groups : int, default 5
            Number of K-means groups. There are fewer groups if the users have fewer distinct θ.
        """
        if not gamma > 0.0:
            raise ParameterError("gamma", f" must be above 0, not {gamma!r}")
        return [members[maximum_clique(self.theta[members], gamma)] for members in self.groups(n_groups)]

    def groups(self, n_groups: int = 5) -> list[Ints]:
        """Return the K-means groups of the users' θ, as arrays of user indices.

        The number of groups is ``n_groups``, or the number of distinct θ if it is smaller.
        """
        from sklearn.cluster import KMeans

        n_groups = min(n_groups, len(np.unique(self.theta.round(12), axis=0)))
        labels = KMeans(n_groups, n_init=10, random_state=0).fit_predict(self.theta)
        return [np.flatnonzero(labels == group) for group in range(n_groups)]

    def users_in_groups(self, gamma: float, n_groups: int = 5) -> int:
        """Return how many users are in true clusters of two or more users. See ``true_clusters`` for the parameters."""
        return sum(len(cluster) for cluster in self.true_clusters(gamma, n_groups) if len(cluster) > 1)

    def scaled_gamma(self, share: float = 0.5, n_groups: int = 5) -> float:
        """Return the smallest gamma at which at least a given share of the users is in true clusters of two or more.

        Parameters
        ----------
        share : float, default 0.5
            Share of all users, from 0 to 1.
        n_groups : int, default 5
            Number of K-means groups.

        Returns
        -------
        float
            Gamma with a relative error of about 1%; infinity if no gamma suffices, for example if each K-means group
            has a single user.
        """
        groups = [self.theta[members] for members in self.groups(n_groups)]

        def is_sufficient(gamma: float) -> bool:
            sizes = [len(maximum_clique(theta, gamma)) for theta in groups]
            return sum(size for size in sizes if size > 1) >= share * self.n_users

        low, high = 0.0, 1e-3
        while not is_sufficient(high):
            if high > 1e9:
                return float("inf")
            low, high = high, 2.0 * high
        while high - low > 0.01 * high and high > 1e-9:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if is_sufficient(middle) else (middle, high)
        # Rounding up to three digits gives a short number that is still sufficient.
        digits = 2 - math.floor(math.log10(high))
        return float(math.ceil(high * 10.0**digits) / 10.0**digits)


def check_integers(name: str, values: Any, limit: int | None) -> Any:
    """Return ``values`` as an array of integers, one per record.

    Raise a ValueError if an integer is negative, or is not below ``limit``. None means no limit.
    """
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must have one integer per record, not {array.dtype} of shape {array.shape}")
    if array.size and array.min() < 0:
        raise ValueError(f"{name} must be at least 0, but {name}[{array.argmin()}] is {array.min()}")
    if limit is not None and array.size and array.max() >= limit:
        index = int(array.argmax())
        raise ValueError(
            f"{name} must be below {limit}, the number of rows of item_features, but {name}[{index}] is {array[index]}"
        )
    return array


def ridge_estimates(user: Ints, item: Ints, liked: Any, weight: Ints, features: Floats, n_users: int) -> Floats:
    """Return θ = (I + Σ w x xᵀ)⁻¹ Σ w r x of each user, an array (n_users, d).

    The sums are over the records of the user, with item features x, reward r and weight w.
    """
    dim = features.shape[1]
    gram, vector = np.tile(np.eye(dim), (n_users, 1, 1)), np.zeros((n_users, dim))
    order = np.argsort(user, kind="stable")
    bounds = np.cumsum(np.bincount(user, minlength=n_users))[:-1]
    for index, records in enumerate(np.split(order, bounds)):
        x = features[item[records]]
        gram[index] += (x * weight[records, None]).T @ x
        vector[index] = x.T @ (weight[records] * liked[records])
    theta: Any = np.linalg.solve(gram, vector[:, :, None])
    return np.asarray(theta[:, :, 0], dtype=np.float64)

"""Search for the users whose estimates are nearest to that of a given user."""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.clusters import SimilarUser
from locb.policies.base.user_batch import UserBatch


class NearestUsers:
    """The users who share a cluster with a given user and have the nearest estimates, collected from batches of users.

    Parameters
    ----------
    user : int
        The given user.
    limit : int
        Maximum number of users to collect.
    """

    def __init__(self, user: int, limit: int) -> None:
        self._user = user
        self._limit = limit
        self._users = np.zeros(0, np.int64)
        self._distances, self._radii = np.zeros(0), np.zeros(0)

    def add(self, users: Ints, batch: UserBatch) -> None:
        """Consider further users. ``batch`` has a row per user, and a last row for the given user."""
        is_peer = batch.groups.share_group_with(-1)[:-1] & (users != self._user)
        rows = np.flatnonzero(is_peer)
        gaps = batch.theta[rows] - batch.theta[-1]
        distances = np.concatenate([self._distances, np.sqrt(np.einsum("ij,ij->i", gaps, gaps))])
        kept = nearest_first(distances, self._limit)
        self._users = np.concatenate([self._users, users[rows]])[kept]
        self._distances = distances[kept]
        self._radii = np.concatenate([self._radii, batch.radii[rows]])[kept]

    def found(self) -> list[SimilarUser]:
        """Return the users collected so far, nearest first; equally near users in the order of their addition."""
        columns = self._users.tolist(), self._distances.tolist(), self._radii.tolist()
        return [SimilarUser(*row) for row in zip(*columns, strict=True)]


def nearest_first(distance: Floats, limit: int) -> Ints:
    """Return the indices of the ``limit`` smallest distances in ascending order; ties keep their order.

    Examples
    --------
    >>> nearest_first(np.array([3.0, 1.0, 2.0, 1.0]), 3).tolist()
    [1, 3, 2]
    """
    if not 0 < limit < len(distance):
        return np.argsort(distance, kind="stable")[:limit]
    candidates = np.flatnonzero(distance <= np.partition(distance, limit - 1)[limit - 1])
    return candidates[np.argsort(distance[candidates], kind="stable")[:limit]]

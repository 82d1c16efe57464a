"""Map of users: a projection of their estimates onto two dimensions by principal component analysis (PCA)."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, limit_outliers
from locb.policies.state.locb_state import random_hash_keys
from locb.recommender.user_index import UserIndex
from locb.service.dashboard.schemas import Map, MapCluster, MapPoints

if TYPE_CHECKING:  # state_view imports this module
    from locb.service.dashboard.state_view import StateView

MAX_USERS = 3_000  # maximum number of users on the map, so that a browser can draw it without delay
MAX_CLUSTERS = 7  # colours that people can distinguish; see locb.report.charts.chart_theme
MAX_PROJECTIONS = 8  # projections that are kept, so that open pages can continue to use them
# A projection fitted to fewer than MIN_FITTED users is replaced when there are REFIT_GROWTH times as many users.
MIN_FITTED, REFIT_GROWTH = 100, 4
NEW = "new"  # value of the query parameter ``projection`` that requests a new projection
NO_CLUSTER, UNLISTED_CLUSTER = -1, -2  # values that replace the index of a cluster; see ``MapPoints.cluster``


class Projection(NamedTuple):
    """Projection of estimates with d features to two dimensions."""

    id: str
    centre: Floats  # (d,)
    axes: Floats  # (2, d)
    n_users: int  # number of users that the projection was fitted to

    def is_suitable(self, n_users: int) -> bool:
        """Return whether the projection can be used for ``n_users`` users.

        A projection that was fitted to fewer than ``MIN_FITTED`` users cannot be used for ``REFIT_GROWTH`` times as
        many users or more.
        """
        return self.n_users >= MIN_FITTED or n_users < REFIT_GROWTH * self.n_users


class ProjectedState(NamedTuple):
    """Positions and clusters of the s sampled users of a state."""

    projection: Projection | None
    explained_variance: float | None
    points: Floats  # (s, 2)
    clusters: Ints  # listed clusters: positions in the state, at most MAX_CLUSTERS
    shown: Ints  # number of sampled users in each listed cluster
    cluster: Ints  # (s,) position in ``clusters`` of each user's cluster, NO_CLUSTER or UNLISTED_CLUSTER
    cluster_count: Ints  # (s,) number of clusters that contain each user


class MapProjector:
    """Projector of states, which keeps the most recent projections until a user is erased."""

    def __init__(self) -> None:
        self._projections: dict[str, Projection] = {}
        self._data_version = 0

    async def project(self, state: StateView, projection_id: str | None, data_version: int) -> ProjectedState:
        """Project a state to two dimensions.

        Parameters
        ----------
        state : StateView
            The state.
        projection_id : str or None
            Id of the projection to use, or ``NEW``. None and unknown ids mean the most recent projection.
        data_version : int
            Number of erased users. When it changes, all projections are discarded.
        """
        if data_version != self._data_version:
            self._projections.clear()
            self._data_version = data_version
        latest = next(reversed(self._projections.values()), None)
        requested = None if projection_id == NEW else self._projections.get(projection_id or "", latest)
        projected = await asyncio.to_thread(project, state, requested, latest)
        used = projected.projection
        if used is not None and used is not requested and data_version == self._data_version:
            self._projections[used.id] = used
            while len(self._projections) > MAX_PROJECTIONS:
                self._projections.pop(next(iter(self._projections)))
        return projected


def sample_users(served: Ints, indices: Ints) -> Ints:
    """Return the rows of ``MAX_USERS`` random users with rewards, or of all if there are not more, in ascending order.

    The sample is stable: as users are added, few users leave the sample.
    """
    rows = np.flatnonzero(served > 0)
    if len(rows) <= MAX_USERS:
        return rows
    keys = random_hash_keys(int(indices[rows[-1]]) + 1)[indices[rows]]
    return np.sort(rows[np.argpartition(keys, MAX_USERS)[:MAX_USERS]])


def project(state: StateView, projection: Projection | None, latest: Projection | None) -> ProjectedState:
    """Project the sampled users of a state.

    If ``projection`` is None or not suitable (``is_suitable``), a new projection is fitted, with the orientation of
    ``latest``.
    """
    rows, theta = state.sample, state.sample_theta
    if len(rows) and (projection is None or not projection.is_suitable(len(rows))):
        projection = _fit(theta, latest)
    points = np.zeros((len(rows), 2)) if projection is None else (theta - projection.centre) @ projection.axes.T
    total = float(theta.var(axis=0).sum()) if len(rows) else 0.0
    explained = min(1.0, float(points.var(axis=0).sum()) / total) if total > 0.0 else None
    clusters, shown, cluster = _select_clusters(state)
    counts = state.memberships.take(rows).counts(state.cluster_ids)
    return ProjectedState(projection, explained, points, clusters, shown, cluster, counts)


def _fit(theta: Floats, latest: Projection | None) -> Projection:
    """Return the projection to the first two principal components.

    The axes have the orientation of the axes of ``latest``. If ``latest`` is None, the sum of the entries of each axis
    is at least 0.
    """
    centre = theta.mean(axis=0)
    dim = theta.shape[1]
    _, components = np.linalg.eigh((theta - centre).T @ (theta - centre))  # in ascending order
    axes = np.zeros((2, dim))
    axes[: min(2, dim)] = components.T[::-1][:2]
    orientation = axes.sum(axis=1) if latest is None else (axes * latest.axes).sum(axis=1)
    return Projection(secrets.token_hex(4), centre, np.where(orientation[:, None] < 0.0, -axes, axes), len(theta))


def _select_clusters(state: StateView) -> tuple[Ints, Ints, Ints]:
    """Return the clusters that get a colour, the number of sampled users in each, and the cluster of each sampled user.

    The largest cluster is selected first, then repeatedly the cluster with the most users who are in no selected
    cluster, because the largest clusters often have nearly the same users. A user is shown in the smallest selected
    cluster that contains the user. Clusters in which no user is shown are omitted.
    """
    ids, count, rows = state.cluster_ids, len(state.cluster_ids), state.sample
    memberships = state.memberships.take(rows)
    uncovered = np.ones(len(rows))
    selected: list[int] = []
    columns = np.zeros((len(rows), 0), bool)
    while len(selected) < min(MAX_CLUSTERS, count):
        gains = memberships.sums(ids, uncovered[:, None])[:, 0]
        best = int(np.lexsort((-state.sizes, -gains))[0])
        if gains[best] < 1.0:
            break
        selected.append(best)
        inside = np.concatenate([block for _, block in memberships.blocks(ids[[best]])])
        columns = np.concatenate([columns, inside], axis=1)
        uncovered[inside[:, 0]] = 0.0
    clusters = np.array(selected, np.int64)
    sizes = np.where(columns, state.sizes[clusters], np.iinfo(np.int64).max)
    smallest = sizes.argmin(axis=1) if len(clusters) else np.zeros(len(rows), np.int64)
    unlisted = np.where(memberships.counts(ids) > 0, UNLISTED_CLUSTER, NO_CLUSTER)
    covered = np.asarray(columns.any(axis=1))
    used = np.unique(smallest[covered])
    cluster = np.where(covered, np.searchsorted(used, smallest), unlisted)
    return clusters[used], columns[:, used].sum(axis=0), cluster


def to_response(projected: ProjectedState, state: StateView, users: UserIndex) -> Map:
    """Return the response of ``GET /v1/map``. Users who were erased after the capture are omitted."""
    names = [users.name_of(index) for index in state.user_indices[state.sample].tolist()]
    existing = [row for row, name in enumerate(names) if name is not None]
    clusters = [
        MapCluster(
            None if state.representatives[k] < 0 else users.name_of(int(state.representatives[k])),
            int(state.sizes[k]),
            bool(state.returned[k]),
            shown,
        )
        for k, shown in zip(projected.clusters.tolist(), projected.shown.tolist(), strict=True)
    ]
    limited, outliers = limit_outliers(projected.points[existing])
    x, y = limited.round(5).T.tolist()
    points = MapPoints(
        [names[row] or "" for row in existing],
        x,
        y,
        state.served[state.sample][existing].tolist(),
        projected.cluster[existing].tolist(),
        projected.cluster_count[existing].tolist(),
    )
    projection_id = None if projected.projection is None else projected.projection.id
    description = _describe_sample(len(existing), state.n_estimates)
    if outliers:
        description += f"; {outliers:,} far from most others {'is' if outliers == 1 else 'are'} drawn at the edge"
    return Map(
        projection_id, projected.explained_variance, state.n_estimates, len(existing), description, clusters, points
    )


def _describe_sample(shown: int, users: int) -> str:
    if shown < users:
        return f"Random sample of {shown:,} of {users:,} users"
    return "1 user" if users == 1 else f"All {users:,} users" if users else "No users yet"

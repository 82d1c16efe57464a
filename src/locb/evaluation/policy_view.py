"""Copy of what a policy has learned, as plain numbers, for data frames, charts and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.frames import make_frame
from locb.common.validation import ParameterError
from locb.evaluation.clusters import Cluster


@dataclass(frozen=True, repr=False)
class PolicyView:
    """What a policy has learned about some of its users.

    Attributes
    ----------
    name : str
        Class of the policy.
    settings : dict
        Parameters of the policy.
    changed : tuple of str
        Parameters whose values differ from their defaults.
    n_users : int
        Number of users of the policy.
    users : (u,) ints
        The users in this view.
    theta : (u, d) floats
        Estimate of the preferences of each user; NaN for a policy without estimates.
    radii : (u,) floats
        Confidence radius of each estimate (ELOC, MixedEffects: its expected error); NaN for a policy without estimates.
    served : (u,) ints
        Number of rounds of each user.
    clusters : list of Cluster
        All clusters of the policy, with all members.
    """

    name: str
    settings: dict[str, Any]
    changed: tuple[str, ...]
    n_users: int
    users: Ints
    theta: Floats
    radii: Floats
    served: Ints
    clusters: list[Cluster]

    def without_unnamed(self, names: Sequence[Any]) -> PolicyView:
        """Return the view without users whose id is None, and without the clusters of seed users whose id is None."""
        is_named = np.array([name is not None for name in names], dtype=bool)
        if is_named.all():
            return self
        kept = is_named[self.users]
        clusters = [
            replace(cluster, members=cluster.members[is_named[cluster.members]])
            for cluster in self.clusters
            if cluster.seed is None or is_named[cluster.seed]
        ]
        learned = {name: getattr(self, name)[kept] for name in ("users", "theta", "radii", "served")}
        return replace(self, clusters=[cluster for cluster in clusters if len(cluster)], **learned)

    def distinct_groups(self) -> list[Cluster]:
        """Return the clusters with different members, largest first. Of equal clusters, the first is returned."""
        found = {cluster.members.tobytes(): cluster for cluster in reversed(self.clusters) if len(cluster)}
        return sorted(found.values(), key=lambda cluster: (-len(cluster), cluster.members.tolist()))

    def users_frame(self, ids: Sequence[Any] | None, library: str) -> Any:
        """Return a data frame with one row per user: rounds, radius, number of clusters, and estimate.

        Users whose id is None are omitted.
        """
        names = user_ids(ids, self.n_users)
        view = self.without_unnamed(names)
        counts = [0] * self.n_users
        for cluster in view.clusters:
            for member in cluster.members.tolist():
                counts[member] += 1
        users = view.users.tolist()
        columns = {"user": [names[user] for user in users], "served": view.served.tolist()}
        columns |= {"radius": view.radii.tolist(), "clusters": [counts[user] for user in users]}
        columns |= {f"theta_{j}": column for j, column in enumerate(view.theta.T.tolist())}
        return make_frame(columns, library)

    def groups_frame(self, ids: Sequence[Any] | None, library: str) -> Any:
        """Return a data frame with one row per cluster and member. Users whose id is None are omitted."""
        names = user_ids(ids, self.n_users)
        rows = [
            (number, None if cluster.seed is None else names[cluster.seed], len(cluster), cluster.returned_at, member)
            for number, cluster in enumerate(self.without_unnamed(names).clusters)
            for member in cluster.members.tolist()
        ]
        columns: dict[str, list[Any]] = {
            name: [row[index] for row in rows] for index, name in enumerate(("cluster", "seed", "size", "returned_at"))
        }
        return make_frame(columns | {"user": [names[row[4]] for row in rows]}, library)


def user_ids(ids: Sequence[Any] | None, n_users: int) -> Sequence[Any]:
    """Return the id of each user: ``ids``, or the indices of the users. Raise a ValueError if there are too few."""
    if ids is None:
        return range(n_users)
    if len(ids) < n_users:
        raise ParameterError("ids", f" must have one id for each of {n_users} users, not {len(ids)}")
    return [value.item() if hasattr(value, "item") else value for value in ids]

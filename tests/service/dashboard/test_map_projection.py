"""Listed clusters of the map, and the cluster that determines the colour of each user."""

import numpy as np
import pytest

from locb.policies.base.user_batch import OverlappingGroups
from locb.service.dashboard.map import project
from locb.service.dashboard.state_view import StateView


def make_state(n_users: int, *clusters: list[int]) -> StateView:
    """Return a state with users on a circle, in these clusters."""
    inside = np.zeros((n_users, len(clusters)), bool)
    for k, members in enumerate(clusters):
        inside[members, k] = True
    indices, n_clusters = np.arange(n_users), len(clusters)
    angle = 2.0 * np.pi * indices / n_users
    return StateView(
        user_indices=indices,
        served=np.ones(n_users, np.int64),
        memberships=OverlappingGroups.from_matrix(inside),
        cluster_ids=np.arange(n_clusters),
        representatives=np.arange(n_clusters),
        returned=np.zeros(n_clusters, bool),
        progress=np.zeros(n_clusters),
        sizes=inside.sum(axis=0),
        reward_totals=np.zeros((n_clusters, 2)),
        mean_theta=np.zeros((n_clusters, 2)),
        n_estimates=n_users,
        sample=indices,
        sample_theta=np.stack([np.cos(angle), np.sin(angle)], axis=1),
    )


@pytest.mark.parametrize(
    ("clusters", "listed", "shown", "cluster"),
    [
        ([], [], [], [-1] * 8),
        ([[0, 1, 2]], [0], [3], [0, 0, 0, -1, -1, -1, -1, -1]),
        # The smallest cluster determines the colour.
        ([[0, 1, 2, 3, 4], [3, 4, 5]], [0, 1], [5, 3], [0, 0, 0, 1, 1, 1, -1, -1]),
        ([[0, 1, 2], [0, 1]], [0], [3], [0, 0, 0, -1, -1, -1, -1, -1]),
        # A cluster that is the smallest of no user is not listed.
        ([[0, 1, 2, 3, 4], [0, 1, 2, 5], [3, 4, 6]], [1, 2], [4, 3], [0, 0, 0, 1, 1, 0, 1, -1]),
    ],
    ids=["none", "one", "two", "one within another", "one within two"],
)
def test_listed_clusters(clusters: list[list[int]], listed: list[int], shown: list[int], cluster: list[int]) -> None:
    projected = project(make_state(8, *clusters), None, None)
    assert projected.clusters.tolist() == listed
    assert projected.shown.tolist() == shown
    assert projected.cluster.tolist() == cluster


def test_number_of_listed_clusters_is_limited() -> None:
    projected = project(make_state(20, *([2 * k, 2 * k + 1] for k in range(10))), None, None)
    assert projected.clusters.tolist() == list(range(7))
    assert projected.cluster.tolist() == [*(user // 2 for user in range(14)), *[-2] * 6]

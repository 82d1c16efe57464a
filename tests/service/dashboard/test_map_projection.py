"""Listed clusters of the map, and the cluster that determines the colour of each user."""

import numpy as np
import pytest
from dashboard_data import make_state

from locb.recommender.user_index import UserIndex
from locb.service.dashboard.map import project, to_response


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


def test_outliers_are_drawn_at_the_edge() -> None:
    state = make_state(40)
    users = UserIndex(40, [(index, f"u{index}") for index in range(40)])
    assert to_response(project(state, None, None), state, users).description == "All 40 users"
    state.sample_theta[7] = 300.0, 0.0
    shown = to_response(project(state, None, None), state, users)
    assert shown.description == "All 40 users; 1 far from most others is drawn at the edge"
    x = np.array(shown.points.x)
    others = np.delete(x, 7)
    assert np.ptp(x) < 4.0 * np.ptp(others)
    assert np.abs(x - np.median(x)).argmax() == 7


def test_number_of_listed_clusters_is_limited() -> None:
    projected = project(make_state(20, *([2 * k, 2 * k + 1] for k in range(10))), None, None)
    assert projected.clusters.tolist() == list(range(7))
    assert projected.cluster.tolist() == [*(user // 2 for user in range(14)), *[-2] * 6]

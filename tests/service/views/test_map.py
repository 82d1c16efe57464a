"""Which sets the map lists, and which of them gives a user its colour."""

import numpy as np
import pytest

from locb.policies.base.user_batch import OverlappingGroups
from locb.service.dashboard.map import project
from locb.service.dashboard.state_view import StateView


def state(users: int, *sets: list[int]) -> StateView:
    """Users on a circle, in these sets."""
    inside = np.zeros((users, len(sets)), bool)
    for place, members in enumerate(sets):
        inside[members, place] = True
    everyone, groups = np.arange(users), len(sets)
    angle = 2.0 * np.pi * everyone / users
    return StateView(
        user_indices=everyone,
        served=np.ones(users, np.int64),
        memberships=OverlappingGroups.from_matrix(inside),
        cluster_ids=np.arange(groups),
        representatives=np.arange(groups),
        returned=np.zeros(groups, bool),
        progress=np.zeros(groups),
        sizes=inside.sum(axis=0),
        reward_totals=np.zeros((groups, 2)),
        mean_theta=np.zeros((groups, 2)),
        n_estimates=users,
        sample=everyone,
        sample_theta=np.stack([np.cos(angle), np.sin(angle)], axis=1),
    )


@pytest.mark.parametrize(
    ("sets", "listed", "shown", "group"),
    [
        ([], [], [], [-1] * 8),
        ([[0, 1, 2]], [0], [3], [0, 0, 0, -1, -1, -1, -1, -1]),
        # The smallest gives the colour; who is in sets that are not listed is in others.
        ([[0, 1, 2, 3, 4], [3, 4, 5]], [0, 1], [5, 3], [0, 0, 0, 1, 1, 1, -1, -1]),
        ([[0, 1, 2], [0, 1]], [0], [3], [0, 0, 0, -1, -1, -1, -1, -1]),
        # A set that is nobody's smallest has no colour.
        ([[0, 1, 2, 3, 4], [0, 1, 2, 5], [3, 4, 6]], [1, 2], [4, 3], [0, 0, 0, 1, 1, 0, 1, -1]),
    ],
    ids=["none", "one", "two", "one within another", "one within two"],
)
def test_colours(sets: list[list[int]], listed: list[int], shown: list[int], group: list[int]) -> None:
    projected = project(state(8, *sets), None, None)
    assert projected.clusters.tolist() == listed
    assert projected.shown.tolist() == shown
    assert projected.cluster.tolist() == group


def test_no_more_sets_than_there_are_looks() -> None:
    projected = project(state(20, *([2 * place, 2 * place + 1] for place in range(10))), None, None)
    assert projected.clusters.tolist() == list(range(7))
    assert projected.cluster.tolist() == [*(place // 2 for place in range(14)), *[-2] * 6]

"""The map of users: sample, projection and clusters."""

from typing import Any

import numpy as np
import pytest
from dashboard_data import get, play


def test_points_and_clusters(served: Any) -> None:
    client, service = served
    response = get(client, "/v1/map")
    assert (response["users"], response["shown"], response["description"]) == (12, 12, "All 12 users")
    points = response["points"]
    assert {len(column) for column in points.values()} == {12}
    assert sorted(points["user"]) == sorted(f"u{i}" for i in range(12))
    listed = [service.require_index(cluster["seed"]) for cluster in response["clusters"]]
    sizes = [cluster["size"] for cluster in response["clusters"]]
    for user, x, y, rewards, cluster, cluster_count in zip(*points.values(), strict=True):
        index = service.require_index(user)
        assert rewards == service.policy.served[index]
        memberships = service.policy.memberships(index)
        assert cluster_count == len(memberships)
        seeds = {membership.seed for membership in memberships}
        if cluster >= 0:
            assert listed[cluster] in seeds
            assert sizes[cluster] == min(size for size, seed in zip(sizes, listed, strict=True) if seed in seeds)
        else:
            assert cluster == (-2 if seeds else -1)
            assert not seeds & set(listed)
        assert abs(x) + abs(y) < 3.0
    assert max(points["cluster"]) >= 0, "no user has the colour of a group"
    assert len({*zip(points["x"], points["y"], strict=True)}) == 12, "users share a point"


def test_projection_is_fixed(served: Any) -> None:
    client, _ = served
    first = get(client, "/v1/map")
    points = first["points"]
    assert get(client, "/v1/map", projection=first["projection"]) == first
    play(client, 60, seed=99)
    later = get(client, "/v1/map", projection=first["projection"])
    assert later["projection"] == first["projection"] == get(client, "/v1/map")["projection"]
    moved = np.array([later["points"]["x"], later["points"]["y"]]) - [points["x"], points["y"]]
    assert 0 < np.abs(moved).max() < 0.5
    new = get(client, "/v1/map", projection="new")
    assert new["projection"] != first["projection"]
    assert get(client, "/v1/map", projection=first["projection"])["projection"] == first["projection"]
    assert get(client, "/v1/map", projection="unknown")["projection"] == new["projection"]
    assert 0.3 < new["explained_variance"] <= 1.0


def test_projection_maximizes_the_variance(served: Any) -> None:
    client, service = served
    response = get(client, "/v1/map", projection="new")
    theta = service.policy.theta[[service.require_index(user) for user in response["points"]["user"]]]
    variances = np.linalg.svd(theta - theta.mean(axis=0), compute_uv=False) ** 2
    assert response["explained_variance"] == pytest.approx(variances[:2].sum() / variances.sum())
    points = np.array([response["points"]["x"], response["points"]["y"]])
    centred = points - points.mean(axis=1, keepdims=True)
    assert np.linalg.norm(centred) ** 2 == pytest.approx(variances[:2].sum(), rel=1e-3)

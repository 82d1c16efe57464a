"""Requests and states for the tests of the dashboard's views."""

from typing import Any

import numpy as np

from locb.policies.base.user_batch import OverlappingGroups
from locb.service.core.service import Service
from locb.service.dashboard.state_view import StateView
from serving import is_safe

DIM = 6
LOCB = {"policy": "locb", "dim": DIM, "parameters": {"n_seeds": 4, "gamma": 0.8}}
GENRES = ["drama", "crime", "comedy"]
PATHS = ("/v1/status", "/v1/history", "/v1/map", "/v1/groups")
TTLS = ("STATUS_TTL", "HISTORY_TTL", "STATE_TTL", "FEATURE_NAMES_TTL", "STORE_SIZE_TTL", "TTL_PER_SECOND")


def genre_arms() -> list[dict[str, Any]]:
    """Return one arm per genre, with named features."""
    return [{"id": genre, "features": {"kind": genre}} for genre in GENRES]


def play(client: Any, rounds: int, n_users: int = 12, seed: int = 0) -> list[dict[str, Any]]:
    """Request decisions and reward most of them: half of the users prefer drama, half crime."""
    rng = np.random.default_rng(seed)
    requests = []
    for _ in range(rounds):
        lengths = rng.random(len(GENRES)).round(2).tolist()
        arms = [{"id": k, "features": {"kind": k, "length": x}} for k, x in zip(GENRES, lengths, strict=True)]
        requests.append({"user": f"u{rng.integers(n_users)}", "arms": arms})
    results = client.post("/v1/recommend:batch", json={"requests": requests}).json()["results"]
    decisions = [
        {**result["decision"], "user": request["user"]} for result, request in zip(results, requests, strict=True)
    ]
    rewards = [
        {
            "decision_id": decision["decision_id"],
            "reward": float(decision["arm"] == GENRES[int(decision["user"][1:]) % 2]),
        }
        for decision in decisions
        if rng.random() < 0.9
    ]
    results = client.post("/v1/reward:batch", json={"rewards": rewards}).json()["results"]
    assert ["reward" in result for result in results] == [True] * len(rewards)
    return decisions


def count_decisions(service: Service) -> int:
    """Return the number of decisions in the log."""
    return sum(len(chunk) for chunk in service.log.decisions())


def read_observations(service: Service) -> list[Any]:
    """Return all observations in the log."""
    return [row for chunk in service.log.observations(0) for row in chunk]


def get(client: Any, path: str, **query: Any) -> Any:
    """Return the JSON of a successful request."""
    response = client.get(path, params=query)
    assert response.status_code == 200, response.text
    is_safe(response)
    return response.json()


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
        same_as=np.arange(n_clusters),
        sure_members=None,
        sure_users=None,
        n_estimates=n_users,
        sample=indices,
        sample_theta=np.stack([np.cos(angle), np.sin(angle)], axis=1),
    )

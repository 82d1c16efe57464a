"""Sample data for the dashboard: users with three preferences, array and named features, all kinds of rewards."""

from typing import Any

import httpx
import numpy as np

DIM = 16
SPECIAL_NAME = '<b>Ann & "Bob"</b> / 50%?'  # must be shown literally
GENRES = ("drama", "crime", "comedy")
USERS = [f"user {index}" for index in range(45)] + [SPECIAL_NAME]


def add_sample_data(client: httpx.Client, rounds: int = 12) -> None:
    """Request a decision for each user in each round, and reward most of them."""
    rng = np.random.default_rng(7)
    for number in range(rounds):
        requests = [_request(rng, index, number) for index in range(len(USERS))]
        response = client.post("/v1/recommend:batch", json={"requests": requests}).raise_for_status()
        rewards = [
            {"decision_id": result["decision"]["decision_id"], "reward": float(rng.random() < _chance(index, result))}
            for index, result in enumerate(response.json()["results"])
            if index % 15 or number < rounds - 1  # some rewards stay pending
        ]
        response = client.post("/v1/reward:batch", json={"rewards": rewards}).raise_for_status()
        assert ["reward" in result for result in response.json()["results"]] == [True] * len(rewards)


def _request(rng: np.random.Generator, index: int, number: int) -> dict[str, Any]:
    """Arms with named features; in every fourth round with arrays."""
    arms: list[dict[str, Any]] = []
    for genre in GENRES:
        features: Any = {"genre": genre, "length": round(float(rng.random()), 2), "new": bool(rng.random() < 0.5)}
        if number % 4 == 3:
            features = rng.normal(size=DIM)
            features = (features / np.linalg.norm(features)).round(3).tolist()
        arms.append({"id": f"{genre} film", "features": features})
    return {"user": USERS[index], "arms": arms, "decision_id": f"{number}-{index}"}


def _chance(index: int, result: dict[str, Any]) -> float:
    return 0.9 if result["decision"]["arm"].startswith(GENRES[index % 3]) else 0.1

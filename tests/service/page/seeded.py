"""A store with something to see: users of three tastes, features by number and by name, rewards of all kinds."""

from typing import Any

import httpx
import numpy as np

DIM = 16
ODD = '<b>Ann & "Bob"</b> / 50%?'  # a name that must be told as it is
GENRES = ("drama", "crime", "comedy")
PEOPLE = [f"user {place}" for place in range(45)] + [ODD]


def seed(client: httpx.Client, rounds: int = 12) -> None:
    """Decide for everybody, round by round, and reward nearly all of it."""
    rng = np.random.default_rng(7)
    for number in range(rounds):
        asked = [_question(rng, place, number) for place in range(len(PEOPLE))]
        answers = client.post("/v1/recommend:batch", json={"requests": asked}).raise_for_status().json()["results"]
        rewards = [
            {"decision_id": one["decision"]["decision_id"], "reward": float(rng.random() < _chance(place, one))}
            for place, one in enumerate(answers)
            if place % 15 or number < rounds - 1  # some rewards are still waited for
        ]
        paid = client.post("/v1/reward:batch", json={"rewards": rewards}).raise_for_status().json()["results"]
        assert all("reward" in one for one in paid)


def _question(rng: np.random.Generator, place: int, number: int) -> dict[str, Any]:
    """Arms by name, and in every fourth round by number."""
    arms: list[dict[str, Any]] = []
    for genre in GENRES:
        features: Any = {"genre": genre, "length": round(float(rng.random()), 2), "new": bool(rng.random() < 0.5)}
        if number % 4 == 3:
            features = rng.normal(size=DIM)
            features = (features / np.linalg.norm(features)).round(3).tolist()
        arms.append({"id": f"{genre} film", "features": features})
    return {"user": PEOPLE[place], "arms": arms, "decision_id": f"{number}-{place}"}


def _chance(place: int, answer: dict[str, Any]) -> float:
    return 0.9 if answer["decision"]["arm"].startswith(GENRES[place % 3]) else 0.1

"""Kinds of scenarios: their properties without role and random seeds, and the kinds that both roles share."""

from __future__ import annotations

from typing import Any, NamedTuple

SIZE, NOISE, ARRIVALS, STRUCTURE = "size", "noise", "arrivals", "structure"
CONTEXTS, DRIFT, CATEGORIES, REWARDS = "contexts", "drift", "categories", "rewards"
FAMILIES = (SIZE, NOISE, ARRIVALS, STRUCTURE, CONTEXTS, DRIFT, CATEGORIES, REWARDS)
ROUNDS, MANY_ROUNDS = 50_000, 150_000


class Kind(NamedTuple):
    """Properties of a scenario that do not depend on its role. See ``Scenario`` for their meaning."""

    name: str
    description: str
    family: str
    settings: dict[str, Any]
    groups: bool = True
    development: str | None = None
    rounds: int = ROUNDS


class ScaledCopy(NamedTuple):
    """Copy of another scenario with the same random seeds, and with rewards r mapped to ``scale`` · r + ``shift``."""

    name: str
    original: str
    scale: float
    shift: float
    development: str | None = None


# Kinds with a development and an evaluation scenario that have the same settings and different random seeds.
COMMON_KINDS = [
    Kind("bernoulli-100", "The paper's environment: 100 users in 5 clusters, rewards of 0 or 1.", SIZE, {}),
    Kind("bernoulli-500", "500 users.", SIZE, {"n_users": 500}),
    Kind("gaussian-0.05", "Gaussian noise with standard deviation 0.05.", NOISE, {"noise": 0.05}),
    Kind("gaussian-0.1", "Gaussian noise with standard deviation 0.1.", NOISE, {"noise": 0.1}),
    Kind("gaussian-0.5", "Gaussian noise with standard deviation 0.5.", NOISE, {"noise": 0.5}),
    Kind("zipf-300", "300 users with Zipf arrivals.", ARRIVALS, {"n_users": 300, "arrivals": "zipf"}),
    Kind("no-structure", "Each user is in a cluster of its own.", STRUCTURE, {"n_clusters": 100}, groups=False),
    Kind("one-cluster", "All users are in one cluster.", STRUCTURE, {"n_clusters": 1}, groups=False),
]

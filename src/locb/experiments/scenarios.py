"""Worlds by name, to judge policies on: some for developing them, others, which nothing was tuned on, for judging.

A world's seeds are its own: no two worlds share one, so that no user of a development world is met in judging. Real
data are the exception: the files are the same, and only the rounds drawn from them differ.

What is not said is as in the paper's world: 100 users in 5 clusters, 6 features, 10 arms, rewards of 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

DEVELOPMENT, JUDGING = "development", "judging"
ROUNDS, DATA_ROUNDS = 50_000, 30_000
SEEDS_A_WORLD = 1_000
FIRST_SEED = {DEVELOPMENT: 100_000, JUDGING: 200_000}


@dataclass(frozen=True)
class Scenario:
    """A world as an experiment meets it."""

    name: str
    says: str  # one sentence
    role: str  # development or judging
    family: str  # what it varies
    settings: dict[str, Any] = field(default_factory=dict)  # of make_world
    groups: bool | None = True  # whether it has several groups of several users to find; None if nobody knows
    rounds: int = ROUNDS
    first_seed: int = 0

    def seed(self, repeat: int) -> int:
        """Of the world and the rounds of a repeat."""
        if not 0 <= repeat < SEEDS_A_WORLD:
            raise ValueError(f"seed and repeats must give repeats from 0 to {SEEDS_A_WORLD - 1}, not {repeat}")
        return self.first_seed + repeat


class _Kind(NamedTuple):
    """What a world is, whatever it is for."""

    name: str
    says: str
    family: str
    settings: dict[str, Any]
    groups: bool = True


# What constants were set on: both roles have these, with other seeds.
_KNOWN = [
    _Kind("bernoulli-100", "The paper's world: 100 users in 5 clusters, rewards of 0 or 1.", "size", {}),
    _Kind("bernoulli-500", "500 users.", "size", {"n_users": 500}),
    _Kind("gaussian-0.05", "Gaussian noise of deviation 0.05.", "noise", {"noise": 0.05}),
    _Kind("gaussian-0.1", "Gaussian noise of deviation 0.1.", "noise", {"noise": 0.1}),
    _Kind("gaussian-0.5", "Gaussian noise of deviation 0.5.", "noise", {"noise": 0.5}),
    _Kind("zipf-300", "300 users, few of whom come often.", "arrivals", {"n_users": 300, "arrivals": "zipf"}),
    _Kind("no-structure", "Nobody is like another.", "structure", {"n_clusters": 100}, groups=False),
    _Kind("one-cluster", "All are alike.", "structure", {"n_clusters": 1}, groups=False),
]
# What nothing was set on.
_NEW = [
    _Kind("two-clusters", "2 clusters.", "structure", {"n_clusters": 2}),
    _Kind("many-clusters", "300 users in 50 clusters.", "structure", {"n_users": 300, "n_clusters": 50}),
    _Kind(
        "hierarchy",
        "120 users in 12 clusters, which form 3 families.",
        "structure",
        {"n_users": 120, "n_clusters": 12, "families": 3},
    ),
    _Kind("overlap", "3 of 10 users stand between two clusters.", "structure", {"overlap": 0.3}),
    _Kind("arms-3", "3 arms a round.", "size", {"n_arms": 3}),
    _Kind("arms-50", "50 arms a round.", "size", {"n_arms": 50}),
    _Kind("features-20", "20 features an arm.", "size", {"raw_dim": 19}),
    _Kind("unequal-noise", "Gaussian noise of deviation 0.05 to 1, by user.", "noise", {"noise": (0.05, 1.0)}),
    _Kind("mixed-norms", "Arms' features of length 0.2 to 1.", "contexts", {"norms": (0.2, 1.0)}),
    _Kind("drift-clusters", "Clusters turn as one, by 0.1 radians in 10,000 rounds.", "drift", {"drift": 0.1}),
    _Kind(
        "drift-users",
        "Users turn, each its own way, by 0.1 radians in 10,000 rounds.",
        "drift",
        {"drift": 0.1, "drifters": "users"},
    ),
]


def _registry() -> dict[str, Scenario]:
    worlds: dict[str, Scenario] = {}
    for role, prefix, rows in ((JUDGING, "", _KNOWN + _NEW), (DEVELOPMENT, "dev-", _KNOWN)):
        for place, kind in enumerate(rows):
            name, first = prefix + kind.name, FIRST_SEED[role] + place * SEEDS_A_WORLD
            worlds[name] = Scenario(name, kind.says, role, kind.family, kind.settings, kind.groups, ROUNDS, first)
    return worlds


SCENARIOS = _registry()  # a new world goes to the end of its list, so that the others keep their seeds


def select_scenarios(names: Sequence[str]) -> list[Scenario]:
    """The worlds of these names; ``development``, ``judging`` and ``all`` stand for several.

    Examples
    --------
    >>> [world.name for world in select_scenarios(["overlap", "one-cluster"])]
    ['one-cluster', 'overlap']
    """
    groups = {"all": (JUDGING, DEVELOPMENT), JUDGING: (JUDGING,), DEVELOPMENT: (DEVELOPMENT,)}
    for name in names:
        if name not in SCENARIOS and name not in groups:
            raise ValueError(f"there is no world {name!r}; there are {', '.join([*groups, *SCENARIOS])}")
    if not names:
        raise ValueError("worlds must name at least one")
    roles = {role for name in names for role in groups.get(name, ())}
    return [world for world in SCENARIOS.values() if world.name in names or world.role in roles]


def dataset_scenarios(data: dict[str, Any], role: str) -> list[Scenario]:
    """Worlds made of a data set's files: one a kind of arms that are not liked, if none was asked for."""
    name = str(data["data"])
    kinds: list[str | None] = ["rated", "any"] if name != "yahoo" and "zeros" not in data else [None]
    made = []
    for place, zeros in enumerate(kinds):
        settings = data if zeros is None else data | {"zeros": zeros}
        kind = settings.get("zeros")
        says = f"Real data, {name}: 100 users" + ("." if kind is None else f"; arms that are not liked: {kind}.")
        first = FIRST_SEED[role] + (50 + place) * SEEDS_A_WORLD
        label = name if kind is None else f"{name}-{kind}"
        made.append(Scenario(label, says, role, "real data", settings, None, DATA_ROUNDS, first))
    return made

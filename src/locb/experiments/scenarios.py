"""Scenarios: named environments with settings, in which policies are compared.

Each scenario has one of two roles. Development scenarios were used to tune the constants of the policies. Evaluation
scenarios use other seeds, and most of them have settings that were never used for tuning. No two synthetic scenarios
share a seed, so no user of a development scenario occurs in an evaluation scenario. Scenarios of real data read the
same files in both roles, and only their rounds differ.

Settings that a scenario does not list are those of the paper's synthetic environment: 100 users in 5 clusters,
6 features per arm, 10 arms per round, rewards of 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from locb.common.validation import ParameterError, ParameterName

DEVELOPMENT, EVALUATION = "development", "evaluation"
ROUNDS, DATA_ROUNDS = 50_000, 30_000
SEEDS_PER_SCENARIO = 1_000
FIRST_SEED = {DEVELOPMENT: 100_000, EVALUATION: 200_000}


@dataclass(frozen=True)
class Scenario:
    """Named environment with settings, in which policies are compared.

    Attributes
    ----------
    name : str
        Unique name.
    description : str
        Description of the environment in one sentence.
    role : {"development", "evaluation"}
        Whether the scenario was used to tune policies, or is used to evaluate them.
    family : str
        What distinguishes the scenario: size, noise, arrivals, structure, contexts, drift or real data.
    settings : dict, default {}
        Settings for :func:`locb.experiments.environment_factory.make_environment`.
    groups : bool or None, default True
        Whether the users form at least two groups of at least two users; None if unknown.
    rounds : int, default 50_000
        Number of rounds per run, unless the caller chooses another number.
    first_seed : int, default 0
        Seed of repeat 0. Repeat r uses seed ``first_seed + r``.
    """

    name: str
    description: str
    role: str
    family: str
    settings: dict[str, Any] = field(default_factory=dict)
    groups: bool | None = True
    rounds: int = ROUNDS
    first_seed: int = 0

    def seed(self, repeat: int) -> int:
        """Return the seed of a repeat, which determines its environment and its rounds."""
        if not 0 <= repeat < SEEDS_PER_SCENARIO:
            seed, repeats = ParameterName("seed"), ParameterName("repeats")
            reason = f"because each scenario has {SEEDS_PER_SCENARIO} seeds; repeat {repeat} is out of range"
            limit = f" at most {SEEDS_PER_SCENARIO}, {reason}"
            raise ParameterError(seed, " must be at least 0 and ", seed, " + ", repeats, limit)
        return self.first_seed + repeat


class _Kind(NamedTuple):
    """Properties of a scenario that do not depend on its role."""

    name: str
    description: str
    family: str
    settings: dict[str, Any]
    groups: bool = True


# Kinds with settings that were used for tuning. There is a development and an evaluation scenario of each kind.
_TUNED_KINDS = [
    _Kind("bernoulli-100", "The paper's environment: 100 users in 5 clusters, rewards of 0 or 1.", "size", {}),
    _Kind("bernoulli-500", "500 users.", "size", {"n_users": 500}),
    _Kind("gaussian-0.05", "Gaussian noise with standard deviation 0.05.", "noise", {"noise": 0.05}),
    _Kind("gaussian-0.1", "Gaussian noise with standard deviation 0.1.", "noise", {"noise": 0.1}),
    _Kind("gaussian-0.5", "Gaussian noise with standard deviation 0.5.", "noise", {"noise": 0.5}),
    _Kind("zipf-300", "300 users with Zipf arrivals.", "arrivals", {"n_users": 300, "arrivals": "zipf"}),
    _Kind("no-structure", "Each user is in a cluster of its own.", "structure", {"n_clusters": 100}, groups=False),
    _Kind("one-cluster", "All users are in one cluster.", "structure", {"n_clusters": 1}, groups=False),
]
# Kinds with settings that were never used for tuning. There is only an evaluation scenario of each kind.
_HELD_OUT_KINDS = [
    _Kind("two-clusters", "2 clusters.", "structure", {"n_clusters": 2}),
    _Kind("many-clusters", "300 users in 50 clusters.", "structure", {"n_users": 300, "n_clusters": 50}),
    _Kind(
        "hierarchy",
        "120 users in 12 clusters, which form 3 families.",
        "structure",
        {"n_users": 120, "n_clusters": 12, "families": 3},
    ),
    _Kind("overlap", "30% of the users lie between two clusters.", "structure", {"overlap": 0.3}),
    _Kind("arms-3", "3 arms per round.", "size", {"n_arms": 3}),
    _Kind("arms-50", "50 arms per round.", "size", {"n_arms": 50}),
    _Kind("features-20", "20 features per arm.", "size", {"raw_dim": 19}),
    _Kind(
        "unequal-noise",
        "Gaussian noise; the standard deviation of each user is between 0.05 and 1.",
        "noise",
        {"noise": (0.05, 1.0)},
    ),
    _Kind("mixed-norms", "Feature vectors with a Euclidean norm from 0.2 to 1.", "contexts", {"norms": (0.2, 1.0)}),
    _Kind("drift-clusters", "Each cluster drifts as a whole, 0.1 radians per 10,000 rounds.", "drift", {"drift": 0.1}),
    _Kind(
        "drift-users",
        "Each user drifts independently, 0.1 radians per 10,000 rounds.",
        "drift",
        {"drift": 0.1, "drifters": "users"},
    ),
]


def _registry() -> dict[str, Scenario]:
    scenarios: dict[str, Scenario] = {}
    for role, prefix, kinds in (
        (EVALUATION, "", _TUNED_KINDS + _HELD_OUT_KINDS),
        (DEVELOPMENT, "dev-", _TUNED_KINDS),
    ):
        for index, kind in enumerate(kinds):
            name, first = prefix + kind.name, FIRST_SEED[role] + index * SEEDS_PER_SCENARIO
            scenarios[name] = Scenario(
                name, kind.description, role, kind.family, kind.settings, kind.groups, ROUNDS, first
            )
    return scenarios


SCENARIOS = _registry()  # append new kinds to the end of their list, so that existing scenarios keep their seeds


def select_scenarios(names: Sequence[str]) -> list[Scenario]:
    """Return scenarios by name, in the order of ``SCENARIOS``.

    Parameters
    ----------
    names : sequence of str
        Names in ``SCENARIOS``. "development" and "evaluation" select all scenarios of that role. "all" selects all
        scenarios.

    Raises
    ------
    ValueError
        If a name is unknown, or if no name is given.

    Examples
    --------
    >>> [scenario.name for scenario in select_scenarios(["overlap", "one-cluster"])]
    ['one-cluster', 'overlap']
    """
    groups = {"all": (EVALUATION, DEVELOPMENT), EVALUATION: (EVALUATION,), DEVELOPMENT: (DEVELOPMENT,)}
    for name in names:
        if name not in SCENARIOS and name not in groups:
            raise ParameterError(
                "scenarios", f": unknown scenario {name!r}; choose from {', '.join([*groups, *SCENARIOS])}"
            )
    if not names:
        raise ParameterError(
            "scenarios", f" must name at least one scenario; choose from {', '.join([*groups, *SCENARIOS])}"
        )
    roles = {role for name in names for role in groups.get(name, ())}
    return [scenario for scenario in SCENARIOS.values() if scenario.name in names or scenario.role in roles]


def dataset_scenarios(data: dict[str, Any], role: str) -> list[Scenario]:
    """Return the scenarios of a data set.

    If the settings have ``zeros``, or the data set is Yahoo, there is one scenario. Otherwise there are two: one with
    ``zeros="rated"`` and one with ``zeros="any"``. See :class:`locb.Interactions` for ``zeros``.

    Parameters
    ----------
    data : dict
        Settings of :func:`~locb.experiments.environment_factory.make_environment`, with the key ``data``.
    role : {"development", "evaluation"}
        Role of the scenarios.
    """
    name = str(data["data"])
    kinds: list[str | None] = ["rated", "any"] if name != "yahoo" and "zeros" not in data else [None]
    scenarios = []
    for index, zeros in enumerate(kinds):
        settings = data if zeros is None else data | {"zeros": zeros}
        kind = settings.get("zeros")
        arms = "" if kind is None else f", zero-reward arms: {kind}"
        first = FIRST_SEED[role] + (50 + index) * SEEDS_PER_SCENARIO
        label = name if kind is None else f"{name}-{kind}"
        users = f", up to {settings['n_users']} users" if "n_users" in settings else ""
        description = f"Real data ({name}){users}{arms}."
        scenarios.append(Scenario(label, description, role, "real data", settings, None, DATA_ROUNDS, first))
    return scenarios

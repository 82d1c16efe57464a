"""Registry of the scenarios: named environments with settings, in which policies are compared.

Each scenario has one of two roles. Development scenarios are used to set the constants of the policies. Evaluation
scenarios have other random seeds, and most of them have settings that were never used for tuning. Two scenarios
of ``SCENARIOS`` share random seeds only if one is a copy of the other with mapped rewards. A copy has the role of its
original, so no user of a development scenario occurs in an evaluation scenario. Scenarios of real data read the same
files in both roles, and only their rounds differ. Within a role, all data sets use the same random seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from locb.common.validation import ParameterError, ParameterName
from locb.experiments.scenarios.development import DEVELOPMENT_COPIES, DEVELOPMENT_KINDS
from locb.experiments.scenarios.evaluation import EVALUATION_COPIES, EVALUATION_KINDS
from locb.experiments.scenarios.kinds import REWARDS, ROUNDS

DEVELOPMENT, EVALUATION = "development", "evaluation"
DATA_ROUNDS = 30_000
SEEDS_PER_SCENARIO = 1_000
DATA_POSITION = 50  # position of the random seeds of real data; the lists of kinds are shorter
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
        Property that distinguishes the scenario: size, noise, arrivals, structure, contexts, drift, categories, rewards
        or real data.
    settings : dict, default {}
        Settings for :func:`locb.experiments.environment_factory.make_environment`.
    groups : bool or None, default True
        Whether the users form at least two groups of at least two users; None if unknown.
    rounds : int, default 50_000
        Number of rounds per run, unless the caller chooses another number.
    first_seed : int, default 0
        Random seed of repeat 0. Repeat r uses the random seed ``first_seed + r``.
    development : str, optional
        For an evaluation scenario: the name of the development scenario of the same kind. None if the kind was not used
        for development.
    original : str, optional
        Name of the scenario with the same random seeds and settings, except ``reward_scale`` and ``reward_shift``. None
        if there is no such scenario.
    """

    name: str
    description: str
    role: str
    family: str
    settings: dict[str, Any] = field(default_factory=dict)
    groups: bool | None = True
    rounds: int = ROUNDS
    first_seed: int = 0
    development: str | None = None
    original: str | None = None

    @property
    def counts_in_means(self) -> bool:
        """Whether means over the scenarios with groups include the scenario. Scenarios with an original do not count.

        Such a scenario has the random numbers of its original, which would otherwise count twice.
        """
        return bool(self.groups) and self.original is None

    def seed(self, repeat: int) -> int:
        """Return the random seed of a repeat, which determines its environment and its rounds."""
        if not 0 <= repeat < SEEDS_PER_SCENARIO:
            seed, repeats = ParameterName("seed"), ParameterName("repeats")
            reason = f"because each scenario has {SEEDS_PER_SCENARIO} random seeds; repeat {repeat} is out of range"
            limit = f" at most {SEEDS_PER_SCENARIO}, {reason}"
            raise ParameterError(seed, " must be at least 0 and ", seed, " + ", repeats, limit)
        return self.first_seed + repeat


def _registry() -> dict[str, Scenario]:
    scenarios: dict[str, Scenario] = {}
    for role, kinds, copies in (
        (EVALUATION, EVALUATION_KINDS, EVALUATION_COPIES),
        (DEVELOPMENT, DEVELOPMENT_KINDS, DEVELOPMENT_COPIES),
    ):
        for position, kind in enumerate(kinds):
            first_seed = FIRST_SEED[role] + position * SEEDS_PER_SCENARIO
            scenarios[kind.name] = Scenario(role=role, first_seed=first_seed, **kind._asdict())
        for copy in copies:
            original = scenarios[copy.original]
            mapping = {"reward_scale": copy.scale, "reward_shift": copy.shift}
            shift = f" {'−' if copy.shift < 0.0 else '+'} {abs(copy.shift):g}" if copy.shift else ""
            scenarios[copy.name] = replace(
                original,
                name=copy.name,
                description=f"Rewards of {original.name}, mapped from r to {copy.scale:g} · r{shift}.",
                family=REWARDS,
                settings=original.settings | mapping,
                development=copy.development,
                original=original.name,
            )
    return scenarios


SCENARIOS = _registry()


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
        arms = "" if kind is None else f", with --zeros {kind}"
        first = FIRST_SEED[role] + (DATA_POSITION + index) * SEEDS_PER_SCENARIO
        label = name if kind is None else f"{name}-{kind}"
        users = f", up to {settings['n_users']} users" if "n_users" in settings else ""
        description = f"Real data ({name}){users}{arms}."
        scenarios.append(Scenario(label, description, role, "real data", settings, None, DATA_ROUNDS, first))
    return scenarios

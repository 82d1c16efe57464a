"""Scenarios match their descriptions, and evaluation scenarios share no seeds with development scenarios."""

import re
from pathlib import Path

import numpy as np
import pytest

from locb.experiments.environment_factory import make_environment
from locb.experiments.scenarios import (
    DEVELOPMENT,
    EVALUATION,
    SCENARIOS,
    SEEDS_PER_SCENARIO,
    dataset_scenarios,
    select_scenarios,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scenarios.md"


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_scenario_matches_its_description(scenario) -> None:
    env = make_environment(scenario.settings, scenario.seed(0))
    rounds = env.rounds(300, seed=scenario.seed(0))
    assert rounds.contexts.shape == (300, env.n_arms, env.dim)
    assert rounds.means.min() >= 0.0
    assert rounds.means.max() <= 1.0 + 1e-12
    clusters = env.true_clusters()
    assert scenario.groups == (len(clusters) > 1 and max(map(len, clusters)) > 1)
    numbers = {int(text) for text in re.findall(r"\b(\d+) (?:users|clusters|arms|features)", scenario.description)}
    assert numbers <= {env.n_users, len(clusters), env.n_arms, env.dim, 10}, scenario.description
    assert scenario.description.endswith(".")


def test_evaluation_has_extreme_sizes() -> None:
    environments = [make_environment(scenario.settings, 0) for scenario in select_scenarios([EVALUATION])]
    assert {3, 50} <= {env.n_arms for env in environments}
    assert {6, 20} <= {env.dim for env in environments}
    assert {100, 500} <= {env.n_users for env in environments}
    assert len(environments) >= 18


def test_roles_share_no_seed_and_no_user() -> None:
    seeds = {}
    for scenario in SCENARIOS.values():
        for seed in (scenario.seed(0), scenario.seed(SEEDS_PER_SCENARIO - 1)):
            assert seed not in seeds, (scenario.name, seeds[seed])
            seeds[seed] = scenario.name
    firsts = sorted(scenario.first_seed for scenario in SCENARIOS.values())
    assert min(np.diff(firsts)) >= SEEDS_PER_SCENARIO
    for scenario in select_scenarios([DEVELOPMENT]):
        twin = SCENARIOS[scenario.name.removeprefix("dev-")]
        assert (twin.role, twin.settings, twin.description) == (EVALUATION, scenario.settings, scenario.description)
        theta = [make_environment(item.settings, item.seed(0)).theta for item in (scenario, twin)]
        assert not np.isclose(theta[0][:, None, :-1], theta[1][None, :, :-1]).all(axis=2).any()
    with pytest.raises(ValueError, match="each scenario has 1000 seeds; repeat 1000 is out of range"):
        SCENARIOS["overlap"].seed(SEEDS_PER_SCENARIO)


def test_select_scenarios() -> None:
    assert select_scenarios(["all"]) == list(SCENARIOS.values())
    assert {scenario.role for scenario in select_scenarios(["development"])} == {DEVELOPMENT}
    assert [scenario.name for scenario in select_scenarios(["development", "overlap"])][:2] == [
        "overlap",
        "dev-bernoulli-100",
    ]
    with pytest.raises(
        ValueError, match="unknown scenario 'moon'; choose from all, evaluation, development, bernoulli-100, "
    ):
        select_scenarios(["moon"])
    with pytest.raises(ValueError, match="scenarios must name at least one scenario"):
        select_scenarios([])


def test_dataset_scenarios() -> None:
    both = dataset_scenarios({"data": "movielens", "path": "x"}, EVALUATION)
    assert [(scenario.name, scenario.settings["zeros"], scenario.groups) for scenario in both] == [
        ("movielens-rated", "rated", None),
        ("movielens-any", "any", None),
    ]
    assert both[0].description == "Real data (movielens), zero-reward arms: rated."
    (fewer,) = dataset_scenarios({"data": "yahoo", "path": "x", "n_users": 30}, EVALUATION)
    assert fewer.description == "Real data (yahoo), up to 30 users."
    assert both[0].first_seed not in [scenario.first_seed for scenario in SCENARIOS.values()]
    assert [
        scenario.name for scenario in dataset_scenarios({"data": "yelp", "path": "x", "zeros": "any"}, EVALUATION)
    ] == ["yelp-any"]
    assert [scenario.name for scenario in dataset_scenarios({"data": "yahoo", "path": "x"}, DEVELOPMENT)] == ["yahoo"]


def test_documentation_lists_the_scenarios() -> None:
    shown = {True: "yes", False: "no"}
    rows = [
        f"| `{scenario.name}` | {scenario.description} | {shown[scenario.groups]} |"
        for scenario in select_scenarios([EVALUATION])
    ]
    assert "\n".join(rows) in PAGE.read_text(encoding="utf-8")
    names = "`, `".join(scenario.name for scenario in select_scenarios([DEVELOPMENT]))
    assert f"`{names}`" in PAGE.read_text(encoding="utf-8").replace("\n", " ")

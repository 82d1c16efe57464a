"""Scenarios match their descriptions, and evaluation scenarios share no seeds with development scenarios."""

import re
from pathlib import Path

import numpy as np
import pytest

import locb
from locb.experiments.environment_factory import make_environment
from locb.experiments.scenarios import (
    DEVELOPMENT,
    EVALUATION,
    SCENARIOS,
    SEEDS_PER_SCENARIO,
    dataset_scenarios,
    select_scenarios,
)
from locb.experiments.scenarios.kinds import FAMILIES
from locb.experiments.scenarios.registry import DATA_POSITION, FIRST_SEED

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scenarios.md"


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_scenario_matches_its_description(scenario) -> None:
    env = make_environment(scenario.settings, scenario.seed(0))
    rounds = env.rounds(300, seed=scenario.seed(0))
    assert rounds.contexts.shape == (300, env.n_arms, env.dim)
    low, high = scenario.settings.get("mean_range", (0.0, 1.0))
    scale, shift = scenario.settings.get("reward_scale", 1.0), scenario.settings.get("reward_shift", 0.0)
    means = (rounds.means - shift) / scale
    assert means.min() >= low - 1e-12
    assert means.max() <= high + 1e-12
    if getattr(env, "linear", True):
        theta = (
            env.theta_at(rounds.users, np.arange(300)) if isinstance(env, locb.Synthetic) else env.theta[rounds.users]
        )
        assert rounds.means == pytest.approx(np.einsum("tkd,td->tk", rounds.contexts, theta), abs=1e-9 * scale)
    assert getattr(env, "linear", True) == ("hashed" not in scenario.description)
    clusters = env.true_clusters()
    assert scenario.groups == (len(clusters) > 1 and max(map(len, clusters)) > 1)
    numbers = {int(text) for text in re.findall(r"\b(\d+) (?:users|clusters|arms|features)", scenario.description)}
    assert numbers <= {env.n_users, len(clusters), env.n_arms, env.dim, 10}, scenario.description
    assert scenario.family in FAMILIES
    assert scenario.description.endswith(".")
    assert (scenario.rounds == 50_000) != ("150,000 rounds" in scenario.description)


def test_first_scenarios_keep_their_seeds() -> None:
    """Compare with the seeds of the first version, on which published results depend."""
    evaluation = {"bernoulli-100": 200_000, "one-cluster": 207_000, "two-clusters": 208_000, "drift-users": 218_000}
    development = {"dev-bernoulli-100": 100_000, "dev-one-cluster": 107_000}
    added = {"one-hot": 219_000, "one-cluster-long": 242_000, "dev-arms-30": 108_000, "dev-low-rates": 127_000}
    for name, first_seed in (evaluation | development | added).items():
        assert SCENARIOS[name].first_seed == first_seed
    assert SCENARIOS["drift-users"].settings == {"drift": 0.1, "drifters": "users"}


def test_evaluation_has_extreme_sizes() -> None:
    environments = [make_environment(scenario.settings, 0) for scenario in select_scenarios([EVALUATION])]
    assert {3, 50} <= {env.n_arms for env in environments}
    assert {6, 20, 50} <= {env.dim for env in environments}
    assert {100, 500} <= {env.n_users for env in environments}
    assert len(environments) >= 40


def test_roles_share_no_seed_and_no_user() -> None:
    drawn = [scenario for scenario in SCENARIOS.values() if scenario.original is None]
    seeds = {}
    for scenario in drawn:
        for seed in (scenario.seed(0), scenario.seed(SEEDS_PER_SCENARIO - 1)):
            assert seed not in seeds, (scenario.name, seeds[seed])
            seeds[seed] = scenario.name
    firsts = sorted(scenario.first_seed for scenario in drawn)
    assert min(np.diff(firsts)) >= SEEDS_PER_SCENARIO
    with pytest.raises(ValueError, match="each scenario has 1000 random seeds; repeat 1000 is out of range"):
        SCENARIOS["overlap"].seed(SEEDS_PER_SCENARIO)


def test_evaluation_scenarios_state_whether_their_kind_was_developed() -> None:
    evaluation, development = select_scenarios([EVALUATION]), select_scenarios([DEVELOPMENT])
    assert {scenario.development for scenario in evaluation} - {None} <= {scenario.name for scenario in development}
    assert {scenario.development for scenario in development} == {None}
    assert sum(scenario.development is None for scenario in evaluation) >= 12
    for scenario in evaluation:
        if scenario.development is None:
            continue
        twin = SCENARIOS[scenario.development]
        assert (twin.role, twin.family, twin.groups) == (DEVELOPMENT, scenario.family, scenario.groups)
        if scenario.original is None and twin.name != f"dev-{scenario.name}":
            assert twin.settings != scenario.settings
        first, second = (make_environment(item.settings, item.seed(0)).theta for item in (scenario, twin))
        if first.shape[1] == second.shape[1]:
            assert not np.isclose(first[:, None, :-1], second[None, :, :-1]).all(axis=2).any()


def test_scaled_scenarios_have_the_draws_of_their_originals() -> None:
    scaled = [scenario for scenario in SCENARIOS.values() if scenario.original is not None]
    assert SCENARIOS["scaled-bernoulli"].description == "Rewards of bernoulli-100, mapped from r to 250 · r − 40."
    assert SCENARIOS["dev-scaled-gaussian"].description == "Rewards of dev-gaussian-0.1, mapped from r to 0.01 · r."
    assert len(scaled) >= 5
    for scenario in scaled:
        original = SCENARIOS[scenario.original]
        scale, shift = scenario.settings["reward_scale"], scenario.settings["reward_shift"]
        assert f"Rewards of {original.name}, mapped from r to {scale:g} · r" in scenario.description
        assert (scenario.role, scenario.seed(3), scenario.rounds) == (original.role, original.seed(3), original.rounds)
        first, second = (
            make_environment(item.settings, item.seed(3)).rounds(500, seed=item.seed(3))
            for item in (original, scenario)
        )
        assert np.array_equal(second.contexts, first.contexts)
        assert np.array_equal(second.rewards, scale * first.rewards + shift)
        assert np.array_equal(second.means, scale * first.means + shift)
        assert original.counts_in_means
        assert not scenario.counts_in_means


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
    assert both[0].description == "Real data (movielens), with --zeros rated."
    (fewer,) = dataset_scenarios({"data": "yahoo", "path": "x", "n_users": 30}, EVALUATION)
    assert fewer.description == "Real data (yahoo), up to 30 users."
    for scenario in SCENARIOS.values():
        assert scenario.first_seed - FIRST_SEED[scenario.role] < DATA_POSITION * SEEDS_PER_SCENARIO
    assert both[0].first_seed == FIRST_SEED[EVALUATION] + DATA_POSITION * SEEDS_PER_SCENARIO
    assert [
        scenario.name for scenario in dataset_scenarios({"data": "yelp", "path": "x", "zeros": "any"}, EVALUATION)
    ] == ["yelp-any"]
    assert [scenario.name for scenario in dataset_scenarios({"data": "yahoo", "path": "x"}, DEVELOPMENT)] == ["yahoo"]


def test_documentation_lists_the_scenarios() -> None:
    shown = {True: "yes", False: "no"}
    page = PAGE.read_text(encoding="utf-8")
    for role in (EVALUATION, DEVELOPMENT):
        rows = []
        for scenario in select_scenarios([role]):
            row = f"| `{scenario.name}` | {scenario.family} | {scenario.description} | {shown[scenario.groups]} |"
            twin = "–" if scenario.development is None else f"`{scenario.development}`"
            rows.append(row + (f" {twin} |" if role == EVALUATION else ""))
        assert "\n".join(rows) in page

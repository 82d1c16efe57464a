"""Worlds by name: made as they say, and those for judging kept apart from those for developing."""

import re
from pathlib import Path

import numpy as np
import pytest

from locb.experiments.environment_factory import make_environment
from locb.experiments.scenarios import (
    DEVELOPMENT,
    JUDGING,
    SCENARIOS,
    SEEDS_A_WORLD,
    dataset_scenarios,
    select_scenarios,
)

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "experiments.md"


@pytest.mark.parametrize("world", SCENARIOS.values(), ids=lambda world: world.name)
def test_every_world_is_made_and_is_what_it_says(world) -> None:
    env = make_environment(world.settings, world.seed(0))
    rounds = env.rounds(300, seed=world.seed(0))
    assert rounds.contexts.shape == (300, env.n_arms, env.dim)
    assert rounds.means.min() >= 0.0
    assert rounds.means.max() <= 1.0 + 1e-12
    clusters = env.true_clusters()
    assert world.groups == (len(clusters) > 1 and max(map(len, clusters)) > 1)
    numbers = {int(text) for text in re.findall(r"\b(\d+) (?:users|clusters|arms|features)", world.says)}
    assert numbers <= {env.n_users, len(clusters), env.n_arms, env.dim, 10}, world.says
    assert world.says.endswith(".")


def test_there_are_the_extremes_that_were_asked_for() -> None:
    sizes = [make_environment(world.settings, 0) for world in select_scenarios([JUDGING])]
    assert {3, 50} <= {env.n_arms for env in sizes}
    assert {6, 20} <= {env.dim for env in sizes}
    assert {100, 500} <= {env.n_users for env in sizes}
    assert len(sizes) >= 18


def test_development_and_judging_share_no_seed_and_no_user() -> None:
    seeds = {}
    for world in SCENARIOS.values():
        for seed in (world.seed(0), world.seed(SEEDS_A_WORLD - 1)):
            assert seed not in seeds, (world.name, seeds[seed])
            seeds[seed] = world.name
    firsts = sorted(world.first_seed for world in SCENARIOS.values())
    assert min(np.diff(firsts)) >= SEEDS_A_WORLD
    for world in select_scenarios([DEVELOPMENT]):
        twin = SCENARIOS[world.name.removeprefix("dev-")]
        assert (twin.role, twin.settings, twin.says) == (JUDGING, world.settings, world.says)
        theta = [make_environment(one.settings, one.seed(0)).theta for one in (world, twin)]
        assert not np.isclose(theta[0][:, None, :-1], theta[1][None, :, :-1]).all(axis=2).any()
    with pytest.raises(ValueError, match="repeats from 0 to 999, not 1000"):
        SCENARIOS["overlap"].seed(SEEDS_A_WORLD)


def test_names_stand_for_worlds() -> None:
    assert select_scenarios(["all"]) == list(SCENARIOS.values())
    assert {world.role for world in select_scenarios(["development"])} == {DEVELOPMENT}
    assert [world.name for world in select_scenarios(["development", "overlap"])][:2] == [
        "overlap",
        "dev-bernoulli-100",
    ]
    with pytest.raises(
        ValueError, match="there is no world 'moon'; there are all, judging, development, bernoulli-100, "
    ):
        select_scenarios(["moon"])
    with pytest.raises(ValueError, match="worlds must name at least one"):
        select_scenarios([])


def test_real_data_become_two_worlds_or_the_one_that_was_asked_for() -> None:
    both = dataset_scenarios({"data": "movielens", "path": "x"}, JUDGING)
    assert [(world.name, world.settings["zeros"], world.groups) for world in both] == [
        ("movielens-rated", "rated", None),
        ("movielens-any", "any", None),
    ]
    assert both[0].first_seed not in [world.first_seed for world in SCENARIOS.values()]
    assert [w.name for w in dataset_scenarios({"data": "yelp", "path": "x", "zeros": "any"}, JUDGING)] == ["yelp-any"]
    assert [w.name for w in dataset_scenarios({"data": "yahoo", "path": "x"}, DEVELOPMENT)] == ["yahoo"]


def test_the_page_lists_the_worlds() -> None:
    shown = {True: "yes", False: "no"}
    judging = [f"| `{w.name}` | {w.says} | {shown[w.groups]} |" for w in select_scenarios([JUDGING])]
    assert "\n".join(judging) in PAGE.read_text(encoding="utf-8")
    kept = "`, `".join(w.name for w in select_scenarios([DEVELOPMENT]))
    assert f"`{kept}`" in PAGE.read_text(encoding="utf-8").replace("\n", " ")

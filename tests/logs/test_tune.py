"""Choice of a policy on a log: unbiased estimates of the choice, and candidates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import locb
from locb.logs.tune import assign_folds, make_candidates
from logs.truth import draw_log, environment


def draw_equal_arms(seed: int) -> locb.Log:
    """Return a log in which all of ten arms earn 0.5."""
    rng = np.random.default_rng(seed)
    rows = {"user": rng.integers(50, size=500), "arm": rng.integers(10, size=500), "reward": rng.random(500)}
    return locb.Log.read(rows, propensity="uniform")


def test_held_out_value_is_unbiased_although_the_selecting_value_is_not() -> None:
    arms = [f"arm:{number}" for number in range(10)]
    tunings = [locb.tune(draw_equal_arms(seed), arms, seed=seed) for seed in range(40)]
    held_out = np.array([tuning.value.value for tuning in tunings])
    selecting = np.array([tuning.selecting_value for tuning in tunings])
    error = held_out.std(ddof=1) / np.sqrt(len(held_out))
    assert abs(held_out.mean() - 0.5) < 3 * error
    assert selecting.mean() - 0.5 > 6 * selecting.std(ddof=1) / np.sqrt(len(selecting))
    assert np.mean([tuning.winners_curse for tuning in tunings]) == pytest.approx(selecting.mean() - held_out.mean())
    assert sum(tuning.verdict != "undecided" for tuning in tunings) <= 6


def test_intervals_of_rewards_0_and_1_stay_in_the_range_of_means() -> None:
    rng = np.random.default_rng(0)
    arm, user = rng.integers(2, size=60), rng.integers(12, size=60)
    rows = {"user": user, "arm": np.array(["a", "b"])[arm], "reward": 1.0 * (rng.random(60) < 0.05 + 0.92 * arm)}
    options: dict[str, Any] = {"folds": 3, "replicates": 30}
    tuning = locb.tune(locb.Log.read(rows, propensity="uniform"), ["arm:a", "arm:b"], **options)
    doubled = locb.tune(
        locb.Log.read(rows | {"reward": 2.0 * rows["reward"]}, propensity="uniform"), ["arm:a", "arm:b"], **options
    )
    assert tuning.value.high == tuning.winner.value.high == 1.0 < doubled.value.high / 2.0
    assert tuning.value[:2] == pytest.approx(np.array(doubled.value[:2]) / 2.0)
    assert tuning.difference == pytest.approx(np.array(doubled.difference) / 2.0)
    assert min(candidate.value.low for candidate in tuning.candidates) >= 0.0


def test_learning_policies_are_compared_with_the_log() -> None:
    log = draw_log(5, uniform=True)
    tuning = locb.tune(log, ["linucb-one", "random"], grid={"alpha": [0.1, 100.0]}, folds=3, replays=2)
    names = ["linucb-one alpha=0.1", "linucb-one alpha=100.0", "random"]
    assert sorted(candidate.name for candidate in tuning.candidates) == names
    winner = tuning.winner
    assert (winner.name, winner.policy, winner.parameters) == ("linucb-one alpha=0.1", "linucb-one", {"alpha": 0.1})
    assert locb.make_policy(winner.policy, n_users=3, dim=environment().dim, **winner.parameters).dim == log.dim
    assert [candidate.value.value for candidate in tuning.candidates] == sorted(
        (candidate.value.value for candidate in tuning.candidates), reverse=True
    )
    assert "winner: linucb-one alpha=0.1" in repr(tuning)
    logged = {candidate.name: candidate for candidate in tuning.candidates}["random"]
    assert logged.difference.value == pytest.approx(0.0, abs=0.03)  # the log was made at random


def test_folds_keep_users_together() -> None:
    users = np.random.default_rng(0).integers(30, size=300)
    fold_of, group_of = assign_folds(users, 4, 0)
    assert all(len(set(group_of[users == user])) == 1 for user in np.unique(users))
    assert all(len(set(fold_of[users == user])) == 1 for user in np.unique(users))
    assert set(np.bincount([fold_of[users == user][0] for user in np.unique(users)])) <= {7, 8}


def test_candidates_are_all_combinations_of_own_parameters() -> None:
    found = make_candidates(["locb", "linucb-one", "first"], {"alpha": [1, 2], "gamma": [0.1, 0.2]})
    assert [entry.name for entry in found if entry.policy == "locb"] == [
        "locb alpha=1 gamma=0.1",
        "locb alpha=1 gamma=0.2",
        "locb alpha=2 gamma=0.1",
        "locb alpha=2 gamma=0.2",
    ]
    assert [entry.name for entry in found[4:]] == ["linucb-one alpha=1", "linucb-one alpha=2", "first"]


@pytest.mark.parametrize(
    ("policies", "options", "message"),
    [
        ("eloc", {}, "policies must be a list of at least one policy, not 'eloc'"),
        (["best"], {}, "policies: unknown policy 'best'; choose from locb"),
        (
            ["eloc"],
            {"grid": {"alpha": [1]}},
            "grid: none of the policies (eloc) has the parameter 'alpha'; choose from",
        ),
        (["eloc"], {"grid": {"beta": []}}, "grid: beta must have a list of at least one value, not []"),
        (["eloc"], {"grid": {"beta": 0.5}}, "grid: beta must have a list of at least one value, not 0.5"),
        (["eloc"], {"grid": {"beta": range(201)}}, "grid must give at most 200 candidates, not 201"),
        (["random"], {"folds": 2}, "folds must be at least 3, not 2"),
        (["random"], {"folds": 51}, "folds must be at most 50, the number of users in the log, not 51"),
    ],
)
def test_errors(policies: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        locb.tune(draw_equal_arms(0), policies, **options)


def test_propensities_are_required() -> None:
    log = locb.Log.read({"user": [1, 2, 3, 4], "arm": [1, 2, 1, 2], "reward": [1.0, 0.0, 1.0, 0.0]})
    with pytest.raises(ValueError, match="propensity must be known to tune a policy"):
        locb.tune(log)

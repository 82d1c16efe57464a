"""Recorded rounds: a shared catalogue, missing rewards and names in environments, runs, comparisons and logs."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import locb

NAN = np.nan
ITEMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])


def some_rounds() -> locb.Rounds:
    """Return three rounds: two with a known regret, and one in which a reward is missing."""
    return locb.Rounds.of_items(
        [0, 1, 0],
        ITEMS,
        [[0.5, 0.25, 0.0], [1.0, 0.0, NAN], [1.0, NAN, NAN]],
        arms=[[0, 1, 2], [2, 1, -1], [0, 1, -1]],
        user_ids=["ann", "bob"],
        arm_ids=["x", "y", "z"],
    )


class Second(locb.Policy):
    """A policy that always chooses the second arm."""

    def recommend(self, user: int, contexts: Any) -> int:
        return 1

    def update(self, user: int, context: Any, reward: float) -> None:
        assert not np.isnan(reward)


def test_environment_gives_parts_of_the_rounds_without_a_copy() -> None:
    recorded = some_rounds()
    env = locb.RecordedRounds(recorded)
    assert (env.n_users, env.n_arms, env.dim, env.max_rounds) == (2, 3, 2, 3)
    assert env.rounds(3) is recorded
    assert np.shares_memory(env.rounds(2).contexts.arms, recorded.contexts.arms)
    with pytest.raises(ValueError, match="count must be from 0 to 3, the number of recorded rounds, not 4"):
        env.rounds(4)


def test_run_reports_only_what_is_known() -> None:
    run = locb.simulate(Second(n_users=2, dim=2), locb.RecordedRounds(some_rounds()), rounds=3)
    assert run.regret.tolist() == [0.25, 1.25, 1.25]
    assert run.rewards == pytest.approx([0.25, 0.0, NAN], nan_ok=True)
    assert "regret 1.2 (known in 2 rounds), reward per round 0.1250 (observed in 2 rounds)" in repr(run)
    assert run.to_frame().columns == ["round", "user", "arm", "chosen", "reward", "regret"]
    assert run.to_frame()["user"].to_list() == ["ann", "bob", "ann"]
    assert run.to_frame()["arm"].to_list() == ["y", "y", "y"]


def test_run_without_any_known_regret() -> None:
    rounds = locb.Rounds.of_items([0, 1], ITEMS, [2.0, 4.0], observed=[1, 0])
    run = locb.simulate(Second(n_users=2, dim=2), locb.RecordedRounds(rounds), rounds=2)
    assert np.isnan(run.regret).all()
    assert "regret not known, reward per round 2.0000 (observed in 1 rounds)" in repr(run)
    with pytest.raises(ValueError, match=r"cannot be compared by regret: no round of RecordedRounds has the rewards"):
        locb.compare(locb.RecordedRounds(rounds), {"second": Second}, rounds=2, repeats=1, jobs=1)


def test_comparison_notes_what_is_not_known() -> None:
    env = locb.RecordedRounds(some_rounds())
    compared = locb.compare(env, {"second": Second}, rounds=3, repeats=1, jobs=1)
    assert compared.results[0].final_regret.tolist() == [1.25]
    assert compared.results[0].reward.tolist() == [0.125]
    known, observed = compared.notes
    assert known.startswith("The regret is known in 66.7% of the rounds")
    assert observed.startswith("The reward of the chosen arm was observed in 66.7% of the rounds")
    with pytest.raises(
        ValueError, match="rounds must be at most 3, the number of rounds of environment RecordedRounds"
    ):
        locb.compare(env, {"second": Second}, rounds=4, repeats=1, jobs=1)


class Shop(locb.Environment):
    """An environment whose rounds offer items of a catalogue."""

    n_users, n_arms, dim = 2, 2, 2

    def __init__(self, *, same: bool = True, width: int = 2) -> None:
        self.same, self.width = same, width

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> locb.Rounds:
        items = ITEMS if self.same or start == 0 else ITEMS + 1.0
        width = 2 if start == 0 else self.width
        arms = rng.integers(3, size=(count, width))
        users = np.zeros(count, np.int64)
        return locb.Rounds.of_items(users, items, rng.random((count, width)), arms=arms, arm_ids=["x", "y", "z"])

    def draw(self, rng: np.random.Generator, count: int) -> locb.Rounds:
        return self.draw_at(rng, count, 0)

    def true_clusters(self) -> list[Any]:
        return []


def test_environment_may_draw_items() -> None:
    rounds = Shop().rounds(5_000, seed=1)
    blocks: Iterator[locb.Rounds] = Shop().stream(5_000, seed=1)
    assert np.array_equal(rounds.contexts.arms, np.concatenate([block.contexts.arms for block in blocks]))
    assert rounds.arm_ids == ["x", "y", "z"]
    with pytest.raises(ValueError, match="all rounds of an environment must have the same catalogue of items"):
        Shop(same=False).rounds(5_000)
    with pytest.raises(ValueError, match=r"all rounds must have arms of shape \(2,\), not \(3,\)"):
        Shop(width=3).rounds(5_000)


def test_log_of_rounds_and_rounds_of_a_log() -> None:
    rounds = some_rounds()
    log = locb.Log.from_rounds(rounds, [2, 1, 1], [0.25, 0.5, 0.5])
    assert [log.contexts(t).tolist() for t in range(3)] == [contexts.tolist() for contexts in rounds.contexts]
    assert [log.arm_ids[arm] for arm in log.arms_of(log.chosen)] == ["z", "y", "y"]
    back = log.to_rounds()
    assert back.contexts.arms.tolist() == rounds.contexts.arms.tolist()
    assert back.earned([2, 1, 1]) == pytest.approx([0.0, 0.0, NAN], nan_ok=True)
    assert np.isnan(back.earned([0, 0, 0])).all()
    assert back.names([0, 0, 0]) == {"user": ["ann", "bob", "ann"], "arm": ["x", "z", "x"]}
    everywhere = locb.Rounds.of_items([0, 1, 1], ITEMS, np.eye(3))
    assert len(locb.Log.from_rounds(everywhere, [0, 1, 2]).offers) == 1
    assert locb.Log.from_rounds(everywhere, [0, 1, 2]).to_rounds().contexts.arms.strides[0] == 0


def test_playing_a_log_is_replay() -> None:
    env = locb.Synthetic(n_users=8, n_clusters=2, raw_dim=2, n_arms=3, seed=4)
    drawn = env.rounds(400, seed=2)
    logged = np.random.default_rng(1).integers(3, size=400)
    log = locb.Log.from_rounds(drawn, logged)
    replayed, expected = locb.LinUCB(n_users=8, dim=3), locb.LinUCB(n_users=8, dim=3)
    run = locb.simulate(replayed, locb.RecordedRounds(log.to_rounds(), n_users=8), rounds=400)
    for t, user in enumerate(drawn.users.tolist()):
        arm = expected.recommend(user, drawn.contexts[t])
        assert run.chosen[t] == arm
        if arm == logged[t]:
            expected.update(user, drawn.contexts[t, arm], float(drawn.rewards[t, arm]))
    assert np.array_equal(replayed.theta, expected.theta)
    assert np.count_nonzero(~np.isnan(run.rewards)) == expected.served.sum() > 100


def test_comparison_on_fixed_rounds_has_one_repeat() -> None:
    """All repeats were copies, so that any difference had an interval of width 0 and exceeded it."""
    drawn = locb.Synthetic(n_users=5, n_clusters=2, seed=7).rounds(300, seed=1)
    fixed, policies = locb.RecordedRounds(drawn), ["linucb-one", "linucb-ind"]
    compared = locb.compare(fixed, policies, repeats=3, jobs=1)
    assert [result.regret.shape[0] for result in compared.results] == [1, 1]
    (note,) = compared.notes
    assert "are the same for all random seeds, so one repeat was run instead of 3" in note
    assert "With one repeat there is no confidence interval" in compared.verdict()
    assert locb.compare(fixed, policies, repeats=1, jobs=1).notes == []
    environments = {"fixed": fixed, "drawn": locb.Synthetic(n_users=5, n_clusters=2, seed=7)}
    both = locb.compare(environments, policies, repeats=3, rounds=300, jobs=1)
    assert both.to_frame().group_by("environment").len().sort("environment").rows() == [("drawn", 6), ("fixed", 2)]
    assert both.settings["repeats"] == len(both.seeds) == 3
    assert both._repr_html_()


def test_equal_repeats_of_a_custom_environment_have_no_interval() -> None:
    class Fixed(locb.Environment):
        n_users, dim, n_arms = 5, 6, 10

        def draw(self, rng, count):
            return locb.Synthetic(n_users=5, n_clusters=2, seed=7).rounds(count, seed=1)

    compared = locb.compare(Fixed(), ["linucb-one", "linucb-ind"], rounds=300, repeats=3, jobs=1)
    assert compared.verdict().endswith("The difference is the same in all repeats, so there is no confidence interval.")
    assert "±" not in str(compared).partition("\n")[2]

"""Environment of recorded rewards: rounds in the order of the records, with the rewards that the user gave."""

from typing import Any

import numpy as np
import pytest

import locb
from locb.environments.recorded_rewards import draw_subsets_of

N_ITEMS = 8


def records(count: int = 400) -> tuple[Any, Any, Any]:
    """Return users, items and rewards of any size. User u has records of at most u + 1 items."""
    rng = np.random.default_rng(3)
    users = rng.integers(6, size=count)
    return users, rng.integers(users + 1), rng.normal(10.0, 5.0, size=count).round(2)


def environment(**more: Any) -> locb.RecordedRewards:
    features = np.random.default_rng(4).normal(size=(N_ITEMS, 3))
    return locb.RecordedRewards(*records(), features, **{"n_users": 5, "n_arms": 4, **more})


def test_rounds_have_recorded_rewards_in_the_order_of_the_records() -> None:
    """The oracle computes the rewards from the records, one round after the other."""
    users, items, rewards = records()
    env = environment()
    rounds = env.rounds(env.max_rounds, seed=2)
    played = np.flatnonzero(users > 0)  # user 0 has one item
    assert env.max_rounds == len(rounds) == len(played)
    assert env.user_ids[rounds.users].tolist() == users[played].tolist()
    for t, record in enumerate(played.tolist()):
        own = users == users[record]
        offered = rounds.contexts.arms[t][rounds.contexts.arms[t] >= 0]
        assert len(set(offered.tolist())) == len(offered) == min(4, len(set(items[own].tolist())))
        assert items[record] in offered
        for position, item in enumerate(offered.tolist()):
            expected = rewards[record] if item == items[record] else rewards[own & (items == item)].mean()
            assert rounds.reward(t, position) == pytest.approx(expected)
    assert not np.isnan(rounds.regret(np.zeros(len(rounds), int))).any()
    names = rounds.slice(0, 1).names([0])
    assert names["user"] == [str(users[played[0]])]


def test_seed_changes_only_the_other_arms_and_their_order() -> None:
    env = environment()
    one, same, other = (env.rounds(env.max_rounds, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.contexts.arms, same.contexts.arms)
    assert np.array_equal(one.users, other.users)
    assert not np.array_equal(one.contexts.arms, other.contexts.arms)
    assert np.array_equal(env.rounds(50, seed=1).contexts.arms, one.contexts.arms[:50])


def test_own_arm_is_at_every_position_and_other_items_are_equally_likely() -> None:
    users, items = np.repeat([0], 30_000), np.arange(30_000) % 6
    env = locb.RecordedRewards(users, items, items, np.eye(6), n_users=1, n_arms=3)
    arms = env.rounds(30_000, seed=1).contexts.arms
    position = np.argmax(arms == items[:, None], axis=1)
    assert np.bincount(position) == pytest.approx([10_000] * 3, abs=400)  # 5 standard deviations
    others = arms[items == 0]
    assert np.bincount(others[others != 0], minlength=6)[1:] == pytest.approx([2_000] * 5, abs=180)


def test_subsets_of_several_sizes() -> None:
    sizes = np.array([0, 1, 2, 3, 9])
    drawn = draw_subsets_of(np.random.default_rng(1), sizes, 3)
    for row, size in zip(drawn, sizes, strict=True):
        numbers = row[: min(size, 3)].tolist()
        assert len(set(numbers)) == len(numbers)
        assert all(0 <= number < size for number in numbers)
        assert (row[min(size, 3) :] == -1).all()


def test_users_without_a_choice_are_excluded() -> None:
    with pytest.warns(UserWarning, match="n_users is 9, but .* is 1 .*fewer than two items: 1, equal rewards .*: 1"):
        env = locb.RecordedRewards([0, 1, 1, 3, 3], [0, 0, 1, 0, 1], [1, 2, 2, 5, 7], np.eye(2), n_users=9)
    assert env.user_ids.tolist() == [3]
    assert env.excluded_users == {"fewer than two items": 1, "equal rewards for all items": 1}
    assert env.n_arms == 2
    assert env.rounds(2).regret([0, 0]).max() == 2.0
    with pytest.raises(ValueError, match="no user is eligible; an eligible user has different rewards for at"):
        locb.RecordedRewards([0, 0], [0, 1], [1, 1], np.eye(2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewards": [1.0]}, r"rewards must have shape \(2\), not \(1,\), because users has length 2"),
        ({"rewards": [1.0, np.nan]}, r"rewards\[1\] is nan"),
        ({"items": [0]}, "items must have as many elements as users, 2, not 1"),
        ({"items": [0, 2]}, r"items must be below 2, the number of rows of item_features, but items\[1\] is 2"),
        ({"n_arms": 1}, "n_arms must be at least 2, not 1"),
        ({"n_users": 0}, "n_users must be at least 1, not 0"),
    ],
)
def test_invalid_arguments(change: dict[str, Any], message: str) -> None:
    valid = {"users": [0, 0], "items": [0, 1], "rewards": [1.0, 2.0], "item_features": np.eye(2), "n_users": 1}
    with pytest.raises(ValueError, match=message):
        locb.RecordedRewards(**{**valid, **change})

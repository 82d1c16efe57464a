"""Rounds: checks of shapes and values, rewards and regret."""

import tracemalloc

import numpy as np
import pytest

import locb

VALID = {"users": [0, 1], "contexts": np.ones((2, 3, 4)), "rewards": np.zeros((2, 3))}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"users": [0.5, 1.0]}, "users must be an array of one integer per round, not float64"),
        ({"users": [[0, 1]]}, r"users .* shape \(1, 2\)"),
        ({"users": np.array([0, 2**64 - 5], np.uint64)}, r"users\[1\] is -5"),
        ({"users": [0, -1]}, r"users\[1\] is -1"),
        (
            {"contexts": np.ones((3, 3, 4))},
            r"contexts .* \(2, any, any\), not \(3, 3, 4\), because users has length 2$",
        ),
        ({"contexts": np.ones((2, 4))}, r"contexts must have shape \(2, any, any\), not \(2, 4\), because"),
        ({"contexts": np.ones((2, 0, 4))}, "at least one arm"),
        ({"contexts": "arms"}, "contexts must be an array of numbers"),
        ({"contexts": np.ones((2, 3, 4)) * 1j}, "contexts must be an array of numbers: the dtype is complex128"),
        ({"rewards": np.zeros((2, 4))}, r"rewards must have shape \(2, 3\), not \(2, 4\)"),
        ({"rewards": [[0, 0, 0], [0, np.inf, 0]]}, r"rewards\[1, 1\] is inf"),
        ({"means": np.zeros((1, 3))}, r"means must have shape \(2, 3\), not \(1, 3\)"),
        ({"rewards": [[np.nan, 0, 0], [0, np.inf, 0]]}, r"rewards\[1, 1\] is inf"),
        ({"observed": [0, 1]}, r"rewards must have shape \(2\), not \(2, 3\)"),
        ({"observed": [0, 3], "rewards": [0, 1]}, r"observed must be from 0 to 2, but observed\[1\] is 3"),
        ({"user_ids": ["ann"]}, "user_ids must have at least 2 names, not 1"),
        ({"arm_ids": ["red", "blue"]}, "arm_ids must have 3 names, not 2"),
    ],
)
def test_error_message_names_the_invalid_argument(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        locb.Rounds(**{**VALID, **change})


def test_error_message_names_the_index_of_an_invalid_context() -> None:
    contexts = np.ones((2, 3, 4))
    contexts[1, 2, 0] = -np.inf
    with pytest.raises(ValueError, match=r"contexts\[1, 2, 0\] is -inf"):
        locb.Rounds([0, 1], contexts, np.zeros((2, 3)))


def test_regret_uses_means_if_they_are_known() -> None:
    rewards = np.array([[0.0, 1.0], [1.0, 0.0]])
    means = np.array([[0.7, 0.5], [0.25, 0.5]])
    known = locb.Rounds([0, 0], np.ones((2, 2, 1)), rewards, means)
    unknown = locb.Rounds([0, 0], np.ones((2, 2, 1)), rewards)
    assert known.regret([1, 0]) == pytest.approx([0.2, 0.25])
    assert unknown.regret([1, 0]).tolist() == [0.0, 0.0]
    assert known.earned([0, 0]).tolist() == [0.0, 1.0]


def test_read_only_and_strided_arrays_are_accepted() -> None:
    contexts = np.ones((2, 3, 8))[:, :, ::2]
    rewards = np.zeros((2, 3))
    rewards.flags.writeable = False
    rounds = locb.Rounds([0, 1], contexts, rewards)
    assert rounds.contexts.flags.carray
    assert locb.Rounds([0, 1], np.asfortranarray(contexts), rewards).contexts.flags.c_contiguous
    assert rounds.rewards.flags.carray


def test_invalid_chosen_arms_are_rejected() -> None:
    rounds = locb.Rounds(**VALID)
    for wrong, message in (
        ([0, -1], r"chosen must be from 0 to 2, but chosen\[1\] is -1"),
        ([3, 0], r"chosen\[0\] is 3"),
        ([0], r"chosen must have one arm index \(integer\) for each of 2 rounds"),
        ([0.0, 1.0], r"chosen must have one arm index \(integer\) for each of 2 rounds, not float64"),
    ):
        with pytest.raises(ValueError, match=message):
            rounds.earned(wrong)
        with pytest.raises(ValueError, match=message):
            rounds.regret(wrong)


ITEMS = np.arange(10.0).reshape(5, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": np.ones(3)}, r"items must have shape \(any, any\), not \(3,\)"),
        ({"items": np.ones((0, 2))}, r"items must have at least one item and one feature, not shape \(0, 2\)"),
        ({"items": [[0.0, np.nan]]}, r"items\[0, 1\] is nan"),
        ({"arms": [[0, 5], [0, 1]]}, r"arms must be from 0 to 4, or −1 .*, but arms\[0, 1\] is 5"),
        ({"arms": [[0, 1], [-2, 1]]}, r"arms\[1, 0\] is -2"),
        ({"arms": [[0, 1], [-1, 1]]}, r"at least one arm per round, and −1 only .*, but arms\[1\] is \[-1, 1\]"),
        ({"arms": [[-1, -1], [0, 1]]}, r"arms\[0\] is \[-1, -1\]"),
        ({"arms": [[0.0, 1.0], [0.0, 1.0]]}, "arms must be integers, not float64"),
        ({"arms": [[0, 1]]}, r"arms must have shape \(2, k\) or .* users has length 2, but has shape \(1, 2\)"),
        ({"arms": np.ones((2, 0), int)}, r"k ≥ 1 arms per round, because users has length 2, but has shape \(2, 0\)"),
        ({"rewards": np.zeros((2, 5))}, r"rewards must have shape \(2, 2\), not \(2, 5\)"),
        ({"rewards": np.float32([[0, 1], [np.inf, 0]])}, r"rewards\[1, 0\] is inf"),
        ({"arms": [[0, 1], [2, -1]], "observed": [0, 1], "rewards": [1, 1]}, r"from 0 to 0, but observed\[1\] is 1"),
        ({"arm_ids": ["red", "blue"]}, "arm_ids must have 5 names, not 2"),
    ],
)
def test_error_message_names_the_invalid_argument_of_items(change: dict[str, object], message: str) -> None:
    valid = {"users": [0, 1], "items": ITEMS, "arms": [[0, 1], [2, 3]], "rewards": np.zeros((2, 2))}
    with pytest.raises(ValueError, match=message):
        locb.Rounds.of_items(**{**valid, **change})


def test_contexts_of_items_are_those_of_the_dense_array() -> None:
    arms = np.array([[4, 0, 2], [1, -1, -1], [3, 3, -1]], np.int8)
    rounds = locb.Rounds.of_items([0, 1, 0], ITEMS, np.zeros((3, 3)), arms=arms)
    for t, offered in enumerate([[4, 0, 2], [1], [3, 3]]):
        assert rounds.contexts[t].tolist() == ITEMS[offered].tolist()
    assert [len(contexts) for contexts in rounds.slice(1, 3).contexts] == [1, 2]
    assert rounds.contexts.arms is arms
    everywhere = locb.Rounds.of_items([0, 1], ITEMS, np.zeros((2, 5)))
    assert everywhere.contexts[1].tolist() == ITEMS.tolist()
    assert locb.Rounds.of_items([0, 1], ITEMS, np.zeros((2, 2)), arms=[3, 1]).contexts[1].tolist() == [[6, 7], [2, 3]]
    with pytest.raises(ValueError, match=r"contexts must have 2 rounds, not 3, because users has length 2"):
        locb.Rounds([0, 1], rounds.contexts, np.zeros((2, 3)))


def test_regret_is_known_only_with_the_values_of_all_arms() -> None:
    arms, nan = [[4, 0, 2], [1, 2, -1], [3, 0, -1], [2, -1, -1]], np.nan
    rewards = [[0.5, 2.0, 1.0], [1.0, nan, 9.0], [3.0, 1.0, nan], [0.0, 9.0, 9.0]]
    rounds = locb.Rounds.of_items([0, 1, 0, 1], ITEMS, rewards, arms=arms)
    assert rounds.regret([0, 0, 1, 0]) == pytest.approx([1.5, nan, 2.0, 0.0], nan_ok=True)
    assert rounds.earned([0, 1, 1, 0]) == pytest.approx([0.5, nan, 1.0, 0.0], nan_ok=True)
    assert rounds.reward_limits() == (0.0, 3.0)
    with pytest.raises(ValueError, match=r"chosen must be from 0 to 1, but chosen\[1\] is 2"):
        rounds.earned([0, 2, 0, 0])
    dense = locb.Rounds([0, 0], np.ones((2, 2, 1)), [[0.0, nan], [1.0, 2.0]])
    assert dense.regret([0, 0]) == pytest.approx([nan, 1.0], nan_ok=True)
    one = locb.Rounds.of_items([0, 1], ITEMS, [5.0, nan], arms=[[0, 1], [2, 3]], observed=[1, 0])
    assert one.earned([1, 0]) == pytest.approx([5.0, nan], nan_ok=True)
    assert np.isnan(one.earned([0, 0])).all()
    assert np.isnan(one.regret([1, 0])).all()
    known = locb.Rounds.of_items([0], ITEMS, [5.0], arms=[[0, 1]], observed=[1], means=[[2.0, 3.5]])
    assert known.regret([0]).tolist() == [1.5]
    assert known.noise() == 1.5


def test_names_are_carried_along() -> None:
    names = {"user_ids": ["ann", "bob"], "arm_ids": ["a", "b", "c", "d", "e"]}
    rounds = locb.Rounds.of_items([0, 1, 0], ITEMS, np.zeros((3, 2)), arms=[[4, 0], [1, 2], [3, -1]], **names)
    assert rounds.slice(1, 3).names([1, 0]) == {"user": ["bob", "ann"], "arm": ["c", "d"]}
    dense = locb.Rounds([0], np.ones((1, 2, 1)), np.zeros((1, 2)), arm_ids=["left", "right"])
    assert dense.names([1]) == {"arm": ["right"]}


@pytest.mark.parametrize("rewards", [np.zeros((2, 3), bool), np.zeros((2, 3), np.int8), np.zeros((2, 3), np.float32)])
def test_small_types_are_kept(rewards: np.ndarray) -> None:
    arms = np.array([[0, 1, 2], [3, 4, 0]], np.uint16)
    rounds = locb.Rounds.of_items([0, 1], ITEMS, rewards, arms=arms)
    assert rounds.rewards is rewards
    assert rounds.contexts.arms is arms
    assert rounds.regret([0, 1]).dtype == rounds.earned([0, 1]).dtype == np.float64


def test_no_array_of_all_contexts_is_made() -> None:
    users, arms = np.zeros(20_000, np.int64), np.arange(800, dtype=np.uint16)
    items = np.random.default_rng(1).normal(size=(800, 10))  # an array of all contexts would have 1.2 GiB
    tracemalloc.start()
    try:
        rounds = locb.Rounds.of_items(users, items, np.zeros(20_000), arms=arms, observed=users)
        blocks = sum(block.contexts.shape[0] for block in rounds.slice(0, 100).blocks())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert blocks == 100
    assert peak < 8e6

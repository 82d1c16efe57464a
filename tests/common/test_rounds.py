"""Rounds: checks of shapes and values, rewards and regret."""

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
        ({"contexts": np.ones((3, 3, 4))}, r"contexts .* \(2, any, any\) because users has length 2, not \(3, 3, 4\)"),
        ({"contexts": np.ones((2, 4))}, r"contexts must have shape \(2, any, any\) because .* not \(2, 4\)"),
        ({"contexts": np.ones((2, 0, 4))}, "at least one arm"),
        ({"contexts": "arms"}, "contexts must be an array of numbers"),
        ({"contexts": np.ones((2, 3, 4)) * 1j}, "contexts must be an array of numbers: the dtype is complex128"),
        ({"rewards": np.zeros((2, 4))}, r"rewards must have shape \(2, 3\), not \(2, 4\)"),
        ({"rewards": [[0, 0, np.nan], [0, 0, 0]]}, r"rewards\[0, 2\] is nan"),
        ({"rewards": [[0, 0, 0], [0, np.inf, 0]]}, r"rewards\[1, 1\] is inf"),
        ({"means": np.zeros((1, 3))}, r"means must have shape \(2, 3\), not \(1, 3\)"),
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

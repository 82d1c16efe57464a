"""``recommend_many``: the same arms as ``recommend`` for one user after the other, and nothing is learned."""

import threading
from typing import Any

import numpy as np
import pytest

import locb
from locb.kernels.common import batch_choice

N_USERS, DIM, ARMS = 12, 3, 4


def train(name: str, **parameters: Any) -> Any:
    """Return a policy that has learned 200 rounds."""
    rng = np.random.default_rng(1)
    policy = locb.make_policy(name, n_users=N_USERS, dim=DIM, **parameters)
    users, contexts = rng.integers(N_USERS, size=200), rng.normal(size=(200, ARMS, DIM))
    policy.play(locb.Rounds(users, contexts, rng.random((200, ARMS))))
    return policy


def choices(count: int) -> tuple[Any, Any]:
    """Return users and contexts, of which every third round has equal arms."""
    rng = np.random.default_rng(2)
    contexts = rng.normal(size=(count, ARMS, DIM))
    contexts[::3] = contexts[::3, :1]
    return rng.integers(N_USERS, size=count), contexts


def content(policy: Any) -> list[bytes]:
    """Return the bytes of all arrays of the state."""
    return [array.tobytes() for array in policy._state]


@pytest.mark.parametrize("parameters", [{}, {"ties": "random"}], ids=["default", "random ties"])
@pytest.mark.parametrize("name", sorted(locb.POLICIES))
def test_same_arms_as_recommend(name: str, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_choice, "BLOCK", 7)
    monkeypatch.setattr(batch_choice, "thread_count", lambda _count: 3)
    monkeypatch.setattr("locb.policies.base.compiled.thread_count", lambda _count: 3)
    one, many = train(name, **parameters), train(name, **parameters)
    users, contexts = choices(60)
    expected = [one.recommend(user, offered) for user, offered in zip(users.tolist(), contexts, strict=True)]
    before = content(many)
    assert many.recommend_many(users, contexts).tolist() == expected
    if not many.has_random_choices:
        assert content(many) == before
    assert content(many) == content(one)
    shared = [one.recommend(user, contexts[1]) for user in users.tolist()]
    assert many.recommend_many(users, contexts[1]).tolist() == shared
    one.update(3, contexts[1, 0], 1.0)
    many.update(3, contexts[1, 0], 1.0)
    assert content(many) == content(one)


def test_pooled_bonus_and_float32() -> None:
    policy = train("locb", bonus="pooled", safe=True, dtype="float32")
    users, contexts = choices(9_000)  # several threads, if there are several cores
    rows = np.random.default_rng(3).choice(9_000, 200)
    expected = [policy.recommend(int(users[row]), contexts[row]) for row in rows]
    assert policy.recommend_many(users, contexts)[rows].tolist() == expected


def test_policy_in_python() -> None:
    class Largest(locb.Policy):
        def recommend(self, user: int, contexts: Any) -> int:
            return int(np.argmax(contexts[:, user % 2]))

        def update(self, user: int, context: Any, reward: float) -> None:
            raise AssertionError("nothing is learned")

    policy = Largest(n_users=4, dim=2)
    assert policy.recommend_many([0, 1], [[[1, 2], [3, 0]]] * 2).tolist() == [1, 0]
    assert policy.recommend_many([0, 1, 0], [[1, 2], [3, 0]]).tolist() == [1, 0, 1]
    assert policy.recommend_many([], np.empty((0, 2, 2))).tolist() == []


@pytest.mark.parametrize(
    ("users", "contexts", "message"),
    [
        ([0.5], np.zeros((1, 2, DIM)), "users must be an array of one integer per choice"),
        ([0, N_USERS], np.zeros((2, 2, DIM)), r"users\[1\] must be from 0 to 11, not 12"),
        ([0, 1], np.zeros((3, 2, DIM)), r"contexts must have shape \(arms, 3\) or \(2, arms, 3\)"),
        ([0], np.zeros((0, DIM)), "at least one arm"),
        ([0], np.zeros(DIM), "contexts must have shape"),
        ([0], [[[1.0, 2.0, 3.0], [1.0]]], "contexts must be an array of numbers"),
        ([0, 1], [[[0.0] * DIM], [[np.nan] * DIM]], r"contexts\[1, 0, 0\] is nan"),
        ([0], [[["a", "b", "c"]]], "contexts must be an array of numbers"),
    ],
)
def test_invalid_arguments(users: Any, contexts: Any, message: str) -> None:
    for policy in (locb.LinUCB(n_users=N_USERS, dim=DIM), CountingPolicy(n_users=N_USERS, dim=DIM)):
        with pytest.raises(ValueError, match=message):
            policy.recommend_many(users, contexts)


class CountingPolicy(locb.Policy):
    """A policy in Python."""

    def recommend(self, user: int, contexts: Any) -> int:
        return 0

    def update(self, user: int, context: Any, reward: float) -> None:
        return None


def test_invalid_context_in_a_late_block() -> None:
    policy, threads = locb.LinUCB(n_users=N_USERS, dim=DIM), threading.active_count()
    users, contexts = choices(9_000)
    contexts[8_999, 2, 1] = np.inf
    with pytest.raises(ValueError, match=r"contexts\[8999, 2, 1\] is inf"):
        policy.recommend_many(users, contexts)
    assert threading.active_count() == threads


def test_scores_that_are_nan() -> None:
    policy = locb.LinUCB(n_users=N_USERS, dim=DIM)
    policy._state.estimates[5] = np.nan
    with pytest.raises(ArithmeticError, match="user 5"):
        policy.recommend_many(np.arange(N_USERS), np.ones((2, DIM)))


def test_ctrl_c_stops_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, threads = locb.LinUCB(n_users=N_USERS, dim=DIM), threading.active_count()
    caller, interrupted, calls = threading.current_thread(), threading.Event(), []
    choose = batch_choice.Handle.choose

    def interrupt(handle: Any, *arguments: Any) -> None:
        calls.append(threading.current_thread())
        if threading.current_thread() is caller:
            interrupted.set()
            raise KeyboardInterrupt
        assert interrupted.wait(60)
        choose(handle, *arguments)

    monkeypatch.setattr(batch_choice.Handle, "choose", interrupt)
    users, contexts = choices(9_000)
    with pytest.raises(KeyboardInterrupt):
        policy.recommend_many(users, contexts)
    assert caller in calls
    assert threading.active_count() == threads

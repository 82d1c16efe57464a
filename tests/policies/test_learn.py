"""``policy.learn``: many rewards at once have the same effect as ``update`` for each of them."""

from typing import Any

import numpy as np
import pytest

import locb

POLICIES = tuple(locb.POLICIES)


class Counting(locb.Policy):
    """A policy that is not compiled: it counts rewards, and never recommends."""

    total = 0.0

    def recommend(self, user: int, contexts: Any) -> int:
        raise AssertionError("learning must not ask for a recommendation")

    def update(self, user: int, context: Any, reward: float) -> None:
        self.total = 2 * self.total + reward * context[user]


def samples(count: int = 300) -> tuple[Any, Any, Any]:
    rounds = locb.Synthetic(n_users=8, n_clusters=2, raw_dim=2, n_arms=3, seed=4).rounds(count, seed=2)
    return rounds.users, rounds.contexts[:, 0], rounds.rewards[:, 0]


@pytest.mark.interpreted
@pytest.mark.parametrize("name", POLICIES)
def test_learn_equals_updates(name: str) -> None:
    users, contexts, rewards = samples()
    one: Any = locb.make_policy(name, n_users=8, dim=3)
    many: Any = locb.make_policy(name, n_users=8, dim=3)
    for user, context, reward in zip(users.tolist(), contexts, rewards.tolist(), strict=True):
        one.update(user, context, reward)
    many.learn(users[:100], contexts[:100], rewards[:100])
    many.learn(users[100:], contexts[100:].tolist(), rewards[100:].tolist())
    assert np.array_equal(many.theta, one.theta)
    assert many.served.tolist() == one.served.tolist()
    assert [cluster.members.tolist() for cluster in many.clusters()] == [
        cluster.members.tolist() for cluster in one.clusters()
    ]
    arms = np.random.default_rng(3).normal(size=(50, 4, 3))
    for t in range(50):
        assert many.recommend(t % 8, arms[t]) == one.recommend(t % 8, arms[t])


def test_learn_of_a_custom_policy() -> None:
    users, contexts, rewards = np.array([0, 1]), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.5])
    policy = Counting(n_users=2, dim=2)
    policy.learn(users, contexts, rewards)
    assert policy.total == 2 * 1.0 + 0.5 * 4.0


@pytest.mark.interpreted
def test_invalid_arguments() -> None:
    users, contexts, rewards = samples(4)
    policy = locb.LinUCB(n_users=8, dim=3)
    with pytest.raises(ValueError, match="contexts must have one row of features per reward, not shape"):
        policy.learn(users, contexts[0], rewards)
    with pytest.raises(ValueError, match="rewards must have one number per row of contexts, not shape"):
        policy.learn(users, contexts, rewards[:, None])
    with pytest.raises(ValueError, match="users must be from 0 to 7"):
        policy.learn(users + 8, contexts, rewards)
    with pytest.raises(ValueError, match="contexts must have shape"):
        policy.learn(users[:2], contexts, rewards)
    assert policy.served.sum() == 0

"""A policy of one's own: recommend and update are enough."""

from typing import Any

import numpy as np
import pytest

import locb
from policies.helpers import make, state_of, world


class Popular(locb.Policy):
    """Shows the arm whose first feature is largest; counts what it earned."""

    def __init__(self, *, n_users: int, dim: int) -> None:
        super().__init__(n_users=n_users, dim=dim)
        self.earned = 0.0

    def recommend(self, user: int, contexts: Any) -> int:
        return int(np.argmax(contexts[:, 0]))

    def update(self, user: int, context: Any, reward: float) -> None:
        self.earned += reward


def test_play_is_recommend_and_update() -> None:
    policy, rounds = Popular(n_users=12, dim=3), world(50)
    chosen = policy.play(rounds)
    assert chosen.tolist() == rounds.contexts[:, :, 0].argmax(axis=1).tolist()
    assert policy.earned == rounds.earned(chosen).sum()
    policy.prepare()
    assert policy.clusters() == []
    assert policy.clusters_of(3) == []


@pytest.mark.parametrize(
    ("arm", "message"), [(-1, "from 0 to 3, not -1"), (4, "not 4"), (None, "whole number, not None")]
)
def test_an_arm_that_is_not_there_is_refused(arm: object, message: str) -> None:
    policy = Popular(n_users=12, dim=3)
    policy.recommend = lambda user, contexts: arm  # a bad policy on purpose
    with pytest.raises(ValueError, match=f"the arm from recommend must be .*{message}"):
        policy.play(world(5))


def test_it_is_checked_like_the_others() -> None:
    with pytest.raises(ValueError, match="contexts must have 5 features, not 3"):
        Popular(n_users=12, dim=5).play(world(5))
    with pytest.raises(ValueError, match="n_users must be at least 1"):
        Popular(n_users=0, dim=5)


def test_baselines_take_in_users() -> None:
    for kind in ("linucb-ind", "linucb-one", "club", "club-random", "sclub"):
        policy = make(kind)
        before = policy.theta.copy()
        policy.add_users(4)
        assert policy.n_users == 16
        assert policy.theta.shape == (16, 3)
        assert np.array_equal(policy.theta[:12], before)
        policy.update(15, [0.5, 0.5, 0.5], 1.0)
        assert policy.served[15] == 1
        groups = policy.clusters()
        assert not groups or sorted(np.concatenate([c.members for c in groups]).tolist()) == list(range(16))


@pytest.mark.parametrize("kind", ["club", "locb", "sclub", "linucb-ind", "eloc"])
def test_users_for_whom_there_is_no_memory_change_nothing(kind: str) -> None:
    policy = make(kind)
    before = state_of(policy)
    with pytest.raises((MemoryError, ValueError)):
        policy.add_users(10**14)
    assert policy.n_users == 12
    assert state_of(policy) == before
    with pytest.raises(ValueError, match="user must be from 0 to 11"):
        policy.update(12, np.ones(3), 1.0)

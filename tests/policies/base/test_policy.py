"""The base class: a custom policy needs only recommend and update."""

import numpy as np
import pytest

from policies.helpers import Popular, make, make_rounds, state_of


def test_play_calls_recommend_and_update() -> None:
    policy, rounds = Popular(n_users=12, dim=3), make_rounds(50)
    chosen = policy.play(rounds)
    assert chosen.tolist() == rounds.contexts[:, :, 0].argmax(axis=1).tolist()
    assert policy.earned == rounds.earned(chosen).sum()
    policy.prepare()
    assert policy.clusters() == []
    assert policy.clusters_of(3) == []


@pytest.mark.parametrize(
    ("arm", "message"), [(-1, "from 0 to 3, not -1"), (4, "not 4"), (None, "an integer, not None")]
)
def test_invalid_arms_are_refused(arm: object, message: str) -> None:
    policy = Popular(n_users=12, dim=3)
    policy.recommend = lambda user, contexts: arm  # an invalid arm
    with pytest.raises(ValueError, match=f"the arm from recommend must be .*{message}"):
        policy.play(make_rounds(5))


def test_custom_policy_is_validated() -> None:
    with pytest.raises(ValueError, match="contexts must have 5 features, the dim of the policy, not 3"):
        Popular(n_users=12, dim=5).play(make_rounds(5))
    with pytest.raises(ValueError, match="n_users must be at least 1"):
        Popular(n_users=0, dim=5)


def test_baselines_accept_new_users() -> None:
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
def test_failed_allocation_changes_nothing(kind: str) -> None:
    policy = make(kind)
    before = state_of(policy)
    with pytest.raises((MemoryError, ValueError)):
        policy.add_users(10**14)
    assert policy.n_users == 12
    assert state_of(policy) == before
    with pytest.raises(ValueError, match="user must be from 0 to 11"):
        policy.update(12, np.ones(3), 1.0)

"""``memberships``: the clusters of a user without their members."""

import numpy as np
import pytest

import locb
from policies.helpers import KINDS, N, Popular, make, make_rounds


@pytest.mark.parametrize("kind", KINDS)
def test_memberships_match_clusters_of(kind: str) -> None:
    policy = make(kind, 0)
    sizes = set()
    for block in range(4):
        policy.play(make_rounds(120, seed=block))
        if block == 2:
            policy.add_users(3)
        for user in range(policy.n_users):
            expected = [(cluster.seed, len(cluster), cluster.returned_at) for cluster in policy.clusters_of(user)]
            if kind.startswith("eloc"):
                expected = [(seed, None, None) for seed, _, _ in expected]
            assert policy.memberships(user) == expected
            assert all(
                type(number) in (int, type(None)) for membership in policy.memberships(user) for number in membership
            )
            sizes |= {size for _, size, _ in expected}
    assert len(sizes) > 1 or kind not in ("club", "sclub", "locb-pooled")
    with pytest.raises(ValueError, match=f"user must be from 0 to {N + 2}"):
        policy.memberships(N + 3)


def test_memberships_of_a_custom_policy() -> None:
    class Halves(Popular):
        def clusters(self) -> list[locb.Cluster]:
            return [locb.Cluster(None, self.users(0)), locb.Cluster(7, self.users(1), returned_at=5)]

        def users(self, half: int) -> object:
            return np.arange(half, self.n_users, 2)

    assert Halves(n_users=5, dim=2).memberships(3) == [(7, 2, 5)]
    assert Halves(n_users=5, dim=2).memberships(2) == [(None, 3, None)]
    assert Popular(n_users=5, dim=2).memberships(2) == []


def test_more_than_64_clusters() -> None:
    env = locb.Synthetic(n_users=80, n_clusters=4, n_arms=4, raw_dim=4, seed=0)
    policy = locb.LOCB(n_users=80, dim=5, n_seeds=70, gamma=0.6, seed=0)
    policy.play(env.draw(np.random.default_rng(0), 3_000))
    seen = set()
    for user in range(80):
        expected = [(cluster.seed, len(cluster), cluster.returned_at) for cluster in policy.clusters_of(user)]
        assert policy.memberships(user) == expected
        seen.add(len(expected))
    assert len(seen) > 10
    assert max(seen) < 70

"""LOCB: the test of all members before a cluster becomes final, new users, certificates, stop rules and seed users."""

import numpy as np
import pytest

import locb
import naive
from policies.helpers import make, make_rounds

pytestmark = pytest.mark.filterwarnings("ignore::locb.RewardScaleWarning")  # the scale of the rewards is arbitrary


def step(policy: locb.LOCB, rounds: locb.Rounds, t: int) -> None:
    arm = policy.recommend(int(rounds.users[t]), rounds.contexts[t])
    policy.update(int(rounds.users[t]), rounds.contexts[t, arm], rounds.rewards[t, arm])


@pytest.mark.interpreted
def test_final_test_drops_stale_members() -> None:
    dropped = 0
    for seed in range(12):
        env = locb.Synthetic(n_users=8, n_clusters=2, raw_dim=2, n_arms=3, seed=seed)
        rounds = env.rounds(150, seed=seed)
        policy = locb.LOCB(n_users=8, dim=3, n_seeds=8, gamma=0.6)
        for t in range(len(rounds)):
            before = policy.clusters()
            step(policy, rounds, t)
            for old, new in zip(before, policy.clusters(), strict=True):
                others = np.setdiff1d(old.members, [rounds.users[t], *new.members])
                dropped += len(others)
                if new.returned_at != t + 1:
                    assert (
                        len(others) == 0
                    )  # only the test before a cluster becomes final removes users other than the served user
                if new.returned_at == t + 1:
                    gaps = np.linalg.norm(policy.theta[new.members] - policy.theta[new.seed], axis=1)
                    assert (gaps <= policy.radii[new.members] + policy.radii[new.seed]).all()
                    assert (policy.served[new.members] > 0).all()
    assert dropped > 0


@pytest.mark.interpreted
def test_final_clusters_are_frozen() -> None:
    env = locb.Synthetic(n_users=6, n_clusters=2, raw_dim=2, n_arms=3, seed=1)
    policy = locb.LOCB(n_users=6, dim=3, n_seeds=6, gamma=0.8)
    policy.play(env.rounds(400, seed=1))
    assert policy.finished
    assert policy.rounds_played == 400
    before = [(c.seed, c.members.tolist(), c.returned_at) for c in policy.clusters()]
    policy.play(env.rounds(400, seed=2))
    assert [(c.seed, c.members.tolist(), c.returned_at) for c in policy.clusters()] == before
    assert all(len(policy.clusters_of(user)) >= 1 for user in range(6))


def test_new_users_join_clusters() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, raw_dim=3, n_arms=5, seed=3)
    rounds = env.rounds(20_000, seed=1)
    first = rounds.users < 8
    policy = locb.LOCB(n_users=8, dim=4, n_seeds=8, gamma=0.8)
    policy.play(locb.Rounds(rounds.users[first], rounds.contexts[first], rounds.rewards[first]))
    assert policy.finished
    before = [c.members.tolist() for c in policy.clusters()]
    policy.add_users(2)
    assert policy.n_users == 10
    assert [c.members.tolist() for c in policy.clusters()] == before
    assert policy.clusters_of(9) == []
    policy.play(env.rounds(20_000, seed=2))
    labels = env.labels
    for user in (8, 9):
        found = policy.clusters_of(user)
        assert found
        assert all(labels[c.seed] == labels[user] for c in found)
        assert policy.similar_users(user)
    fresh = locb.LOCB(n_users=8, dim=4, n_seeds=3)
    fresh.add_users(2)
    assert [len(c) for c in fresh.clusters()] == [10] * 3


def test_adding_users_one_by_one_equals_all_at_once() -> None:
    together, one_by_one = make("locb", 100), make("locb", 100)
    together.add_users(300)
    for _ in range(300):
        one_by_one.add_users(1)
    more = make_rounds(200, seed=9)
    assert together.play(more).tolist() == one_by_one.play(more).tolist()
    assert [c.members.tolist() for c in together.clusters()] == [c.members.tolist() for c in one_by_one.clusters()]
    assert np.allclose(together._state.sums, one_by_one._state.sums, atol=1e-9)
    state = together._state
    for s, cluster in enumerate(together.clusters()):
        assert state.member_hashes[s] == np.bitwise_xor.reduce(state.hash_keys[cluster.members])


@pytest.mark.interpreted
def test_final_clusters_do_not_readmit_users() -> None:
    x = np.ones(1)
    policy = locb.LOCB(n_users=2, dim=1, seeds=[0], gamma=0.5)
    policy.update(0, x, 1.0)
    policy.add_users(1)  # before the cluster is final
    for _ in range(6):
        policy.update(2, x, -3.0)
    assert 2 not in policy.clusters()[0]
    for _ in range(60):
        policy.update(0, x, 1.0)
        policy.update(1, x, 1.0)
    assert policy.finished
    policy.add_users(1)  # after the cluster is final
    for _ in range(2000):
        policy.update(2, x, 1.0)
        policy.update(3, x, 1.0)
    assert abs(policy.theta[2, 0] - policy.theta[0, 0]) < 0.05
    assert policy.clusters()[0].members.tolist() == [0, 1, 3]


@pytest.mark.interpreted
def test_growth_can_make_a_cluster_final() -> None:
    parameters = {"gamma": 0.5, "seeds": [0], "alpha": 1.0, "tau": 8.0, "delta": 0.1, "sigma": 0.1}
    parameters |= {"radius": "clustering", "min_eigenvalue": None, "stop": "radius", "bonus": "mean", "ties": "first"}
    policy, oracle = locb.LOCB(n_users=3, dim=1, **parameters), naive.LOCB(3, 1, **parameters, generator=1)

    def learn(user: int, reward: float) -> None:
        for learner in (policy, oracle):
            learner.update(user, np.ones(1), reward)

    for _ in range(5):
        for user in range(3):
            learn(user, 1.0)
    assert oracle.returned[0] is None
    for learner in (policy, oracle):
        learner.add_users(60)  # the radius has the factor n^(−1/3), so the radii of the old users fall below the limit
    for user in range(3, 63):
        learn(user, -9.0)
    assert oracle.returned[0] == 15 + 60
    assert policy.clusters()[0].returned_at == 15 + 60
    assert policy.clusters()[0].members.tolist() == sorted(oracle.N[0])


def test_certificates_hold_and_stop_earlier() -> None:
    env = locb.Synthetic(n_users=6, n_clusters=2, raw_dim=2, n_arms=4, seed=4)
    ends = {}
    for stop, tau in (("radius", 1.0), ("certificate", 1.0)):
        policy = locb.LOCB(n_users=6, dim=3, n_seeds=6, gamma=3.0, tau=tau, radius="ellipsoid", stop=stop, sigma=0.5)
        for block in env.stream(400_000, seed=1):
            policy.play(block)
            if policy.finished:
                break
        assert policy.finished
        for cluster in policy.clusters():
            theta = env.theta[cluster.members]
            width = np.linalg.norm(theta[:, None] - theta[None], axis=2).max()
            assert width <= policy.certificate(cluster)
            assert policy.certificate(cluster) < 3.0
        ends[stop] = max(c.returned_at or 0 for c in policy.clusters())
    assert ends["certificate"] < ends["radius"]


def test_certificates_of_every_policy() -> None:
    for kind in ("locb", "club", "sclub", "linucb-ind", "eloc"):
        policy = make(kind)
        wide, narrow = policy.certificate(range(12)), policy.certificate([0, 1])
        assert wide >= narrow > 0.0
        assert policy.certificate([3]) == 0.0
        assert policy.certificate([0, 1], sigma=0.1) < policy.certificate([0, 1], sigma=1.0)
    with pytest.raises(ValueError, match="shared must be False, not True"):
        make("linucb-one").certificate([0, 1])


def test_similar_users_are_cluster_peers_nearest_first() -> None:
    policy = make("locb", 3000)
    for user in range(12):
        members = set(np.concatenate([[user], *(c.members for c in policy.clusters_of(user))]).tolist())
        similar = policy.similar_users(user, limit=100)
        assert {other.user for other in similar} == members - {user}
        distances = [other.distance for other in similar]
        assert distances == sorted(distances)
        for other in similar[:2]:
            gap = np.linalg.norm(policy.theta[user] - policy.theta[other.user])
            assert other.distance == pytest.approx(gap)
            assert other.radius == policy.radii[other.user]
        for limit in (0, 1, 2, len(similar)):
            assert policy.similar_users(user, limit=limit) == similar[:limit]


def test_seeds_are_drawn_or_given() -> None:
    drawn = [c.seed for c in locb.LOCB(n_users=50, dim=2, n_seeds=20, seed=1).clusters()]
    assert len(set(drawn)) == 20
    assert drawn != [c.seed for c in locb.LOCB(n_users=50, dim=2, n_seeds=20, seed=2).clusters()]
    assert [c.seed for c in locb.LOCB(n_users=50, dim=2, seeds=[7, 3]).clusters()] == [7, 3]
    assert len(locb.LOCB(n_users=50, dim=2).clusters()) == 30
    assert len(locb.LOCB(n_users=5, dim=2).clusters()) == 5


def test_views_are_read_only() -> None:
    policy = make("locb")
    for view in (policy.theta, policy.served):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
    assert make("linucb-one").theta.shape == (12, 3)


def test_late_seeds_start_with_all_users() -> None:
    env = locb.Synthetic(n_users=5, n_clusters=2, raw_dim=2, n_arms=3, seed=1)
    policy = locb.LOCB(n_users=5, dim=env.dim, seeds=[0], late_seeds=2)
    policy.play(env.rounds(200, seed=1))
    policy.add_users(1)
    policy.add_users(3)
    assert policy._state.seeds.tolist() == [0, 5, 6]
    everyone = policy._state.estimates[:9].sum(axis=0)
    for s in (1, 2):
        assert policy.clusters()[s].members.tolist() == list(range(9))
        assert policy._state.sums[s] == pytest.approx(everyone, abs=1e-12)
        assert policy._state.cluster_served[s] == 200


def test_similar_users_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result with a limit equals the first users of the result without a limit, also with equal distances."""
    monkeypatch.setattr(locb.LOCB, "user_batch_size", 7)
    policy = locb.LOCB(n_users=60, dim=3, n_seeds=4, gamma=5.0, seed=0)
    policy.play(locb.Synthetic(n_users=30, n_clusters=2, raw_dim=2, n_arms=3, seed=0).rounds(300, seed=1))
    similar = policy.similar_users(2, limit=60)
    assert [peer.user for peer in similar] == sorted(
        set(range(60)) - {2}, key=lambda other: (np.linalg.norm(policy.theta[other] - policy.theta[2]), other)
    )
    assert len({peer.distance for peer in similar}) < 59, "users without rounds are equally near"
    for limit in (1, 20, 40, 58):
        assert policy.similar_users(2, limit=limit) == similar[:limit]

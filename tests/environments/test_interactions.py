"""Environments of recorded interactions: the pool, the rounds and the true clusters."""

import os
from itertools import combinations

import numpy as np
import pytest

import locb
from locb.evaluation.clusters import maximum_clique

JIT_OFF = os.environ.get("NUMBA_DISABLE_JIT") == "1"
pytestmark = pytest.mark.interpreted


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small blocks, because rounds are slow without the compiler."""
    monkeypatch.setattr("locb.environments.base.BLOCK", 64)


def records(
    seed: int = 0, n: int = 9, m: int = 20, r: int = 300
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(n * m)[: min(r, n * m)]
    features = rng.standard_normal((m, 3))
    return pairs // m, pairs % m, (rng.random(len(pairs)) < 0.4).astype(int), features


def items_of(rounds: locb.Rounds, features: np.ndarray) -> np.ndarray:
    """Return the item of each arm, identified by its features: (T, k)."""
    gaps = np.abs(rounds.contexts[:, :, None, :] - features[None, None]).max(axis=3)
    assert (gaps.min(axis=2) == 0).all()
    return gaps.argmin(axis=2)


@pytest.mark.parametrize("zeros", ["any", "rated"])
def test_round_has_one_liked_item(zeros: str) -> None:
    users, items, rewards, features = records(r=120)
    env = locb.Interactions(users, items, rewards, features, n_users=9, n_arms=4, zeros=zeros)
    rounds = env.rounds(400, seed=2)
    shown = items_of(rounds, features)
    assert (rounds.rewards.sum(axis=1) == 1).all()
    liked = {(u, i) for u, i, r in zip(users, items, rewards, strict=True) if r}
    rated_zero = {(u, i) for u, i, r in zip(users, items, rewards, strict=True) if not r}
    positions = np.zeros(4)
    for t in range(len(rounds)):
        user = env.user_ids[rounds.users[t]]
        for a in range(4):
            pair = (user, shown[t, a])
            if rounds.rewards[t, a]:
                assert pair in liked
                positions[a] += 1
            else:
                assert pair not in liked
                assert zeros == "any" or pair in rated_zero
        enough = zeros == "any" or sum(u == user for u, _ in rated_zero) >= 3
        assert not enough or len(set(shown[t])) == 4
    assert positions.min() > 60  # the liked item is at a random position


def test_items_are_drawn_in_proportion_to_counts() -> None:
    features = np.eye(5)
    env = locb.Interactions(
        [0, 0, 0, 0], [0, 1, 2, 3], [1, 1, 0, 0], features, n_users=1, n_arms=2, zeros="rated", counts=[30, 10, 1, 4]
    )
    rounds = env.rounds(6000 if not JIT_OFF else 600, seed=1)
    shown = items_of(rounds, features)
    liked = shown[rounds.rewards == 1]
    zero = shown[rounds.rewards == 0]
    assert np.bincount(liked, minlength=5)[[0, 1]] / len(liked) == pytest.approx([0.75, 0.25], abs=0.06)
    assert np.bincount(zero, minlength=5)[[2, 3]] / len(zero) == pytest.approx([0.2, 0.8], abs=0.06)


def test_user_who_likes_nearly_all_items() -> None:
    likes = np.arange(300)
    env = locb.Interactions(np.zeros(299, int), likes[:299], np.ones(299), np.eye(300), n_users=1, n_arms=3)
    shown = items_of(env.rounds(20, seed=1), np.eye(300))
    assert (np.sort(shown, axis=1)[:, 1:] == 299).all()  # the only other item fills both remaining arms


def test_pool_selection() -> None:
    users = [0] * 5 + [1] * 4 + [2] * 3 + [3] * 2 + [4]
    items = [0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 1, 2, 0, 1, 0]
    rewards = [0] * 5 + [1, 0, 0, 0] + [1, 1, 0] + [1, 1] + [1]
    with pytest.warns(UserWarning, match="n_users is 5, but the number of eligible users is 4"):
        env = locb.Interactions(users, items, rewards, np.eye(5), n_users=5, n_arms=2)
    assert env.user_ids.tolist() == [1, 2, 3, 4]
    assert env.excluded_users == {"no liked item": 1}
    with pytest.warns(UserWarning, match="n_users is 5, but the number of eligible users is 2"):
        strict = locb.Interactions(users, items, rewards, np.eye(5), n_users=5, n_arms=2, zeros="rated")
    assert strict.user_ids.tolist() == [1, 2]
    assert strict.excluded_users == {"no liked item": 1, "no zero-reward item": 2}
    assert locb.Interactions(users, items, rewards, np.eye(5), n_users=2, n_arms=2).user_ids.tolist() == [1, 2]


def test_theta_is_the_ridge_estimate() -> None:
    users, items, rewards, features = records(r=150)
    env = locb.Interactions(users, items, rewards, features, n_users=9, n_arms=2)
    for index, user in enumerate(env.user_ids):
        own = users == user
        x, r = features[items[own]], rewards[own]
        assert env.theta[index] == pytest.approx(np.linalg.solve(np.eye(3) + x.T @ x, x.T @ r))
    doubled = locb.Interactions(users, items, rewards, features, n_users=9, n_arms=2, counts=np.full(150, 2))
    twice = locb.Interactions(*(np.tile(a, 2) for a in (users, items, rewards)), features, n_users=9, n_arms=2)
    assert doubled.theta == pytest.approx(twice.theta)
    assert doubled.records_per_user.tolist() == twice.records_per_user.tolist()


def test_maximum_clique_is_the_largest() -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        theta = rng.standard_normal((int(rng.integers(1, 10)), 2))
        gamma = float(rng.uniform(0.3, 2.5))
        found = maximum_clique(theta, gamma)

        def close(members: tuple[int, ...], theta: np.ndarray = theta, gamma: float = gamma) -> bool:
            return all(np.linalg.norm(theta[i] - theta[j]) < gamma for i, j in combinations(members, 2))

        assert close(tuple(found))
        largest = max(
            size for size in range(1, len(theta) + 1) for c in combinations(range(len(theta)), size) if close(c)
        )
        assert len(found) == largest
    assert maximum_clique(np.empty((0, 2)), 1.0).tolist() == []


def test_true_clusters_grow_with_gamma() -> None:
    users, items, rewards, features = records(n=30, m=40, r=900)
    env = locb.Interactions(users, items, rewards, features, n_users=30, n_arms=2)
    sizes = []
    for gamma in (0.05, 0.3, 1.0, 9.0):
        clusters = env.true_clusters(gamma)
        assert len(clusters) == 5
        for cluster in clusters:
            gaps = np.linalg.norm(env.theta[cluster][:, None] - env.theta[cluster][None], axis=2)
            assert gaps.max() < gamma
        sizes.append(sum(map(len, clusters)))
    assert sizes == sorted(sizes)
    assert sizes[-1] == 30
    scaled = env.scaled_gamma()
    assert env.users_in_groups(scaled) >= 15
    assert env.users_in_groups(0.98 * scaled) < 15
    few = locb.Interactions(users, items, rewards, features, n_users=3, n_arms=2)
    assert few.scaled_gamma() == np.inf  # three groups of one user


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"users": [0, -1]}, r"users\[1\] is -1"),
        ({"users": [0.5, 1]}, "users must have one integer per record"),
        ({"items": [0, 9]}, r"items must be below 3, the number of rows of item_features, but items\[1\] is 9"),
        ({"items": [0]}, "items must have as many elements as users, 2, not 1"),
        ({"rewards": [0, 2]}, r"rewards must be 0 or 1, but rewards\[1\] is 2"),
        ({"rewards": ["a", "b"]}, "rewards must have one number per record"),
        ({"item_features": [[np.nan, 0], [0, 0], [0, 0]]}, r"item_features\[0, 0\] is nan"),
        ({"n_users": 0}, "n_users must be an integer of at least 1, not 0"),
        ({"n_arms": 1}, "n_arms must be an integer of at least 2, not 1"),
        ({"zeros": "some"}, "zeros must be one of 'any', 'rated', 'shown', not 'some'"),
        ({"users": [], "items": [], "rewards": []}, "users, items and rewards must have at least one element, not 0"),
        ({"n_arms": 4}, "n_arms must be at most the number of items, 3, not 4"),
        ({"users": [0, 10**12]}, r"users must be numbered consecutively from 0, but users\[1\] is 1000000000000"),
        ({"counts": [1, 0]}, r"counts must be at least 1, but counts\[1\] is 0"),
        ({"rewards": [0, 0]}, r"no user is eligible; .*\(number of users with no liked item: 2"),
    ],
)
def test_invalid_arguments(change: dict[str, object], message: str) -> None:
    good = {"users": [0, 1], "items": [0, 1], "rewards": [1, 0], "item_features": np.eye(3)}
    arguments = {**good, "n_users": 1, "n_arms": 2, **change}
    first = [arguments.pop(name) for name in ("users", "items", "rewards", "item_features")]
    with pytest.raises(ValueError, match=message):
        locb.Interactions(*first, **arguments)


def test_invalid_gamma() -> None:
    users, items, rewards, features = records()
    env = locb.Interactions(users, items, rewards, features, n_users=9, n_arms=2)
    with pytest.raises(ValueError, match="gamma must be above 0, not -1"):
        env.true_clusters(-1)


def test_item_liked_once_is_not_a_rated_zero() -> None:
    users, items = [0, 0, 0, 0, 1, 1], [0, 0, 1, 2, 0, 0]
    rewards = [1, 0, 0, 0, 1, 0]  # both users liked item 0 in one record and not in another; user 1 has no other item
    with pytest.warns(UserWarning, match=r"number of eligible users is 1 \(excluded users: no zero-reward item: 1\)"):
        env = locb.Interactions(users, items, rewards, np.eye(3), n_users=2, n_arms=2, zeros="rated")
    rounds = env.rounds(100, seed=1)
    assert not (items_of(rounds, np.eye(3))[rounds.rewards == 0] == 0).any()
    shown = locb.Interactions(users, items, rewards, np.eye(3), n_users=2, n_arms=2, zeros="shown")
    assert shown.n_users == 2


def test_default_number_of_arms_follows_the_number_of_items() -> None:
    users, items, rewards = [0, 0, 0, 1, 1], [0, 1, 2, 0, 2], [1, 0, 0, 0, 1]
    with pytest.warns(UserWarning, match="the number of items is 3, so a round has 3 arms instead of 10"):
        env = locb.Interactions(users, items, rewards, np.eye(3), n_users=2)
    assert env.n_arms == env.rounds(3, seed=0).n_arms == 3
    assert locb.Interactions(users, items, rewards, np.eye(12), n_users=2).n_arms == 10
    with pytest.raises(ValueError, match="item_features must have at least 2 rows, one per item, not 1"):
        locb.Interactions([0], [0], [1], np.eye(1), n_users=1)


def test_excluded_pairs_are_never_arms() -> None:
    rng = np.random.default_rng(0)
    users, items = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    rewards = np.tile([1, 0, 0, 1], 6)
    excluded = np.repeat(np.arange(6), 5), np.tile(np.arange(5, 10), 6)
    features = np.hstack([np.eye(12), rng.normal(size=(12, 2))])
    env = locb.Interactions(users, items, rewards, features, n_users=6, n_arms=4, excluded=excluded)
    offered = env.rounds(3_000, seed=1).contexts[:, :, :12].argmax(axis=2)
    assert set(np.unique(offered)) == {0, 1, 2, 3, 4, 10, 11}
    with pytest.raises(ValueError, match="excluded must have as many users as items, not 1 and 2"):
        locb.Interactions(users, items, rewards, features, n_users=6, n_arms=4, excluded=([0], [1, 2]))
    # A user without an item that could have reward 0 is not eligible.
    everything = np.zeros(8, np.int64), np.arange(4, 12)
    with pytest.warns(UserWarning, match="no zero-reward item: 1"):
        few = locb.Interactions(users, items, np.ones(24, int), features, n_users=6, n_arms=4, excluded=everything)
    assert 0 not in few.user_ids

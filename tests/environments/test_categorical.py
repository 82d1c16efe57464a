"""The categorical environment: encodings of items, preferences of users, and hashing with collisions."""

import numpy as np
import pytest

import locb

SETTINGS = [
    {},
    {"categories": 30, "n_arms": 10},
    {"constant": True},
    {"categories": (6, 4)},
    {"categories": (6, 5, 4), "constant": True, "catalogue": 25, "reward_scale": 20.0, "reward_shift": -3.0},
    {"categories": [3, 2], "n_arms": 6, "noise": (0.1, 0.4), "degrees_of_freedom": 4.0, "outlier_share": 0.1},
    {"categories": (5, 4), "hash_dim": 6, "mean_range": (0.01, 0.05)},
    {"categories": 12, "hash_dim": 5, "signed": False, "constant": True, "arrivals": "zipf", "late_share": 0.5},
]


@pytest.mark.parametrize("change", SETTINGS, ids=str)
def test_rounds_match_the_items(change: dict[str, object]) -> None:
    env = locb.Categorical(n_users=30, n_clusters=3, **change, seed=5)
    rounds = env.rounds(5000, seed=2)
    again = locb.Categorical(n_users=30, n_clusters=3, **change, seed=5).rounds(4500, seed=2)
    for name in ("users", "contexts", "rewards", "means"):
        assert np.array_equal(getattr(rounds, name)[:4500], getattr(again, name))
    assert rounds.contexts.shape == (5000, env.n_arms, env.dim)
    assert env.items.shape == (len(env.item_categories), env.dim)
    assert sorted(np.concatenate(env.true_clusters()).tolist()) == list(range(30))
    by_vector: dict[bytes, list[int]] = {}
    for index, vector in enumerate(env.items):
        by_vector.setdefault(vector.tobytes(), []).append(index)
    for t in range(200):
        for arm in range(env.n_arms):
            items = by_vector[rounds.contexts[t, arm].tobytes()]  # several, if their categories collide
            assert rounds.means[t, arm] in env.item_means[rounds.users[t], items]
    if env.linear:
        expected = np.einsum("tkd,td->tk", rounds.contexts, env.theta[rounds.users])
        assert rounds.means == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("constant", [False, True])
def test_one_category_is_one_hot(constant: bool) -> None:
    env = locb.Categorical(categories=7, n_arms=4, constant=constant, seed=1)
    contexts = env.rounds(2000, seed=1).contexts
    hot = contexts[..., :7] * (np.sqrt(2.0) if constant else 1.0)
    assert env.dim == 7 + constant
    assert set(np.unique(hot.round(12))) == {0.0, 1.0}
    assert (hot.round(12).sum(axis=2) == 1.0).all()
    categories = np.sort(hot.argmax(axis=2), axis=1)
    assert (np.diff(categories, axis=1) > 0).all()  # the arms of a round are different
    counts = np.bincount(hot.argmax(axis=2).ravel(), minlength=7)
    assert counts == pytest.approx(np.full(7, 2000 * 4 / 7), rel=0.1)
    if constant:
        assert contexts[..., 7] == pytest.approx(np.full((2000, 4), np.sqrt(0.5)))
    assert np.linalg.norm(contexts, axis=2) == pytest.approx(np.ones((2000, 4)))


def test_each_arm_position_has_all_categories_equally_often() -> None:
    contexts = locb.Categorical(categories=6, n_arms=5, seed=1).rounds(12_000, seed=1).contexts
    for position in range(5):
        counts = np.bincount(contexts[:, position].argmax(axis=1), minlength=6)
        assert counts == pytest.approx(np.full(6, 2000), rel=0.1)


def test_crossed_categories_have_one_column_per_category() -> None:
    env = locb.Categorical(categories=(4, 3, 2), n_arms=10, seed=3)
    assert (env.dim, len(env.items)) == (9, 24)
    assert len(np.unique(env.item_categories, axis=0)) == 24
    hot = (env.items * np.sqrt(3.0)).round(12)
    for start, stop, column in ((0, 4, 0), (4, 7, 1), (7, 9, 2)):
        assert np.array_equal(hot[:, start:stop], np.eye(stop - start)[env.item_categories[:, column]])
    assert np.linalg.norm(env.items, axis=1) == pytest.approx(np.ones(24))
    catalogue = locb.Categorical(categories=(4, 3, 2), n_arms=10, catalogue=11, seed=3)
    assert len(np.unique(catalogue.item_categories, axis=0)) == 11
    assert np.array_equal(catalogue.labels, env.labels)


@pytest.mark.parametrize("seed", range(5))
def test_clusters_have_different_favourites_and_similar_users(seed: int) -> None:
    env = locb.Categorical(categories=10, n_users=60, n_clusters=8, spread=0.0, seed=seed)
    favourites = [set(env.item_means[cluster].argmax(axis=1).tolist()) for cluster in env.true_clusters()]
    assert all(len(found) == 1 for found in favourites)
    assert len(set.union(*favourites)) == 8
    near = locb.Categorical(categories=10, n_users=60, n_clusters=8, spread=0.1, seed=seed)
    assert 0.0 <= near.item_means.min() < near.item_means.max() <= 1.0
    for cluster in near.true_clusters():
        ranges = np.ptp(near.item_means[cluster], axis=0)
        assert ranges.max() <= 0.1
        assert len(cluster) == 1 or ranges.max() > 0.01
    alone = locb.Categorical(categories=10, n_users=60, n_clusters=60, seed=seed)
    assert np.bincount(alone.item_means.argmax(axis=1), minlength=10).min() >= 1


def test_mean_range_and_scale_map_the_means() -> None:
    plain = locb.Categorical(categories=(5, 4), seed=2)
    clicks = locb.Categorical(categories=(5, 4), mean_range=(0.01, 0.05), seed=2)
    assert clicks.item_means == pytest.approx(0.01 + 0.04 * plain.item_means)
    scaled = locb.Categorical(categories=(5, 4), reward_scale=8.0, reward_shift=-2.0, seed=2)
    first, second = plain.rounds(5000, seed=1), scaled.rounds(5000, seed=1)
    assert np.array_equal(second.rewards, 8.0 * first.rewards - 2.0)
    assert np.array_equal(second.means, 8.0 * first.means - 2.0)
    assert np.array_equal(second.contexts, first.contexts)
    assert scaled.linear
    assert scaled.rounds(9).means == pytest.approx(scaled.item_means.mean(), abs=8.0)


@pytest.mark.parametrize("signed", [True, False])
def test_hashing_adds_the_columns_of_the_categories(signed: bool) -> None:
    env = locb.Categorical(categories=(8, 6), hash_dim=5, signed=signed, seed=4)
    assert env.dim == 5
    assert not env.linear
    # The vector of a category is the difference between two items that differ only in this category, up to a constant.
    first = env.item_categories[:, 0] == 0
    vectors = (env.items[~first] - np.tile(env.items[first], (7, 1))) * np.sqrt(2.0)
    assert np.abs(vectors).sum(axis=1).max() <= 2.0 + 1e-12
    assert (np.rint(vectors) == vectors.round(12)).all()
    assert (env.items.min() < 0.0) == signed
    assert len(np.unique(env.items.round(12), axis=0)) < len(env.items)  # collisions
    best = np.linalg.lstsq(env.items, env.item_means.T, rcond=None)[0].T
    assert env.theta == pytest.approx(best)
    wide = locb.Categorical(categories=(3, 2), n_arms=6, hash_dim=500, signed=signed, seed=4)
    assert wide.linear
    assert np.array_equal(wide.item_means, locb.Categorical(categories=(3, 2), n_arms=6, seed=4).item_means)


def test_late_users_arrive_late() -> None:
    env = locb.Categorical(n_users=40, late_share=0.25, late_after=6000, seed=3)
    users = env.rounds(12_000, seed=1).users
    assert len(env.late_users) == 10
    assert not np.isin(users[:6000], env.late_users).any()
    assert np.isin(users[6000:], env.late_users).mean() == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("policy", locb.POLICIES)
def test_every_policy_runs(policy: str) -> None:
    env = locb.Categorical(categories=(4, 3), n_users=20, n_clusters=2, n_arms=6, noise=0.1, seed=5)
    run = locb.simulate(locb.make_policy(policy, n_users=20, dim=env.dim, seed=0), env, rounds=6000, seed=1)
    constant = env.rounds(6000, seed=1).regret(np.zeros(6000, np.int64)).sum()
    assert 0.0 < run.regret[-1] < constant


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"categories": 1}, "categories must be at least 2, not 1"),
        ({"categories": ()}, r"categories must have at least one number of categories, not \(\)"),
        ({"categories": (10, 2.5)}, "categories must be an integer, not 2.5"),
        ({"categories": (100, 101)}, "categories must have at most 10,000 combinations, not 10,100"),
        ({"n_arms": 11}, "n_arms must be at most 10, the number of combinations of categories, not 11"),
        ({"catalogue": 9}, "catalogue must be at least n_arms = 10, not 9"),
        ({"catalogue": 11}, "catalogue must be at most 10, the number of combinations of categories, not 11"),
        ({"hash_dim": 0}, "hash_dim must be at least 1, not 0"),
        ({"spread": 1.5}, "spread must be between 0 and 1, not 1.5"),
        ({"n_users": 3, "n_clusters": 4}, "n_clusters must be at most n_users = 3, not 4"),
        ({"arrivals": "poisson"}, "arrivals must be one of 'uniform', 'zipf', not 'poisson'"),
        ({"seed": -1}, "seed must be an integer of at least 0, not -1"),
    ],
)
def test_invalid_arguments(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        locb.Categorical(**change)

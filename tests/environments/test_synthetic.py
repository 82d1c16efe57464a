"""The synthetic environment of the paper."""

import numpy as np
import pytest

import locb


@pytest.mark.parametrize("seed", range(5))
def test_environment_of_the_paper(seed: int) -> None:
    env = locb.Synthetic(seed=seed)
    clusters = env.true_clusters()
    assert (env.n_users, env.dim, env.n_arms, len(clusters)) == (100, 6, 10, 5)
    assert sorted(np.concatenate(clusters).tolist()) == list(range(100))
    assert all(5 <= len(cluster) <= 40 for cluster in clusters)
    assert np.linalg.norm(env.theta, axis=1) == pytest.approx(np.ones(100))
    for cluster in clusters:
        gaps = np.linalg.norm(env.theta[cluster][:, None] - env.theta[cluster][None], axis=2)
        assert gaps.max() < 0.2
        assert gaps.max() > 0.05  # similar, not identical


def test_same_seed_gives_the_same_rounds() -> None:
    env = locb.Synthetic(seed=7)
    few, many = env.rounds(3000, seed=1), env.rounds(10_000, seed=1)
    again, other = locb.Synthetic(seed=7).rounds(3000, seed=1), env.rounds(3000, seed=2)
    for name in ("users", "contexts", "rewards", "means"):
        assert np.array_equal(getattr(few, name), getattr(many, name)[:3000])
        assert np.array_equal(getattr(few, name), getattr(again, name))
        assert not np.array_equal(getattr(few, name), getattr(other, name))
    assert [len(block) for block in env.stream(10_000, seed=1)] == [4096, 4096, 1808]
    assert len(env.rounds(0)) == 0


def test_rewards_follow_their_means() -> None:
    env = locb.Synthetic(seed=1)
    rounds = env.rounds(20_000, seed=3)
    assert rounds.means == pytest.approx(np.einsum("tkd,td->tk", rounds.contexts, env.theta[rounds.users]))
    assert set(np.unique(rounds.rewards)) == {0.0, 1.0}
    assert (rounds.rewards - rounds.means).mean() == pytest.approx(0.0, abs=0.005)
    near = np.abs(rounds.means - 0.3) < 0.05
    assert rounds.rewards[near].mean() == pytest.approx(rounds.means[near].mean(), abs=0.02)
    gaussian = locb.Synthetic(seed=1, noise=0.25).rounds(20_000, seed=3)
    assert (gaussian.rewards - gaussian.means).std() == pytest.approx(0.25, abs=0.005)
    assert np.linalg.norm(rounds.contexts, axis=2) == pytest.approx(np.ones((20_000, 10)))


def test_zipf_arrivals_are_proportional_to_one_over_rank() -> None:
    users = locb.Synthetic(n_users=50, arrivals="zipf", seed=2).rounds(200_000, seed=1).users
    counts = np.sort(np.bincount(users, minlength=50))[::-1]
    expected = 200_000 / np.arange(1, 51) / (1.0 / np.arange(1, 51)).sum()
    assert counts[:10] == pytest.approx(expected[:10], rel=0.05)
    uniform = np.bincount(locb.Synthetic(n_users=50, seed=2).rounds(200_000, seed=1).users, minlength=50)
    assert uniform == pytest.approx(np.full(50, 4000), rel=0.1)


@pytest.mark.parametrize(("n_users", "n_clusters"), [(1, 1), (7, 7), (40, 4), (300, 150), (1000, 1)])
def test_sizes_add_up(n_users: int, n_clusters: int) -> None:
    sizes = [len(c) for c in locb.Synthetic(n_users=n_users, n_clusters=n_clusters, seed=3).true_clusters()]
    assert sum(sizes) == n_users
    assert len(sizes) == n_clusters
    assert min(sizes) >= 1


def test_zero_spread_gives_equal_users() -> None:
    env = locb.Synthetic(n_users=20, n_clusters=2, spread=0.0, seed=1)
    assert [np.ptp(env.theta[cluster], axis=0).max() for cluster in env.true_clusters()] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_users": 0}, "n_users must be an integer of at least 1, not 0"),
        ({"n_arms": 2.5}, "n_arms must be an integer of at least 1, not 2.5"),
        ({"n_users": 3, "n_clusters": 4}, "n_clusters must be at most n_users = 3, not 4"),
        ({"spread": -1.0}, "spread must be a finite number of at least 0, not -1.0"),
        ({"noise": "uniform"}, "noise must be 'bernoulli', a finite standard deviation"),
        ({"noise": float("nan")}, "noise must be 'bernoulli', a finite standard deviation"),
        ({"arrivals": "poisson"}, "arrivals must be one of 'uniform', 'zipf', not 'poisson'"),
        ({"seed": -1}, "seed must be an integer of at least 0, not -1"),
    ],
)
def test_invalid_arguments(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        locb.Synthetic(**change)


def test_invalid_count_and_seed() -> None:
    env = locb.Synthetic(n_users=5, n_clusters=1)
    with pytest.raises(ValueError, match="count must be at least 0, not -1"):
        env.rounds(-1)
    with pytest.raises(ValueError, match="seed must be at least 0, not -2"):
        env.rounds(1, seed=-2)

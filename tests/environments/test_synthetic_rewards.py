"""Rewards of the synthetic environment (tails, outliers, scales), features of arms, and arrivals of users."""

import numpy as np
import pytest

import locb
from locb.environments.arm_features import draw_subsets


def test_student_t_noise_has_the_deviation_and_heavy_tails() -> None:
    env = locb.Synthetic(noise=0.5, degrees_of_freedom=5.0, seed=1)
    rounds = env.rounds(60_000, seed=1)
    error = (rounds.rewards - rounds.means).ravel()
    assert error.std() == pytest.approx(0.5, rel=0.02)
    assert error.mean() == pytest.approx(0.0, abs=0.005)
    # P(|t| > 4.032) is 0.01 for 5 degrees of freedom.
    assert (np.abs(error) > 4.032 * 0.5 * np.sqrt(3 / 5)).mean() == pytest.approx(0.01, rel=0.05)
    assert np.array_equal(rounds.contexts[:4096], locb.Synthetic(seed=1).rounds(4096, seed=1).contexts)


def test_outliers_are_a_share_of_the_rewards() -> None:
    plain = locb.Synthetic(noise=(0.1, 0.3), seed=1)
    env = locb.Synthetic(noise=(0.1, 0.3), outlier_share=0.05, outlier_factor=30.0, seed=1)
    first, second = plain.rounds(20_000, seed=1), env.rounds(20_000, seed=1)
    assert np.array_equal(first.means[:4096], second.means[:4096])
    # Each block has its own generator, so only outliers differ between the two environments.
    errors = [drawn.rewards - drawn.means for drawn in (first, second)]
    changed = ~np.isclose(errors[0], errors[1], rtol=1e-9, atol=1e-12)
    assert changed.mean() == pytest.approx(0.05, rel=0.05)
    assert errors[1][changed] == pytest.approx(30.0 * errors[0][changed])


@pytest.mark.parametrize(
    "change",
    [{}, {"noise": 0.2, "degrees_of_freedom": 2.5, "outlier_share": 0.1}, {"drift": 0.3, "mean_range": (0.1, 0.4)}],
    ids=str,
)
def test_scaled_environment_has_the_same_draws(change: dict[str, object]) -> None:
    plain = locb.Synthetic(n_users=30, **change, seed=5)
    scaled = locb.Synthetic(n_users=30, **change, reward_scale=100.0, reward_shift=5.0, seed=5)
    first, second = plain.rounds(6000, seed=2), scaled.rounds(6000, seed=2)
    assert np.array_equal(first.users, second.users)
    assert np.array_equal(first.contexts, second.contexts)
    assert np.array_equal(second.rewards, 100.0 * first.rewards + 5.0)
    assert np.array_equal(second.means, 100.0 * first.means + 5.0)
    chosen = np.zeros(6000, np.int64)
    assert second.regret(chosen) / 100.0 == pytest.approx(first.regret(chosen), abs=1e-9)
    theta = scaled.theta_at(second.users, np.arange(6000))
    assert second.means == pytest.approx(np.einsum("tkd,td->tk", second.contexts, theta))
    assert np.array_equal(scaled.theta_at(np.arange(30), np.zeros(30)), scaled.theta)


def test_mean_range_maps_the_means() -> None:
    plain, clicks = locb.Synthetic(seed=3), locb.Synthetic(mean_range=(0.01, 0.05), seed=3)
    first, second = plain.rounds(20_000, seed=1), clicks.rounds(20_000, seed=1)
    assert second.means == pytest.approx(0.01 + 0.04 * first.means)
    assert set(np.unique(second.rewards)) == {0.0, 1.0}
    assert second.rewards.mean() == pytest.approx(second.means.mean(), rel=0.03)
    assert second.means == pytest.approx(np.einsum("tkd,td->tk", second.contexts, clicks.theta[second.users]))


@pytest.mark.parametrize("norms", [(1.0, 1.0), (0.3, 0.9)])
def test_catalogue_has_fixed_items(norms: tuple[float, float]) -> None:
    env = locb.Synthetic(catalogue=15, n_arms=5, norms=norms, seed=2)
    rounds = env.rounds(9000, seed=1)
    assert env.items.shape == (15, 6)
    match = (rounds.contexts[:, :, None, :] == env.items).all(axis=3)  # (T, k, items)
    assert (match.sum(axis=2) == 1).all()
    assert match.sum(axis=1).max() == 1  # no item twice in a round
    assert match.sum(axis=0) == pytest.approx(np.full((5, 15), 600), rel=0.2)
    assert rounds.means == pytest.approx(np.einsum("tkd,td->tk", rounds.contexts, env.theta[rounds.users]))
    assert np.array_equal(env.theta, locb.Synthetic(n_arms=5, seed=2).theta)
    assert locb.Synthetic().items is None


def test_subsets_are_uniform() -> None:
    drawn = draw_subsets(np.random.default_rng(1), 60_000, 5, 3)
    assert sorted(draw_subsets(np.random.default_rng(1), 1, 4, 4)[0].tolist()) == [0, 1, 2, 3]
    ordered, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(ordered) == 60  # all ordered selections of 3 out of 5
    assert counts == pytest.approx(np.full(60, 1000), rel=0.15)


def test_correlated_features() -> None:
    plain = locb.Synthetic(raw_dim=8, seed=2).rounds(4096, seed=1).contexts
    contexts = locb.Synthetic(correlation=0.8, raw_dim=8, seed=2).rounds(4096, seed=1).contexts
    factor = np.linalg.cholesky(0.8 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8))))
    directions = plain[..., :-1] @ factor.T  # the same normal draws, with correlations
    directions /= np.sqrt(2.0) * np.linalg.norm(directions, axis=2, keepdims=True)
    assert contexts[..., :-1] == pytest.approx(directions)
    assert contexts[..., -1] == pytest.approx(np.full((4096, 10), np.sqrt(0.5)))
    assert np.corrcoef(contexts[:, 0, 0], contexts[:, 0, 1])[0, 1] > 0.5


@pytest.mark.parametrize("arrivals", ["uniform", "zipf"])
def test_late_users(arrivals: str) -> None:
    env = locb.Synthetic(n_users=50, arrivals=arrivals, late_share=0.4, late_after=5000, seed=3)
    plain = locb.Synthetic(n_users=50, arrivals=arrivals, seed=3)
    first, second = env.rounds(12_000, seed=1), plain.rounds(12_000, seed=1)
    assert len(np.unique(env.late_users)) == 20
    assert not np.isin(first.users[:5000], env.late_users).any()
    assert np.array_equal(first.users[5000:], second.users[5000:])
    assert np.array_equal(np.unique(first.users), np.unique(second.users))
    assert np.array_equal(first.contexts, second.contexts)
    assert plain.late_users.size == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": 0.1, "degrees_of_freedom": 2.0}, "degrees_of_freedom must be above 2, not 2.0"),
        ({"degrees_of_freedom": 3.0}, "degrees_of_freedom must be None, not 3.0, with noise='bernoulli'"),
        ({"noise": 0.1, "outlier_share": 1.5}, "outlier_share must be between 0 and 1, not 1.5"),
        ({"outlier_share": 0.1}, "outlier_share must be 0.0, not 0.1, with noise='bernoulli'"),
        ({"noise": 0.1, "outlier_factor": 0.5}, "outlier_factor must be at least 1, not 0.5"),
        ({"reward_scale": 0.0}, "reward_scale must be above 0, not 0.0"),
        ({"reward_shift": float("nan")}, "reward_shift must be between -1e"),
        ({"reward_shift": 1.0, "norms": (0.5, 1.0)}, r"reward_shift must be 0.0, not 1.0, if norms is \(0.5, 1.0\)"),
        (
            {"mean_range": (0.1, 0.2), "norms": (0.5, 1.0)},
            r"mean_range must be \(0.0, 1.0\), not \(0.1, 0.2\), if norms",
        ),
        ({"mean_range": (0.2, 0.2)}, r"mean_range must be a pair \(low, high\) with 0 ≤ low < high ≤ 1, not \(0.2, 0"),
        ({"mean_range": (0.2, 1.2)}, "mean_range must be a pair"),
        ({"correlation": 1.0}, "correlation must be below 1, not 1.0"),
        ({"correlation": -0.1}, "correlation must be between 0 and 1, not -0.1"),
        ({"catalogue": 9}, "catalogue must be at least n_arms = 10, not 9"),
        ({"catalogue": 2.5}, "catalogue must be an integer, not 2.5"),
        ({"late_share": -0.1}, "late_share must be between 0 and 1, not -0.1"),
        ({"late_share": 1.0}, "late_share must be smaller, not 1: all 100 users would be late, but"),
        ({"late_after": -1}, "late_after must be at least 0, not -1"),
    ],
)
def test_invalid_arguments(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        locb.Synthetic(**change)

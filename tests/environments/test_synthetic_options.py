"""Options of the synthetic environment, and their independence of each other."""

import numpy as np
import pytest

import locb

OPTIONS = [
    {"families": 2, "n_clusters": 6},
    {"overlap": 0.3},
    {"noise": (0.05, 1.0)},
    {"drift": 0.3},
    {"drift": 0.3, "drifters": "users"},
    {"norms": (0.2, 1.0)},
    {"families": 2, "overlap": 0.2, "drift": 0.1, "norms": [0.5, 0.9], "noise": [0.1, 0.2], "arrivals": "zipf"},
]


def gaps(theta: np.ndarray) -> np.ndarray:
    return np.linalg.norm(theta[:, None] - theta[None], axis=2)


def test_default_environment_is_unchanged() -> None:
    """Compare with the numbers of the first version, on which published results depend."""
    env = locb.Synthetic(seed=11)
    rounds = env.rounds(5000, seed=3)
    assert env.labels[:12].tolist() == [3, 2, 4, 2, 3, 3, 2, 4, 4, 3, 4, 2]
    assert env.theta[7] == pytest.approx(
        [0.3711904349, -0.4446073787, -0.0987629279, 0.1345077171, 0.3697235426, 0.7071067812], abs=1e-9
    )
    assert rounds.users[[0, 4095, 4096, 4999]].tolist() == [8, 79, 25, 89]
    assert rounds.contexts[4999, 9] == pytest.approx(
        [-0.5452675782, -0.1272419528, 0.1613346936, 0.3533924249, -0.1886204237, 0.7071067812], abs=1e-9
    )
    assert (rounds.rewards.sum(), rounds.means.sum()) == (25135.0, pytest.approx(25099.08237321, abs=1e-6))
    gaussian = locb.Synthetic(noise=0.3, arrivals="zipf", n_users=40, n_arms=3, seed=11).rounds(5000, seed=3)
    assert (gaussian.users.sum(), gaussian.rewards.sum()) == (85987, pytest.approx(7457.7592157, abs=1e-6))


@pytest.mark.parametrize("change", OPTIONS, ids=str)
def test_rounds_do_not_depend_on_streaming(change: dict[str, object]) -> None:
    env = locb.Synthetic(**{"n_users": 30, **change}, seed=5)
    rounds = env.rounds(9000, seed=2)
    again = locb.Synthetic(**{"n_users": 30, **change}, seed=5)
    few = again.rounds(5000, seed=2)
    blocks = list(again.stream(9000, seed=2))
    for name in ("users", "contexts", "rewards", "means"):
        whole = getattr(rounds, name)
        assert np.array_equal(whole[:5000], getattr(few, name))
        assert np.array_equal(whole, np.concatenate([getattr(block, name) for block in blocks]))
    assert rounds.means.min() >= 0.0
    assert rounds.means.max() <= 1.0 + 1e-12
    assert np.array_equal(np.unique(np.concatenate(env.true_clusters())), np.arange(30))
    lengths = np.linalg.norm(rounds.contexts, axis=2)
    assert rounds.means == pytest.approx(
        np.einsum("tkd,td->tk", rounds.contexts, env.theta_at(rounds.users, np.arange(9000)))
    )
    assert np.array_equal(env.theta_at(np.arange(30), np.zeros(30)), env.theta)
    low, high = env.norms
    assert lengths.min() >= low - 1e-12
    assert lengths.max() <= high + 1e-12


def test_clusters_of_a_family_are_close() -> None:
    env = locb.Synthetic(n_users=200, n_clusters=12, families=3, family_spread=0.4, spread=0.0, seed=1)
    centres = np.array([env.theta[cluster[0]] for cluster in env.true_clusters()])
    assert env.family_of.tolist() == [0, 1, 2] * 4
    same = env.family_of[:, None] == env.family_of[None]
    apart = gaps(centres)
    assert apart[same].max() < 0.4
    assert apart[same & ~np.eye(12, dtype=bool)].min() > 0.0
    assert apart[~same].min() > 0.4
    assert locb.Synthetic().family_of is None


def test_overlapping_users_belong_to_two_clusters() -> None:
    plain = locb.Synthetic(spread=0.0, seed=4)
    env = locb.Synthetic(spread=0.0, overlap=0.3, seed=4)
    between = np.flatnonzero(env.second_labels >= 0)
    assert len(between) == 30
    clusters = env.true_clusters()
    assert sum(map(len, clusters)) == 130
    centres = np.array([plain.theta[cluster[0]] for cluster in plain.true_clusters()])
    for user in between:
        first, second = centres[env.labels[user]], centres[env.second_labels[user]]
        assert user in clusters[env.labels[user]]
        assert user in clusters[env.second_labels[user]]
        apart = np.linalg.norm(first - second)
        for end in (first, second):  # strictly between the two centres
            assert 0.2 * apart < np.linalg.norm(env.theta[user] - end) < 0.85 * apart
    others = np.setdiff1d(np.arange(100), between)
    assert np.array_equal(env.theta[others], plain.theta[others])
    assert np.linalg.norm(env.theta, axis=1) == pytest.approx(np.ones(100))


def test_noise_pair_gives_a_deviation_per_user() -> None:
    env = locb.Synthetic(n_users=20, n_clusters=2, noise=(0.1, 1.0), seed=3)
    rounds = env.rounds(40_000, seed=1)
    error = rounds.rewards - rounds.means
    measured = np.array([error[rounds.users == user].std() for user in range(20)])
    assert measured == pytest.approx(env.deviations, rel=0.03)
    assert env.deviations.min() >= 0.1
    assert env.deviations.max() <= 1.0
    assert np.ptp(env.deviations) > 0.5
    assert np.array_equal(env.theta, locb.Synthetic(n_users=20, n_clusters=2, seed=3).theta)
    assert locb.Synthetic().deviations is None


@pytest.mark.parametrize("drifters", ["clusters", "users"])
def test_preferences_rotate_by_the_given_angle(drifters: str) -> None:
    env = locb.Synthetic(n_users=40, n_clusters=4, spread=0.1, drift=0.2, drifters=drifters, seed=6)
    everyone = np.arange(40)
    later = env.theta_at(everyone, np.full(40, 10_000))
    assert np.linalg.norm(later, axis=1) == pytest.approx(np.ones(40))
    chord = 2 * np.sin(0.1) / np.sqrt(2)  # chord of the angle 0.2 on a sphere of radius √½
    moved = np.linalg.norm(later - env.theta, axis=1)
    if drifters == "users":
        assert moved == pytest.approx(np.full(40, chord))
        return
    assert moved.max() <= chord + 1e-12
    assert moved.min() > 0.95 * chord
    for cluster in env.true_clusters():
        assert gaps(later[cluster]) == pytest.approx(gaps(env.theta[cluster]), abs=1e-12)


def test_regret_uses_the_means_of_the_round() -> None:
    env = locb.Synthetic(n_users=5, n_clusters=1, drift=1.0, seed=2)
    rounds = env.rounds(30_000, seed=1)
    best_now = rounds.means.argmax(axis=1)
    best_at_start = np.einsum("tkd,td->tk", rounds.contexts, env.theta[rounds.users]).argmax(axis=1)
    assert rounds.regret(best_now).sum() == 0.0
    early, late = slice(0, 1000), slice(29_000, 30_000)
    assert (best_now != best_at_start)[early].mean() < 0.1
    assert (best_now != best_at_start)[late].mean() > 0.5


@pytest.mark.parametrize("policy", locb.POLICIES)
@pytest.mark.parametrize("change", OPTIONS[-2:], ids=str)
def test_every_policy_runs(policy: str, change: dict[str, object]) -> None:
    env = locb.Synthetic(**{"n_users": 30, **change}, seed=5)
    run = locb.simulate(locb.make_policy(policy, n_users=30, dim=env.dim, seed=0), env, rounds=6000, seed=1)
    constant = env.rounds(6000, seed=1).regret(np.zeros(6000, np.int64)).sum()
    assert 0.0 < run.regret[-1] < constant


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"families": 0}, "families must be an integer of at least 1, not 0"),
        ({"families": 6}, "families must be at most n_clusters = 5, not 6"),
        ({"family_spread": float("nan")}, "family_spread must be a finite number of at least 0, not nan"),
        ({"overlap": 1.5}, "overlap must be from 0 to 1, not 1.5"),
        ({"overlap": 0.5, "n_clusters": 1}, "overlap must be 0, not 0.5, if n_clusters is 1"),
        ({"overlap": 0.5, "raw_dim": 1}, "overlap must be 0, not 0.5, if raw_dim is 1"),
        ({"drift": float("inf")}, "drift must be a finite angle in radians, not inf"),
        ({"drift": 0.1, "raw_dim": 1}, "drift must be 0, not 0.1, if raw_dim is 1"),
        ({"drifters": "everyone"}, "drifters must be one of 'clusters', 'users', not 'everyone'"),
        ({"norms": (0.0, 1.0)}, "norms must be a pair .* of finite lengths with 0 < low ≤ high, not "),
        ({"norms": (0.9, 0.2)}, "norms must be a pair"),
        ({"norms": 0.5}, "norms must be a pair"),
        ({"norms": (0.5, 2.0)}, r"norms \(low, high\) must have high ≤ 1 with noise='bernoulli', not \(0\.5, 2\.0\)"),
        ({"noise": (0.5, 0.1)}, "noise must be 'bernoulli', a finite standard deviation of at least 0, or a pair"),
        ({"noise": ("a", "b")}, "noise must be 'bernoulli', a finite standard deviation of at least 0, or a pair"),
    ],
)
def test_invalid_arguments(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        locb.Synthetic(**change)
    assert locb.Synthetic(noise=1.0, norms=(0.5, 2.0)).norms == (0.5, 2.0)

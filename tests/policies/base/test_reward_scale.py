"""The warning about rewards that are not on a scale of about 0 to 1, and what such rewards do to the clusters."""

import warnings
from typing import Any

import numpy as np
import pytest

import locb
from locb.policies.base.reward_scale import MIN_REWARDS, report_problems_to
from policies.helpers import contexts, make, make_rounds
from policies.toy_policy import Toy

X = np.array([1.0, 0.0, 0.0])


def scaled(rounds: locb.Rounds, scale: float, shift: float, *, with_means: bool = True) -> locb.Rounds:
    means = scale * rounds.means + shift if with_means and rounds.means is not None else rounds.means
    return locb.Rounds(rounds.users, rounds.contexts, scale * rounds.rewards + shift, means)


def f1(policy: locb.Policy, env: locb.Synthetic) -> float:
    found = {cluster.members.tobytes(): cluster.members for cluster in policy.clusters()}
    return locb.match_clusters(list(found.values()), env.true_clusters()).f1


def test_range_repairs_the_clusters_of_badly_scaled_rewards() -> None:
    env = locb.Synthetic(n_users=30, n_clusters=2, seed=3)
    rounds = env.rounds(30_000, seed=1)

    def learn(scale: float, shift: float, reward_range: Any) -> float:
        policy = locb.LOCB(n_users=30, dim=env.dim, n_seeds=15, gamma=0.4, reward_range=reward_range)
        policy.play(scaled(rounds, scale, shift))
        return f1(policy, env)

    right = learn(1, 0, None)
    assert right > 0.85
    for scale, shift in ((0.01, 0), (100, 0), (1, 5)):
        with pytest.warns(locb.RewardScaleWarning):
            assert learn(scale, shift, None) < right - 0.25
        assert learn(scale, shift, (shift, shift + scale)) == right


@pytest.mark.parametrize(("scale", "shift"), [(0.01, 0.0), (100.0, 0.0), (100.0, 5.0), (0.01, 7.0), (1.0, -50.0)])
def test_eloc_learns_scale_and_location(scale: float, shift: float) -> None:
    """After the first rounds, neither clusters nor regret of ELOC depend on the scale and the location of rewards."""
    results = []
    for change in ((1.0, 0.0), (scale, shift)):
        found = []
        for seed in range(4):
            env = locb.Synthetic(n_users=30, n_clusters=2, seed=seed)
            rounds, policy = env.rounds(8_000, seed=seed), locb.ELOC(n_users=30, dim=env.dim, n_seeds=15)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                chosen = policy.play(scaled(rounds, *change))
            assert policy.reward_scale_problem is None
            explanation = policy.explain(0, rounds.contexts[0])
            predicted = rounds.contexts[0] @ explanation.theta + explanation.intercept
            assert explanation.estimate == pytest.approx(predicted, rel=1e-6)
            assert explanation.estimate == pytest.approx(
                change[0] * rounds.contexts[0] @ env.theta[0] + change[1], abs=change[0]
            )
            found.append((f1(policy, env), rounds.regret(chosen).sum()))
        results.append(np.mean(found, axis=0))
    (right, expected), (accuracy, regret) = results
    assert accuracy > right - 0.1
    assert regret < 1.2 * expected


@pytest.mark.parametrize(("scale", "shift"), [(100.0, 0.0), (1.0, 5.0), (-1.0, 0.0), (0.01, 0.0)])
@pytest.mark.parametrize("with_means", [True, False])
@pytest.mark.parametrize("name", list(locb.POLICIES))
def test_play_warns_once(name: str, with_means: bool, scale: float, shift: float) -> None:
    # ELOC warns only if its screen depends on the scale.
    more = {"screen": "theory", "robust": False} if name == "eloc" else {}
    policy = make(name, 0, **more) if name in ("locb", "eloc") else locb.make_policy(name, n_users=12, dim=3)
    rounds = scaled(make_rounds(300), scale, shift, with_means=with_means)
    assert policy.reward_scale_problem is None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(0, 300, 100):
            policy.play(rounds.slice(start, start + 100))
    assert [warning.category for warning in caught] == [locb.RewardScaleWarning]
    assert "Pass reward_range=(low, high), your lowest and highest reward." in str(caught[0].message)
    assert [warning.filename for warning in caught] == [__file__]
    assert policy.reward_scale_problem is not None


@pytest.mark.parametrize("kind", ["locb", "linucb-ind"])
@pytest.mark.parametrize("reward", [1.6, -0.6, 500.0])
def test_update_warns_once(kind: str, reward: float) -> None:
    policy = make(kind, 0)
    policy.update(0, X, 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            policy.update(0, X, reward)
    assert [warning.category for warning in caught] == [locb.RewardScaleWarning]
    assert str(caught[0].message).startswith(f"a reward of {reward:g} is not in -0.5 … 1.5, but the policy assumes")
    assert [warning.filename for warning in caught] == [__file__]
    assert policy.served[0] == 4
    assert policy.reward_scale_problem == f"a reward of {reward:g} is not in -0.5 … 1.5"


@pytest.mark.parametrize("screen", ["noise", "off", "theory"])
def test_eloc_warns_only_if_its_screen_depends_on_the_scale(screen: str) -> None:
    policy = make("eloc", 0, screen=screen, robust=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy.update(0, X, 500.0)
        policy.correct(0, X, 500.0, 700.0)
        policy.play(scaled(make_rounds(300), 100.0, 0.0))
    assert [warning.category for warning in caught] == [locb.RewardScaleWarning] * (screen == "theory")
    assert (policy.reward_scale_problem is not None) == (screen == "theory")


def test_correction_to_a_bad_reward_warns() -> None:
    policy = make("linucb-ind", 0)
    policy.update(0, X, 0.0)
    with pytest.warns(locb.RewardScaleWarning, match=r"^a reward of 7 is not in") as caught:
        policy.correct(0, X, 0.0, 7.0)
    assert [warning.filename for warning in caught] == [__file__]


def test_small_rewards_warn_after_enough_of_them() -> None:
    policy = make("linucb-ind", 0)
    for number in range(MIN_REWARDS - 1):
        policy.update(0, X, 0.01 if number == 3 else 0.0)
    assert policy.reward_scale_problem is None
    with pytest.warns(locb.RewardScaleWarning, match=r"^200 rewards are at most 0.01 in absolute value, below 0.05"):
        policy.update(0, X, 0.0)


def test_rewards_of_zero_do_not_warn_until_one_is_small() -> None:
    policy = make("linucb-ind", 0)
    for _ in range(2 * MIN_REWARDS):
        policy.update(0, X, 0.0)
    assert policy.reward_scale_problem is None
    with pytest.warns(locb.RewardScaleWarning, match=r"^401 rewards are at most 0.02"):
        policy.update(0, X, -0.02)


def test_one_large_reward_ends_the_check_of_small_rewards() -> None:
    policy = make("linucb-ind", 0)
    for number in range(2 * MIN_REWARDS):
        policy.update(0, X, 1.0 if number == 150 else 0.01)
    policy.play(scaled(make_rounds(300), 0.01, 0.0))
    assert policy.reward_scale_problem is None


@pytest.mark.parametrize("kind", ["locb", "eloc", "club", "linucb-one"])
def test_rewards_from_0_to_1_do_not_warn(kind: str) -> None:
    policy = make(kind, 300)
    rng = np.random.default_rng(2)
    for _ in range(300):
        policy.update(int(rng.integers(12)), contexts()[0], float(rng.random()))
    assert policy.reward_scale_problem is None


@pytest.mark.parametrize("noise", [0.5, (0.05, 1.0)])
def test_noise_around_known_means_does_not_warn(noise: Any) -> None:
    env = locb.Synthetic(n_users=12, n_clusters=2, raw_dim=2, noise=noise, seed=4)
    policy = make("linucb-ind", 0)
    for seed in range(3):
        rounds = env.rounds(500, seed=seed)
        assert rounds.rewards.max() > 1.5
        policy.play(rounds)
    assert policy.reward_scale_problem is None
    with pytest.warns(locb.RewardScaleWarning):
        policy.play(scaled(rounds, 100.0, 0.0, with_means=False))


def test_range_disables_the_warning() -> None:
    for reward_range in ((0, 1), (0, 1000)):
        policy = make("linucb-ind", 0, reward_range=reward_range)
        policy.update(0, X, 500.0)
        policy.play(scaled(make_rounds(300), 0.01, 0.0))
        assert policy.reward_scale_problem is None


def test_warning_as_an_error_keeps_what_was_learned() -> None:
    policy, other = make("linucb-ind", 0), make("linucb-ind", 0, reward_range=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(locb.RewardScaleWarning):
            policy.update(0, X, 500.0)
    other.update(0, X, 500.0)
    assert policy.theta.tobytes() == other.theta.tobytes()


def test_problems_can_be_received_instead_of_warnings() -> None:
    problems: list[str] = []
    with report_problems_to(problems.append):
        for _ in range(2):
            policy = make("linucb-ind", 0)
            for _ in range(2):
                policy.update(0, X, 500.0)
    assert problems == ["a reward of 500 is not in -0.5 … 1.5"] * 2


def test_compiled_policy_without_the_parameter_still_warns() -> None:
    policy = Toy(n_users=12, dim=3)
    policy.play(make_rounds(20))
    with pytest.warns(locb.RewardScaleWarning):
        policy.update(0, X, 500.0)

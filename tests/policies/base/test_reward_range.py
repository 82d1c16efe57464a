"""``reward_range``: rewards on another scale give the same choices and clusters, and results in original units."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from policies.helpers import CORRECTED, KINDS, N, contexts, make, make_rounds, state_of

SCALE, SHIFT = 64.0, -40.0  # powers of two and small integers, so that the mapping is exact
RANGE = (SHIFT, SHIFT + SCALE)


def graded_rounds(rounds: int = 300, seed: int = 1) -> locb.Rounds:
    """Return rounds with rewards that are multiples of 1/64."""
    drawn = make_rounds(rounds, seed)
    rewards = np.random.default_rng(seed).integers(0, 65, drawn.rewards.shape) / 64.0
    return locb.Rounds(drawn.users, drawn.contexts, 0.5 * (drawn.rewards + rewards), drawn.means)


def rescaled(rounds: locb.Rounds, scale: float = SCALE, shift: float = SHIFT) -> locb.Rounds:
    means = None if rounds.means is None else scale * rounds.means + shift
    return locb.Rounds(rounds.users, rounds.contexts, scale * rounds.rewards + shift, means)


def saved_arrays(policy: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in policy._arrays().items()}


def groups(policy: Any) -> list[list[int]]:
    return [cluster.members.tolist() for cluster in policy.clusters()]


@pytest.mark.parametrize("kind", KINDS)
def test_rescaled_rewards_give_the_same_choices_and_clusters(kind: str) -> None:
    plain, ranged = make(kind, 0), make(kind, 0, reward_range=RANGE)
    rounds = graded_rounds()
    assert ranged.play(rescaled(rounds)).tolist() == plain.play(rounds).tolist()
    for t, user in enumerate(rounds.users[:50].tolist()):
        arm = plain.recommend(user, rounds.contexts[t])
        assert ranged.recommend(user, rounds.contexts[t]) == arm
        reward = float(rounds.rewards[t, arm])
        plain.update(user, rounds.contexts[t, arm], reward)
        ranged.update(user, rounds.contexts[t, arm], SCALE * reward + SHIFT)
        if t % 5 == 0 and kind in CORRECTED:
            plain.correct(user, rounds.contexts[t, arm], reward, 0.25)
            ranged.correct(user, rounds.contexts[t, arm], SCALE * reward + SHIFT, SCALE * 0.25 + SHIFT)
    assert state_of(ranged) == state_of(plain)
    assert groups(ranged) == groups(plain)


@pytest.mark.parametrize("kind", KINDS)
def test_range_of_0_to_1_changes_nothing(kind: str) -> None:
    plain, ranged, rounds = make(kind, 0), make(kind, 0, reward_range=(0, 1)), graded_rounds()
    assert ranged.play(rounds).tolist() == plain.play(rounds).tolist()
    assert state_of(ranged) == state_of(plain)
    mine, other = ranged.explain(3, contexts()), plain.explain(3, contexts())
    assert mine.estimate.tobytes() == other.estimate.tobytes()
    assert mine.intercept == other.intercept == 0.0
    assert ranged.theta.tobytes() == plain.theta.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_in_original_units(kind: str) -> None:
    plain, ranged = make(kind, 0), make(kind, 0, reward_range=RANGE)
    plain.play(graded_rounds())
    ranged.play(rescaled(graded_rounds()))
    offered = contexts()
    for user in range(N):
        mine, other = ranged.explain(user, offered), plain.explain(user, offered)
        assert (mine.arm, mine.sources) == (other.arm, other.sources)
        assert mine.estimate == pytest.approx(SHIFT + SCALE * other.estimate)
        assert mine.bonus == pytest.approx(SCALE * other.bonus)
        assert mine.theta == pytest.approx(SCALE * other.theta)
        assert offered[mine.arm] @ mine.theta + mine.intercept == pytest.approx(mine.estimate[mine.arm], rel=1e-6)
        estimate, unscaled = ranged.estimate(user), plain.estimate(user)
        assert estimate.served == unscaled.served
        for field in ("theta", "radius", "deviation"):
            assert getattr(estimate, field) == pytest.approx(SCALE * getattr(unscaled, field))
        found = [(near.user, near.distance, near.radius) for near in ranged.similar_users(user)]
        assert found == [(near.user, SCALE * near.distance, SCALE * near.radius) for near in plain.similar_users(user)]
    assert ranged.theta == pytest.approx(SCALE * plain.theta)
    assert ranged.radii == pytest.approx(SCALE * plain.radii)
    users = np.arange(N)
    assert ranged.user_batch(users).theta == pytest.approx(SCALE * plain.user_batch(users).theta)
    mine, other = ranged.group_summary(), plain.group_summary()
    assert np.array_equal(mine.progress, other.progress, equal_nan=True)
    if other.theta is not None:
        assert mine.theta == pytest.approx(SCALE * other.theta)
    if kind.startswith("eloc"):
        assert ranged.noise == pytest.approx(SCALE * plain.noise)
    # A shared estimate has no certificates, and ELOC has none after it has limited the effect of outliers.
    if kind not in ("linucb-one", "lints-one", "cab", "eloc"):
        for members in (range(N), [0, 3]):
            assert ranged.certificate(members) == pytest.approx(SCALE * plain.certificate(members))
            assert ranged.certifier(members)(False) == pytest.approx(SCALE * plain.certifier(members)(False))


@pytest.mark.parametrize("kind", KINDS)
def test_saved_policy_keeps_the_range(kind: str, tmp_path: Path) -> None:
    policy = make(kind, 0, reward_range=list(RANGE))
    policy.play(rescaled(graded_rounds()))
    policy.save(tmp_path / "policy.locb")
    loaded = locb.load(tmp_path / "policy.locb")
    assert loaded.get_params()["reward_range"] == policy.get_params()["reward_range"] == RANGE
    later = rescaled(graded_rounds(100, seed=2))
    assert loaded.play(later).tolist() == policy.play(later).tolist()
    assert saved_arrays(loaded) == saved_arrays(policy)
    assert loaded.theta.tobytes() == policy.theta.tobytes()


def test_file_of_a_version_without_the_parameter_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "policy.locb"
    policy = make("locb")
    policy.save(path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(entries["header.json"])
    del header["parameters"]["reward_range"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (entries | {"header.json": json.dumps(header).encode()}).items():
            archive.writestr(name, data)
    loaded = locb.load(path)
    assert loaded.get_params() == policy.get_params()
    assert saved_arrays(loaded) == saved_arrays(policy)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((1, 1), "high exceeds low by at least 1e-09, not \\(1, 1\\)"),
        ((2, 1), "high exceeds low .* not \\(2, 1\\)"),
        ((1e9, 1e9 + 0.5), "high exceeds low by at least 1, not \\(1000000000, 1000000000.5\\)"),
        ((0, float("inf")), "between"),
        ((0, float("nan")), "reward_range must be"),
        ((0, 1, 2), "must be a pair \\(low, high\\) of numbers, not \\(0, 1, 2\\)"),
        ("01", "must be a pair \\(low, high\\) of numbers, not '01'"),
        (5.0, "must be a pair"),
        (("a", 1), "reward_range must be a number, not 'a'"),
    ],
)
@pytest.mark.parametrize("name", list(locb.POLICIES))
def test_invalid_range_is_an_error(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        locb.make_policy(name, n_users=2, dim=2, reward_range=value)


@pytest.mark.parametrize("kind", ["linucb-ind", "linucb-ind-float32"])
def test_mapped_rewards_have_the_limits_of_rewards(kind: str) -> None:
    policy = make(kind, 0, reward_range=(0.0, 1e-80))
    before = state_of(policy)
    message = "which reward_range maps to 1e\\+109; mapped rewards must be from -1e\\+"
    with pytest.raises(ValueError, match=f"reward is 1e\\+29, {message}"):
        policy.update(0, contexts()[0], 1e29)
    with pytest.raises(ValueError, match="rewards mapped by reward_range must be finite and at most 1e\\+"):
        policy.play(rescaled(make_rounds(5), 1e29, 0.0))
    assert state_of(policy) == before
    policy.update(0, contexts()[0], 0.0)
    with pytest.raises(ValueError, match=f"learned is 1e\\+29, {message}"):
        policy.correct(0, contexts()[0], 1e29, 0.0)

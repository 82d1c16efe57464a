"""Properties of the baselines that the oracle does not show: distributions of draws, shared evidence, saved files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from locb.kernels.common.linear_algebra import unpack_symmetric
from policies.helpers import DIM, N, make, make_rounds, state_of

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("kind", ["lints-ind", "lints-one", "mixed-effects-thompson"])
def test_draws_have_the_covariance_of_the_estimate(kind: str) -> None:
    """With unit vectors as arms, the bonuses of an explanation are the difference of the draw from the estimate."""
    policy = make(kind, alpha=0.7)
    explanations = policy.explain_batch([3] * 4_000, [np.eye(DIM)] * 4_000)
    draws = np.array([explanation.bonus for explanation in explanations])
    rows = policy._posteriors(np.arange(N)) if kind.startswith("mixed") else policy._state.estimates
    row = rows[3 % len(rows)]
    expected = 0.49 * unpack_symmetric(row[DIM:], DIM)
    scale = np.sqrt(np.diag(expected))
    assert np.abs(draws.mean(axis=0) / scale).max() < 0.06  # 4 standard errors of a mean of 4,000 draws
    assert np.abs(np.cov(draws.T) - expected).max() < 0.1 * scale.max() ** 2
    assert np.mean(np.abs(draws) < 1.96 * scale) == pytest.approx(0.95, abs=0.01)
    best = (row[:DIM] + draws).argmax(axis=1)
    assert [explanation.arm for explanation in explanations] == best.tolist()


def test_the_seed_determines_the_draws() -> None:
    first, same, other = (locb.LinTS(n_users=N, dim=DIM, seed=seed) for seed in (1, 1, 2))
    rounds = make_rounds(100)
    chosen = first.play(rounds).tolist()
    assert same.play(rounds).tolist() == chosen
    assert other.play(rounds).tolist() != chosen
    assert state_of(first) == state_of(same)


@pytest.mark.parametrize(("kind", "source"), [("hybrid-linucb", "everyone"), ("mixed-effects", "population")])
def test_a_new_user_starts_with_what_all_users_share(kind: str, source: str) -> None:
    policy = make(kind, 0)
    policy.play(locb.Synthetic(n_users=N, n_clusters=1, raw_dim=DIM - 1, spread=0.0, seed=5).rounds(600, seed=1))
    policy.add_users(1)
    mean = policy.theta[:N].mean(axis=0)
    assert np.linalg.norm(policy.theta[N] - mean) < 0.2 * np.linalg.norm(mean)
    (only,) = policy.explain(N, np.eye(DIM)).sources
    assert only == (source, None, pytest.approx(1.0), N + 1, 600)
    (_, own) = sorted(policy.explain(0, np.eye(DIM)).sources)
    assert own.kind in ("user", source)
    assert 0.0 < own.weight < 1.0


def test_dynucb_finds_groups_and_keeps_its_number_of_clusters() -> None:
    env = locb.Synthetic(n_users=30, n_clusters=3, raw_dim=3, spread=0.0, noise=0.05, seed=2)
    policy = locb.DynUCB(n_users=30, dim=env.dim, n_clusters=3, alpha=0.3, seed=1)
    assert locb.match_clusters(policy.clusters(), env.true_clusters()).f1 < 0.8
    policy.play(env.rounds(3_000, seed=1))
    assert locb.match_clusters(policy.clusters(), env.true_clusters()).f1 == 1.0
    assert len(locb.DynUCB(n_users=2, dim=2, n_clusters=10).clusters()) <= 2


def test_cab_shares_rewards_only_with_similar_users() -> None:
    policy = locb.CAB(n_users=3, dim=1, alpha=0.3, gamma=0.6)
    for step in range(300):
        user = step % 3
        policy.update(user, [1.0], 0.0 if user == 2 else 1.0)
    before = policy.theta[:, 0].copy()
    policy.update(0, [1.0], 0.9)
    changed = policy.theta[:, 0] != before
    assert changed.tolist() == [True, True, False]
    assert policy.explain(0, [[1.0]]).sources == (("neighbourhood", None, 1.0, 2, 201),)


def test_rclumb_uses_neighbours_instead_of_the_component() -> None:
    """Users 0 and 2 differ, but both are similar to user 1, who connects them."""
    policy = locb.RCLUMB(n_users=3, dim=1, alpha2=0.9, epsilon=0.0)
    for step in range(120):
        policy.update(step % 3, [1.0], (0.0, 0.45, 0.9)[step % 3])
    assert [cluster.members.tolist() for cluster in policy.clusters()] == [[0, 1, 2]]
    counts = [policy.explain(user, [[1.0]]).sources[0].users for user in range(3)]
    assert counts == [2, 3, 2]


def test_epsilon_of_rclumb_widens_the_threshold_of_users_without_rounds() -> None:
    policy = locb.RCLUMB(n_users=2, dim=1, epsilon=0.4)
    for count in (1, 5):  # with and without new rows
        policy.add_users(count)
    policy.update(0, [1.0], 1.0)
    widths = policy._state.radius_widths[: policy.n_users]
    assert widths[1:].tolist() == [1.2] * 7
    assert widths[0] == pytest.approx(np.sqrt((1 + np.log(2)) / 2) + 0.2)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("mixed-effects", "population", -1.0), ("mixed-effects", "int_params", 9_999), ("dynucb", "sizes", 1)],
)
def test_inconsistent_arrays_are_refused(kind: str, name: str, value: Any, tmp_path: Path) -> None:
    policy = make(kind)
    array = getattr(policy._state, name)
    array[..., 1 if name == "int_params" else slice(None)] = value
    policy.save(tmp_path / "policy")
    with pytest.raises(ValueError, match=f"array '{name}' is invalid or inconsistent"):
        locb.load(tmp_path / "policy")

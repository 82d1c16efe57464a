"""Rank-one updates and sums that are updated in every round stay exact over a million rounds."""

from typing import Any

import numpy as np
import pytest

import locb
from compiled_calls import call_compiled
from locb.kernels.common.bit_sets import unpack_bits
from locb.kernels.common.linear_algebra import unpack_symmetric
from locb.kernels.locb.state import refresh_sums

ROUNDS = 1_000_000


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("locb", {"n_seeds": 20}),
        ("locb", {"n_seeds": 20, "radius": "ellipsoid"}),  # no cluster becomes final
        ("club", {}),
        ("sclub", {}),
        ("linucb-one", {}),
    ],
)
def test_no_drift_over_a_million_rounds(name: str, parameters: dict[str, Any]) -> None:
    env = locb.Synthetic(n_users=50, n_clusters=4, raw_dim=3, n_arms=4, seed=2)
    policy: Any = locb.make_policy(name, n_users=50, dim=env.dim, **parameters)
    gram, vector = np.zeros((50, env.dim, env.dim)), np.zeros((50, env.dim))
    for block in env.stream(ROUNDS, seed=1):
        chosen = policy.play(block)
        x = block.contexts[np.arange(len(block)), chosen]
        np.add.at(gram, block.users, x[:, :, None] * x[:, None, :])
        np.add.at(vector, block.users, x * block.earned(chosen)[:, None])

    def solve(users: Any) -> np.ndarray:
        inverse = np.linalg.inv(np.eye(env.dim) + gram[users].sum(axis=0))
        return np.concatenate([inverse @ vector[users].sum(axis=0), inverse[np.triu_indices(env.dim)]])

    state = policy._state
    assert policy.served.sum() == ROUNDS
    if name == "linucb-one":
        assert np.abs(state.estimates[0] - solve(range(50))).max() < 1e-8
        return
    exact = np.array([solve([user]) for user in range(50)])
    assert np.abs(state.estimates - exact).max() < 1e-8
    if name == "locb":
        members = unpack_bits(state.members, 50)
        assert np.abs(state.sums - members @ exact).max() < 1e-8
        assert np.array_equal(members.sum(axis=1), state.sizes)
        hashes = [np.bitwise_xor.reduce(state.hash_keys[row]) for row in members]
        assert hashes == state.member_hashes.tolist()
    for cluster in policy.clusters() if name in ("club", "sclub") else []:
        row = state.component[cluster.members[0]] if name == "club" else state.slot[cluster.members[0]]
        assert np.abs(state.cluster_estimates[row] - solve(cluster.members)).max() < 1e-8


@pytest.mark.interpreted
def test_refresh_recomputes_the_sums() -> None:
    policy = locb.LOCB(n_users=70, dim=2, n_seeds=3, gamma=2.0)
    policy.play(locb.Synthetic(n_users=70, n_clusters=2, raw_dim=1, n_arms=2, seed=1).rounds(300, seed=1))
    state = policy._state
    exact = unpack_bits(state.members, 70) @ state.estimates
    state.sums[:] += 1.0
    for s in range(len(state.seeds)):
        call_compiled(refresh_sums)(state, s)
    assert np.abs(state.sums - exact).max() < 1e-12


def test_drift_bounds_hold_after_every_round() -> None:
    """The bounds are tested directly, because an invalid bound would change the choice in a few rounds only."""
    env = locb.Synthetic(n_users=40, n_clusters=3, raw_dim=3, n_arms=4, noise=0.1, seed=3)
    policy = locb.LOCB(n_users=30, dim=4, n_seeds=12, gamma=0.6, bonus="pooled")
    state = policy._state
    state.drift_bound_min_users[0] = 1

    def slack() -> Any:
        state = policy._state
        mean = unpack_symmetric(state.sums[:, 4:] / state.sizes[:, None], 4)
        drift = np.linalg.norm(mean - unpack_symmetric(state.reference[0, 4:], 4), ord=2, axis=(1, 2))
        return state.drift_bound[:-1] + state.drift_bound[-1] / state.sizes - drift

    loosest = 0.0
    rounds = env.rounds(1200, seed=1)
    for t, user in enumerate(rounds.users.tolist()):
        if t == 600:
            policy.add_users(10)
            assert slack().min() >= -1e-12, "after add_users"
        policy.update(user % policy.n_users, rounds.contexts[t, 0], rounds.rewards[t, 0])
        assert slack().min() >= -1e-12, t
        loosest = max(loosest, float(slack().max()))
    assert 0.0 < loosest < 1.0  # bounds grow with each update, and are recomputed periodically
    state = policy._state
    unserved = np.array([int((policy.served[cluster.members] == 0).sum()) for cluster in policy.clusters()])
    assert state.unserved.tolist() == unserved.tolist()
    assert len(set(state.sizes.tolist())) > 2


def test_every_cluster_is_refreshed() -> None:
    """If the sums of all clusters are corrupted, one refresh cycle of 16,384 rounds corrects them all, and no less."""
    env = locb.Synthetic(n_users=70, n_clusters=2, raw_dim=1, n_arms=2, seed=1)
    policy = locb.LOCB(n_users=70, dim=2, n_seeds=30, gamma=2.0)
    state = policy._state

    def count_wrong() -> int:
        return int((np.abs(state.sums - unpack_bits(state.members, 70) @ state.estimates).max(axis=1) > 1e-6).sum())

    state.sums[:] += 1.0
    policy.play(env.rounds(8_192, seed=1))
    assert count_wrong() == 15
    policy.play(env.rounds(8_192, seed=2))
    assert count_wrong() == 0

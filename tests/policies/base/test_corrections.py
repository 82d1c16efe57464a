"""``correct``: the sums equal those of a policy that learned only the new reward.

Clusters after corrections are tested against the reference implementation.
"""

from typing import Any

import numpy as np
import pytest

import locb
from locb.kernels.common.bit_sets import unpack_bits
from locb.kernels.common.linear_algebra import unpack_symmetric
from policies.helpers import CORRECTED, DIM, N, contexts, make, make_rounds, state_of

pytestmark = pytest.mark.filterwarnings("ignore::locb.RewardScaleWarning")  # the scale of the rewards is arbitrary


def statistics(policy: Any) -> tuple[Any, Any]:
    """Return A = I + Σ x xᵀ (n, d, d) and b = Σ r x (n, d) of each user, or of all users with a shared estimate."""
    state, d = policy._state, policy.dim
    if isinstance(policy, locb.ELOC | locb.MixedEffects):
        return np.eye(d) + unpack_symmetric(state.sums[:, d:], d), state.sums[:, :d]
    gram = np.linalg.inv(unpack_symmetric(state.estimates[:, d:].astype(np.float64), d))
    return gram, np.einsum("uab,ub->ua", gram, state.estimates[:, :d])


@pytest.mark.parametrize("kind", CORRECTED)
def test_corrected_sums_equal_those_of_the_correct_rewards(kind: str) -> None:
    corrected, right = make(kind, 0), make(kind, 0)
    rounds, rng = make_rounds(120), np.random.default_rng(1)
    for t, user in enumerate(rounds.users.tolist()):
        x, reward = rounds.contexts[t, 0], float(rounds.rewards[t, 0])
        right.update(user, x, reward)
        corrected.update(user, x, reward + 1.0 if t % 3 == 0 else reward)
    played, served = int(corrected._state.int_params[0]), corrected.served.copy()
    late = np.arange(0, 120, 3)
    rng.shuffle(late)
    for t in late.tolist():
        reward = float(rounds.rewards[t, 0])
        corrected.correct(int(rounds.users[t]), rounds.contexts[t, 0].tolist(), reward + 1.0, reward)
    assert int(corrected._state.int_params[0]) == played
    assert np.array_equal(corrected.served, served)
    near = 1e-4 if kind.endswith("float32") else 1e-9
    for mine, other in zip(statistics(corrected), statistics(right), strict=True):
        assert np.abs(mine - other).max() < near


@pytest.mark.parametrize("kind", CORRECTED)
def test_derived_state_follows_corrections(kind: str) -> None:
    policy = make(kind)
    d, near = policy.dim, 1e-4 if kind.endswith("float32") else 1e-9
    groups = [cluster.members.tolist() for cluster in policy.clusters()]
    for user in range(N):
        policy.correct(user, contexts()[0], 0.0, 0.7)
    state = policy._state
    if isinstance(policy, locb.LOCB):
        assert np.abs(state.sums - unpack_bits(state.members, N) @ state.estimates).max() < near
        assert np.array_equal(state.seed_points[:d], state.estimates[state.seeds, :d].T)
    if isinstance(policy, locb.CLUB | locb.SCLUB):
        names = state.component if isinstance(policy, locb.CLUB) else state.slot
        for cluster in policy.clusters():
            row, total = names[cluster.members[0]], state.sums[cluster.members].sum(axis=0)
            theta = np.linalg.solve(np.eye(d) + unpack_symmetric(total[d:], d), total[:d])
            assert np.abs(state.cluster_sums[row] - total).max() < near
            assert np.abs(state.cluster_estimates[row, :d] - theta).max() < near
    if isinstance(policy, locb.ELOC):
        assert np.abs(state.pooled_sums[-1] - state.sums.sum(axis=0)).max() < 10 * near
        for s, name in enumerate(state.neighbourhood_ids):
            weights = np.where(state.user_neighbourhoods == name, state.weights, 0.0).sum(axis=1)
            assert np.abs(state.pooled_sums[s] - weights @ state.sums).max() < 10 * near
    else:
        assert [cluster.members.tolist() for cluster in policy.clusters()] == groups


def test_unserved_users_cannot_be_corrected() -> None:
    for kind in CORRECTED:
        policy = make(kind, 0)
        before = state_of(policy)
        with pytest.raises(ValueError, match="user 3 has no observations, so there is no reward to correct"):
            policy.correct(3, np.ones(DIM), 1.0, 0.0)
        assert state_of(policy) == before


def test_correction_is_unavailable_with_memory() -> None:
    for memory in (20.0, "auto"):
        policy = make("eloc", memory=memory)
        before = state_of(policy)
        with pytest.raises(ValueError, match=rf"cannot be corrected with memory={memory!r}, .* memory must be None"):
            policy.correct(0, np.ones(DIM), 1.0, 0.0)
        assert state_of(policy) == before

"""``dtype="float32"``: half the memory, and nearly the same choices."""

import numpy as np
import pytest

import locb
from locb.evaluation.confidence_intervals import ci_half_width
from locb.policies.parameters import check_dtype
from policies.helpers import KINDS, make, make_rounds

NAMES = ("linucb-ind", "linucb-one", "club", "sclub", "locb")


@pytest.mark.parametrize("name", NAMES)
def test_regret_is_within_noise_of_float64(name: str) -> None:
    """Over six environments, the mean difference in regret is below 1% and below the 95% margin of the regret."""
    differences, regrets = [], []
    for seed in range(6):
        env = locb.Synthetic(seed=seed)
        double, single = (
            locb.simulate(
                locb.make_policy(name, n_users=100, dim=env.dim, dtype=dtype, seed=seed), env, rounds=20_000, seed=seed
            )
            for dtype in ("float64", "float32")
        )
        differences.append(single.regret[-1] - double.regret[-1])
        regrets.append(double.regret[-1])
        assert np.mean(single.chosen == double.chosen) > 0.98
        assert (
            np.median(np.abs(single.policy.theta - double.policy.theta)) < 1e-5
        )  # one different choice already changes the estimate of a user
    assert abs(np.mean(differences)) < ci_half_width(regrets)
    assert abs(np.mean(differences)) < 0.01 * np.mean(regrets)


@pytest.mark.parametrize("name", NAMES)
def test_float32_halves_the_user_state(name: str) -> None:
    sizes = {}
    for dtype in ("float64", "float32"):
        state = locb.make_policy(name, n_users=50, dim=4, dtype=dtype)._state
        assert state.estimates.dtype == dtype
        sizes[dtype] = state.estimates.nbytes
    assert sizes["float32"] == sizes["float64"] // 2


def test_cluster_sums_do_not_drift() -> None:
    """Sums are float64 and periodically recomputed, regardless of the dtype of the user state."""
    policy = locb.LOCB(n_users=12, dim=3, n_seeds=5, dtype="float32")
    env = locb.Synthetic(n_users=12, n_clusters=2, raw_dim=2, n_arms=4, seed=5)
    for block in env.stream(200_000, seed=2):
        policy.play(block)
    state = policy._state
    clusters = policy.clusters()
    assert len(clusters) == 5
    for s, cluster in enumerate(clusters):
        exact = state.estimates[cluster.members].sum(axis=0, dtype=np.float64)
        assert np.abs(state.sums[s] - exact).max() < 1e-4


def test_certificates_and_new_users() -> None:
    single, double = make("locb-float32"), make("locb")
    for a, b in zip(single.clusters(), double.clusters(), strict=True):
        assert single.certificate(a) == pytest.approx(double.certificate(b), rel=1e-4)
    single.add_users(3)
    assert single._state.estimates.dtype == np.float32
    assert single.play(make_rounds(50)).shape == (50,)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("-float32")])
def test_rewards_too_large_for_float32(kind: str) -> None:
    policy = make(kind)
    before = policy.theta.copy()
    with pytest.raises(ValueError, match="reward must be between -1e.30 and 1e.30, not 1e.31"):
        policy.update(0, [0.1, 0.2, 0.3], 1e31)
    rounds = make_rounds(5)
    rounds.rewards[2, 1] = 1e40
    with pytest.raises(ValueError, match=r"rewards\[2, 1\] is 1e.40"):
        policy.play(rounds)
    assert np.array_equal(policy.theta, before)


def test_check_dtype() -> None:
    for given in ("float32", np.float32, np.dtype("float32")):
        assert check_dtype(given) == "float32"
    for wrong in ("float16", int, None, 32, np.dtype("int64")):
        with pytest.raises(ValueError, match="dtype must be 'float64' or 'float32', not"):
            check_dtype(wrong)

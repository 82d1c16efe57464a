"""Half of the memory for the same choices: what users' numbers are kept in."""

import numpy as np
import pytest

import locb
from locb.evaluation.results import ci_half_width
from locb.policies.base.validation import check_dtype
from policies.helpers import KINDS, make, world

NAMES = ("linucb-ind", "linucb-one", "club", "sclub", "locb")


@pytest.mark.parametrize("name", NAMES)
def test_regret_is_within_noise_of_float64(name: str) -> None:
    """Paired over six of the default worlds; the noise is that between worlds."""
    gaps, usual = [], []
    for seed in range(6):
        env = locb.Synthetic(seed=seed)
        int_params, half = (
            locb.simulate(
                locb.make_policy(name, n_users=100, dim=env.dim, dtype=dtype, seed=seed), env, rounds=20_000, seed=seed
            )
            for dtype in ("float64", "float32")
        )
        gaps.append(half.regret[-1] - int_params.regret[-1])
        usual.append(int_params.regret[-1])
        assert np.mean(half.chosen == int_params.chosen) > 0.98
        assert np.median(np.abs(half.policy.theta - int_params.policy.theta)) < 1e-5  # one other choice moves a user
    assert abs(np.mean(gaps)) < ci_half_width(usual)
    assert abs(np.mean(gaps)) < 0.01 * np.mean(usual)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_for_users_takes_half(name: str) -> None:
    sizes = {}
    for dtype in ("float64", "float32"):
        state = locb.make_policy(name, n_users=50, dim=4, dtype=dtype)._state
        assert state.estimates.dtype == dtype
        sizes[dtype] = state.estimates.nbytes
    assert sizes["float32"] == sizes["float64"] // 2


def test_the_sums_of_sets_do_not_drift() -> None:
    """They are kept in float64 and added up anew now and then, whatever the users' numbers are kept in."""
    policy = locb.LOCB(n_users=12, dim=3, n_seeds=5, dtype="float32")
    env = locb.Synthetic(n_users=12, n_clusters=2, raw_dim=2, n_arms=4, seed=5)
    for block in env.stream(200_000, seed=2):
        policy.play(block)
    state = policy._state
    for s, cluster in enumerate(policy.clusters()):
        exact = state.estimates[cluster.members].sum(axis=0, dtype=np.float64)
        assert np.abs(state.sums[s] - exact).max() < 1e-4


def test_certificates_and_newcomers() -> None:
    half, int_params = make("locb-float32"), make("locb")
    for a, b in zip(half.clusters(), int_params.clusters(), strict=True):
        assert half.certificate(a) == pytest.approx(int_params.certificate(b), rel=1e-4)
    half.add_users(3)
    assert half._state.estimates.dtype == np.float32
    assert half.play(world(50)).shape == (50,)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("-float32")])
def test_rewards_beyond_what_float32_squares_are_refused(kind: str) -> None:
    policy = make(kind)
    before = policy.theta.copy()
    with pytest.raises(ValueError, match="reward must be between -1e.30 and 1e.30, not 1e.31"):
        policy.update(0, [0.1, 0.2, 0.3], 1e31)
    rounds = world(5)
    rounds.rewards[2, 1] = 1e40
    with pytest.raises(ValueError, match=r"rewards\[2, 1\] is 1e.40"):
        policy.play(rounds)
    assert np.array_equal(policy.theta, before)


def test_names_of_types() -> None:
    for given in ("float32", np.float32, np.dtype("float32")):
        assert check_dtype(given) == "float32"
    for wrong in ("float16", int, None, 32, np.dtype("int64")):
        with pytest.raises(ValueError, match="dtype must be 'float64' or 'float32', not"):
            check_dtype(wrong)

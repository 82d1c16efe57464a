import numpy as np
import pytest

import locb


def test_a_run_is_the_play_of_the_rounds() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    run = locb.simulate(locb.LOCB(n_users=10, dim=env.dim), env, rounds=5000, seed=1)
    rounds = env.rounds(5000, seed=1)
    chosen = locb.LOCB(n_users=10, dim=env.dim).play(rounds)
    assert np.array_equal(run.chosen, chosen)
    assert np.allclose(run.regret, np.cumsum(rounds.regret(chosen)))
    assert np.array_equal(run.rewards, rounds.earned(chosen))
    assert run.seconds > 0
    assert run.policy.served.sum() == 5000


def test_progress_is_told() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    told: list[int] = []
    locb.simulate(locb.LinUCB(n_users=10, dim=env.dim), env, rounds=5000, progress=told.append)
    assert told == [4096, 5000]


def test_bad_input_is_named() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    policy = locb.LinUCB(n_users=10, dim=env.dim)
    with pytest.raises(ValueError, match=r"rounds must be a whole number of at least 0, not 1000\.0"):
        locb.simulate(policy, env, rounds=1e3)
    with pytest.raises(ValueError, match=r"policy must be a locb\.Policy, not <class"):
        locb.simulate(locb.LOCB, env, rounds=10)
    with pytest.raises(ValueError, match=r"env must be a locb\.Environment"):
        locb.simulate(policy, env.rounds(5), rounds=10)

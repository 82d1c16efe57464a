import numpy as np
import pytest

import locb
from locb.experiments.simulate import pieces


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


@pytest.mark.parametrize("name", list(locb.POLICIES))
def test_a_look_on_the_way_changes_no_choice(name: str) -> None:
    env = locb.Synthetic(n_users=12, n_clusters=3, seed=7)
    make = {"n_users": 12, "dim": env.dim, "seed": 3}
    whole = locb.simulate(locb.make_policy(name, **make), env, rounds=5000, seed=1)
    policy = locb.make_policy(name, **make)
    looks: list[tuple[int, int]] = []
    stops = [1, 2, 700, 4096, 4097, 5000]
    run = locb.simulate(
        policy,
        env,
        rounds=5000,
        seed=1,
        stops=stops,
        at_stop=lambda: looks.append((int(policy.served.sum()), len(policy.clusters()))),
    )
    assert [played for played, _ in looks] == stops
    assert np.array_equal(run.chosen, whole.chosen)
    assert np.array_equal(run.regret, whole.regret)
    assert np.array_equal(policy.theta, whole.policy.theta)


def test_rounds_are_cut_after_each_stop() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    cut = list(pieces(env.stream(9000, seed=1), [3, 4096, 5000, 9000]))
    assert [len(piece) for piece in cut] == [3, 4093, 904, 3192, 808]
    whole = env.rounds(9000, seed=1)
    for name in ("users", "contexts", "rewards", "means"):
        assert np.array_equal(np.concatenate([getattr(piece, name) for piece in cut]), getattr(whole, name))


def test_bad_input_is_named() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    policy = locb.LinUCB(n_users=10, dim=env.dim)
    with pytest.raises(ValueError, match=r"rounds must be a whole number of at least 0, not 1000\.0"):
        locb.simulate(policy, env, rounds=1e3)
    for stops in ([0], [5, 5], [7, 3], [11]):
        with pytest.raises(ValueError, match="stops must ascend from 1 to at most 10, not"):
            locb.simulate(policy, env, rounds=10, stops=stops)
    with pytest.raises(ValueError, match=r"policy must be a locb\.Policy, not <class"):
        locb.simulate(locb.LOCB, env, rounds=10)
    with pytest.raises(ValueError, match=r"env must be a locb\.Environment"):
        locb.simulate(policy, env.rounds(5), rounds=10)

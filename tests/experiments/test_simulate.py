"""Simulation of one policy."""

import numpy as np
import pytest

import locb
from locb.experiments.simulate import split_rounds


def test_run_matches_play() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    run = locb.simulate(locb.LOCB(n_users=10, dim=env.dim), env, rounds=5000, seed=1)
    rounds = env.rounds(5000, seed=1)
    chosen = locb.LOCB(n_users=10, dim=env.dim).play(rounds)
    assert np.array_equal(run.chosen, chosen)
    assert np.allclose(run.regret, np.cumsum(rounds.regret(chosen)))
    assert np.array_equal(run.rewards, rounds.earned(chosen))
    assert run.seconds > 0
    assert run.policy.served.sum() == 5000


class Rescaled(locb.Synthetic):
    """A synthetic environment with rewards 64 r − 40, which a computer maps back exactly."""

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> locb.Rounds:
        drawn = super().draw_at(rng, count, start)
        return locb.Rounds(drawn.users, drawn.contexts, 64.0 * drawn.rewards - 40.0, 64.0 * drawn.means - 40.0)


@pytest.mark.parametrize("name", list(locb.POLICIES))
def test_regret_is_in_the_units_of_the_environment(name: str) -> None:
    settings = {"n_users": 12, "n_clusters": 3, "seed": 7}
    env, rescaled = locb.Synthetic(**settings), Rescaled(**settings)
    plain = locb.simulate(locb.make_policy(name, n_users=12, dim=env.dim), env, rounds=5000, seed=1)
    ranged_policy = locb.make_policy(name, n_users=12, dim=env.dim, reward_range=(-40, 24))
    ranged = locb.simulate(ranged_policy, rescaled, rounds=5000, seed=1)
    assert np.array_equal(ranged.chosen, plain.chosen)
    assert np.allclose(ranged.regret, 64.0 * plain.regret)
    assert np.array_equal(ranged.rewards, 64.0 * plain.rewards - 40.0)


def test_progress_is_reported() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    reported: list[int] = []
    locb.simulate(locb.LinUCB(n_users=10, dim=env.dim), env, rounds=5000, progress=reported.append)
    assert reported == [4096, 5000]


@pytest.mark.parametrize("name", list(locb.POLICIES))
def test_inspection_changes_no_choice(name: str) -> None:
    env = locb.Synthetic(n_users=12, n_clusters=3, seed=7)
    make = {"n_users": 12, "dim": env.dim, "seed": 3}
    whole = locb.simulate(locb.make_policy(name, **make), env, rounds=5000, seed=1)
    policy = locb.make_policy(name, **make)
    inspected: list[tuple[int, int]] = []
    checkpoints = [1, 2, 700, 4096, 4097, 5000]
    run = locb.simulate(
        policy,
        env,
        rounds=5000,
        seed=1,
        checkpoints=checkpoints,
        at_checkpoint=lambda: inspected.append((int(policy.served.sum()), len(policy.clusters()))),
    )
    assert [played for played, _ in inspected] == checkpoints
    assert np.array_equal(run.chosen, whole.chosen)
    assert np.array_equal(run.regret, whole.regret)
    assert np.array_equal(policy.theta, whole.policy.theta)


def test_rounds_are_split_at_checkpoints() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    pieces = list(split_rounds(env.stream(9000, seed=1), [3, 4096, 5000, 9000]))
    assert [len(piece) for piece in pieces] == [3, 4093, 904, 3192, 808]
    whole = env.rounds(9000, seed=1)
    for name in ("users", "contexts", "rewards", "means"):
        assert np.array_equal(np.concatenate([getattr(piece, name) for piece in pieces]), getattr(whole, name))


def test_invalid_arguments() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    policy = locb.LinUCB(n_users=10, dim=env.dim)
    with pytest.raises(ValueError, match=r"rounds must be an integer of at least 0, not 1000\.0"):
        locb.simulate(policy, env, rounds=1e3)
    for checkpoints in ([0], [5, 5], [7, 3], [11]):
        with pytest.raises(
            ValueError, match="checkpoints must be strictly ascending integers from 1 to 10, the number of rounds, not"
        ):
            locb.simulate(policy, env, rounds=10, checkpoints=checkpoints)
    with pytest.raises(ValueError, match=r"policy must be a locb\.Policy or the name of one, not <class"):
        locb.simulate(locb.LOCB, env, rounds=10)
    with pytest.raises(ValueError, match=r"env must be a locb\.Environment"):
        locb.simulate(policy, env.rounds(5), rounds=10)


def test_policy_can_be_a_name() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    run = locb.simulate("locb", env, rounds=500, seed=1)
    expected = locb.simulate(locb.LOCB(n_users=10, dim=env.dim), env, rounds=500, seed=1)
    assert run.chosen.tolist() == expected.chosen.tolist()
    assert isinstance(run.policy, locb.LOCB)
    with pytest.raises(ValueError, match="unknown policy 'thompson'; choose from locb, eloc"):
        locb.simulate("thompson", env, rounds=5)
    with pytest.raises(
        ValueError, match=r"policy must be a locb.Policy or the name of one, not <class 'locb\..*LOCB'>"
    ):
        locb.simulate(locb.LOCB, env, rounds=5)
    with pytest.raises(ValueError, match="env must be a locb.Environment, not 'hierarchy'"):
        locb.simulate("locb", "hierarchy", rounds=5)

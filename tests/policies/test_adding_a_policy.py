"""A new policy needs only one file and one registry entry: all parts of the package then support it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import locb
from commandline import call
from locb.policies import PolicySpec, describe_parameters, make_policy, parameter_table, register_policy
from locb.policies.base.capabilities import SupportsCorrection, SupportsExplain, SupportsNewUsers, SupportsSnapshot
from locb.policies.registry import REGISTRY, CostClass
from policies.helpers import make_rounds, state_of
from policies.toy_policy import Toy


@pytest.fixture(autouse=True)
def _toy() -> Iterator[None]:
    register_policy(PolicySpec("toy", Toy, "Toy", overlapping=False, cost_class=CostClass.LIGHT))
    yield
    del REGISTRY["toy"]


def test_policy_plays_and_learns() -> None:
    rounds = make_rounds(200)
    policy, step_by_step = make_policy("toy", n_users=12, dim=3), Toy(n_users=12, dim=3)
    chosen = policy.play(rounds)
    for t, user in enumerate(rounds.users.tolist()):
        assert step_by_step.recommend(user, rounds.contexts[t]) == chosen[t]
        step_by_step.update(user, rounds.contexts[t, chosen[t]], rounds.rewards[t, chosen[t]])
    assert state_of(policy) == state_of(step_by_step)


def test_policy_can_be_simulated_and_compared() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, n_arms=4, seed=1)
    run = locb.simulate(make_policy("toy", n_users=10, dim=env.dim), env, rounds=200, seed=1)
    assert run.regret.shape == (200,)
    result = locb.compare(["toy", "linucb-ind"], rounds=200, repeats=1, jobs=1)
    assert [entry.policy for entry in result.results] == ["toy", "linucb-ind"]


def test_policy_has_the_capabilities_that_it_defines() -> None:
    policy = make_policy("toy", n_users=2, dim=2)
    assert isinstance(policy, SupportsNewUsers)
    assert isinstance(policy, SupportsSnapshot)
    assert not isinstance(policy, SupportsExplain)
    assert not isinstance(policy, SupportsCorrection)


def test_policy_can_be_saved_and_loaded(tmp_path: Path) -> None:
    policy = Toy(n_users=12, dim=3, optimism=0.25, dtype="float32")
    policy.play(make_rounds(100))
    policy.add_users(2)
    policy.save(tmp_path / "toy")
    loaded = locb.load(tmp_path / "toy")
    assert repr(loaded) == repr(policy) == "Toy(n_users=14, dim=3, optimism=0.25, dtype='float32')"
    assert state_of(loaded) == state_of(policy)
    assert np.array_equal(loaded.play(make_rounds(100, seed=2)), policy.play(make_rounds(100, seed=2)))


def test_service_accepts_the_policy() -> None:
    pytest.importorskip("starlette")
    from locb.service.core.model import new_model, warm_up

    model = new_model("toy", 4, {"optimism": 0.1})
    assert model.parameters == {"optimism": 0.1}
    assert model.build().get_params()["optimism"] == 0.1
    warm_up(model)
    with pytest.raises(ValueError, match="speed: policy 'toy' has no such parameter"):
        new_model("toy", 4, {"speed": 3})
    with pytest.raises(ValueError, match="optimism must be at least 0, not -1"):
        new_model("toy", 4, {"optimism": -1})


@pytest.mark.parametrize("command", ["compare", "serve"])
def test_command_line_lists_the_policy(command: str, tmp_path: Path) -> None:
    shown = call(command, "--help", cwd=tmp_path).stdout
    assert "toy (Toy)" in shown
    assert ("optimism (float, default 0.5; ≥ 0): Score of a feature that no user has seen." in shown) == (
        command == "serve"
    )


def test_parameters_are_documented() -> None:
    line = "optimism (float, default 0.5; ≥ 0): Score of a feature that no user has seen."
    assert line in describe_parameters("toy").splitlines()
    row = "| `optimism` | float | `0.5` | ≥ 0 | Score of a feature that no user has seen. |"
    assert row in parameter_table(Toy).splitlines()
    assert "optimism : float, default=0.5\n    Score of a feature that no user has seen. Must be ≥ 0." in (
        Toy.__doc__ or ""
    )

"""Calls through handles, which contain the addresses of arrays: no call reads or writes memory of other arrays."""

import copy
import gc
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from locb.kernels.common import handles
from locb.policies.base import compiled
from policies.helpers import ARMS, DIM, N, contexts, make, make_rounds, state_of

JIT_OFF = os.environ.get("NUMBA_DISABLE_JIT") == "1"
KINDS = ["linucb-ind", "club", "club-random", "sclub", "locb", "locb-pooled", "eloc", "locb-float32", "eloc-float32"]


def step(policy: Any, rounds: locb.Rounds, t: int, n_arms: int = ARMS) -> int:
    user, offered = int(rounds.users[t]), rounds.contexts[t, :n_arms]
    arm: int = policy.recommend(user, offered)
    policy.update(user, offered[arm], float(rounds.rewards[t, arm]))
    return arm


def scratch_arrays(policy: Any) -> list[Any]:
    return list(handles._arrays(policy._handle.scratch))


def overwrite_free_memory() -> None:
    """Reuse freed memory, so that an address of a freed array leads to other values."""
    gc.collect()
    blocks = [np.full(size, np.nan) for size in (1, 5, 12, 60, 150, 800) for _ in range(200)]
    del blocks


def saved_and_loaded(policy: Any, folder: Path) -> Any:
    policy.save(folder / "policy")
    return locb.load(folder / "policy")


COPIES: dict[str, Callable[[Any, Path], Any]] = {
    "copy": lambda policy, _: copy.copy(policy),
    "deepcopy": lambda policy, _: copy.deepcopy(policy),
    "pickle": lambda policy, _: pickle.loads(pickle.dumps(policy)),
    "load": saved_and_loaded,
}


@pytest.mark.parametrize("kind", KINDS)
def test_reused_scratch_gives_the_results_of_new_scratch(kind: str) -> None:
    reused, fresh, rounds = make(kind, 100), make(kind, 100), make_rounds(200, seed=2)
    for t in range(len(rounds)):
        user, offered = int(rounds.users[t]), rounds.contexts[t, : 1 + t % ARMS]
        fresh._discard_handles()
        arm = fresh.recommend(user, offered)
        assert reused.recommend(user, offered) == arm
        for policy in (reused, fresh):  # changes of the state between the two calls
            if t % 50 == 20:
                policy.add_users(3)
            elif t % 50 == 30:
                policy.correct(user, offered[arm], float(rounds.rewards[t, arm]), 0.5)
            elif t % 50 == 40:
                policy.update(user, offered[0], 1.0)
            elif t % 50 == 45:
                policy.learn([user, 0], offered[[0, 0]], [0.0, 1.0])
        if t % 50 == 48:
            with pytest.raises(ValueError, match="contexts must be finite"):
                reused.recommend(user, np.full((ARMS, DIM), np.nan))
        fresh._discard_handles()
        for policy in (reused, fresh):
            policy.update(user, offered[arm], float(rounds.rewards[t, arm]))
    assert state_of(reused) == state_of(fresh)


@pytest.mark.skipif(JIT_OFF, reason="kernels are not compiled")
@pytest.mark.parametrize("kind", ["locb", "eloc"])
def test_the_first_recommendation_compiles_a_smaller_function(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If ``run_rounds`` is not in the cache. The arms and the scratch are those of ``run_rounds``, to the last bit."""
    usual, first, rounds = make(kind, 100), make(kind, 100), make_rounds(100, seed=2)
    norms = np.linalg.norm(rounds.contexts, axis=2, keepdims=True)
    offered = rounds.contexts / norms  # of new users, all arms then have the same score, except for rounding
    for policy in (usual, first):
        policy.add_users(20)
    users = np.arange(100) % usual.n_users
    usual.recommend(0, offered[0])
    monkeypatch.setattr(handles, "is_compiled", lambda *_: False)
    arms = [policy.recommend_many(users, offered).tolist() for policy in (usual, first)]
    assert arms[0] == arms[1]
    for array in [*scratch_arrays(usual), *scratch_arrays(first)]:
        array[...] = 0  # entries that are not used contain any values
    for user, contexts_of_user in zip(users.tolist(), offered, strict=True):
        assert usual.recommend(user, contexts_of_user) == first.recommend(user, contexts_of_user)
        for array, other in zip(scratch_arrays(usual), scratch_arrays(first), strict=True):
            assert array.tobytes() == other.tobytes()
    assert [policy._handle._table[handles.RUNNER] != 0 for policy in (usual, first)] == [True, False]
    for policy in (usual, first):
        policy.update(0, offered[0, 0], 1.0)
    assert first._handle._table[handles.RUNNER] == first._handle._table[handles.CHOOSER] != 0
    assert state_of(usual) == state_of(first)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_is_independent_and_outlives_the_original(kind: str, way: str, tmp_path: Path) -> None:
    original, expected, rounds = make(kind, 50), make(kind, 50), make_rounds(40, seed=2)
    step(original, rounds, 0)
    step(expected, rounds, 0)
    copied = COPIES[way](original, tmp_path)
    before = state_of(original)
    arms = [step(copied, rounds, t) for t in range(1, 20)]
    assert state_of(original) == before
    del original
    overwrite_free_memory()
    arms += [step(copied, rounds, t) for t in range(20, 40)]
    assert arms == [step(expected, rounds, t) for t in range(1, 40)]
    assert state_of(copied).keys() == state_of(expected).keys()
    assert copied.served.tolist() == expected.served.tolist()
    assert copied.theta.tobytes() == expected.theta.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_calls_use_new_arrays_after_growth_and_after_an_assignment_of_the_state(kind: str) -> None:
    policy, rounds = make(kind, 50), make_rounds(40, seed=2)
    step(policy, rounds, 0)
    old = policy._state
    policy.add_users(100)
    before = [array.copy() for array in old]
    policy.update(N + 99, contexts()[0], 1.0)
    assert policy.served[N + 99] == 1
    replaced = policy._state
    policy._state = replaced._replace(**{name: array.copy() for name, array in replaced._asdict().items()})
    served = replaced.served.copy()
    policy.update(0, contexts()[0], 1.0)
    assert np.array_equal(replaced.served, served)
    assert policy.served[0] == served[0] + 1
    if not np.shares_memory(old.served, replaced.served):
        assert np.array_equal(old.served, before[old._fields.index("served")])


def test_a_handle_cannot_be_copied() -> None:
    policy = make("linucb-ind")
    for copy_it in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            copy_it(policy._handle)


def test_contexts_in_any_memory_layout_are_read_correctly() -> None:
    policy, base = make("linucb-ind"), np.random.default_rng(0).standard_normal((2 * ARMS, 2 * DIM))
    unaligned = np.frombuffer(b"x" + base.tobytes(), np.float64, offset=1).reshape(base.shape)
    layouts = {
        "rows": base[::2, :DIM],
        "reversed": base[::-1, :DIM],
        "columns": base[:, ::2],
        "Fortran": np.asfortranarray(base[:, :DIM]),
        "one row": base[:1, ::2],
        "unaligned": unaligned.reshape(-1, DIM),
        "byte order": base.reshape(-1, DIM).astype(">f8"),
        "float32": base.reshape(-1, DIM).astype(np.float32),
        "integers": (10 * base.reshape(-1, DIM)).astype(np.int64),
        "masked": np.ma.masked_array(base.reshape(-1, DIM)),
        "list": base.reshape(-1, DIM).tolist(),
    }
    for name, offered in layouts.items():
        plain = np.array(offered, np.float64, order="C")
        plain.flags.writeable = False
        expected = policy.explain(3, plain.copy()).arm
        assert policy.recommend(3, offered) == policy.recommend(3, plain) == expected, name
        one, other = copy.deepcopy(policy), copy.deepcopy(policy)
        one.update(3, offered[0], 1.0)
        other.update(3, np.array(plain[0]), 1.0)
        assert state_of(one) == state_of(other), name


@pytest.mark.parametrize("kind", ["linucb-ind", "eloc"])
def test_invalid_arguments_of_a_used_handle_are_refused_and_change_nothing(kind: str) -> None:
    policy, good = make(kind), contexts()
    policy.update(0, good[policy.recommend(0, good)], 1.0)
    before = state_of(policy)
    bad = good.copy()
    bad[1, 1] = np.nan
    for user, offered, message in (
        (N, good, f"user must be from 0 to {N - 1}, not {N}"),
        (-1, good, f"user must be from 0 to {N - 1}, not -1"),
        (0, good[:0], "contexts must have at least one row"),
        (0, good[:, :2], r"contexts must have shape \(any, 3\), not \(4, 2\)"),
        (0, good[None], r"contexts must have shape \(any, 3\), not \(1, 4, 3\)"),
        (0, good[0], r"contexts must have shape \(any, 3\), not \(3,\)"),
        (0, bad, r"contexts must be finite .*, but contexts\[1, 1\] is nan"),
    ):
        with pytest.raises(ValueError, match=message):
            policy.recommend(user, offered)
    for user, context, reward, message in (
        (N, good[0], 1.0, f"user must be from 0 to {N - 1}, not {N}"),
        (0, good[0, :2], 1.0, r"context must have shape \(3\), not \(2,\)"),
        (0, good, 1.0, r"context must have shape \(3\), not \(4, 3\)"),
        (0, bad[1], 1.0, r"context must be finite .*, but context\[1\] is nan"),
        (0, good[0], np.nan, r"reward must be between .*, not nan"),
        (0, good[0], 1e101, r"reward must be between .*, not 1e\+101"),
    ):
        with pytest.raises(ValueError, match=message):
            policy.update(user, context, reward)
    assert state_of(policy) == before


def test_large_scratch_is_kept_for_one_number_of_arms_only(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make("locb", 0)
    for n_arms in (1, 2, 3):
        policy.recommend(0, contexts()[:n_arms])
    assert sorted(policy._handles) == [1, 2, 3]
    monkeypatch.setattr(compiled, "MAX_SCRATCH_BYTES", 0)
    policy.recommend(0, contexts())
    assert list(policy._handles) == [ARMS]
    assert policy.recommend(0, contexts()[:2]) == make("locb", 0).recommend(0, contexts()[:2])

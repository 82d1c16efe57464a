"""Invalid input raises a ValueError that names the argument and changes no learned state."""

from typing import Any

import numpy as np
import pytest

import locb
from policies.helpers import ARMS, CORRECTED, DIM, KINDS, N, contexts, make, make_rounds, state_of

pytestmark = pytest.mark.interpreted
NAN, INF = float("nan"), float("inf")


def contexts_with(index: tuple[int, ...], value: float) -> np.ndarray:
    array = contexts()
    array[index] = value
    return array


def rounds_with_invalid_user() -> locb.Rounds:
    rounds = locb.Rounds([0, 1], np.ones((2, 1, DIM)), np.ones((2, 1)))
    rounds.users[0] = -(10**9)
    return rounds


CALLS: list[tuple[str, Any, str]] = [
    ("recommend: user too high", lambda p: p.recommend(N, contexts()), rf"user must be from 0 to {N - 1}, not {N}"),
    ("recommend: negative user", lambda p: p.recommend(-1, contexts()), "user must be from 0 .* not -1"),
    ("recommend: fractional user", lambda p: p.recommend(1.5, contexts()), "user must be an integer, not 1.5"),
    ("recommend: user as text", lambda p: p.recommend("1", contexts()), "user must be an integer, not '1'"),
    ("recommend: wrong width", lambda p: p.recommend(0, np.ones((ARMS, DIM + 1))), r"contexts .* not \(4, 4\)"),
    ("recommend: one context", lambda p: p.recommend(0, np.ones(DIM)), r"contexts must have shape \(any, 3\)"),
    (
        "recommend: no arms",
        lambda p: p.recommend(0, np.ones((0, DIM))),
        "contexts must have at least one row .arm., not 0",
    ),
    ("recommend: text", lambda p: p.recommend(0, [["a", "b", "c"]]), "contexts must be an array of numbers"),
    ("recommend: NaN", lambda p: p.recommend(0, contexts_with((2, 1), NAN)), r"contexts\[2, 1\] is nan"),
    ("recommend: infinite", lambda p: p.recommend(0, contexts_with((0, 2), -INF)), r"contexts\[0, 2\] is -inf"),
    (
        "recommend: huge",
        lambda p: p.recommend(0, contexts_with((3, 0), 1e7)),
        r"at most 1e\+06 in absolute value, but contexts\[3, 0\] is 10000000\.0",
    ),
    ("update: reward of many digits", lambda p: p.update(0, contexts()[0], 10**400), "reward must be a number"),
    ("update: user too high", lambda p: p.update(N, contexts()[0], 1.0), f"user must be from 0 .* not {N}"),
    ("update: wrong width", lambda p: p.update(0, np.ones(DIM + 1), 1.0), r"context must have shape \(3\), not \(4,\)"),
    ("update: all contexts", lambda p: p.update(0, contexts(), 1.0), r"context must have shape \(3\), not \(4, 3\)"),
    ("update: NaN", lambda p: p.update(0, contexts_with((1, 1), NAN)[1], 1.0), r"context\[1\] is nan"),
    ("update: reward NaN", lambda p: p.update(0, contexts()[0], NAN), "reward must be between .* not nan"),
    ("update: reward infinite", lambda p: p.update(0, contexts()[0], INF), "reward must be between .* not inf"),
    ("update: reward as text", lambda p: p.update(0, contexts()[0], "good"), "reward must be a number, not 'good'"),
    ("update: reward as digits", lambda p: p.update(0, contexts()[0], "1"), "reward must be a number, not '1'"),
    ("correct: user too high", lambda p: p.correct(N, contexts()[0], 1.0, 0.0), f"user must be from 0 .* not {N}"),
    ("correct: wrong width", lambda p: p.correct(0, np.ones(DIM + 1), 1.0, 0.0), r"context must have shape \(3\)"),
    ("correct: NaN", lambda p: p.correct(0, contexts_with((1, 1), NAN)[1], 1.0, 0.0), r"context\[1\] is nan"),
    ("correct: learned NaN", lambda p: p.correct(0, contexts()[0], NAN, 0.0), "learned must be between .* not nan"),
    ("correct: reward infinite", lambda p: p.correct(0, contexts()[0], 1.0, INF), "reward must be between .* not inf"),
    (
        "correct: reward as text",
        lambda p: p.correct(0, contexts()[0], 1.0, "good"),
        "reward must be a number, not 'good'",
    ),
    ("explain: user too high", lambda p: p.explain(N, contexts()), rf"user must be from 0 to {N - 1}, not {N}"),
    ("explain: no arms", lambda p: p.explain(0, np.ones((0, DIM))), "contexts must have at least one row .arm., not 0"),
    ("explain: NaN", lambda p: p.explain(0, contexts_with((2, 1), NAN)), r"contexts\[2, 1\] is nan"),
    ("memberships: user", lambda p: p.memberships(-3), "user must be from 0 .* not -3"),
    ("certificate: empty cluster", lambda p: p.certificate([]), "cluster must contain at least one user"),
    ("recommend: complex", lambda p: p.recommend(0, contexts() * 1j), "contexts must be an array of numbers"),
    ("play: no rounds", lambda p: p.play([1, 2]), "rounds must be locb.Rounds, not list"),
    (
        "play: user too high",
        lambda p: p.play(locb.Rounds([0, N], np.ones((2, 1, DIM)), np.ones((2, 1)))),
        rf"users must be from 0 to {N - 1}, but users\[1\] is {N}",
    ),
    ("play: users changed later", lambda p: p.play(rounds_with_invalid_user()), r"users\[0\] is -1000000000"),
    (
        "play: wrong width",
        lambda p: p.play(locb.Rounds([0], np.ones((1, 1, DIM + 2)), np.ones((1, 1)))),
        "contexts must have 3 features, the dim of the policy, not 5",
    ),
    ("add_users: negative", lambda p: p.add_users(-1), "count must be at least 0, not -1"),
    ("similar_users: user", lambda p: p.similar_users(N), f"user must be from 0 .* not {N}"),
    ("similar_users: limit", lambda p: p.similar_users(0, limit=-1), "limit must be at least 0, not -1"),
    ("clusters_of: user", lambda p: p.clusters_of(-3), "user must be from 0 .* not -3"),
    (
        "certificate: user",
        lambda p: p.certificate([0, N]),
        f"cluster must contain users from 0 to {N - 1}, not 0 to {N}",
    ),
    ("certificate: delta", lambda p: p.certificate([0, 1], delta=0.0), "delta must be strictly between 0 and 1"),
    ("certificate: sigma", lambda p: p.certificate([0, 1], sigma=-1), "sigma must be at least 0, not -1"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_invalid_calls_change_nothing(kind: str) -> None:
    policy = make(kind)
    before = state_of(policy)
    for title, call, message in CALLS:
        if title.startswith("correct") and kind not in CORRECTED:
            continue
        with pytest.raises(ValueError, match=message):
            call(policy)
        assert state_of(policy) == before, title


@pytest.mark.parametrize("kind", KINDS)
def test_recommend_changes_no_learned_state(kind: str) -> None:
    policy = make(kind)
    before = state_of(policy)
    for user in range(N):
        policy.recommend(user, contexts(user))
    after = state_of(policy)
    for name in before.keys() - {"generator"}:  # random ties use this generator
        assert after[name] == before[name]


@pytest.mark.parametrize("kind", KINDS)
def test_array_likes_are_converted(kind: str) -> None:
    plain, loose = make(kind, 0), make(kind, 0)
    rounds = make_rounds(40)
    for t, user in enumerate(rounds.users.tolist()):
        arms = rounds.contexts[t]
        arm = plain.recommend(user, arms)
        read_only = arms.copy()
        read_only.flags.writeable = False
        assert loose.recommend(np.int32(user), [arms.tolist(), read_only, np.asfortranarray(arms)][t % 3]) == arm
        plain.update(user, arms[arm], rounds.rewards[t, arm])
        loose.update(np.int64(user), arms[arm].tolist(), int(rounds.rewards[t, arm]))
    assert state_of(plain) == state_of(loose)


BAD_PARAMETERS: list[tuple[str, dict[str, Any], str]] = [
    ("locb", {"n_users": 0}, "n_users must be at least 1, not 0"),
    ("locb", {"dim": 0}, "dim must be at least 1, not 0"),
    ("locb", {"n_users": 2.5}, "n_users must be an integer, not 2.5"),
    ("locb", {"gamma": 0.0}, "gamma must be above 0, not 0.0"),
    ("locb", {"gamma": NAN}, "gamma must be strictly between .* not nan"),
    ("locb", {"gamma": "wide"}, "gamma must be a number, not 'wide'"),
    ("locb", {"delta": 1.0}, "delta must be strictly between 0 and 1, not 1.0"),
    ("locb", {"tau": -1}, "tau must be above 0, not -1.0"),
    ("locb", {"sigma": -0.5}, "sigma must be at least 0, not -0.5"),
    ("locb", {"alpha": INF}, "alpha must be between 0 .* not inf"),
    ("locb", {"n_seeds": N + 1}, f"n_seeds must be at most n_users = {N}, not {N + 1}"),
    ("locb", {"n_seeds": 0}, "n_seeds must be at least 1, not 0"),
    ("locb", {"seeds": [1, 2, 1]}, r"seeds must be different users, but \[1\] appear more than once"),
    ("locb", {"seeds": [N]}, f"seeds must be from 0 to {N - 1}, not {N}"),
    ("locb", {"seeds": []}, "seeds must contain at least one user"),
    ("locb", {"seeds": 3}, r"seeds must be a list of users \(integers\), not 3"),
    ("locb", {"seeds": [1], "n_seeds": 2}, "n_seeds must be None if seeds is given, not 2"),
    ("locb", {"radius": "big"}, "radius must be one of 'regret', 'clustering', 'theory', 'ellipsoid', not 'big'"),
    ("locb", {"radius": "theory"}, "min_eigenvalue must be a number above 0 with radius='theory', not None"),
    ("locb", {"radius": "theory", "min_eigenvalue": 0}, "min_eigenvalue must be above 0, not 0.0"),
    ("locb", {"stop": "never"}, "stop must be one of 'radius', 'certificate', 'published', not 'never'"),
    ("locb", {"stop": "certificate"}, "radius must be 'ellipsoid' with stop='certificate', not 'regret'"),
    ("locb", {"bonus": "huge"}, "bonus must be one of 'mean', 'pooled', not 'huge'"),
    ("locb", {"ties": "last"}, "ties must be one of 'first', 'random', not 'last'"),
    ("locb", {"safe": 1}, "safe must be True or False, not 1"),
    ("locb", {"safe": True, "alpha": 0.0}, "alpha must be above 0 with safe=True, not 0"),
    ("club", {"safe": True, "alpha": 0.0}, "alpha must be above 0 with safe=True, not 0"),
    ("sclub", {"safe": True, "alpha": 0.0}, "alpha must be above 0 with safe=True, not 0"),
    ("locb", {"seed": -1}, "seed must be at least 0, not -1"),
    ("club", {"graph": "star"}, "graph must be one of 'complete', 'erdos-renyi', not 'star'"),
    ("club", {"alpha2": NAN}, "alpha2 must be between .* not nan"),
    ("sclub", {"alpha_p": -1}, "alpha_p must be at least 0, not -1"),
    ("sclub", {"alpha_theta": None}, "alpha_theta must be a number, not None"),
    ("eloc", {"norm_bound": 0.0}, "norm_bound must be above 0, not 0.0"),
    ("eloc", {"screen": "on"}, "screen must be one of .*noise"),
    ("eloc", {"screen": "theory"}, "robust must be False with screen='theory'"),
    ("eloc", {"screen": "theory", "robust": False, "memory": 9.0}, "memory must be None with screen='theory'"),
    ("eloc", {"screen": "theory", "robust": False, "memory": "auto"}, "memory must be None with screen='theory'"),
    ("eloc", {"beta": -1}, "beta must be at least 0, not -1"),
    ("eloc", {"n_seeds": N + 1}, f"n_seeds must be at most n_users = {N}, not {N + 1}"),
    ("eloc", {"seeds": [1, 1]}, r"seeds must be different users, but \[1\] appear more than once"),
    ("eloc", {"dtype": "float16"}, "dtype must be 'float64' or 'float32', not 'float16'"),
    ("linucb-ind", {"alpha": -1}, "alpha must be at least 0, not -1"),
    ("linucb-ind", {"ties": 1}, "ties must be one of .* not 1"),
]


@pytest.mark.parametrize(("name", "change", "message"), BAD_PARAMETERS)
def test_invalid_parameters(name: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        locb.make_policy(name, **{"n_users": N, "dim": DIM, **change})


def test_unknown_policy_and_invalid_flag() -> None:
    with pytest.raises(ValueError, match=r"policy: unknown policy 'thompson'; choose from locb, "):
        locb.make_policy("thompson", n_users=1, dim=1)
    with pytest.raises(ValueError, match="shared must be True or False, not 'yes'"):
        locb.LinUCB(n_users=1, dim=1, shared="yes")

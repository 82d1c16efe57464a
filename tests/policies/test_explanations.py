"""An explanation is the recommendation, with the scores of all arms and the users whose rewards they rest on."""

from typing import Any

import numpy as np
import pytest

import locb
from locb.policies.base.capabilities import explainer
from policies.helpers import ARMS, KINDS, N, contexts, make, state_of, world
from policies.test_base import Popular

pytestmark = pytest.mark.interpreted
RANDOM_TIES = [kind for kind in KINDS if not kind.endswith("float32")]


def scores(explanation: locb.Explanation) -> Any:
    assert explanation.estimate is not None
    assert explanation.bonus is not None
    return explanation.estimate + explanation.bonus


def best_set(policy: Any, user: int, x: Any) -> tuple[float, float, locb.Cluster | None]:
    """Estimate and bonus of one arm under LOCB, and the set they are from: by the formula, over all sets."""
    d, alpha = policy.dim, policy._parameters["alpha"]
    rows, columns = np.triu_indices(d)

    def inverse(j: int) -> Any:
        full = np.zeros((d, d))
        full[rows, columns] = full[columns, rows] = policy._state.estimates[j, d:]
        return full

    def value(members: Any) -> tuple[float, float]:
        spreads = np.array([x @ inverse(j) @ x for j in members])
        bonus = np.sqrt(spreads.mean()) if policy._parameters["bonus"] == "pooled" else np.sqrt(spreads).mean()
        return float((policy.theta[members] @ x).mean()), float(alpha * bonus)

    found = [(*value(cluster.members), cluster) for cluster in policy.clusters_of(user)]
    return max(found, key=lambda entry: entry[0] + entry[1]) if found else (*value([user]), None)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_what_recommend_gives_and_changes_nothing(kind: str) -> None:
    policy = make(kind)
    policy.add_users(2)
    before = state_of(policy)
    for user in range(N + 2):
        for seed in range(5):
            arms = contexts(seed)
            explanation = policy.explain(user, arms.tolist())
            assert explanation.arm == policy.recommend(user, arms)
            assert type(explanation.arm) is int
            assert explanation.arm == scores(explanation).argmax()
            assert explanation.theta @ arms[explanation.arm] == pytest.approx(
                explanation.estimate[explanation.arm], abs=1e-12
            )
            assert explanation.theta.dtype == np.float64
            assert (explanation.bonus >= 0).all()
            assert sum(source.weight for source in explanation.sources) == pytest.approx(1.0, abs=1e-7)
    assert "ties" in KINDS[kind] or state_of(policy) == before


@pytest.mark.parametrize("kind", KINDS)
def test_many_at_once_are_told_as_one_by_one(kind: str) -> None:
    policy, alone = make(kind), make(kind)
    users = [3, 0, 3, N - 1, 5]
    offered = [contexts(seed)[: 1 + seed % ARMS] for seed in range(len(users))]
    told = policy.explain_batch(users, offered)
    assert len(told) == len(users)
    for one, user, arms in zip(told, users, offered, strict=True):
        again = alone.explain(user, arms)
        assert (one.arm, one.sources) == (again.arm, again.sources)
        for mine, other in ((one.estimate, again.estimate), (one.bonus, again.bonus), (one.theta, again.theta)):
            assert mine.tolist() == other.tolist()
    assert state_of(policy) == state_of(alone)
    assert policy.explain_batch([], []) == []
    with pytest.raises(ValueError, match=r"contexts\[1, 0\] is nan"):
        policy.explain_batch([1, 2], [contexts(), np.array([[0.0] * policy.dim, [np.nan] * policy.dim])])


@pytest.mark.parametrize("kind", RANDOM_TIES)
def test_ties_are_drawn_as_recommend_draws_them(kind: str) -> None:
    asked, explained = make(kind, 0, ties="random"), make(kind, 0, ties="random")
    same = np.tile(contexts()[:1], (ARMS, 1))
    drawn = [asked.recommend(user % N, same) for user in range(60)]
    assert [explained.explain(user % N, same).arm for user in range(60)] == drawn
    assert len(set(drawn)) == ARMS
    assert state_of(asked) == state_of(explained)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("locb") and "float32" not in kind])
def test_every_arm_has_its_best_set(kind: str) -> None:
    check_best_sets(make(kind))


def test_a_user_in_no_set_has_its_own_estimate() -> None:
    policy = locb.LOCB(n_users=N, dim=3, seeds=[0])
    policy.play(world(2_000))
    assert 0 < check_best_sets(policy) < N


def check_best_sets(policy: Any) -> int:
    """How many users are in no set."""
    own = 0
    for user in range(N):
        arms = contexts(user)
        explanation = policy.explain(user, arms)
        worth = [best_set(policy, user, x) for x in arms]
        assert explanation.estimate == pytest.approx([estimate for estimate, _, _ in worth], abs=1e-9)
        assert explanation.bonus == pytest.approx([bonus for _, bonus, _ in worth], abs=1e-9)
        (source,), cluster = explanation.sources, worth[explanation.arm][2]
        if cluster is None:
            own += 1
            assert source == ("user", None, 1.0, 1, policy.served[user])
        else:
            assert source == ("cluster", cluster.seed, 1.0, len(cluster), policy.served[cluster.members].sum())
    return own


@pytest.mark.parametrize("kind", ["linucb-one", "linucb-ind", "club", "club-random", "sclub"])
def test_groups_lend_with_exact_counts(kind: str) -> None:
    policy = make(kind, 0)
    kinds = {"linucb-one": "everyone", "linucb-ind": "user", "sclub": "cluster"}
    for block in range(6):
        if block == 3:
            policy.add_users(4)
        policy.play(world(80, seed=block))
        for user in range(policy.n_users):
            groups = policy.clusters_of(user)
            members = groups[0].members if groups else [user] if kind == "linucb-ind" else np.arange(policy.n_users)
            expected = (kinds.get(kind, "component"), None, 1.0, len(members), policy.served[members].sum())
            assert policy.explain(user, contexts()).sources == (expected,)
    assert kind.startswith("linucb") or len(policy.clusters()) > 1


def test_neighbourhoods_lend_with_exact_counts() -> None:
    """Users who have a weight in a neighbourhood are counted as weights and seeds move."""
    env = locb.Synthetic(n_users=30, n_clusters=4, raw_dim=3, n_arms=4, noise=0.05, seed=2)
    policy = locb.ELOC(n_users=30, dim=4, seeds=max(env.true_clusters(), key=len)[:3].tolist(), gamma=0.4)
    first = policy._state.seeds.tolist()
    for block in range(8):
        policy.play(env.rounds(150, seed=block))
        state = policy._state
        sources = policy.explain(block, np.eye(4)).sources
        assert sources is not None
        assert [source.weight for source in sources] == sorted((source.weight for source in sources), reverse=True)
        assert {source.kind for source in sources} <= {"neighbourhood", "everyone", "population"}
        for s, seed in enumerate(state.seeds.tolist()):
            inside = np.flatnonzero(
                ((state.user_neighbourhoods == state.neighbourhood_ids[s]) & (state.weights > 0)).any(axis=1)
            )
            expected = len(inside), policy.served[inside].sum()
            assert tuple(state.contributors[s]) == expected
            assert all(source[3:] == expected for source in sources if source.seed == seed)
        everybody = [source[3:] for source in sources if source.seed is None]
        assert everybody == [(30, policy.rounds_played)] * len(everybody)
    assert policy._state.seeds.tolist() != first


def test_a_policy_of_ones_own_gives_its_arm_and_no_more() -> None:
    policy = Popular(n_users=12, dim=3)
    arms = contexts()
    explain_batch = explainer(policy)
    assert explain_batch([3, 4], [arms, arms[:1]]) == [
        (policy.recommend(3, arms), None, None, None, None),
        (0, None, None, None, None),
    ]
    policy.recommend = lambda user, contexts: 9  # a bad policy on purpose
    with pytest.raises(ValueError, match="the arm from recommend must be from 0 to 3, not 9"):
        explain_batch([3], [arms])

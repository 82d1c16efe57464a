"""``explain``: the recommended arm, the scores of all arms and the evidence sources."""

from typing import Any

import numpy as np
import pytest

import locb
from locb.policies.base.capabilities import explainer
from policies.helpers import ARMS, KINDS, RANDOM, N, Popular, contexts, make, make_rounds, state_of

pytestmark = pytest.mark.interpreted
RANDOM_TIES = [kind for kind in KINDS if not kind.endswith("float32")]


def scores(explanation: locb.Explanation) -> Any:
    assert explanation.estimate is not None
    assert explanation.bonus is not None
    return explanation.estimate + explanation.bonus


def best_cluster(policy: Any, user: int, x: Any) -> tuple[float, float, locb.Cluster | None]:
    """Return the estimate and the bonus of one arm by the formula of LOCB, and the cluster with the highest score."""
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
def test_explain_returns_the_recommended_arm(kind: str) -> None:
    policy, other = make(kind), make(kind)
    policy.add_users(2)
    other.add_users(2)
    before = state_of(policy)
    for user in range(N + 2):
        for seed in range(5):
            arms = contexts(seed)
            explanation = policy.explain(user, arms.tolist())
            assert explanation.arm == other.recommend(user, arms)
            assert type(explanation.arm) is int
            assert explanation.screened == (explanation.arm != scores(explanation).argmax())
            assert kind.startswith("eloc") or "safe" in KINDS[kind] or not explanation.screened
            assert explanation.theta @ arms[explanation.arm] == pytest.approx(
                explanation.estimate[explanation.arm], abs=1e-12
            )
            assert explanation.theta.dtype == np.float64
            assert (explanation.bonus >= 0).all() or kind in RANDOM
            assert sum(source.weight for source in explanation.sources) == pytest.approx(1.0, abs=1e-7)
    assert "ties" in KINDS[kind] or kind in RANDOM or state_of(policy) == before
    assert state_of(policy) == state_of(other)


@pytest.mark.parametrize("kind", ["locb-safe", "club-safe", "sclub-safe"])
def test_screen_replaces_arms_that_own_rewards_contradict(kind: str) -> None:
    """All users are in one cluster. One user never has a reward for what all others like."""
    policies = {safe: make(kind, 0, safe=safe) for safe in (True, False)}
    arms = np.eye(3)
    for policy in policies.values():
        assert policy.explain(0, arms).screened is False
        for step in range(400):
            user = step % N
            liked = 1 if user == 0 else 0
            for arm in range(2):
                policy.update(user, arms[arm], float(arm == liked))
        assert {len(cluster) for cluster in policy.clusters()} == {N}
        for user in (0, 1):
            explanation = policy.explain(user, arms)
            assert explanation.arm == policy.recommend(user, arms) == policy.play(one_round(user, arms))[0]
            assert scores(explanation).argmax() == 0
            assert explanation.theta @ arms[explanation.arm] == pytest.approx(explanation.estimate[explanation.arm])
    for user, safe, expected in ((0, True, (1, True)), (0, False, (0, False)), (1, True, (0, False))):
        explanation = policies[safe].explain(user, arms)
        assert (explanation.arm, explanation.screened) == expected


def one_round(user: int, arms: Any) -> locb.Rounds:
    return locb.Rounds(np.array([user]), arms[None], np.zeros((1, len(arms))))


@pytest.mark.parametrize("kind", KINDS)
def test_explain_batch_equals_explain(kind: str) -> None:
    policy, single = make(kind), make(kind)
    users = [3, 0, 3, N - 1, 5]
    offered = [contexts(seed)[: 1 + seed % ARMS] for seed in range(len(users))]
    batch = policy.explain_batch(users, offered)
    assert len(batch) == len(users)
    for found, user, arms in zip(batch, users, offered, strict=True):
        expected = single.explain(user, arms)
        assert (found.arm, found.sources) == (expected.arm, expected.sources)
        assert found.memberships == expected.memberships == single.memberships(user)
        for field in ("estimate", "bonus", "theta"):
            assert getattr(found, field).tolist() == getattr(expected, field).tolist()
    assert state_of(policy) == state_of(single)
    assert policy.explain_batch([], []) == []
    with pytest.raises(ValueError, match=r"contexts\[1, 0\] is nan"):
        policy.explain_batch([1, 2], [contexts(), np.array([[0.0] * policy.dim, [np.nan] * policy.dim])])


@pytest.mark.parametrize("kind", RANDOM_TIES)
def test_explain_breaks_ties_like_recommend(kind: str) -> None:
    recommending, explaining = make(kind, 0, ties="random"), make(kind, 0, ties="random")
    same = np.tile(contexts()[:1], (ARMS, 1))
    drawn = [recommending.recommend(user % N, same) for user in range(60)]
    assert [explaining.explain(user % N, same).arm for user in range(60)] == drawn
    assert len(set(drawn)) == ARMS
    assert state_of(recommending) == state_of(explaining)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("locb") and "float32" not in kind])
def test_every_arm_is_scored_by_its_best_cluster(kind: str) -> None:
    check_best_clusters(make(kind))


def test_user_without_cluster_uses_own_estimate() -> None:
    policy = locb.LOCB(n_users=N, dim=3, seeds=[0])
    policy.play(make_rounds(2_000))
    assert 0 < check_best_clusters(policy) < N


def check_best_clusters(policy: Any) -> int:
    """Check the explanations of all users, and return the number of users who are in no cluster."""
    own = 0
    for user in range(N):
        arms = contexts(user)
        explanation = policy.explain(user, arms)
        worth = [best_cluster(policy, user, x) for x in arms]
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
def test_sources_of_clusters_have_exact_counts(kind: str) -> None:
    policy = make(kind, 0)
    kinds = {"linucb-one": "everyone", "linucb-ind": "user", "sclub": "cluster"}
    for block in range(6):
        if block == 3:
            policy.add_users(4)
        policy.play(make_rounds(80, seed=block))
        for user in range(policy.n_users):
            groups = policy.clusters_of(user)
            members = groups[0].members if groups else [user] if kind == "linucb-ind" else np.arange(policy.n_users)
            expected = (kinds.get(kind, "component"), None, 1.0, len(members), policy.served[members].sum())
            assert policy.explain(user, contexts()).sources == (expected,)
    assert kind.startswith("linucb") or len(policy.clusters()) > 1


def test_sources_of_neighbourhoods_have_exact_counts() -> None:
    """The counts of users and rounds are exact after weights have changed and seeds have moved."""
    env = locb.Synthetic(n_users=30, n_clusters=4, raw_dim=3, n_arms=4, noise=0.05, seed=2)
    policy = locb.ELOC(n_users=30, dim=4, seeds=max(env.true_clusters(), key=len)[:3].tolist())
    first, checked = policy._state.seeds.tolist(), 0
    for block in range(8):
        policy.play(env.rounds(150, seed=block))
        state = policy._state
        sources = policy.explain(block, np.eye(4)).sources
        assert sources is not None
        assert [source.weight for source in sources] == sorted((source.weight for source in sources), reverse=True)
        assert {source.kind for source in sources} <= {"neighbourhood", "everyone", "population", "other"}
        for s, seed in enumerate(state.seeds.tolist()):
            inside = np.flatnonzero(
                ((state.user_neighbourhoods == state.neighbourhood_ids[s]) & (state.weights > 0)).any(axis=1)
            )
            expected = len(inside), policy.served[inside].sum()
            assert tuple(state.contributors[s]) == expected
            for source in sources:
                if source.seed == seed:
                    assert source[3:] == expected
                    checked += 1
        everyone = [source[3:] for source in sources if source.seed is None]
        assert everyone == [(30, policy.rounds_played)] * len(everyone)
    assert policy._state.seeds.tolist() != first
    assert checked > 0


def test_custom_policy_explains_only_the_arm() -> None:
    policy = Popular(n_users=12, dim=3)
    arms = contexts()
    explain_batch = explainer(policy)
    assert explain_batch([3, 4], [arms, arms[:1]]) == [
        (policy.recommend(3, arms), None, None, None, None, 0.0, None, False),
        (0, None, None, None, None, 0.0, None, False),
    ]
    policy.recommend = lambda user, contexts: 9  # an invalid arm
    with pytest.raises(ValueError, match="the arm from recommend must be from 0 to 3, not 9"):
        explain_batch([3], [arms])

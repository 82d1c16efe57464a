"""Encoded decisions: the packed response gives the same JSON, and each distinct cluster is encoded once."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from locb.evaluation.clusters import Membership
from locb.policies import EvidenceSource, Explanation
from locb.recommender.commands import Command, RecommendCommand, RewardCommand
from locb.recommender.user_index import UserIndex
from locb.service.core import decision_encoding
from locb.service.core.decision_encoding import render_stored
from locb.service.core.model import new_model
from locb.service.core.service_engine import ServiceEngine
from locb.service.packed_responses import chosen_context, pack_cluster, unpack_clusters
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest

USERS = [f"user {number}" for number in range(6)]


def make_engine(policy: str, **parameters: Any) -> tuple[ServiceEngine, Callable[..., list[Any]]]:
    """Return an engine with all users, and a function that handles commands without a log."""
    model = new_model(policy, 2, {"n_seeds": 2, **parameters} if policy in ("locb", "eloc") else parameters)
    engine = ServiceEngine(model.build(), UserIndex(model.initial_users), 0, cache_size=1000)

    def handle(*commands: Command) -> list[Any]:
        batch = engine.prepare(commands)
        engine.apply(batch)
        return batch.outcomes

    handle(*(recommend(user, f"first {user}") for user in USERS))
    return engine, handle


def recommend(user: str, decision_id: str) -> RecommendCommand:
    arms = [Arm("x", [1.0, 0.0]), Arm("y", [0.6, 0.8])]
    return RecommendCommand(parse_request(RecommendRequest(user, arms, decision_id=decision_id), 2), 0.0)


@pytest.mark.parametrize("policy", ["locb", "eloc", "club", "sclub"])
def test_each_distinct_cluster_is_encoded_once(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, handle = make_engine(policy)
    engine._encoder.clear_cache()
    encoded: list[Membership] = []
    summarize = decision_encoding.summarize_membership

    def count(membership: Membership, users: UserIndex) -> Any:
        encoded.append(membership)
        return summarize(membership, users)

    monkeypatch.setattr(decision_encoding, "summarize_membership", count)
    shown: list[Membership] = []
    for number in range(120):
        user = USERS[number % len(USERS)]
        shown += engine.policy.memberships(number % len(USERS))
        handle(recommend(user, f"d{number}"))
        handle(RewardCommand(f"d{number}", float(number % 2), 0.0))
    assert len(shown) >= 120
    assert 0 < len(set(shown)) < len(shown), "no cluster is shown twice, so the cache was not used"
    assert len(encoded) == len(set(shown)), f"{len(encoded)} of {len(shown)} clusters in responses were encoded"


def test_equal_clusters_of_different_users_are_encoded_equally() -> None:
    """A cluster is encoded with the current names: the cache is discarded when users are created or erased."""
    engine, handle = make_engine("locb")
    before = handle(recommend(USERS[0], "before"))[0].response
    handle(recommend("new", "n"))
    after = handle(recommend(USERS[0], "after"))[0].response
    assert f'"size":{len(USERS)},'.encode() in before
    assert f'"size":{len(USERS) + 1},'.encode() in after
    engine.apply(engine.prepare_erasure({"new": int(engine.users.index_of("new") or 0)}))
    erased = handle(recommend(USERS[0], "erased"))[0].response
    assert f'"size":{len(USERS)},'.encode() in erased


LIST_ARMS = [Arm("x", [1.0, 0.0]), Arm("y", [0.6, 0.8]), Arm('"z" ä', [0.0, -1.0])]
NAMED_ARMS = [Arm("x", {"genre": "drama", "new": True, "genre=drama": 2.0}), Arm("y", {}), Arm("z", {"length": -0.5})]


@pytest.mark.parametrize("policy", ["locb", "eloc", "club", "sclub", "linucb-one", "linucb-ind"])
@pytest.mark.parametrize("arms", [LIST_ARMS, NAMED_ARMS], ids=["arrays", "named"])
def test_stored_response_gives_the_same_json(policy: str, arms: list[Arm]) -> None:
    engine, handle = make_engine(policy)
    requests = [{}, {"count": 1}, {"exclude": ["x"]}, {"exclude": ["y"], "count": 1}]
    for number in range(60):
        request = RecommendRequest(USERS[number % 6], arms, decision_id=f"d{number}", **requests[number % 4])
        batch = engine.prepare([RecommendCommand(parse_request(request, 2), 0.0)])
        engine.apply(batch)
        (row,), (outcome,) = batch.records.decisions, batch.outcomes
        assert render_stored(row.id, row.request, row.response, engine.users.name_of) == outcome.response
        assert chosen_context(row.request, row.response, 2) == batch.decisions[f"d{number}"].context
        handle(RewardCommand(f"d{number}", float(number % 3 == 0), 0.0))


@pytest.mark.parametrize("policy", ["locb", "club", "sclub"])
@pytest.mark.parametrize("safe", [False, True])
def test_ranking_starts_with_the_arm_of_the_safety_screen(policy: str, safe: bool) -> None:
    """All users are in one cluster, and only user 0 dislikes the arm that the others like."""
    clusters = {"locb": {"gamma": 9.0}, "club": {"alpha2": 9.0}, "sclub": {"alpha_theta": 9.0, "alpha_p": 9.0}}
    _, handle = make_engine(policy, alpha=0.1, safe=safe, **clusters[policy])
    arms = [Arm("x", [1.0, 0.0]), Arm("y", [0.0, 1.0])]
    for number in range(240):
        user, shown = number // 2 % 6, "xy"[number % 2]
        request = RecommendRequest(USERS[user], arms, decision_id=f"d{number}", exclude=["yx"[number % 2]])
        handle(RecommendCommand(parse_request(request, 2), 0.0))
        handle(RewardCommand(f"d{number}", float((shown == "y") == (user == 0)), 0.0))
    request = RecommendRequest(USERS[0], arms, decision_id="last")
    response = json.loads(handle(RecommendCommand(parse_request(request, 2), 0.0))[0].response)
    first, second = response["ranking"]
    assert response["arm"] == first["arm"] == ("y" if safe else "x")
    assert (first["score"] < second["score"]) == safe


@pytest.mark.parametrize(
    "explanation",
    [
        Explanation(1, memberships=()),
        Explanation(1, bonus=np.array([0.1, 0.2]), memberships=[Membership(None, None), Membership(3, None, 5)]),
        Explanation(1, None, np.array([0.1, 0.2]), np.array([-0.0, 1e-300]), None, 3, memberships=()),
        Explanation(
            0, np.array([np.inf, np.nan]), np.array([0.1, 0.1]), np.array([1.5, 2.5]),
            (EvidenceSource("cluster", 5, 1, None, None), EvidenceSource("user", None, 0.0, 1, 2)),  # type: ignore[arg-type]
            memberships=[Membership(6, 1_000_000), Membership(0, 0, 1)],
        ),
        Explanation(1, np.array([0.5, 0.2]), np.array([0.1, 0.1]), np.ones(2), (), memberships=(), screened=True),
    ],
)  # fmt: skip
def test_stored_response_of_a_custom_policy_gives_the_same_json(explanation: Explanation) -> None:
    """A policy may report any part of an explanation, also for indices without a user: here 6 of 7 have one."""
    encoder = decision_encoding.DecisionEncoder(UserIndex(7, enumerate(USERS)), 2)
    parsed = recommend(USERS[0], "d").parsed
    response, packed = encoder.encode("d", parsed, explanation, explanation.memberships or ())
    assert render_stored(b"d", parsed.packed, packed, dict(enumerate(USERS)).get) == response


def test_packed_clusters() -> None:
    numbers = [None, 0, 1, 62, 63, 64, 127, 128, 16_383, 16_384, 10_000_000]
    clusters = [(seed, size, returned) for seed in numbers for size in numbers for returned in (False, True)]
    packed = [pack_cluster(*cluster) for cluster in clusters]
    assert list(unpack_clusters(b"".join(packed))) == clusters
    assert len(pack_cluster(100, 50, False)) == 2

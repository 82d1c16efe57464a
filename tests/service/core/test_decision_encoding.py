"""The cache of encoded clusters: each distinct cluster is encoded once, whatever the policy."""

from collections.abc import Callable
from typing import Any

import pytest

from locb.evaluation.clusters import Membership
from locb.service.core import decision_encoding
from locb.service.core.commands import Command, RecommendCommand, RewardCommand
from locb.service.core.engine import Engine
from locb.service.core.model import new_model
from locb.service.core.user_index import UserIndex
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest

USERS = [f"user {number}" for number in range(6)]


def make_engine(policy: str) -> tuple[Engine, Callable[..., list[Any]]]:
    """Return an engine with all users, and a function that handles commands without a log."""
    model = new_model(policy, 2, {"n_seeds": 2} if policy in ("locb", "eloc") else {})
    engine = Engine(model.build(), UserIndex(model.initial_users), 0, cache_size=1000)

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
    assert len(encoded) == len(set(shown)), f"{len(encoded)} of {len(shown)} clusters in responses were encoded"


def test_equal_clusters_of_different_users_are_encoded_equally() -> None:
    """A cluster is encoded with the current names: the cache is discarded when users are created or erased."""
    engine, handle = make_engine("locb")
    before = handle(recommend(USERS[0], "before"))[0].response
    handle(recommend("new", "n"))
    after = handle(recommend(USERS[0], "after"))[0].response
    assert f'"size":{len(USERS)},'.encode() in before
    assert f'"size":{len(USERS) + 1},'.encode() in after
    engine.apply(engine.prepare_erasure("new"))
    erased = handle(recommend(USERS[0], "erased"))[0].response
    assert f'"size":{len(USERS)},'.encode() in erased

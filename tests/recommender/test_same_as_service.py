"""A recommender and the service give the same responses to the same requests and rewards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import locb
from locb.recommender.commands import EncodedDecision, RecommendCommand, RewardCommand
from locb.recommender.user_index import UserIndex
from locb.service.core.model import new_model
from locb.service.core.service_engine import ServiceEngine
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import RecommendRequest
from serving import in_path, serving

DIM = 4
POLICIES = {
    "eloc": {"n_seeds": 3},
    "locb": {"n_seeds": 3, "gamma": 0.6},
    "club": {},
    "linucb-ind": {},
}
CATALOGUE: dict[str, Any] = {
    "a": {"genre": "drama", "length": 0.5},
    "b": {"genre": "crime", "new": True},
    "c": [1.0, 0.0, 0.5, -0.5],
    "d": [0.0, -1.0, 0.5, 0.25],
}


class ServiceInProcess:
    """The engine of the service with requests as JSON, but without HTTP and a store."""

    def __init__(self, policy: str) -> None:
        model = new_model(policy, DIM, POLICIES[policy])
        self.engine = ServiceEngine(model.build(), UserIndex(model.initial_users), 0, cache_size=1000)

    def handle(self, command: RecommendCommand | RewardCommand) -> Any:
        batch = self.engine.prepare([command])
        self.engine.apply(batch)
        (outcome,) = batch.outcomes
        if isinstance(outcome, ProblemError):
            return outcome.problem.detail
        return json.loads(outcome.response) if isinstance(outcome, EncodedDecision) else outcome

    def recommend(self, **body: Any) -> Any:
        request = msgspec.json.decode(json.dumps(body), type=RecommendRequest)
        try:
            return self.handle(RecommendCommand(parse_request(request, DIM), 0.0))
        except ProblemError as error:
            return error.problem.detail

    def reward(self, decision_id: str, reward: float) -> Any:
        return self.handle(RewardCommand(decision_id, reward, 0.0))


def attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a function, or the text of its error."""
    try:
        return function(*arguments, **options)
    except ValueError as error:
        return str(error)


requests = st.fixed_dictionaries(
    {
        "user": st.sampled_from("uvwxyz"),
        "arms": st.lists(st.sampled_from("abcd"), min_size=1, unique=True),
        "exclude": st.lists(st.sampled_from("abcd"), max_size=1),
        "count": st.sampled_from([1, 2, None]),
        "from_catalogue": st.booleans(),
        "reward": st.sampled_from([None, 0.0, 0.5, 1.0]),
        "second_reward": st.sampled_from([None, 0.0, 1.0]),
    }
)


@pytest.mark.parametrize("policy", POLICIES)
@given(steps=st.lists(requests, min_size=1, max_size=40))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_same_responses_in_process(policy: str, steps: list[dict[str, Any]]) -> None:
    service = ServiceInProcess(policy)
    recommender = locb.Recommender(policy, features=DIM, arms=CATALOGUE, **POLICIES[policy])
    for number, step in enumerate(steps):
        user, offered = step["user"], {arm: CATALOGUE[arm] for arm in step["arms"]}
        arms = [{"id": arm, "features": features} for arm, features in offered.items()]
        decision_id, options = f"d{number}", {"exclude": step["exclude"], "count": step["count"]}
        expected = service.recommend(user=user, arms=arms, decision_id=decision_id, **options)
        own_arms = step["arms"] if step["from_catalogue"] else offered
        found = attempt(recommender.recommend, user, own_arms, decision_id=decision_id, **options)
        if isinstance(found, str):
            assert found == expected
            continue
        assert found.to_dict() == expected
        assert recommender.recommend(user, own_arms, decision_id=decision_id, **options) == found
        assert service.recommend(user=user, arms=arms, decision_id=decision_id, **options) == expected
        for reward in (step["reward"], step["second_reward"]):
            if reward is not None:
                outcome = service.reward(decision_id, reward)
                error = attempt(recommender.reward, decision_id, reward)
                assert error == (outcome if isinstance(outcome, str) else None)
    assert recommender.policy.n_users == service.engine.policy.n_users


@pytest.mark.parametrize("policy", POLICIES)
def test_same_groups_over_http(policy: str, tmp_path: Path) -> None:
    """Also with explanations that several users share, and with the groups and similar users of the HTTP API."""
    recommender = locb.Recommender(policy, features=DIM, arms=CATALOGUE, **POLICIES[policy])
    arms = [{"id": arm, "features": features} for arm, features in CATALOGUE.items()]
    users = [f"user/{number}" for number in range(8)]
    rng = np.random.default_rng(3)
    with serving(tmp_path, policy=policy, dim=DIM, parameters=POLICIES[policy]) as (client, _):

        def get(path: str) -> Any:
            return client.get(path).raise_for_status().json()

        for number in range(150):
            user = users[int(rng.integers(len(users)))]
            found = recommender.recommend(user, decision_id=f"d{number}", count=None)
            body = {"user": user, "arms": arms, "decision_id": f"d{number}"}
            assert client.post("/v1/recommend", json=body).json() == found.to_dict()
            reward = float(rng.random() < (0.9 if (found.arm in "ab") == (user < "user/4") else 0.1))
            recommender.reward(f"d{number}", reward)
            client.post("/v1/reward", json={"decision_id": f"d{number}", "reward": reward}).raise_for_status()

        groups = recommender.groups()
        # The service names a group of a policy without seed users after its first member, and lists equal groups.
        names = [group.users[:1] if policy == "club" else group.seeds for group in groups]
        group_of = {name: group for named, group in zip(names, groups, strict=True) for name in named}
        listed = [tuple(cluster.values())[:3] for cluster in get("/v1/clusters")["clusters"]]
        assert {name for name, _, _ in listed if name is not None} == set(group_of)
        for name, size, final in listed:
            if name is None:
                assert (size, final) in [(len(group.users), group.final) for group in groups]
            else:
                assert (size, final) == (len(group_of[name].users), group_of[name].final)
                assert get(f"/v1/clusters/{in_path(name)}")["members"] == list(group_of[name].users)
        for user in users[:3]:
            similar = get(f"/v1/users/{in_path(user)}/similar?limit=4")["similar"]
            assert similar == [found._asdict() for found in recommender.similar_users(user, 4)]

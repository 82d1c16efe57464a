"""The unmodified client library of Azure Personalizer, used with the service."""

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import RankableAction, RankRequest
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

from locb.common.feature_hashing import feature_row
from locb.service.api.auth import Tokens
from locb.service.api.handlers import parse_in_steps
from locb.service.api.personalizer import handlers, schemas
from locb.service.api.personalizer.conversion import to_arguments
from locb.service.api.scopes import SCOPES
from locb.service.core.audit import repeat_decisions
from locb.service.core.service import Service
from locb.service.request_parsing import parse_stored_request
from serving import same_state, serving, wait_for

KEY = "key-of-the-application"


def make_client(url: Any, key: str = KEY) -> PersonalizerClient:
    client = PersonalizerClient(str(url).rstrip("/"), CognitiveServicesCredentials(key))
    client.config.retry_policy.retries = 0
    return client


def rank_request(**fields: Any) -> RankRequest:
    actions = [
        RankableAction(id="pasta", features=[{"taste": "salty"}, {"nutrition": {"calories": 600}}]),
        RankableAction(id="juice", features=[{"taste": "sweet"}]),
        RankableAction(id="salad", features=[{"taste": "salty", "raw": True}]),
    ]
    context = [{"user": {"id": "ann"}}, {"day": "monday"}]
    return RankRequest(actions=actions, context_features=context, **fields)


def test_rank_reward_and_activate(tmp_path: Path) -> None:
    tokens = Tokens({KEY: frozenset(SCOPES)})
    with serving(tmp_path, tokens, dim=16, policy="locb", default_reward=0.0, reward_wait=0.2) as (client, service):
        azure = make_client(client.base_url)
        response = azure.rank(rank_request(excluded_actions=["juice"], event_id="e1"))
        assert response.event_id == "e1"
        action = response.reward_action_id
        assert action in ("pasta", "salad")
        assert {ranked.id: ranked.probability for ranked in response.ranking}[action] == 1.0
        assert response.ranking[1].id == "juice"
        assert azure.rank(rank_request(excluded_actions=["juice"], event_id="e1")).reward_action_id == action
        azure.events.reward("e1", 1.0)
        azure.events.reward("e1", 1.0)
        assert service.policy.served[service.require_index("ann")] == 1

        deferred = azure.rank(rank_request(defer_activation=True)).event_id
        azure.rank(rank_request())  # without a reward: the default is learned
        wait_for(lambda: service.policy.served.sum() == 2)
        assert service.log.find([deferred.encode()])[0].kind is None
        azure.events.activate(deferred)
        azure.events.activate(deferred)
        wait_for(lambda: service.policy.served.sum() == 3)
        azure.events.reward(deferred, 1.0)  # replaces the default
        assert service.policy.served.sum() == 3


def test_errors(tmp_path: Path) -> None:
    with serving(tmp_path, Tokens({KEY: frozenset(SCOPES)}), dim=16) as (client, service):
        azure = make_client(client.base_url)
        for call, status, code in (
            (lambda: azure.events.reward("unknown", 1.0), 404, "ResourceNotFound"),
            (lambda: azure.events.activate("unknown"), 404, "ResourceNotFound"),
            (lambda: azure.rank(rank_request(excluded_actions=["pasta", "juice", "salad"])), 400, "BadRequest"),
            (lambda: make_client(client.base_url, "wrong").rank(rank_request()), 401, "Unauthorized"),
        ):
            with pytest.raises(HttpOperationError) as caught:
                call()
            assert caught.value.response.status_code == status
            assert caught.value.response.json()["error"]["code"] == code
        assert service.engine.seq == 0


def learned(service: Service, event_id: str) -> float | None:
    """Return the reward that the policy has learned for an event."""
    return service.log.find([event_id.encode()])[0].reward


def test_earliest_reward_is_kept(tmp_path: Path) -> None:
    with serving(tmp_path, policy="locb", dim=16) as (client, service):
        azure = make_client(client.base_url)
        azure.rank(rank_request(event_id="e"))
        for reward in (0.5, 1.0, 0.5, 0.0):
            azure.events.reward("e", reward)
        assert learned(service, "e") == 0.5
        ann = client.get("/v1/users/ann").json()
        assert (ann["served"], ann["rewards"], ann["mean_reward"]) == (1, 1, 0.5)
        conflict = client.post("/v1/reward", json={"decision_id": "e", "reward": 1.0})
        assert conflict.status_code == 409  # the other routes report a second, different reward


@pytest.mark.parametrize("policy", ["locb", "eloc", "linucb-ind"])
def test_rewards_are_added(policy: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"policy": policy, "dim": 16, "personalizer_rewards": "sum"}
    with serving(tmp_path / "state", **options) as (client, service):
        azure = make_client(client.base_url)
        azure.rank(rank_request(event_id="e"))
        for reward in (0.25, 0.5, 0.0, 0.5, -0.25):
            azure.events.reward("e", reward)
        assert learned(service, "e") == 1.0
        ann = client.get("/v1/users/ann").json()
        assert (ann["served"], ann["rewards"], ann["mean_reward"]) == (1, 1, 1.0)
        (decision,) = client.get("/v1/users/ann/decisions").json()["decisions"]
        assert (decision["reward"], decision["reward_status"]) == (1.0, "corrected")
        export = pl.read_parquet(client.get("/v1/export").content)
        assert export.select("decision_id", "reward", "reward_is_default").rows() == [("e", 1.0, False)]
        with pytest.raises(HttpOperationError) as caught:
            azure.events.reward("e", 1e6)
        assert caught.value.response.status_code == 400
        assert "would be 1000001; it must be from -1e+06 to 1e+06" in caught.value.response.json()["error"]["message"]
        assert learned(service, "e") == 1.0
        replayed, mismatches = repeat_decisions(service.log, service.model, 0)
        assert mismatches == []
        assert same_state(replayed, service.policy)
        theta = service.policy.estimate(service.require_index("ann")).theta
    with serving(tmp_path / "state", **options) as (client, service):  # the statistics are read from the log
        assert service.policy.estimate(service.require_index("ann")).theta.tolist() == theta.tolist()
        wait_for(lambda: not client.get("/v1/status").json()["backfilling"])
        assert client.get("/v1/users/ann").json()["mean_reward"] == 1.0
        make_client(client.base_url).events.reward("e", -1.0)
        assert learned(service, "e") == 0.0
    with serving(tmp_path / "once", policy=policy, dim=16) as (client, service):
        azure = make_client(client.base_url)
        azure.rank(rank_request(event_id="e"))
        azure.events.reward("e", 1.0)
        once = service.policy.estimate(service.require_index("ann")).theta
        if policy != "eloc":  # the estimates of ELOC follow a correction in later rounds
            assert theta == pytest.approx(once, abs=1e-12)


def test_added_rewards_are_in_original_units(tmp_path: Path) -> None:
    options: dict[str, Any] = {"policy": "linucb-ind", "dim": 16, "personalizer_rewards": "sum"}
    weights = []
    # In the range (-40, 24), a reward of 8 is learned as 0.75.
    for name, parameters, rewards in (("plain", {}, (0.25, 0.5)), ("ranged", {"reward_range": [-40, 24]}, (3.0, 5.0))):
        with serving(tmp_path / name, parameters=parameters, **options) as (client, service):
            azure = make_client(client.base_url)
            azure.rank(rank_request(event_id="e"))
            for reward in rewards:
                azure.events.reward("e", reward)
            ann = client.get("/v1/users/ann").json()
            assert learned(service, "e") == ann["mean_reward"] == sum(rewards)
            weights.append(ann["theta"])
    assert any(weights[0])
    assert weights[1] == pytest.approx([64.0 * weight for weight in weights[0]])


def test_rewards_after_the_default_reward_are_added(tmp_path: Path) -> None:
    options: dict[str, Any] = {"default_reward": 0.5, "reward_wait": 0.1, "personalizer_rewards": "sum"}
    with serving(tmp_path, dim=16, **options) as (client, service):
        azure = make_client(client.base_url)
        azure.rank(rank_request(event_id="e"))
        wait_for(lambda: learned(service, "e") == 0.5, 60.0)
        azure.events.reward("e", 0.25)  # replaces the default reward
        azure.events.reward("e", 0.5)
        assert learned(service, "e") == 0.75
        wait_for(lambda: client.get("/v1/history?span=hour").json()["total"]["mean"] == 0.75, 60.0)
        assert client.get("/v1/users/ann").json()["rewards"] == 1


def test_rewards_of_events_that_are_not_activated_are_ignored(tmp_path: Path) -> None:
    options: dict[str, Any] = {"policy": "locb", "dim": 16, "default_reward": 0.0, "reward_wait": 0.1}
    with serving(tmp_path / "state", **options) as (client, service):
        azure = make_client(client.base_url)
        azure.rank(rank_request(event_id="never", defer_activation=True))
        azure.rank(rank_request(event_id="later", defer_activation=True))
        for event_id in ("never", "later"):
            azure.events.reward(event_id, 1.0)
        refused = client.post("/v1/reward", json={"decision_id": "never", "reward": 1.0})
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:locb:problem:conflict")
        assert "is not activated" in refused.json()["detail"]
        azure.rank(rank_request(event_id="shown"))
        wait_for(lambda: learned(service, "shown") == 0.0, 60.0)  # the default rewards are due
        assert (learned(service, "never"), learned(service, "later")) == (None, None)
        wait_for(lambda: service.policy.served.sum() == 1)  # after the commit
        azure.events.activate("later")
        azure.events.reward("later", 1.0)
        assert learned(service, "later") == 1.0
        assert service.policy.served.sum() == 2
    with serving(tmp_path / "state", **options) as (client, service):
        make_client(client.base_url).events.reward("never", 1.0)
        assert learned(service, "never") is None


def test_decisions_are_explained_by_feature_names(tmp_path: Path) -> None:
    with serving(tmp_path, dim=32) as (client, service):
        azure = make_client(client.base_url)
        for number in range(5):
            event = azure.rank(rank_request(event_id=f"e{number}"))
            azure.events.reward(event.event_id, number / 4)
        expected = {
            "pasta": {"action=pasta", "taste=salty", "nutrition.calories"},
            "juice": {"action=juice", "taste=sweet"},
            "salad": {"action=salad", "taste=salty", "raw=true"},
        }
        for decision in client.get("/v1/users/ann/decisions").json()["decisions"]:
            own = expected[decision["arm"]]
            response = decision["response"]
            explanation = response["explanation"]
            assert set(explanation["contributions"]) == own | {f"day=monday×{name}" for name in own}
            total = sum(explanation["contributions"].values()) + explanation["intercept"]
            assert total == pytest.approx(response["ranking"][0]["estimate"], abs=1e-12)
        named = client.get("/v1/users/ann").json()["feature_indices"]
        assert {name for name in named if "×" not in name} <= set.union(*expected.values())
        assert {"action=pasta", "action=juice", "action=salad"} & set(named)
        replayed, mismatches = repeat_decisions(service.log, service.model, 0)
        assert mismatches == []
        assert same_state(replayed, service.policy)


@pytest.mark.parametrize(
    ("actions", "context"),
    [
        (1, 2),
        (3, 10),
        (1000, 10),  # many cross features
        (1, 3000),  # many features
    ],
)
def test_large_requests_are_converted_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, actions: int, context: int
) -> None:
    steps = 0

    async def count_steps(parsing: Any, turn: Any) -> Any:
        def counted() -> Any:
            nonlocal steps
            while True:
                try:
                    next(parsing)
                except StopIteration as end:
                    return end.value
                steps += 1
                yield

        return await parse_in_steps(counted(), turn)

    monkeypatch.setattr(handlers, "parse_in_steps", count_steps)
    features = {f"feature {number}": number for number in range(context)}
    body = {
        "actions": [{"id": f"a{number}", "features": [{"kind": str(number % 7)}]} for number in range(actions)],
        "contextFeatures": [{"user": {"id": "ann"}}, {"nested": [{"deeper": features}]}],
        "eventId": "e1",
    }
    with serving(tmp_path, dim=16) as (client, service):
        response = client.post("/personalizer/v1.0/rank", json=body)
        assert response.status_code == 201, response.text
        assert len(response.json()["ranking"]) == actions
        invalid = body | {"actions": [{"id": "a", "features": ["x"]}] * actions}
        assert client.post("/personalizer/v1.0/rank", json=invalid).status_code == 400
        parsed = parse_stored_request(service.log.recent_requests(1, 1 << 24)[0][0], 16)
    assert (steps >= 5) == (max(actions, context) >= 1000)
    request = msgspec.convert(body, schemas.RankRequest)
    expected = [feature_row(row, 16) for _, row in to_arguments(request, 16, "user.id").arms]
    assert parsed.contexts.tolist() == expected

"""Azure's own client against the service, unchanged."""

from pathlib import Path
from typing import Any

import pytest
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import RankableAction, RankRequest
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

from locb.service.api.auth import SCOPES, Tokens
from serving import serving, wait_for

KEY = "the key of the old service"


def azure_client(url: Any, key: str = KEY) -> PersonalizerClient:
    client = PersonalizerClient(str(url).rstrip("/"), CognitiveServicesCredentials(key))
    client.config.retry_policy.retries = 0
    return client


def question(**more: Any) -> RankRequest:
    actions = [
        RankableAction(id="pasta", features=[{"taste": "salty"}, {"nutrition": {"calories": 600}}]),
        RankableAction(id="juice", features=[{"taste": "sweet"}]),
        RankableAction(id="salad", features=[{"taste": "salty", "raw": True}]),
    ]
    context = [{"user": {"id": "ann"}}, {"day": "monday"}]
    return RankRequest(actions=actions, context_features=context, **more)


def test_rank_reward_and_activate(tmp_path: Path) -> None:
    tokens = Tokens({KEY: frozenset(SCOPES)})
    with serving(tmp_path, tokens, dim=16, policy="locb", default_reward=0.0, reward_wait=0.2) as (client, service):
        azure = azure_client(client.base_url)
        told = azure.rank(question(excluded_actions=["juice"], event_id="e1"))
        assert told.event_id == "e1"
        assert told.reward_action_id in ("pasta", "salad")
        assert {one.id: one.probability for one in told.ranking}[told.reward_action_id] == 1.0
        assert told.ranking[1].id == "juice"
        assert azure.rank(question(excluded_actions=["juice"], event_id="e1")).reward_action_id == told.reward_action_id
        azure.events.reward("e1", 1.0)
        azure.events.reward("e1", 1.0)
        assert service.policy.served[service.require_index("ann")] == 1

        deferred = azure.rank(question(defer_activation=True)).event_id
        azure.rank(question())  # no reward comes for it: the default is learned
        wait_for(lambda: service.policy.served.sum() == 2)
        assert service.log.find([deferred.encode()])[0].kind is None
        azure.events.activate(deferred)
        azure.events.activate(deferred)
        wait_for(lambda: service.policy.served.sum() == 3)
        azure.events.reward(deferred, 1.0)  # late, and true
        assert service.policy.served.sum() == 3


def test_what_it_is_told_of_problems(tmp_path: Path) -> None:
    with serving(tmp_path, Tokens({KEY: frozenset(SCOPES)}), dim=16) as (client, service):
        azure = azure_client(client.base_url)
        for call, status, code in (
            (lambda: azure.events.reward("nothing", 1.0), 404, "ResourceNotFound"),
            (lambda: azure.events.activate("nothing"), 404, "ResourceNotFound"),
            (lambda: azure.rank(question(excluded_actions=["pasta", "juice", "salad"])), 400, "BadRequest"),
            (lambda: azure_client(client.base_url, "wrong").rank(question()), 401, "Unauthorized"),
        ):
            with pytest.raises(HttpOperationError) as told:
                call()
            assert told.value.response.status_code == status
            assert told.value.response.json()["error"]["code"] == code
        assert service.engine.seq == 0
        azure.rank(question(event_id="e"))
        azure.events.reward("e", 1.0)
        with pytest.raises(HttpOperationError) as told:
            azure.events.reward("e", 0.0)
        assert told.value.response.status_code == 409

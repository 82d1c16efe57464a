"""The unmodified client library of Azure Personalizer, used with the service."""

from pathlib import Path
from typing import Any

import pytest
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import RankableAction, RankRequest
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

from locb.service.api.auth import Tokens
from locb.service.api.token_file import SCOPES
from serving import serving, wait_for

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
        azure.rank(rank_request(event_id="e"))
        azure.events.reward("e", 1.0)
        with pytest.raises(HttpOperationError) as caught:
            azure.events.reward("e", 0.0)
        assert caught.value.response.status_code == 409

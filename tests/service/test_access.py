"""Who may ask for what: every route by its scope, and without tokens this machine alone."""

import logging
from collections.abc import Iterator

import httpx
import pytest

from locb.service.api.auth import SCOPES, Tokens
from locb.service.api.routes import ROUTES, Route
from locb.service.core.service import Service
from locb.service.responses import SECURITY_HEADERS
from serving import serving

ALL = "this token is for everything"
ONE = {scope: f"this token is to {scope} alone" for scope in SCOPES}
NAMED = [f"{route.method} {route.path}" for route in ROUTES]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    tokens = Tokens({ALL: frozenset(SCOPES)} | {token: frozenset((scope,)) for scope, token in ONE.items()})
    with serving(tmp_path_factory.mktemp("state"), tokens) as (client, service):
        yield client, service


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    with serving(tmp_path_factory.mktemp("state")) as (client, service):
        yield client, service


def ask(client: httpx.Client, route: Route, headers: dict[str, str]) -> httpx.Response:
    """Ask for it, with a body that does not fit: who may not ask is told so before that is looked at."""
    path = route.path.replace("{", "").replace("}", "")
    body = None if route.request_type is None else {}
    answer = client.request(route.method, path, json=body, headers=headers)
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers[name] == value
    return answer


@pytest.mark.parametrize("route", ROUTES, ids=NAMED)
def test_every_route_asks_for_a_token_of_its_scope(guarded: tuple[httpx.Client, Service], route: Route) -> None:
    client, service = guarded
    strangers: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {ALL}x"},
        {"Authorization": f"Bearer {ALL[:-1]}"},
        {"Authorization": f"Basic {ALL}"},
        {"Authorization": ALL},
        {"Ocp-Apim-Subscription-Key": "another"},
        {"Authorization": "Bearer wrong", "Ocp-Apim-Subscription-Key": ALL},
    ]
    if route.scope is None:
        assert all(ask(client, route, headers).status_code < 300 for headers in strangers)
        return
    for headers in strangers:
        answer = ask(client, route, headers)
        assert answer.status_code == 401, headers
        assert answer.headers["www-authenticate"] == "Bearer"
    for scope in SCOPES:
        for headers in ({"Authorization": f"Bearer {ONE[scope]}"}, {"Ocp-Apim-Subscription-Key": ONE[scope]}):
            assert (ask(client, route, headers).status_code == 403) == (scope != route.scope)
    for headers in ({"Authorization": f"bearer {ALL}"}, {"Ocp-Apim-Subscription-Key": ALL}):
        assert ask(client, route, headers).status_code in (200, 404, 422, 400)
    assert service.engine.seq == 0


def test_tokens_are_not_taken_from_the_address(guarded: tuple[httpx.Client, Service]) -> None:
    client, _ = guarded
    for name in ("token", "access_token", "subscription-key"):
        assert client.get("/v1/clusters", params={name: ALL}).status_code == 401


def test_tokens_are_not_told(guarded: tuple[httpx.Client, Service], caplog: pytest.LogCaptureFixture) -> None:
    client, service = guarded
    secret = "a wrong token that is a right one elsewhere"
    with caplog.at_level(logging.DEBUG):
        for token in (ALL, *ONE.values(), secret):
            for route in ROUTES:
                answer = ask(client, route, {"Authorization": f"Bearer {token}"})
                assert token not in answer.text
        service.engine.policy.explain, kept = None, service.engine.policy.explain
        try:
            body = {"user": "ann", "arms": [{"id": "a", "features": [1, 0, 0]}]}
            failed = client.post("/v1/recommend", json=body, headers={"Authorization": f"Bearer {ALL}"})
        finally:
            service.engine.policy.explain = kept
    assert failed.status_code == 500
    assert "Traceback" not in failed.text
    assert "gave no answer" in caplog.text
    for token in (ALL, *ONE.values(), secret):
        assert token not in caplog.text
        assert token not in repr(vars(service))


@pytest.mark.parametrize("route", ROUTES, ids=NAMED)
def test_without_tokens_only_this_machine_may_ask(alone: tuple[httpx.Client, Service], route: Route) -> None:
    client, service = alone
    for headers in (
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost.evil.example:8080"},
        {"Host": "[2001:db8::1]:8080"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "null"},
    ):
        answer = ask(client, route, headers)
        assert answer.status_code == 403, headers
    for headers in (
        {"Host": "localhost"},
        {"Host": "LOCALHOST:8080"},
        {"Host": "127.0.0.1"},
        {"Host": "[::1]:8080"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "http://localhost"},
    ):
        assert ask(client, route, headers).status_code in (200, 204, 404, 422, 400), headers
    assert service.engine.seq == 0

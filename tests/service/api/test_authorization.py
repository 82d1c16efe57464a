"""Authorization of every route: by the scope of the token or, without tokens, by the Host and Origin headers."""

import logging
from collections.abc import Iterator

import httpx
import pytest
from msgspec import Raw

from locb.service.api.auth import Tokens
from locb.service.api.routes import ROUTES, Route
from locb.service.api.token_file import SCOPES
from locb.service.core.service import Service
from locb.service.responses import SECURITY_HEADERS
from serving import serving

ALL_SCOPES = "token with all scopes"
ONE_SCOPE = {scope: f"token with the scope {scope}" for scope in SCOPES}
ROUTE_NAMES = [f"{route.method} {route.path}" for route in ROUTES]


@pytest.fixture(scope="module")
def with_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    scopes = {ALL_SCOPES: frozenset(SCOPES)} | {token: frozenset((scope,)) for scope, token in ONE_SCOPE.items()}
    with serving(tmp_path_factory.mktemp("state"), Tokens(scopes)) as (client, service):
        yield client, service


@pytest.fixture(scope="module")
def without_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    with serving(tmp_path_factory.mktemp("state")) as (client, service):
        yield client, service


def send(client: httpx.Client, route: Route, headers: dict[str, str]) -> httpx.Response:
    """Send a request with an invalid body, because authorization is checked before the body."""
    path = route.path.replace("{", "").replace("}", "")
    body = None if route.request_type is None else {}
    response = client.request(route.method, path, json=body, headers=headers)
    for name, value in SECURITY_HEADERS.items():
        assert response.headers[name] == value
    return response


def check_accepted(route: Route, response: httpx.Response) -> None:
    """Check that a request was authorized: its body is invalid, or it names an unknown user, or it succeeds."""
    personalizer = route.path.startswith("/personalizer")
    if route.request_type not in (None, Raw):
        assert response.status_code == (400 if personalizer else 422), response.text
    elif "{" in route.path:
        assert response.status_code == 404, response.text
        assert "unknown" in response.text, response.text  # the user or the event, not the route
    else:
        assert response.status_code == route.status, response.text


@pytest.mark.parametrize("route", ROUTES, ids=ROUTE_NAMES)
def test_every_route_requires_its_scope(with_tokens: tuple[httpx.Client, Service], route: Route) -> None:
    client, service = with_tokens
    unauthorized: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {ALL_SCOPES}x"},
        {"Authorization": f"Bearer {ALL_SCOPES[:-1]}"},
        {"Authorization": f"Basic {ALL_SCOPES}"},
        {"Authorization": ALL_SCOPES},
        {"Ocp-Apim-Subscription-Key": "another"},
        {"Authorization": "Bearer wrong", "Ocp-Apim-Subscription-Key": ALL_SCOPES},
    ]
    if route.scope is None:
        for headers in unauthorized:
            check_accepted(route, send(client, route, headers))
        return
    for headers in unauthorized:
        response = send(client, route, headers)
        assert response.status_code == 401, headers
        assert response.headers["www-authenticate"] == "Bearer"
    for scope in SCOPES:
        token = ONE_SCOPE[scope]
        for headers in ({"Authorization": f"Bearer {token}"}, {"Ocp-Apim-Subscription-Key": token}):
            response = send(client, route, headers)
            if scope == route.scope:
                check_accepted(route, response)
            else:
                assert response.status_code == 403, response.text
    for headers in ({"Authorization": f"bearer {ALL_SCOPES}"}, {"Ocp-Apim-Subscription-Key": ALL_SCOPES}):
        check_accepted(route, send(client, route, headers))
    assert service.engine.seq == 0


def test_tokens_in_the_query_are_ignored(with_tokens: tuple[httpx.Client, Service]) -> None:
    client, _ = with_tokens
    for name in ("token", "access_token", "subscription-key"):
        assert client.get("/v1/clusters", params={name: ALL_SCOPES}).status_code == 401


def test_tokens_are_not_disclosed(with_tokens: tuple[httpx.Client, Service], caplog: pytest.LogCaptureFixture) -> None:
    client, service = with_tokens
    unknown = "a token of another service"
    with caplog.at_level(logging.DEBUG):
        for token in (ALL_SCOPES, *ONE_SCOPE.values(), unknown):
            for route in ROUTES:
                response = send(client, route, {"Authorization": f"Bearer {token}"})
                assert token not in response.text
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(service.engine, "_explain_batch", None)
            body = {"user": "ann", "arms": [{"id": "a", "features": [1, 0, 0]}]}
            failed = client.post("/v1/recommend", json=body, headers={"Authorization": f"Bearer {ALL_SCOPES}"})
    assert failed.status_code == 500
    assert "Traceback" not in failed.text
    assert "Traceback" in caplog.text
    for token in (ALL_SCOPES, *ONE_SCOPE.values(), unknown):
        assert token not in caplog.text
        assert token not in repr(vars(service))


@pytest.mark.parametrize("route", ROUTES, ids=ROUTE_NAMES)
def test_without_tokens_only_local_requests_are_accepted(
    without_tokens: tuple[httpx.Client, Service], route: Route
) -> None:
    client, service = without_tokens
    own = f"http://127.0.0.1:{client.base_url.port}"
    for headers in (
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost.evil.example:8080"},
        {"Host": "[2001:db8::1]:8080"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:3000"},  # a page of another program on this machine
        {"Origin": "http://localhost"},
        {"Origin": ""},
        {"Origin": own.replace("http://", "https://")},
        {"Origin": own.replace("127.0.0.1", "localhost")},
    ):
        response = send(client, route, headers)
        assert response.status_code == 403, headers
    for headers in (
        {"Host": "localhost"},
        {"Host": "LOCALHOST:8080"},
        {"Host": "127.0.0.1"},
        {"Host": "[::1]:8080"},
        {"Origin": own},
        {"Host": "localhost:9000", "Origin": "http://localhost:9000"},  # a forwarded port
    ):
        check_accepted(route, send(client, route, headers))
    assert service.engine.seq == 0

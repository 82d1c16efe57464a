"""Authorization of every route: by the scope of the token or, without tokens, by the Host and Origin headers."""

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from msgspec import Raw

from locb.service.api.auth import Tokens
from locb.service.api.limits import MAX_CLIENTS, FailedTokens
from locb.service.api.routes import ROUTES, Route
from locb.service.api.scopes import SCOPES
from locb.service.core.service import Service
from locb.service.responses import SECURITY_HEADERS
from serving import serving

ALL_SCOPES = "token with all scopes"
ONE_SCOPE = {scope: f"token with the scope {scope}" for scope in SCOPES}
ROUTE_NAMES = [f"{route.method} {route.path}" for route in ROUTES]


@pytest.fixture(scope="module")
def with_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    scopes = {ALL_SCOPES: frozenset(SCOPES)} | {token: frozenset((scope,)) for scope, token in ONE_SCOPE.items()}
    with serving(tmp_path_factory.mktemp("state"), Tokens(scopes), max_failed_tokens=10_000) as (client, service):
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
                assert f"this token does not have the scope '{route.scope}'" in response.text
    for headers in ({"Authorization": f"bearer {ALL_SCOPES}"}, {"Ocp-Apim-Subscription-Key": ALL_SCOPES}):
        check_accepted(route, send(client, route, headers))
    assert service.engine.seq == 0


def test_tokens_in_the_query_are_ignored(with_tokens: tuple[httpx.Client, Service]) -> None:
    client, _ = with_tokens
    accepted = {"Authorization": f"Bearer {ALL_SCOPES}"}
    for name in ("token", "access_token", "subscription-key"):
        response = client.get("/v1/clusters", params={name: ALL_SCOPES})
        assert response.status_code == 401
        assert response.json()["detail"].startswith("the token is missing or unknown; send a valid token in the header")
        assert client.get("/v1/clusters", params={name: ALL_SCOPES}, headers=accepted).status_code == 200


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


def test_unknown_tokens_are_limited_per_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens = Tokens(dict.fromkeys(("first-valid-token", "second-valid-token"), frozenset({"read"})))
    with (
        caplog.at_level(logging.WARNING),
        serving(tmp_path, tokens, max_failed_tokens=3) as (client, _),
        httpx.Client(base_url=client.base_url, transport=httpx.HTTPTransport(local_address="127.0.0.2")) as other,
    ):

        def status(token: str | None, client: httpx.Client = client) -> int:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            return client.get("/v1/clusters", headers=headers).status_code

        assert status("first-valid-token") == 200
        assert [status(None) for _ in range(5)] == [401] * 5  # no token was guessed
        assert [status(f"guess-{number}") for number in range(5)] == [401, 401, 401, 429, 429]
        assert status("first-valid-token") == 200  # was used before from the same address
        assert status("second-valid-token") == 429  # could be a guess
        assert status("second-valid-token", other) == 200
        assert status("guess", other) == 401
        refused = client.get("/v1/clusters", headers={"Authorization": "Bearer guess"})
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.json()["type"] == "urn:locb:problem:too-many-requests"
        assert client.get("/v1/health", headers={"Authorization": "Bearer guess"}).status_code == 200
    (record,) = [record for record in caplog.records if "unknown token" in record.getMessage()]
    assert record.getMessage().startswith("127.0.0.1 has sent 3 requests with an unknown token within a minute")


def test_failed_tokens_are_counted_per_period(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = FailedTokens(2)
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    for _ in range(2):
        assert failures.retry_after("ann") == 0
        failures.add("ann")
    assert failures.retry_after("ann") == 60
    now += 59.5
    assert failures.retry_after("ann") == 1
    assert failures.retry_after("bob") == 0
    now += 1.0
    assert failures.retry_after("ann") == 0
    failures.add("ann")
    assert failures.retry_after("ann") == 0
    for number in range(3 * MAX_CLIENTS):
        failures.add(f"client {number}")
    assert len(failures) == MAX_CLIENTS


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
        ((name, value),) = headers.items()
        assert f"this service has no tokens: the {name} header must " in response.text
        assert f", not '{value}'; to allow other hosts" in response.text
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

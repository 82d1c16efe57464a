"""Invalid requests are answered with a problem (RFC 9457) and change nothing."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from locb.service.core.service import Service
from serving import arms, is_safe, serving, state

MAX_BODY = 60_000  # bytes
N_BRACKETS = 100_000
RECOMMEND, REWARD, RANK = "/v1/recommend", "/v1/reward", "/personalizer/v1.0/rank"
ARM = {"id": "a", "features": [1.0, 0.0, 0.0]}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    with serving(tmp_path_factory.mktemp("state"), policy="locb", max_body=MAX_BODY) as (client, service):
        client.event_hooks["response"] = [is_safe]
        for user in ("ann", "bob", "ann"):
            decision = client.post(RECOMMEND, json={"user": user, "arms": arms([1, 0, 0], [0, 1, 0])}).json()
            client.post(REWARD, json={"decision_id": decision["decision_id"], "reward": 1.0})
        client.post(RECOMMEND, json={"user": "ann", "arms": arms([1, 0, 0]), "decision_id": "known"})
        yield client, service


def check_problem(response: httpx.Response, status: int, kind: str) -> None:
    """Check that the response is a problem with this status and type."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert (problem["type"], problem["status"]) == (f"urn:locb:problem:{kind}", status)
    assert problem["title"]
    assert 0 < len(problem["detail"]) < 500


def recommend_body(**fields: Any) -> bytes:
    return json.dumps({"user": "ann", "arms": [ARM]} | fields).encode()


def body_with_features(text: str) -> bytes:
    return recommend_body().replace(b"[1.0, 0.0, 0.0]", text.encode())


# Path, body, status, type of the problem, and the start of its detail, after the field if the problem names one.
INVALID: dict[str, tuple[str, bytes, int, str, str]] = {
    "NaN": (
        RECOMMEND,
        body_with_features("[NaN, 0, 0]"),
        400,
        "bad-request",
        "not valid JSON: JSON is malformed: invalid character",
    ),
    "Infinity": (
        RECOMMEND,
        body_with_features("[0, -Infinity, 0]"),
        400,
        "bad-request",
        "not valid JSON: JSON is malformed: invalid character",
    ),
    "1e999": (
        RECOMMEND,
        body_with_features("[0, 1e999, 0]"),
        422,
        "invalid",
        "arms[0].features[1]: Number out of range",
    ),
    "feature out of range": (
        RECOMMEND,
        body_with_features("[0, 1e7, 0]"),
        422,
        "invalid",
        "arms[0].features: features must be numbers from -1e+06 to 1e+06, not 1e+07",
    ),
    "features whose squares overflow": (
        RECOMMEND,
        body_with_features("[1e300, 1e300, 0]"),
        422,
        "invalid",
        "arms[0].features: features must be numbers from -1e+06 to 1e+06, not 1e+300",
    ),
    "1e999 as a named feature": (
        RECOMMEND,
        body_with_features('{"x": 1e999}'),
        422,
        "invalid",
        "arms[0].features[...]: Number out of range",
    ),
    "number with 400 digits": (
        RECOMMEND,
        body_with_features("[%s, 0, 0]" % ("9" * 400)),
        422,
        "invalid",
        "arms[0].features[0]: Number out of range",
    ),
    "empty feature name": (
        RECOMMEND,
        body_with_features('{"": 1}'),
        422,
        "invalid",
        "arms[0].features: feature names must be non-empty strings, not ''",
    ),
    "null feature value": (
        RECOMMEND,
        body_with_features('{"x": null}'),
        422,
        "invalid",
        "arms[0].features[...]: Expected `bool | float | str`, got `null`",
    ),
    "too few features": (
        RECOMMEND,
        body_with_features("[1, 0]"),
        422,
        "invalid",
        "arms[0].features: features must be 3 numbers, the number of features per arm, not 2",
    ),
    "too many features": (
        RECOMMEND,
        body_with_features("[1, 0, 0, 0]"),
        422,
        "invalid",
        "arms[0].features: features must be 3 numbers, the number of features per arm, not 4",
    ),
    "no features": (
        RECOMMEND,
        body_with_features("[]"),
        422,
        "invalid",
        "arms[0].features: features must be 3 numbers, the number of features per arm, not 0",
    ),
    "no arms": (RECOMMEND, recommend_body(arms=[]), 422, "invalid", "arms: Expected `array` of length >= 1"),
    "1,001 arms": (
        RECOMMEND,
        recommend_body(arms=[{"id": str(a), "features": [1, 0, 0]} for a in range(1001)]),
        422,
        "invalid",
        "arms: Expected `array` of length <= 1000",
    ),
    "duplicate arm": (
        RECOMMEND,
        recommend_body(arms=[ARM, ARM]),
        422,
        "invalid",
        "arms[1].id: ids of arms must be unique, but two arms have the id 'a'",
    ),
    "all arms excluded": (
        RECOMMEND,
        recommend_body(exclude=["a"]),
        422,
        "invalid",
        "exclude: exclude must not contain all arms",
    ),
    "unknown arm excluded": (
        RECOMMEND,
        recommend_body(exclude=["z"]),
        422,
        "invalid",
        "exclude: exclude contains 'z', which is not the id of an arm",
    ),
    "count 0": (RECOMMEND, recommend_body(count=0), 422, "invalid", "count: Expected `int` >= 1"),
    "count 10**30": (RECOMMEND, recommend_body(count=10**30), 422, "invalid", "count: Expected `int` <= 1000"),
    "empty user id": (RECOMMEND, recommend_body(user=""), 422, "invalid", "user: Expected `str` of length >= 1"),
    "user id with 257 characters": (
        RECOMMEND,
        recommend_body(user="x" * 257),
        422,
        "invalid",
        "user: Expected `str` of length <= 256",
    ),
    "user id is a number": (RECOMMEND, recommend_body(user=7), 422, "invalid", "user: Expected `str`, got `int`"),
    "unknown field": (RECOMMEND, recommend_body(contxt=1), 422, "invalid", "Object contains unknown field `contxt`"),
    "decision id of another request": (
        RECOMMEND,
        recommend_body(decision_id="known", user="bob"),
        409,
        "conflict",
        "decision 'known' already exists for a different request",
    ),
    "deep lists": (
        RECOMMEND,
        b'{"user": "ann", "arms": ' + b"[" * N_BRACKETS,
        413,
        "too-large",
        "the body is larger than the maximum of 60000 bytes",
    ),
    "deep lists below the limit": (
        RECOMMEND,
        b'{"user": "ann", "arms": ' + b"[" * (MAX_BODY // 2),
        422,
        "invalid",
        "arms[0]: Expected `object`, got `array`",
    ),
    "deep objects in a field": (
        RECOMMEND,
        b'{"user": ' + b'{"a":' * (MAX_BODY // 6),
        422,
        "invalid",
        "user: Expected `str`, got `object`",
    ),
    "high surrogate": (
        RECOMMEND,
        b'{"user": "\\ud800", "arms": []}',
        400,
        "bad-request",
        "not valid JSON: JSON is malformed: unexpected end of escaped utf-16 surrogate pair",
    ),
    "low surrogate": (
        REWARD,
        b'{"decision_id": "\\udc00", "reward": 1}',
        400,
        "bad-request",
        "not valid JSON: JSON is malformed: invalid utf-16 surrogate pair",
    ),
    "surrogate in bytes": (
        REWARD,
        b'{"decision_id": "\xed\xa0\x80", "reward": 1}',
        400,
        "bad-request",
        "not valid JSON: 'utf-8' codec can't decode byte 0xed",
    ),
    "not UTF-8": (
        REWARD,
        b'{"decision_id": "\xff", "reward": 1}',
        400,
        "bad-request",
        "not valid JSON: 'utf-8' codec can't decode byte 0xff",
    ),
    "not JSON": (
        REWARD,
        b"decision_id=7",
        400,
        "bad-request",
        "not valid JSON: JSON is malformed: invalid character (byte 0)",
    ),
    "data after the JSON": (
        REWARD,
        b'{"decision_id": "known", "reward": 1} {}',
        400,
        "bad-request",
        "not valid JSON: JSON is malformed: trailing characters",
    ),
    "empty body": (REWARD, b"", 400, "bad-request", "not valid JSON: Input data was truncated"),
    "null body": (REWARD, b"null", 422, "invalid", "Expected `object`, got `null`"),
    "reward is a string": (
        REWARD,
        b'{"decision_id": "known", "reward": "1"}',
        422,
        "invalid",
        "reward: Expected `float`, got `str`",
    ),
    "reward NaN": (
        REWARD,
        b'{"decision_id": "known", "reward": NaN}',
        400,
        "bad-request",
        "not valid JSON: JSON is malformed: invalid character",
    ),
    "reward 1e999": (
        REWARD,
        b'{"decision_id": "known", "reward": 1e999}',
        422,
        "invalid",
        "reward: Number out of range",
    ),
    "reward out of range": (
        REWARD,
        b'{"decision_id": "known", "reward": 1e7}',
        422,
        "invalid",
        "reward: Expected `float` <= 1000000.0",
    ),
    "unknown decision": (
        REWARD,
        b'{"decision_id": "unknown", "reward": 1}',
        404,
        "unknown-decision",
        (
            "unknown decision 'unknown': no decision has this id, its user was erased, or its request is not stored; "
            "use the decision_id of a response of /v1/recommend, or the eventId of a response of Personalizer's rank"
        ),
    ),
    "empty batch": (
        "/v1/recommend:batch",
        b'{"requests": []}',
        422,
        "invalid",
        "requests: Expected `array` of length >= 1",
    ),
    "batch with 1,001 rewards": (
        "/v1/reward:batch",
        json.dumps({"rewards": [{"decision_id": "known", "reward": 1}] * 1001}).encode(),
        422,
        "invalid",
        "rewards: Expected `array` of length <= 1000",
    ),
    "body above the size limit": (
        RECOMMEND,
        recommend_body(user="x" * MAX_BODY),
        413,
        "too-large",
        "the body is larger than the maximum of 60000 bytes",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_body(running: tuple[httpx.Client, Service], name: str) -> None:
    client, service = running
    path, body, status, kind, detail = INVALID[name]
    before = state(service)
    response = client.post(path, content=body, headers={"Content-Type": "application/json"})
    check_problem(response, status, kind)
    problem = response.json()
    assert detail in ": ".join([*problem.get("fields", []), problem["detail"]])
    assert state(service) == before


DEEP_LISTS = b'{"actions": [{"id": "a", "features": ' + b"[" * (MAX_BODY // 3)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (DEEP_LISTS, "not valid JSON: maximum recursion depth exceeded"),
        (DEEP_LISTS + b"]" * (MAX_BODY // 3) + b"}]}", "not valid JSON: maximum recursion depth exceeded"),
        (b'{"actions": []}', "Expected `array` of length >= 1"),
        (b'{"actions": [{"id": "a"}, {"id": "a"}]}', "actions[1].id must be unique, but 'a' occurs twice"),
        (b'{"actions": [{"id": "a", "features": [{"x": 1e999}]}]}', "Number out of range"),
        (b'{"actions": [{"id": "a", "features": [{"x": %s}]}]}' % (b"9" * 400), "features[0].x must be a number"),
        (b'{"actions": [{"id": "a", "features": [{"": 1}]}]}', "must not contain a feature with an empty name"),
        (b'{"actions": [{"id": "a"}], "contextFeatures": [{"user": {"id": [1]}}]}', "user.id (a user id) must be"),
        (b'{"actions": [{"id": "\\ud800"}]}', "not valid JSON: "),
    ],
)
def test_invalid_rank_request(running: tuple[httpx.Client, Service], body: bytes, message: str) -> None:
    client, service = running
    before = state(service)
    response = client.post(RANK, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["code"] == "BadRequest"
    assert message in response.json()["error"]["message"]
    assert state(service) == before


@pytest.mark.parametrize(
    ("path", "body", "field", "at", "allowed"),
    [
        (
            RECOMMEND,
            {"user": "ann", "arms": [ARM], "contxt": 1},
            "contxt",
            None,
            "user, arms, exclude, count, decision_id",
        ),
        (RECOMMEND, {"user": "ann", "arms": [ARM, ARM | {"x": 1}]}, "x", "arms[1]", "id, features"),
        ("/v1/recommend:batch", {"requests": [{"arms": [ARM | {"x": 1}]}]}, "x", "requests[0].arms[0]", "id, features"),
        (REWARD, {"decision_id": "known", "reward": 1, "rewrd": 2}, "rewrd", None, "decision_id, reward"),
        ("/v1/reward:batch", {"rewards": [{"value": 1}]}, "value", "rewards[0]", "decision_id, reward"),
        ("/v1/preview", {"decision_id": "a"}, "decision_id", None, "user, arms, exclude, count"),
    ],
)
def test_unknown_field_lists_the_allowed_fields(
    running: tuple[httpx.Client, Service], path: str, body: Any, field: str, at: str | None, allowed: str
) -> None:
    response = running[0].post(path, json=body)
    check_problem(response, 422, "invalid")
    assert response.json()["detail"] == f"Object contains unknown field `{field}`; the allowed fields are {allowed}"
    assert response.json().get("fields") == (None if at is None else [at])


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/page", 404, "not-found"),
        ("GET", "/v1", 404, "not-found"),
        ("GET", "/v1/recommend/", 404, "not-found"),
        ("GET", "/v1/users/", 404, "not-found"),
        ("GET", "/v1/users/a/b/c", 404, "not-found"),
        ("GET", "/v1/../etc/passwd", 404, "not-found"),
        ("GET", "/v1/users/unknown", 404, "unknown-user"),
        ("GET", "/v1/users/%00", 404, "unknown-user"),
        ("GET", "/v1/users/%FF", 400, "bad-request"),
        ("GET", "/v1/users/%C3%28", 400, "bad-request"),
        ("GET", f"/v1/users/{'x' * 257}", 422, "invalid"),
        ("GET", "/v1/clusters/unknown", 404, "unknown-user"),
        ("DELETE", "/v1/users/unknown", 404, "unknown-user"),
        ("GET", "/v1/users/ann/similar?limit=-1", 422, "invalid"),
        ("GET", "/v1/users/ann/similar?limit=1001", 422, "invalid"),
        ("GET", "/v1/users/ann/similar?limit=%FF", 422, "invalid"),
        ("GET", f"/v1/users/ann/similar?limit={'9' * 5000}", 422, "invalid"),
        ("GET", "/v1/users/ann/similar?limit=", 422, "invalid"),
        ("GET", RECOMMEND, 405, "method-not-allowed"),
        ("PUT", REWARD, 405, "method-not-allowed"),
        ("POST", "/v1/users/ann", 405, "method-not-allowed"),
        ("OPTIONS", RECOMMEND, 405, "method-not-allowed"),
        ("TRACE", "/v1/health", 405, "method-not-allowed"),
        ("DELETE", "/openapi.json", 405, "method-not-allowed"),
    ],
)
def test_invalid_path_or_method(
    running: tuple[httpx.Client, Service], method: str, path: str, status: int, kind: str
) -> None:
    client, service = running
    before = state(service)
    response = client.request(method, path)
    check_problem(response, status, kind)
    if status == 405:
        allowed = {"/v1/users/ann": "GET, DELETE", "/v1/health": "GET", "/openapi.json": "GET"}
        assert response.headers["allow"] == allowed.get(path, "POST")
    assert state(service) == before


def test_head_is_not_allowed(running: tuple[httpx.Client, Service]) -> None:
    response = running[0].head("/v1/health")
    assert (response.status_code, response.headers["allow"], response.content) == (405, "GET", b"")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "é"]
)
def test_other_content_types(running: tuple[httpx.Client, Service], content_type: str) -> None:
    client, service = running
    before = state(service)
    response = client.post(RECOMMEND, content=recommend_body(), headers={"Content-Type": content_type.encode()})
    check_problem(response, 415, "unsupported-media-type")
    assert state(service) == before


def test_missing_content_type(running: tuple[httpx.Client, Service]) -> None:
    client, service = running
    before = state(service)
    response = client.post(RECOMMEND, content=recommend_body())
    check_problem(response, 415, "unsupported-media-type")
    assert "the header Content-Type is missing" in response.json()["detail"]
    assert state(service) == before


def test_chunked_body(running: tuple[httpx.Client, Service]) -> None:
    client, service = running
    before = state(service)
    huge = (b"[" * 10_000 for _ in range(200))
    check_problem(client.post(RECOMMEND, content=huge, headers={"Content-Type": "application/json"}), 413, "too-large")
    assert state(service) == before
    assert client.get("/v1/ping").status_code == 204
    small = (bytes([byte]) for byte in recommend_body(decision_id="in pieces"))
    assert client.post(RECOMMEND, content=small, headers={"Content-Type": "application/json"}).status_code == 200

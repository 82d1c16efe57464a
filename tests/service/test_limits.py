"""What does not fit is told, as RFC 9457 says, and changes nothing."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from locb.service.core.service import Service
from serving import arms, is_safe, serving, state

BODY = 60_000  # bytes, at most
BRACKETS = 100_000
ASK, PAY, RANK = "/v1/recommend", "/v1/reward", "/personalizer/v1.0/rank"
ARM = {"id": "a", "features": [1.0, 0.0, 0.0]}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    with serving(tmp_path_factory.mktemp("state"), policy="locb", max_body_bytes=BODY) as (client, service):
        client.event_hooks["response"] = [is_safe]
        for user in ("ann", "bob", "ann"):
            told = client.post(ASK, json={"user": user, "arms": arms([1, 0, 0], [0, 1, 0])}).json()
            client.post(PAY, json={"decision_id": told["decision_id"], "reward": 1.0})
        client.post(ASK, json={"user": "ann", "arms": arms([1, 0, 0]), "decision_id": "known"})
        yield client, service


def refused(answer: httpx.Response, status: int, kind: str) -> None:
    """It must be a problem of this kind."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert (told["type"], told["status"]) == (f"urn:locb:problem:{kind}", status)
    assert told["title"]
    assert 0 < len(told["detail"]) < 500


def question(**more: Any) -> bytes:
    return json.dumps({"user": "ann", "arms": [ARM]} | more).encode()


def features(text: str) -> bytes:
    return question().replace(b"[1.0, 0.0, 0.0]", text.encode())


BAD: dict[str, tuple[str, bytes, int, str]] = {
    "NaN": (ASK, features("[NaN, 0, 0]"), 400, "bad-request"),
    "Infinity": (ASK, features("[0, -Infinity, 0]"), 400, "bad-request"),
    "1e999": (ASK, features("[0, 1e999, 0]"), 422, "invalid"),
    "too large a feature": (ASK, features("[0, 1e7, 0]"), 422, "invalid"),
    "features whose squares overflow": (ASK, features("[1e300, 1e300, 0]"), 422, "invalid"),
    "1e999 by name": (ASK, features('{"x": 1e999}'), 422, "invalid"),
    "a number of 400 digits": (ASK, features("[%s, 0, 0]" % ("9" * 400)), 422, "invalid"),
    "a name that is empty": (ASK, features('{"": 1}'), 422, "invalid"),
    "a value that is null": (ASK, features('{"x": null}'), 422, "invalid"),
    "too few features": (ASK, features("[1, 0]"), 422, "invalid"),
    "too many features": (ASK, features("[1, 0, 0, 0]"), 422, "invalid"),
    "no features": (ASK, features("[]"), 422, "invalid"),
    "no arms": (ASK, question(arms=[]), 422, "invalid"),
    "1,001 arms": (ASK, question(arms=[{"id": str(a), "features": [1, 0, 0]} for a in range(1001)]), 422, "invalid"),
    "an arm twice": (ASK, question(arms=[ARM, ARM]), 422, "invalid"),
    "all excluded": (ASK, question(exclude=["a"]), 422, "invalid"),
    "an unknown one excluded": (ASK, question(exclude=["z"]), 422, "invalid"),
    "a count of 0": (ASK, question(count=0), 422, "invalid"),
    "a count of 10**30": (ASK, question(count=10**30), 422, "invalid"),
    "a user without a name": (ASK, question(user=""), 422, "invalid"),
    "a user of 257 characters": (ASK, question(user="x" * 257), 422, "invalid"),
    "a user who is a number": (ASK, question(user=7), 422, "invalid"),
    "a field that is not known": (ASK, question(contxt=1), 422, "invalid"),
    "a decision under a name that is taken": (ASK, question(decision_id="known", user="bob"), 409, "conflict"),
    "deep lists": (ASK, b'{"user": "ann", "arms": ' + b"[" * BRACKETS, 413, "too-large"),
    "deep lists that fit": (ASK, b'{"user": "ann", "arms": ' + b"[" * (BODY // 2), 422, "invalid"),
    "deep objects in a field": (ASK, b'{"user": ' + b'{"a":' * (BODY // 6), 422, "invalid"),
    "half of a surrogate pair": (ASK, b'{"user": "\\ud800", "arms": []}', 400, "bad-request"),
    "the other half": (PAY, b'{"decision_id": "\\udc00", "reward": 1}', 400, "bad-request"),
    "a surrogate in bytes": (PAY, b'{"decision_id": "\xed\xa0\x80", "reward": 1}', 400, "bad-request"),
    "not UTF-8": (PAY, b'{"decision_id": "\xff", "reward": 1}', 400, "bad-request"),
    "not JSON": (PAY, b"decision_id=7", 400, "bad-request"),
    "more than JSON": (PAY, b'{"decision_id": "known", "reward": 1} {}', 400, "bad-request"),
    "an empty body": (PAY, b"", 400, "bad-request"),
    "a body that is null": (PAY, b"null", 422, "invalid"),
    "a reward that is not a number": (PAY, b'{"decision_id": "known", "reward": "1"}', 422, "invalid"),
    "a reward of NaN": (PAY, b'{"decision_id": "known", "reward": NaN}', 400, "bad-request"),
    "a reward of 1e999": (PAY, b'{"decision_id": "known", "reward": 1e999}', 422, "invalid"),
    "a reward of 1e7": (PAY, b'{"decision_id": "known", "reward": 1e7}', 422, "invalid"),
    "a reward for nothing": (PAY, b'{"decision_id": "unknown", "reward": 1}', 404, "unknown-decision"),
    "a batch of nothing": ("/v1/recommend:batch", b'{"requests": []}', 422, "invalid"),
    "a batch of too many": (
        "/v1/reward:batch",
        json.dumps({"rewards": [{"decision_id": "known", "reward": 1}] * 1001}).encode(),
        422,
        "invalid",
    ),
    "a huge body": (ASK, question(user="x" * BODY), 413, "too-large"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_request_that_does_not_fit(running: tuple[httpx.Client, Service], name: str) -> None:
    client, service = running
    path, body, status, kind = BAD[name]
    before = state(service)
    refused(client.post(path, content=body, headers={"Content-Type": "application/json"}), status, kind)
    assert state(service) == before


DEEP = b'{"actions": [{"id": "a", "features": ' + b"[" * (BODY // 3)


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        DEEP + b"]" * (BODY // 3) + b"}]}",
        b'{"actions": []}',
        b'{"actions": [{"id": "a"}, {"id": "a"}]}',
        b'{"actions": [{"id": "a", "features": [{"x": 1e999}]}]}',
        b'{"actions": [{"id": "a", "features": [{"x": %s}]}]}' % (b"9" * 400),
        b'{"actions": [{"id": "a", "features": [{"": 1}]}]}',
        b'{"actions": [{"id": "a"}], "contextFeatures": [{"user": {"id": [1]}}]}',
        b'{"actions": [{"id": "\\ud800"}]}',
    ],
)
def test_a_rank_request_that_does_not_fit(running: tuple[httpx.Client, Service], body: bytes) -> None:
    client, service = running
    before = state(service)
    answer = client.post(RANK, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == "BadRequest"
    assert state(service) == before


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/page", 404, "not-found"),
        ("GET", "/v1", 404, "not-found"),
        ("GET", "/v1/recommend/", 404, "not-found"),
        ("GET", "/v1/users/", 404, "not-found"),
        ("GET", "/v1/users/a/b/c", 404, "not-found"),
        ("GET", "/v1/../etc/passwd", 404, "not-found"),
        ("GET", "/v1/users/nobody", 404, "unknown-user"),
        ("GET", "/v1/users/%00", 404, "unknown-user"),
        ("GET", "/v1/users/%FF", 400, "bad-request"),
        ("GET", "/v1/users/%C3%28", 400, "bad-request"),
        ("GET", f"/v1/users/{'x' * 257}", 422, "invalid"),
        ("GET", "/v1/clusters/nobody", 404, "unknown-user"),
        ("DELETE", "/v1/users/nobody", 404, "unknown-user"),
        ("GET", "/v1/users/ann/similar?limit=-1", 422, "invalid"),
        ("GET", "/v1/users/ann/similar?limit=1001", 422, "invalid"),
        ("GET", "/v1/users/ann/similar?limit=%FF", 422, "invalid"),
        ("GET", f"/v1/users/ann/similar?limit={'9' * 5000}", 422, "invalid"),
        ("GET", "/v1/users/ann/similar?limit=", 422, "invalid"),
        ("GET", ASK, 405, "method-not-allowed"),
        ("PUT", PAY, 405, "method-not-allowed"),
        ("POST", "/v1/users/ann", 405, "method-not-allowed"),
        ("OPTIONS", ASK, 405, "method-not-allowed"),
        ("TRACE", "/v1/health", 405, "method-not-allowed"),
        ("DELETE", "/openapi.json", 405, "method-not-allowed"),
    ],
)
def test_a_path_or_method_that_is_not_there(
    running: tuple[httpx.Client, Service], method: str, path: str, status: int, kind: str
) -> None:
    client, service = running
    before = state(service)
    answer = client.request(method, path)
    refused(answer, status, kind)
    if status == 405:
        allowed = {"/v1/users/ann": "GET, DELETE", "/v1/health": "GET", "/openapi.json": "GET"}
        assert answer.headers["allow"] == allowed.get(path, "POST")
    assert state(service) == before


def test_head_is_not_done(running: tuple[httpx.Client, Service]) -> None:
    answer = running[0].head("/v1/health")
    assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "GET", b"")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "é"])
def test_a_body_that_does_not_say_it_is_json(running: tuple[httpx.Client, Service], kind: str) -> None:
    client, service = running
    before = state(service)
    answer = client.post(ASK, content=question(), headers={"Content-Type": kind.encode()})
    refused(answer, 415, "unsupported-media-type")
    assert state(service) == before


def test_a_body_whose_length_is_not_told(running: tuple[httpx.Client, Service]) -> None:
    client, service = running
    before = state(service)
    huge = (b"[" * 10_000 for _ in range(200))
    refused(client.post(ASK, content=huge, headers={"Content-Type": "application/json"}), 413, "too-large")
    assert state(service) == before
    assert client.get("/v1/ping").status_code == 204
    small = (bytes([byte]) for byte in question(decision_id="in pieces"))
    assert client.post(ASK, content=small, headers={"Content-Type": "application/json"}).status_code == 200

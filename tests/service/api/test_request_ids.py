"""Request ids: accepted from the client or generated, and returned in every response, problem and log line."""

import io
import json
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import locb
from locb.recommender.events import REWARD, ObservationRow
from locb.service.api.routes import ROUTES
from locb.service.core.learning import learn
from locb.service.core.service import Service
from locb.service.server import JsonFormatter
from locb.service.store.database import StoreError
from serving import arms, serving

SCALE_PROBLEM = (
    "a reward of 500 is not in -0.5 … 1.5, but the policy assumes rewards of about 0 to 1, and its choices may be poor"
)
GIVEN = "client-7/a:b=c"
RECOMMEND = {"user": "ann", "arms": arms([1, 0, 0], [0, 1, 0])}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    with serving(tmp_path_factory.mktemp("state")) as (client, service):
        yield client, service


@contextmanager
def log_output() -> Iterator[io.StringIO]:
    """Collect the log output of a service in the format of ``locb serve``."""
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(JsonFormatter())
    loggers = [logging.getLogger(name) for name in ("locb.service", "uvicorn.error")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield output
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def entries(output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


@pytest.mark.parametrize("path", [*(route.path for route in ROUTES), "/", "/page/page.js", "/openapi.json", "/nowhere"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_every_response_has_the_id_of_the_request(
    running: tuple[httpx.Client, Service], method: str, path: str
) -> None:
    client, _ = running
    path = path.replace("{", "").replace("}", "")
    seen = set()
    for headers in ({"X-Request-Id": GIVEN}, {}, {}):
        response = client.request(method, path, headers=headers)
        (request_id,) = response.headers.get_list("x-request-id")
        assert request_id == GIVEN or not headers
        seen.add(request_id)
        if response.status_code >= 400:
            body = response.json()
            assert body.get("request_id", body.get("error", {}).get("requestId")) == request_id
    assert len(seen) == 3


@pytest.mark.parametrize("invalid", [b"", b"a b", b"x" * 129, b"caf\xe9", b"tab\there"])
def test_invalid_id_is_replaced(running: tuple[httpx.Client, Service], invalid: bytes) -> None:
    response = running[0].get("/v1/ping", headers=[(b"X-Request-Id", invalid)])
    assert response.status_code == 204
    request_id = response.headers["x-request-id"]
    assert request_id.isalnum()
    assert request_id.encode() != invalid


def test_problems_of_a_batch_have_the_id(running: tuple[httpx.Client, Service]) -> None:
    rewards = {"rewards": [{"decision_id": name, "reward": 1.0} for name in ("unknown", "also unknown")]}
    response = running[0].post("/v1/reward:batch", json=rewards, headers={"X-Request-Id": GIVEN})
    assert [result["problem"]["request_id"] for result in response.json()["results"]] == [GIVEN, GIVEN]


def receive_problem(client: httpx.Client, request: bytes) -> tuple[bytes, dict[str, Any]]:
    """Send bytes, and return the head and the problem that the service sends before it closes the connection."""
    with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=60) as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    problem: dict[str, Any] = json.loads(body)
    return head, problem


@pytest.mark.parametrize(
    ("request_bytes", "given"),
    [
        (b"POST /v1/reward HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: mine\r\nContent-Length: -7\r\n\r\n", True),
        (b"not HTTP at all\r\n\r\n", False),
    ],
)
def test_invalid_http_has_an_id(running: tuple[httpx.Client, Service], request_bytes: bytes, given: bool) -> None:
    with log_output() as output:
        head, problem = receive_problem(running[0], request_bytes)
    assert head.startswith(b"HTTP/1.1 400 ")
    request_id = problem["request_id"]
    assert f"x-request-id: {request_id}".encode() in head
    assert (request_id == "mine") == given
    (entry,) = entries(output)
    assert (entry["level"], entry["request_id"]) == ("warning", request_id)


@pytest.mark.parametrize("end", [b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{", b"Accept"])
def test_slow_request_has_an_id(tmp_path: Path, end: bytes) -> None:
    request = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: mine\r\n" + end
    with serving(tmp_path, read_timeout=0.4) as (client, _):
        head, problem = receive_problem(client, request)
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"\r\nx-request-id: mine" in head
    assert problem["request_id"] == "mine"


def test_id_does_not_apply_to_later_data(tmp_path: Path) -> None:
    with (
        serving(tmp_path, read_timeout=0.4) as (client, _),
        socket.create_connection(("127.0.0.1", client.base_url.port), timeout=60) as connection,
    ):
        connection.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: mine\r\n\r\n")
        assert b"\r\nx-request-id: mine" in connection.recv(10_000)
        connection.sendall(b"\r\n")  # starts no request, but must be followed by one in time
        response = connection.recv(10_000)
    assert response.startswith(b"HTTP/1.1 408 ")
    assert b"\r\nx-request-id: " in response
    assert b"mine" not in response


def test_log_lines_have_the_id_of_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path) as (client, service), log_output() as output:

        def fail(*_: Any) -> None:
            raise RuntimeError("broken on purpose")

        def post(path: str, body: Any, request_id: str) -> int:
            return client.post(path, json=body, headers={"X-Request-Id": request_id}).status_code

        decision, *others = [client.post("/v1/recommend", json=RECOMMEND).json()["decision_id"] for _ in range(7)]
        reward = {"decision_id": decision, "reward": 1.0}
        assert entries(output) == []
        with monkeypatch.context() as broken:
            broken.setattr(service.engine, "_explain_batch", fail)
            assert post("/v1/recommend", RECOMMEND, "recommend") == 500
            assert post("/v1/preview", RECOMMEND, "preview") == 500
        with monkeypatch.context() as broken:
            broken.setattr(service.policy, "update", fail)
            assert post("/v1/reward", reward, "reward") == 200
        with monkeypatch.context() as broken:
            broken.setattr(service.engine, "prepare", fail)
            assert post("/v1/reward:batch", {"rewards": [reward, reward]}, "batch") == 200
        with monkeypatch.context() as broken:
            broken.setattr(service.log, "stage", lambda _: fail_store())
            assert post("/v1/recommend", RECOMMEND, "store") == 503
        with monkeypatch.context() as broken:
            broken.setattr(service.event_stats, "add", fail)
            assert post("/v1/recommend", RECOMMEND, "statistics") == 200
        large = {"decision_id": others[0], "reward": 500.0}
        assert post("/v1/reward", large, "scale") == 200
        logged = [
            (entry["message"].split(":")[0], entry.get("request_id", entry.get("request_ids")))
            for entry in entries(output)
            if entry["level"] in ("warning", "error")
        ]
    assert logged == [
        ("the policy failed to recommend", "recommend"),
        ("POST /v1/preview failed", "preview"),
        ("the policy rejected a reward of 1, which stays in the log but is not learned", "reward"),
        ("a batch of commands failed", ["batch", "batch"]),
        ("the store is unavailable", ["store"]),
        ("updating the statistics or writing a snapshot failed after a commit", ["statistics"]),
        (SCALE_PROBLEM, ["scale"]),
    ]


def test_problem_of_the_reward_scale_names_the_requests_that_cause_it() -> None:
    """Five observations and more are learned in one call."""
    contexts = np.array([1.0, 0.0]).tobytes()
    rewards = [0.0, 1.0, 600.0, 700.0, 1.0, 600.0]
    rows = [ObservationRow(k, k, 0, REWARD, 0.0, reward, 0.0, contexts) for k, reward in enumerate(rewards)]
    with log_output() as output:
        learn(locb.LinUCB(n_users=1, dim=2), rows, dict(enumerate(["a", "b", "c", "d", "e", "c"])))
        learn(locb.LinUCB(n_users=1, dim=2), rows)  # a replay: no request
        small = [row._replace(reward=1e-3) for row in rows * 40]
        learn(locb.LinUCB(n_users=1, dim=2), small, dict.fromkeys(range(6), "all"))
    logged = [(entry["message"].partition(" in ")[0], entry.get("request_ids")) for entry in entries(output)]
    assert logged == [
        ("rewards from 0 to 700 are not", ["c", "d"]),
        ("rewards from 0 to 700 are not", None),
        ("240 rewards are at most 0.001", ["all"]),
    ]


def fail_store() -> None:
    raise StoreError("connection lost")

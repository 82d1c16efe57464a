"""HTTP details: invalid HTTP, slow and incomplete requests, disconnects, file responses."""

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from locb.service import http_protocol
from locb.service.core.service import Service
from locb.service.http_protocol import send_whole
from locb.service.responses import SECURITY_HEADERS
from serving import arms, is_safe, serving, state, wait_for


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    with serving(tmp_path_factory.mktemp("state")) as (client, service):
        client.event_hooks["response"] = [is_safe]
        client.post("/v1/recommend", json={"user": "ann", "arms": arms([1, 0, 0])})
        yield client, service


def test_websocket_upgrade_is_ignored(running: tuple[httpx.Client, Service]) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x" * 24}
    response = running[0].get("/v1/recommend", headers=upgrade | {"Sec-WebSocket-Version": "13"})
    assert response.status_code == 405
    assert response.json()["type"] == "urn:locb:problem:method-not-allowed"


@pytest.mark.parametrize(
    ("path", "start", "message"),
    [
        ("/v1/recommend", b"", "Expected `object`, got `array`"),
        ("/v1/recommend", b'{"user": "ann", "arms": ', "Expected `object`, got `array`"),
        ("/v1/recommend", b'{"user": "ann", "arms": [{"id": "a", "features": ', "Expected `float`, got `array`"),
        ("/v1/reward:batch", b'{"rewards": ', "Expected `object`, got `array`"),
        ("/v1/reward:batch", b'{"rewards": [{"decision_id": "d", "reward": ', "Expected `float`, got `array`"),
        # Personalizer's routes ignore unknown fields, and their features may be nested.
        ("/personalizer/v1.0/rank", b'{"unknown": ', "maximum recursion depth exceeded"),
        ("/personalizer/v1.0/rank", b'{"actions": [{"id": "a", "features": ', "maximum recursion depth exceeded"),
    ],
)
def test_deeply_nested_json(running: tuple[httpx.Client, Service], path: str, start: bytes, message: str) -> None:
    client, service = running
    before = state(service)
    for bracket, count in ((b"[", 100_000), (b'[{"a":', 19_000)):  # fewer names than a request may have
        body = start + bracket * count
        response = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == (400 if "rank" in path else 422)
        if bracket == b"[" or "rank" in path:
            assert message in response.text
    assert state(service) == before


@pytest.mark.parametrize(
    ("version", "header", "count"),
    [("1.1", "", 3), ("1.1", "Connection: close\r\n", 1), ("1.0", "", 1), ("1.1", "Expect: 100-continue\r\n", 2)],
)
def test_whole_responses_equal_those_of_uvicorn(
    running: tuple[httpx.Client, Service], monkeypatch: pytest.MonkeyPatch, version: str, header: str, count: int
) -> None:
    """Pipelined requests, of which the last one closes the connection, get the same bytes with and without ASGI."""
    whole = []

    def observe(*arguments: Any) -> bool:
        whole.append(send_whole(*arguments))
        return whole[-1]

    def responses() -> bytes:
        body = b'{"user":"ann","arms":[{"id":"a","features":[1,0,0]}],"decision_id":"same"}'
        head = f"POST /v1/recommend HTTP/{version}\r\nHost: localhost\r\nX-Request-Id: x\r\n{header}"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        last = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: y\r\nConnection: close\r\n\r\n"
        return re.sub(rb"date: [^\r]*", b"date:", send_raw(running[0], (head.encode() + body) * count + last))

    responses()  # the position in the log does not change any more
    monkeypatch.setattr(http_protocol, "send_whole", observe)
    received = responses()
    assert received.count(b"200 OK") == (count + 1 if count > 1 else 1)
    assert sum(whole) == (count if count > 1 else 0)  # a response that closes the connection is left to uvicorn
    monkeypatch.setattr(http_protocol, "send_whole", lambda *_: False)
    assert responses() == received


def send_raw(client: httpx.Client, request: bytes) -> bytes:
    """Send bytes and return everything that is received until the connection is closed."""
    with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=20) as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /v1/users/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"not HTTP at all\r\n\r\n",
        b"POST /v1/reward HTTP/1.1\r\nHost: localhost\r\nContent-Length: -7\r\n\r\n",
        b"POST /v1/reward HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ],
)
def test_invalid_http(running: tuple[httpx.Client, Service], request_bytes: bytes) -> None:
    client, service = running
    before = state(service)
    head, _, body = send_raw(client, request_bytes).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["type"] == "urn:locb:problem:bad-request"
    for name, value in SECURITY_HEADERS.items():
        assert f"{name}: {value}".encode() in head
    assert state(service) == before
    wait_for(lambda: "locb_requests_in_flight 1.0" in client.get("/metrics").text)


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (b"HTTP/1.1\r\n", b"400"),
        (b"HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", b"400"),
        (b"HTTP/1.1\r\nHost: evil.example\r\nhost: localhost\r\n", b"400"),
        (b"HTTP/1.1\r\nHost: localhost\r\nAccept: a\r\nAccept: b\r\n", b"204"),
        (b"HTTP/1.0\r\n", b"204"),  # does not require the header
    ],
)
def test_missing_and_duplicate_host(running: tuple[httpx.Client, Service], lines: bytes, status: bytes) -> None:
    head, _, body = send_raw(running[0], b"GET /v1/ping " + lines + b"Connection: close\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    if status == b"400":
        assert b"\r\nx-request-id: " in head
        assert json.loads(body)["type"] == "urn:locb:problem:bad-request"
        assert "Host header" in json.loads(body)["detail"]


def test_client_disconnects_during_a_request(running: tuple[httpx.Client, Service]) -> None:
    client, service = running
    before = state(service)
    for body in (b"", b'{"user": "ann"'):
        with socket.create_connection(("127.0.0.1", client.base_url.port)) as connection:
            head = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            connection.sendall(head + b"Content-Length: 50\r\n\r\n" + body)
            wait_for(lambda: "locb_requests_arriving 1.0" in client.get("/metrics").text)
    wait_for(lambda: "locb_requests_arriving 0.0" in client.get("/metrics").text)
    assert state(service) == before


def test_slow_body_times_out(tmp_path: Path) -> None:
    with serving(tmp_path, read_timeout=0.4) as (client, service):
        before = state(service)
        slow = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n"
        head, _, body = send_raw(client, slow + b"Content-Type: application/json\r\n\r\n{").partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert json.loads(body)["type"] == "urn:locb:problem:timeout"
        assert state(service) == before


@pytest.mark.parametrize(
    "request_bytes", [b"", b"GET /v1/ping HT", b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\nAccept"]
)
def test_slow_headers_time_out(tmp_path: Path, request_bytes: bytes) -> None:
    with serving(tmp_path, read_timeout=0.4) as (client, _):
        response = send_raw(client, request_bytes)
        assert response.startswith(b"HTTP/1.1 408 ")
        assert json.loads(response.partition(b"\r\n\r\n")[2])["type"] == "urn:locb:problem:timeout"
        # A connection can be idle after a response, but the next request must arrive in time.
        with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=10) as connection:
            connection.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(10_000).startswith(b"HTTP/1.1 204 ")
            time.sleep(0.8)
            connection.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1")
            assert connection.recv(10_000).startswith(b"HTTP/1.1 204 ")
            assert connection.recv(10_000).startswith(b"HTTP/1.1 408 ")
            assert connection.recv(10_000) == b""


def test_empty_line_does_not_keep_a_connection_open(tmp_path: Path) -> None:
    with (
        serving(tmp_path, read_timeout=0.4) as (client, _),
        socket.create_connection(("127.0.0.1", client.base_url.port), timeout=10) as connection,
    ):
        connection.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 204 ")
        connection.sendall(b"\r\n")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 408 ")
        assert connection.recv(10_000) == b""


def test_files_of_an_interrupted_export_are_removed(tmp_path: Path) -> None:
    (tmp_path / "export-x").mkdir()
    (tmp_path / "export-x" / "00000001.part").write_text("partial")
    with serving(tmp_path):
        assert not list(tmp_path.glob("export-*"))


def test_export_ignores_ranges_and_removes_its_files(running: tuple[httpx.Client, Service]) -> None:
    client, service = running
    for byte_range in ("bytes=0-3", "bytes=9-1", "nonsense"):
        response = client.get("/v1/export", headers={"Range": byte_range})
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/vnd.apache.parquet"
        assert response.content[:4] == response.content[-4:] == b"PAR1"
    wait_for(lambda: not list(service.config.data_dir.glob("export-*")))

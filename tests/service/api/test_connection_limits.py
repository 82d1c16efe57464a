"""Limits that protect a service from clients that send incomplete, endless or too many requests."""

import json
import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from locb.service import connections as connection_limits
from locb.service.api.auth import Tokens
from locb.service.connections import client_network
from locb.service.core.service import Service
from locb.service.http_protocol import PART_BYTES, SingleWriteProtocol
from serving import arms, serving, stalled, state, wait_for

RECOMMEND = {"user": "ann", "arms": arms([1, 0, 0], [0, 1, 0])}
HALF_SENT = b"POST /v1/ping HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
GET_PING = b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n"
MAX_HEADER_BYTES, MAX_BODY = 2048, 4096


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    folder = tmp_path_factory.mktemp("state")
    with serving(folder, max_header_bytes=MAX_HEADER_BYTES, max_body=MAX_BODY) as (client, service):
        yield client, service


@contextmanager
def connections(client: httpx.Client, count: int, data: bytes, address: str = "127.0.0.1") -> Iterator[list[Any]]:
    """Open connections from a loopback address, and send the same data on each of them."""
    with ExitStack() as opened:
        found = []
        for _ in range(count):
            server = ("127.0.0.1", client.base_url.port)
            found.append(opened.enter_context(socket.create_connection(server, 30, (address, 0))))
            found[-1].sendall(data)
        yield found


def receive_all(connection: socket.socket) -> bytes:
    """Return everything that the service sends until it closes the connection, possibly with unread data."""
    received = b""
    try:
        while chunk := connection.recv(65536):
            received += chunk
    except ConnectionResetError:
        pass
    return received


def has_metric(client: httpx.Client, line: str) -> bool:
    return f"{line}\n" in client.get("/metrics").text


def test_arriving_requests_do_not_prevent_other_requests(tmp_path: Path) -> None:
    with serving(tmp_path, max_in_flight=2) as (client, _), connections(client, 10, HALF_SENT):
        wait_for(lambda: has_metric(client, "locb_requests_arriving 10.0"))
        assert has_metric(client, "locb_requests_in_flight 1.0")  # the request of the metrics
        assert client.post("/v1/recommend", json=RECOMMEND).status_code == 200
        assert client.get("/v1/health").status_code == 200


def test_health_checks_are_not_limited(tmp_path: Path) -> None:
    with serving(tmp_path, max_in_flight=1) as (client, service), ThreadPoolExecutor() as pool:
        with stalled(service):
            decision = pool.submit(client.post, "/v1/recommend", json=RECOMMEND)
            wait_for(lambda: service.committer.queue_length == 1)
            before = state(service)
            for path in ("/v1/ping", "/v1/status", "/v1/users/ann", "/metrics"):
                response = client.get(path)
                assert response.status_code == 429, path
                assert response.json()["type"] == "urn:locb:problem:too-many-requests"
                assert response.headers["retry-after"] == "1"
            assert client.post("/v1/recommend", json=RECOMMEND).status_code == 429
            assert client.get("/v1/live").status_code == 200
            assert client.get("/v1/health").status_code == 200
            assert state(service) == before
        assert decision.result().status_code == 200
        assert client.get("/v1/ping").status_code == 204


def test_body_needs_a_token(tmp_path: Path) -> None:
    with (
        serving(tmp_path, Tokens({"token-with-the-scope-decide": frozenset({"decide"})})) as (client, _),
        connections(client, 1, HALF_SENT) as (incomplete,),
    ):
        assert incomplete.recv(10_000).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    "data",
    [
        b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * MAX_HEADER_BYTES,  # no end
        b"GET /v1/ping?" + b"x" * MAX_HEADER_BYTES,
        b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * MAX_HEADER_BYTES + b"\r\n\r\n",
        b"GET /v1/ping?" + b"x" * MAX_HEADER_BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * MAX_HEADER_BYTES + b"\r\n",
        b"POST /v1/reward HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * MAX_HEADER_BYTES + b"\r\n"
        b"Content-Length: 2\r\n\r\n{}",
    ],
)
def test_large_head(running: tuple[httpx.Client, Service], data: bytes) -> None:
    client, service = running
    before = state(service)
    with connections(client, 1, data) as (connection,):
        head, _, body = receive_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    problem = json.loads(body)
    assert problem["type"] == "urn:locb:problem:headers-too-large"
    assert f"the maximum of {MAX_HEADER_BYTES} bytes" in problem["detail"]
    assert state(service) == before


def test_head_of_almost_the_maximum_size_with_a_body(running: tuple[httpx.Client, Service]) -> None:
    client, _ = running
    for headers, padding in (({"X-Padding": "x" * (MAX_HEADER_BYTES - 300)}, 0), ({}, MAX_BODY - 100)):
        response = client.post("/v1/ping", json={"padding": "x" * padding}, headers=headers)
        assert response.status_code == 204, response.text


def test_trailers_that_do_not_end(running: tuple[httpx.Client, Service]) -> None:
    client, _ = running
    head = b"POST /v1/ping HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Transfer-Encoding: chunked\r\n\r\n"
    for start, rest in (
        (b"2\r\n{}\r\n0\r\nX: ", b"x"),
        (b"2\r\n{}\r\n0\r\n", b"X: y\r\n"),
        (b"2;", b"x"),  # a chunk extension
    ):
        with (
            connections(client, 1, head + start) as (connection,),
            pytest.raises((ConnectionResetError, BrokenPipeError)),
        ):
            connection.sendall(rest * 10_000_000)  # the service closes the connection before the end
    assert client.get("/v1/ping").status_code == 204


def test_connections_per_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING),
        serving(tmp_path, max_connections_per_client=3) as (client, service),
        connections(client, 3, HALF_SENT, "127.0.0.2") as waiting,
    ):
        wait_for(lambda: has_metric(client, "locb_requests_arriving 3.0"))  # another address
        before = state(service)
        with connections(client, 1, GET_PING, "127.0.0.2") as (new,):
            assert new.recv(10_000).startswith(b"HTTP/1.1 204 ")
            head, _, body = receive_all(waiting[0]).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after: 1" in head
            assert json.loads(body)["type"] == "urn:locb:problem:too-many-requests"
            assert "127.0.0.2 has 3 connections" in json.loads(body)["detail"]
            wait_for(lambda: has_metric(client, "locb_requests_arriving 2.0"))
            for connection in waiting[1:]:
                connection.sendall(b"       }")
                assert connection.recv(10_000).startswith(b"HTTP/1.1 204 ")
        assert state(service) == before
    (record,) = [record for record in caplog.records if "--max-connections-per-client" in record.getMessage()]
    assert record.levelname == "WARNING"


def test_connections_in_total(tmp_path: Path) -> None:
    with serving(tmp_path, max_connections=3) as (client, _), connections(client, 1, GET_PING, "127.0.0.2") as (idle,):
        assert idle.recv(10_000).startswith(b"HTTP/1.1 204 ")
        with connections(client, 2, HALF_SENT, "127.0.0.3") as (first, second):
            assert client.get("/v1/ping").status_code == 204
            assert receive_all(idle) == b""  # a connection without a request gets no response
            with connections(client, 1, GET_PING, "127.0.0.4") as (new,):
                assert new.recv(10_000).startswith(b"HTTP/1.1 204 ")
                assert b"there are 3 connections" in receive_all(first)
                second.sendall(b"       }")
                assert second.recv(10_000).startswith(b"HTTP/1.1 204 ")


def test_requests_in_progress_are_not_closed(tmp_path: Path) -> None:
    options = {"max_connections": 1, "max_connections_per_client": 1}
    with serving(tmp_path, **options) as (client, service), ThreadPoolExecutor() as pool:
        with stalled(service):
            decision = pool.submit(client.post, "/v1/recommend", json=RECOMMEND)
            wait_for(lambda: service.committer.queue_length == 1)
            for _ in range(3):
                with connections(client, 1, GET_PING) as (new,):
                    assert new.recv(10_000).startswith(b"HTTP/1.1 204 ")
        assert decision.result().status_code == 200


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[SingleWriteProtocol]:
    """The connections that were closed."""
    closed: list[SingleWriteProtocol] = []
    connection_lost = SingleWriteProtocol.connection_lost

    def record(protocol: SingleWriteProtocol, error: Exception | None) -> None:
        connection_lost(protocol, error)
        closed.append(protocol)

    monkeypatch.setattr(SingleWriteProtocol, "connection_lost", record)
    return closed


@contextmanager
def unread(client: httpx.Client, count: int) -> Iterator[list[Any]]:
    """Open connections that request more data than the buffers of the operating system take, and read nothing."""
    with ExitStack() as opened:
        found = []
        for _ in range(count):
            found.append(opened.enter_context(socket.socket()))
            found[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            found[-1].connect(("127.0.0.1", client.base_url.port))
            found[-1].sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        yield found


def test_clients_that_read_no_responses_are_limited(tmp_path: Path, lost: list[Any]) -> None:
    with serving(tmp_path, max_connections_per_client=4, read_timeout=2.0) as (client, _), unread(client, 12):
        wait_for(lambda: len(lost) >= 8)
        assert client.get("/v1/health").status_code == 200


def test_timeout_of_clients_that_read_no_responses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, lost: list[Any]
) -> None:
    monkeypatch.setattr(connection_limits, "SEND_TIMEOUT", 0.2)
    with serving(tmp_path, read_timeout=0.4) as (client, _), unread(client, 2):
        wait_for(lambda: len(lost) == 2)
    assert not caplog.records  # a request that waited to send its response is no error


def test_many_requests_at_once_are_handled_in_parts(
    running: tuple[httpx.Client, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of requests that wait for earlier responses of a connection is bounded."""
    client, _ = running
    queued = []
    on_message_begin = SingleWriteProtocol.on_message_begin

    def record(protocol: SingleWriteProtocol) -> None:
        queued.append(len(protocol.pipeline))
        on_message_begin(protocol)

    monkeypatch.setattr(SingleWriteProtocol, "on_message_begin", record)
    count, last = 2_000, b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with connections(client, 1, GET_PING * count + last) as (connection,):
        assert receive_all(connection).count(b"HTTP/1.1 204 ") == count + 1
    assert len(queued) == count + 1
    assert 1 < max(queued) <= PART_BYTES / len(GET_PING) + 1


def test_requests_that_end_anywhere_in_a_part(running: tuple[httpx.Client, Service]) -> None:
    client, _ = running
    head = "POST /v1/ping HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}"
    sizes = range(2, MAX_BODY, 67)
    data = "".join(head.format(size, f"{{{' ' * (size - 2)}}}") for size in sizes).encode()
    last = b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with connections(client, 1, data + last) as (connection,):
        assert receive_all(connection).count(b"HTTP/1.1 204 ") == len(sizes) + 1


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("localhost", "localhost"),
    ],
)
def test_addresses_that_are_counted_together(host: str, network: str) -> None:
    assert client_network(host) == network

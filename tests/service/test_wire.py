"""HTTP itself: what is not HTTP, bodies that do not come, clients that leave, files that are sent."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from locb.service.core.service import Service
from locb.service.responses import SECURITY_HEADERS
from locb.service.store.database import StoreError
from serving import arms, is_safe, serving, state, wait_for


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    with serving(tmp_path_factory.mktemp("state")) as (client, service):
        client.event_hooks["response"] = [is_safe]
        client.post("/v1/recommend", json={"user": "ann", "arms": arms([1, 0, 0])})
        yield client, service


def test_a_websocket_is_not_spoken(running: tuple[httpx.Client, Service]) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x" * 24}
    answer = running[0].get("/v1/recommend", headers=upgrade | {"Sec-WebSocket-Version": "13"})
    assert answer.status_code == 405
    assert answer.json()["type"] == "urn:locb:problem:method-not-allowed"


@pytest.mark.parametrize("path", ["/v1/recommend", "/v1/reward:batch", "/personalizer/v1.0/rank"])
@pytest.mark.parametrize("start", [b"", b'{"user": "ann", "arms": ', b'{"actions": [{"id": "a", "features": '])
def test_a_hundred_thousand_brackets(running: tuple[httpx.Client, Service], path: str, start: bytes) -> None:
    client, service = running
    before = state(service)
    for bracket in (b"[", b'{"a":'):
        body = start + bracket * 100_000
        assert client.post(path, content=body, headers={"Content-Type": "application/json"}).status_code in (400, 422)
    assert state(service) == before


def raw(client: httpx.Client, sent: bytes) -> bytes:
    """All that is answered to these bytes."""
    with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=20) as connection:
        connection.sendall(sent)
        answer = b""
        while some := connection.recv(65536):
            answer += some
        return answer


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v1/users/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"not HTTP at all\r\n\r\n",
        b"POST /v1/reward HTTP/1.1\r\nHost: localhost\r\nContent-Length: -7\r\n\r\n",
        b"POST /v1/reward HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ],
)
def test_what_is_not_http(running: tuple[httpx.Client, Service], sent: bytes) -> None:
    client, service = running
    before = state(service)
    head, _, body = raw(client, sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["type"] == "urn:locb:problem:bad-request"
    for name, value in SECURITY_HEADERS.items():
        assert f"{name}: {value}".encode() in head
    assert state(service) == before
    wait_for(lambda: "locb_requests_in_flight 1.0" in client.get("/metrics").text)


def test_a_client_that_leaves_in_the_middle(running: tuple[httpx.Client, Service]) -> None:
    client, service = running
    before = state(service)
    for body in (b"", b'{"user": "ann"'):
        with socket.create_connection(("127.0.0.1", client.base_url.port)) as connection:
            connection.sendall(b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n" + body)
            wait_for(lambda: "locb_requests_in_flight 2.0" in client.get("/metrics").text)
    wait_for(lambda: "locb_requests_in_flight 1.0" in client.get("/metrics").text)
    assert state(service) == before


def test_bodies_that_come_slowly_and_requests_that_are_too_many(tmp_path: Path) -> None:
    with serving(tmp_path, max_in_flight=1, read_timeout=0.4) as (client, service):
        client.event_hooks["response"] = [is_safe]
        before = state(service)
        told: list[bytes] = []
        slow = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"
        waiting = threading.Thread(target=lambda: told.append(raw(client, slow)))
        began = time.monotonic()
        waiting.start()
        answers = []
        while waiting.is_alive() and time.monotonic() < began + 10:
            answers.append(client.get("/v1/ping"))
            time.sleep(0.01)
        busy = [answer for answer in answers if answer.status_code != 204]
        assert busy
        for answer in busy:
            assert answer.status_code == 429
            assert answer.json()["type"] == "urn:locb:problem:too-many-requests"
            assert answer.headers["retry-after"] == "1"
        head, _, body = told[0].partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert json.loads(body)["type"] == "urn:locb:problem:timeout"
        assert state(service) == before
        assert client.get("/v1/ping").status_code == 204


@pytest.mark.parametrize("sent", [b"", b"GET /v1/ping HT", b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\nAccept"])
def test_heads_that_come_slowly(tmp_path: Path, sent: bytes) -> None:
    with serving(tmp_path, read_timeout=0.4) as (client, _):
        answer = raw(client, sent)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["type"] == "urn:locb:problem:timeout"
        # After an answer a connection may rest, but the next request must come whole again.
        with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=10) as connection:
            connection.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(10_000).startswith(b"HTTP/1.1 204 ")
            time.sleep(0.8)
            connection.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1")
            assert connection.recv(10_000).startswith(b"HTTP/1.1 204 ")
            assert connection.recv(10_000).startswith(b"HTTP/1.1 408 ")
            assert connection.recv(10_000) == b""


def test_a_blank_line_does_not_hold_a_connection(tmp_path: Path) -> None:
    with (
        serving(tmp_path, read_timeout=0.4) as (client, _),
        socket.create_connection(("127.0.0.1", client.base_url.port), timeout=10) as connection,
    ):
        connection.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 204 ")
        connection.sendall(b"\r\n")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 408 ")
        assert connection.recv(10_000) == b""


def test_what_a_killed_process_did_not_send_is_removed(tmp_path: Path) -> None:
    (tmp_path / "export-x").mkdir()
    (tmp_path / "export-x" / "00000001.part").write_text("half")
    with serving(tmp_path):
        assert not list(tmp_path.glob("export-*"))


def test_an_export_is_sent_whole_and_leaves_nothing_behind(running: tuple[httpx.Client, Service]) -> None:
    client, service = running
    for asked in ("bytes=0-3", "bytes=9-1", "nonsense"):
        answer = client.get("/v1/export", headers={"Range": asked})
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/vnd.apache.parquet"
        assert answer.content[:4] == answer.content[-4:] == b"PAR1"
    wait_for(lambda: not list(service.config.data_dir.glob("export-*")))


@pytest.mark.parametrize("error", [StoreError("the server is gone"), OSError(28, "No space left on device", "/secret")])
def test_an_export_that_cannot_be_made(
    running: tuple[httpx.Client, Service], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, service = running

    def fail() -> None:
        raise error

    monkeypatch.setattr(service.log, "records", fail)
    answer = client.get("/v1/export")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert answer.json()["type"] == "urn:locb:problem:unavailable"
    assert "secret" not in answer.text
    assert not list(service.config.data_dir.glob("export-*"))

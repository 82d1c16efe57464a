"""Retries and errors of Client and AsyncClient."""

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from locb import client
from locb.client import ServiceError, transport
from loopback import ReceivedRequest, Reply, loopback

DECISION = {
    "decision_id": "d1",
    "arm": "b",
    "ranking": [{"arm": "b", "score": 0.5}],
}
ARMS = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
Call = Callable[..., Any]  # calls a method by name


class FakeTime:
    """Replacement of the module ``time``: a pause ends at once, and is recorded."""

    def __init__(self) -> None:
        self.now, self.pauses = 1_000_000.0, []

    def time(self) -> float:
        return self.now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def sleep_in_loop(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    clock = FakeTime()
    monkeypatch.setattr(client, "time", clock)
    monkeypatch.setattr(client, "asyncio", SimpleNamespace(sleep=clock.sleep_in_loop))
    monkeypatch.setattr(transport, "time", clock)
    return clock


def in_turn(*responses: Reply) -> Callable[[ReceivedRequest], Reply]:
    """Return these responses in turn, then the last one for all further requests."""
    left = list(responses)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize(
    "lost", [None, (503, {}, {}), (429, {}, b""), (502, {}, b"<html>"), (504, {}, {}), b"HTTP/1.1 2"]
)
def test_retry_repeats_the_same_request(calling: Callable[..., Call], lost: Reply) -> None:
    handler = in_turn(lost, lost, (200, {}, DECISION))
    with loopback(handler) as server:
        assert calling(server.url)("recommend", "ann", ARMS).arm == "b"
    assert len(server.received) == 3
    assert len({request.body for request in server.received}) == 1


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("lost", "found"), [(None, True), ((503, {}, {}), True), ((429, {}, b""), False)])
def test_retry_of_a_successful_erasure(calling: Callable[..., Call], lost: Reply, found: bool) -> None:
    unknown = 404, {}, {"title": "Unknown user", "status": 404}
    with loopback(in_turn(lost, unknown)) as server:
        call = calling(server.url)
        if found:  # the first attempt may have erased the user
            assert call("delete_user", "ann") == {"user": "ann", "erased_decisions": None}
        else:
            with pytest.raises(ServiceError, match="404 Unknown user"):
                call("delete_user", "ann")
        with pytest.raises(ServiceError, match="404 Unknown user"):
            call("delete_user", "ann")


def test_timeout_is_retried(calling: Callable[..., Call]) -> None:
    seen: list[ReceivedRequest] = []

    async def hangs(request: ReceivedRequest) -> Reply:
        seen.append(request)
        if len(seen) == 1:
            await asyncio.sleep(30)
        return 200, {}, {"decision_id": "d1", "reward": 1.0, "corrected": False}

    with loopback(hangs) as server:
        assert calling(server.url, timeout=0.3)("reward", "d1", 1.0).reward == 1.0
    assert [request.json for request in seen] == [{"decision_id": "d1", "reward": 1.0}] * 2


@pytest.mark.parametrize(("form", "pause"), [("3", 3.0), (formatdate(1_000_002, usegmt=True), 2.0), ("0", None)])
def test_retry_after_is_respected(
    calling: Callable[..., Call], clock: FakeTime, form: str, pause: float | None
) -> None:
    with loopback(in_turn((503, {"Retry-After": form}, {}), (200, {}, DECISION))) as server:
        assert calling(server.url)("recommend", "ann", ARMS).arm == "b"
    assert len(server.received) == 2
    assert clock.pauses == [pytest.approx(0.075, abs=0.025) if pause is None else pause]  # at least the first backoff


def test_retry_after_beyond_the_total_time_fails_at_once(calling: Callable[..., Call], clock: FakeTime) -> None:
    with (
        loopback(lambda _: (503, {"Retry-After": "3600"}, {"title": "Full", "detail": "disk"})) as server,
        pytest.raises(ServiceError, match="503 Full: disk"),
    ):
        calling(server.url)("recommend", "ann", ARMS)
    assert clock.pauses == []
    assert len(server.received) == 1


def test_attempts_are_limited(calling: Callable[..., Call], clock: FakeTime) -> None:
    with loopback(lambda _: (503, {"Retry-After": "soon"}, b"")) as server:
        with pytest.raises(ServiceError, match="503 Service Unavailable"):
            calling(server.url, retries=2)("clusters")
        assert len(server.received) == 3
        clock.pauses.clear()
        with pytest.raises(ServiceError, match="503 Service Unavailable"):
            calling(server.url, retries=1000, total=100.0)("clusters")
    # The pauses double up to 5 s, each times a random factor from 0.5 to 1, until the total time is used up.
    assert len(server.received) == 3 + len(clock.pauses) + 1
    assert 95.0 <= sum(clock.pauses) < 100.0
    for number, pause in enumerate(clock.pauses):
        assert 0.5 * min(0.1 * 2**number, 5.0) <= pause <= min(0.1 * 2**number, 5.0)


def test_unreachable_service(calling: Callable[..., Call]) -> None:
    with loopback(lambda _: None) as server:
        url = server.url
    with pytest.raises(ServiceError, match=f"no response: {url}: .* \\(3 attempts\\)") as raised:
        calling(url, retries=2)("recommend", "ann", ARMS)
    assert raised.value.status is None


@pytest.mark.parametrize("status", [400, 401, 404, 409, 413, 500])
def test_problems_raise_without_retry(calling: Callable[..., Call], status: int) -> None:
    content = {
        "type": "about:blank",
        "title": "Conflict",
        "status": status,
        "detail": "another value",
        "fields": ["reward"],
    }
    problem = (status, {"Content-Type": "application/problem+json"}, content)
    expected = pytest.raises(ServiceError, match=f"^{status} Conflict: another value$")
    with loopback(lambda _: problem) as server, expected as raised:
        calling(server.url)("reward", "d1", 0.5)
    assert (raised.value.status, raised.value.title, raised.value.detail) == (status, "Conflict", "another value")
    assert raised.value.problem.fields == ["reward"]
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((404, {}, b"<html>\xff"), "404 Not Found: <html>"),
        ((499, {}, b'"text"'), '499 error: "text"'),
        ((302, {"Location": "/"}, b""), "302 Found"),
        ((200, {}, b"<html>"), "200 the response is not JSON: <html>"),
    ],
)
def test_unexpected_responses(calling: Callable[..., Call], reply: Reply, message: str) -> None:
    with loopback(lambda _: reply) as server, pytest.raises(ServiceError, match=message):
        calling(server.url)("user", "ann")


@pytest.mark.parametrize("method", ["live", "health"])
def test_health_is_not_retried(calling: Callable[..., Call], method: str) -> None:
    with loopback(lambda _: (503, {}, {"title": "Full"})) as server, pytest.raises(ServiceError, match="503 Full"):
        calling(server.url)(method)
    assert len(server.received) == 1


def test_export_appears_once_complete(calling: Callable[..., Call], tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    broken = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nPAR1"
    handler = in_turn((503, {}, {}), broken, (200, {}, content))
    path = tmp_path / "events.parquet"
    with loopback(handler) as server:
        assert calling(server.url)("export", str(path)) == path
    assert path.read_bytes() == content
    with loopback(lambda _: (403, {}, {"title": "Forbidden"})) as server, pytest.raises(ServiceError, match="403"):
        calling(server.url)("export", path)
    with loopback(lambda _: broken) as server, pytest.raises(ServiceError, match="no response"):
        calling(server.url, retries=0)("export", path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["events.parquet"]
    with loopback(lambda _: (200, {}, content)) as server, pytest.raises(FileNotFoundError):
        calling(server.url)("export", tmp_path / "nowhere" / "events.parquet")

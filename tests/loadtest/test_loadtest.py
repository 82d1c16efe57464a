"""The load generator, tested with a small server that records requests, fails on demand and can stop."""

import asyncio
import json
import math
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import commandline
from locb.loadtest import Plan, Progress, run
from locb.loadtest.connection import Connection
from locb.loadtest.requests import RequestGenerator
from loopback import ReceivedRequest, Reply, loopback
from stress.postgres import free_port

SMALL: dict[str, Any] = {"users": 20, "clusters": 3, "arms": 4, "dim": 5, "connections": 8}


class Bandit:
    """Server that recommends the second arm, records requests, and fails on demand."""

    def __init__(self) -> None:
        self.decisions: dict[str, Any] = {}
        self.rewards: dict[str, float] = {}
        self.failing: list[Reply] = []  # responses to send instead, in this order

    def __call__(self, request: ReceivedRequest) -> Reply:
        if self.failing:
            return self.failing.pop(0)
        if request.path == "/v1/ping":
            return 204, {}, b""
        body = request.json
        if request.path == "/v1/reward":
            if body["decision_id"] not in self.decisions:
                return 404, {}, {"title": "unknown"}
            self.rewards[body["decision_id"]] = body["reward"]
            return 200, {}, {**body, "corrected": False}
        self.decisions[body["decision_id"]] = body
        arm = body["arms"][1]["id"]
        return 200, {}, {"decision_id": body["decision_id"], "arm": arm, "ranking": [], "explanation": None}


def test_recorded_decisions_and_rewards_arrived() -> None:
    bandit = Bandit()
    with loopback(bandit) as server:
        report = run(Plan(url=server.url, rate=200, seconds=0.5, record=True, token="abc", **SMALL))
    assert report.errors == {}
    assert report.recommend.count == report.reward.count == 100
    assert report.ping.count == 0
    assert {decision_id for decision_id, _, _ in report.decisions} == set(bandit.decisions)
    assert dict(report.rewards) == bandit.rewards
    assert set(bandit.rewards.values()) == {0.0, 1.0}
    for decision_id, user, arm in report.decisions:
        body = bandit.decisions[decision_id]
        assert (body["user"], body["arms"][1]["id"]) == (user, arm)
        assert [len(arm["features"]) for arm in body["arms"]] == [5] * 4
    assert {request.headers["authorization"] for request in server.received} == {"Bearer abc"}
    assert 0.0 < report.random_mean_reward < report.best_mean_reward < 1.0
    assert 0.0 < report.mean_reward < report.best_mean_reward
    assert report.recommend.p50 <= report.recommend.p90 <= report.recommend.p99 <= report.recommend.max
    assert 0.0 <= report.per_second * report.seconds <= 200.5  # of 200 responses, all can come after this time


def test_rewards_are_drawn_from_the_true_means() -> None:
    bandit = Bandit()
    with loopback(bandit) as server:
        report = run(Plan(url=server.url, rate=None, seconds=1.0, record=True, **SMALL))
    mean = sum(bandit.rewards.values()) / len(bandit.rewards)
    assert mean == pytest.approx(report.mean_reward, abs=5 * math.sqrt(0.25 / len(bandit.rewards)))
    assert report.recommend.count > 100


def test_progress_can_end_the_load() -> None:
    bandit = Bandit()
    with loopback(bandit) as server:
        report = run(Plan(url=server.url, rate=None, seconds=600.0, **SMALL), lambda state: state.answered > 0)
    assert report.errors == {}
    assert report.recommend.count == report.reward.count == len(bandit.rewards) > 0


def test_same_seed_sends_the_same_requests_with_other_ids() -> None:
    plan = Plan(url="http://127.0.0.1:1", **SMALL)
    first, second = iter(RequestGenerator(plan)), iter(RequestGenerator(plan))
    for _ in range(5):
        a, b = next(first), next(second)
        assert (a.user, a.means) == (b.user, b.means)
        assert a.decision_id != b.decision_id
        assert len(a.encoded) == len(b.encoded)


def test_content_length_is_correct() -> None:
    generator = RequestGenerator(Plan(url="http://127.0.0.1:1/under", count=2, **{**SMALL, "users": 1234}))
    decisions = iter(generator)
    for _ in range(50):
        decision = next(decisions)
        for request in (decision.encoded, generator.encode_reward(decision.decision_id, 1)):
            head, _, body = request.partition(b"\r\n\r\n")
            assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n")
            assert json.loads(body)["decision_id"] == decision.decision_id
    assert head.startswith(b"POST /under/v1/reward HTTP/1.1\r\nHost: 127.0.0.1:1\r\n")
    assert json.loads(decision.encoded.partition(b"\r\n\r\n")[2])["count"] == 2


def test_latency_counts_from_the_due_time() -> None:
    bandit = Bandit()

    lock = asyncio.Lock()

    async def slow(request: ReceivedRequest) -> Reply:
        async with lock:
            await asyncio.sleep(0.01)  # at most 100 requests per second, so the last one waits for a second
        return bandit(request)

    with loopback(slow) as server:
        open_loop = run(Plan(url=server.url, rate=100, seconds=1.0, **SMALL))
        start = time.monotonic()
        closed = run(Plan(url=server.url, rate=None, seconds=0.5, **{**SMALL, "connections": 1}))
        milliseconds = 1000.0 * (time.monotonic() - start)
    assert open_loop.recommend.count == 100
    assert open_loop.recommend.max > 500.0
    # On one connection without due times, the latencies do not overlap. At least half of them are p50 or more.
    assert closed.recommend.p50 * closed.recommend.count / 2 < milliseconds


def test_reward_delay() -> None:
    with loopback(Bandit()) as server:
        start = time.monotonic()
        report = run(Plan(url=server.url, rate=100, seconds=0.2, delay=0.5, **SMALL))
        assert time.monotonic() - start > 0.65
        paths = [request.path for request in server.received]
    assert report.reward.count == report.recommend.count == 20
    assert paths == ["/v1/recommend"] * 20 + ["/v1/reward"] * 20
    assert report.reward.max < 400.0


def test_post_route_sends_the_bodies_of_decisions_and_rewards() -> None:
    with loopback(Bandit()) as server:
        report = run(Plan(url=server.url, rate=None, seconds=0.3, route="post", **SMALL))
    assert report.ping.count == len(server.received) > 2
    assert {(request.method, request.path) for request in server.received} == {("POST", "/v1/ping")}
    assert {tuple(sorted(json.loads(request.body))) for request in server.received} == {
        ("arms", "decision_id", "user"),
        ("decision_id", "reward"),
    }


def test_ping_route_sends_get_requests() -> None:
    with loopback(Bandit()) as server:
        report = run(Plan(url=server.url, rate=None, seconds=0.3, route="ping", **SMALL))
    assert report.ping.count == len(server.received) > 0
    assert {(request.method, request.path) for request in server.received} == {("GET", "/v1/ping")}
    assert math.isnan(report.mean_reward)
    assert report.as_dict()["mean_reward"] is None


def chunked(body: bytes, status: bytes = b"503 Busy") -> bytes:
    middle = b"%x\r\n%b\r\n%x;more=1\r\n%b\r\n0\r\n\r\n" % (1, body[:1], len(body) - 1, body[1:])
    return b"HTTP/1.1 " + status + b"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + middle


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ((503, {"Retry-After": "1"}, {"title": "full"}), "503"),
        ((429, {}, b""), "429"),
        ((500, {}, b"not json"), "500"),
        ((200, {}, b"not json"), "invalid response"),
        ((200, {}, {"decision_id": "other", "arm": "arm-1"}), "invalid response"),
        ((200, {}, {"decision_id": "other", "arm": "unknown"}), "invalid response"),
        (None, "connection lost"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "connection lost"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{", "connection lost"),
        (b"SSH-2.0\r\n\r\n", "connection lost"),
        (b"x" * 100_000, "connection lost"),
        (chunked(b"{}"), "503"),
        (b"HTTP/1.1 503 Busy\r\n\r\nuntil the end", "503"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 503 Busy\r\nContent-Length: 0\r\n\r\n", "503"),
    ],
)
def test_errors_are_counted_and_the_test_continues(response: Reply, reason: str) -> None:
    bandit = Bandit()
    bandit.failing = [response]
    with loopback(bandit) as server:
        report = run(Plan(url=server.url, rate=100, seconds=0.3, **SMALL))
    assert report.errors == {reason: 1}
    assert report.recommend.count == 29
    assert report.retried == 0


def test_retries_repeat_the_same_request() -> None:
    bandit = Bandit()
    bandit.failing = [(503, {}, {}), None, (504, {}, b""), (503, {}, {}), (404, {}, {})]
    with loopback(bandit) as server:
        report = run(Plan(url=server.url, rate=20, seconds=0.5, retry=True, record=True, **SMALL))
    sent = Counter((request.path, request.body) for request in server.received)
    assert report.errors == {"404": 1, "503": 2, "504": 1, "connection lost": 1}
    assert report.retried == 4
    assert sum(count - 1 for count in sent.values()) == 4
    assert report.recommend.count == len(report.decisions) == len(bandit.decisions) == 9
    assert len(report.rewards) == 9


class HangingBandit(Bandit):
    """Server that does not answer any more after a number of decisions."""

    def __init__(self, decisions: int) -> None:
        super().__init__()
        self.maximum, self.hangs = decisions, threading.Event()

    async def answer_some(self, request: ReceivedRequest) -> Reply:
        if len(self.decisions) >= self.maximum:
            self.hangs.set()
            await asyncio.Event().wait()  # until the server stops
        return self(request)


def run_in_thread(plan: Plan, found: list[Any], progress: Any = None) -> threading.Thread:
    thread = threading.Thread(target=lambda: found.append(run(plan, progress)))
    thread.start()
    return thread


def test_restarted_server_is_used_again() -> None:
    bandit, found = HangingBandit(50), []
    with loopback(bandit.answer_some, free_port()) as server:
        plan = Plan(url=server.url, rate=100, seconds=2.0, retry=True, record=True, **SMALL)
        thread = run_in_thread(plan, found)
        assert bandit.hangs.wait(60)
    with loopback(bandit, server.port):
        thread.join(60)
    (report,) = found
    assert report.recommend.count == report.reward.count == 200
    assert {decision_id for decision_id, _, _ in report.decisions} == set(bandit.decisions)
    assert dict(report.rewards) == bandit.rewards
    assert report.errors.keys() == {"connection lost"}
    assert report.retried == report.errors["connection lost"] > 0


def test_lost_server_ends_the_test() -> None:
    seen: list[Progress] = []
    found: list[Any] = []
    bandit = HangingBandit(20)
    with loopback(bandit.answer_some) as server:
        thread = run_in_thread(Plan(url=server.url, rate=100, seconds=1.0, timeout=0.5, **SMALL), found, seen.append)
        assert bandit.hangs.wait(60)
    thread.join(60)
    (report,) = found
    assert report.recommend.count <= 20
    assert report.errors["unanswered"] > 10
    lost = report.errors.get("connection lost", 0) + report.errors.get("timeout", 0)
    assert report.recommend.count + report.reward.count + report.errors["unanswered"] + lost >= 100
    assert seen[-1].waiting > 0
    assert seen[0].elapsed < seen[-1].elapsed


def test_timeout_is_an_error() -> None:
    bandit = Bandit()

    async def hangs(request: ReceivedRequest) -> Reply:
        if len(bandit.decisions) == 3:
            await asyncio.sleep(10.0)
        return bandit(request)

    with loopback(hangs) as server:
        report = run(Plan(url=server.url, rate=50, seconds=0.2, timeout=0.3, **SMALL))
    assert report.errors["timeout"] > 0
    assert "connection lost" not in report.errors


def test_unreachable_server() -> None:
    with loopback(Bandit()) as server:
        url = server.url
    with pytest.raises(ConnectionError, match=f"{url} is unreachable: "):
        run(Plan(url=url, seconds=1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"url": "127.0.0.1:80"},
            r"url must be an address such as http://127\.0\.0\.1:8080 \(http or https, with a valid host",
        ),
        ({"url": "ftp://a"}, "url must be an address such as"),
        ({"url": "http://a b"}, "url must be an address such as"),
        ({"url": "http://a:99999"}, "url must be an address such as"),
        ({"url": "http://a?b=c"}, "url must be an address such as"),
        ({"rate": 0.0}, "rate must be a finite number above 0"),
        ({"rate": math.nan}, "rate must be a finite number above 0"),
        ({"seconds": -1}, "seconds must be"),
        ({"delay": -1}, "delay must be"),
        ({"dim": 1}, "dim must be an integer of at least 2"),
        ({"users": 0}, "users must be"),
        ({"count": 0}, "count must be"),
        ({"route": "other"}, "route must be one of 'recommend', 'ping', 'post', not 'other'"),
        ({"token": "a\nb"}, "token must not be empty and must contain only printable ASCII"),
    ],
)
def test_invalid_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        Plan(**{"url": "http://127.0.0.1", **settings})
    assert "a\nb" not in str(raised.value)


def test_url_parsing() -> None:
    assert Plan(url="https://[::1]/a/").address == ("::1", 443, True, "[::1]", "/a")
    assert Plan(url="http://me@example.org:81").address == ("example.org", 81, False, "example.org:81", "")


def test_fragmented_responses() -> None:
    received: list[tuple[int, bytes]] = []

    class Handler:
        def response_received(self, connection: Connection, status: int, body: bytes) -> None:
            received.append((status, body))

        def connection_lost(self, connection: Connection) -> None:
            raise AssertionError

    class Transport:
        def write(self, data: bytes) -> None: ...

        def close(self) -> None: ...

    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
    for answer, body in ((whole, b"hello"), (chunked(b"hello there", b"200 OK"), b"hello there")):
        for size in (1, 7, 40, 1000):
            connection = Connection(Handler())
            connection.connection_made(Transport())
            connection.send(b"", "job", 0.0)
            for start in range(0, len(answer), size):
                connection.data_received(answer[start : start + size])
            assert received.pop() == (200, body)
            assert not received


def test_command(tmp_path: Path) -> None:
    bandit = Bandit()
    bandit.failing = [(503, {}, {})]
    with loopback(bandit) as server:
        small = ("--users", "20", "--arms", "4", "--dim", "5", "--seconds", "0.5", "--token", "secret")
        done = commandline.run(
            "load", server.url, "--rate", "100", "--retry", "--json", "out.json", *small, cwd=tmp_path
        )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "requests per second for 0.5 s. Latency from the due time, in ms:" in done.stdout
    assert "Errors: 503: 1 (1 retried)." in done.stdout
    assert "random arms" in done.stdout
    text = (tmp_path / "out.json").read_text()
    results = json.loads(text)
    assert results["recommend"]["count"] == results["reward"]["count"] == 50
    assert results["plan"]["rate"] == 100.0
    assert "secret" not in text + done.stdout


def test_command_reports_errors_in_one_line(tmp_path: Path) -> None:
    with loopback(lambda _: (404, {}, {})) as server:
        failed = commandline.call("load", server.url, "--seconds", "0.2", "--route", "ping", cwd=tmp_path)
    assert failed.returncode == 1
    assert "no request succeeded" in failed.stderr
    for arguments, message in (
        ((server.url,), "is unreachable"),
        ((server.url, "--rate", "fast"), "--rate must be 'max' or a number, not 'fast'"),
        ((server.url, "--dim", "1"), "--dim must be an integer of at least 2, not 1"),
        (("localhost:80",), "without spaces, query or fragment), not 'localhost:80'"),
    ):
        done = commandline.call("load", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_missing_msgspec_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("raise ImportError('no msgspec')")
    done = commandline.run("load", "http://127.0.0.1:1", cwd=tmp_path, first=(str(tmp_path),))
    assert done.returncode == 2
    advice = "run make .venv/service in the clone, or pip install 'locb[service]'"
    assert done.stderr.splitlines() == [f"locb: locb.loadtest needs the package msgspec: {advice}"]

"""Client and AsyncClient against a small server on loopback."""

import asyncio
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from locb.client import AsyncClient, Client, Response, ServiceError
from loopback import Loopback, ReceivedRequest, Reply, loopback

DECISION = {
    "decision_id": "d1",
    "arm": "b",
    "ranking": [{"arm": "b", "score": 0.5}],
    "clusters": [],
    "explanation": None,
}
ARMS = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
QUICK = {"retries": 4, "timeout": 2.0, "total": 10.0}

# Calls a method by name on either client and returns its result.
Call = Callable[..., Any]


@pytest.fixture(params=[Client, AsyncClient])
def calling(request: pytest.FixtureRequest) -> Callable[..., Call]:
    def make(url: str, **settings: Any) -> Call:
        settings = {**QUICK, **settings}

        def call(name: str, *arguments: Any, **keywords: Any) -> Any:
            if request.param is Client:
                with Client(url, **settings) as client:
                    return getattr(client, name)(*arguments, **keywords)

            async def main() -> Any:
                async with AsyncClient(url, **settings) as client:
                    return await getattr(client, name)(*arguments, **keywords)

            return asyncio.run(main())

        return call

    return make


def in_turn(*responses: Reply) -> Callable[[ReceivedRequest], Reply]:
    """Return these responses in turn, then the last one forever."""
    left = list(responses)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_recommend(calling: Callable[..., Call]) -> None:
    with loopback(lambda _: (200, {}, DECISION)) as server:
        decision = calling(server.url, token="abc")("recommend", "ann", ARMS, exclude=("a",), count=1, decision_id="d1")
    assert decision.arm == decision["arm"] == "b"
    assert decision.ranking[0].score == 0.5
    assert json.loads(json.dumps(decision)) == DECISION
    with pytest.raises(AttributeError, match="the response has no field 'arms', only decision_id, arm, "):
        _ = decision.arms
    (asked,) = server.received
    assert (asked.method, asked.path) == ("POST", "/v1/recommend")
    assert asked.headers["authorization"] == "Bearer abc"
    assert asked.headers["content-type"] == "application/json"
    assert asked.json == {
        "decision_id": "d1",
        "user": "ann",
        "arms": [{"id": "a", "features": [1.0, 0.0]}, {"id": "b", "features": [0.0, 1.0]}],
        "exclude": ["a"],
        "count": 1,
    }


def test_arms_may_be_arrays_mappings_or_lists(calling: Callable[..., Call]) -> None:
    with loopback(lambda _: (200, {}, DECISION)) as server:
        call = calling(server.url)
        call("recommend", "ann", {"a": np.array([0.5, 1.0]), "b": {"age": np.float32(2), "new": np.bool_(True)}})
        call("recommend", "ann", [{"id": "a", "features": np.array([1, 2])}, {"id": "b", "features": {"genre": "x"}}])
    first, second = (asked.json for asked in server.received)
    assert [arm["features"] for arm in first["arms"]] == [[0.5, 1.0], {"age": 2.0, "new": True}]
    assert [arm["features"] for arm in second["arms"]] == [[1, 2], {"genre": "x"}]
    assert len(first["decision_id"]) == 32
    assert first["decision_id"] != second["decision_id"]
    assert set(first) == {"decision_id", "user", "arms"}


@pytest.mark.parametrize(
    "lost", [None, (503, {}, {}), (429, {}, b""), (502, {}, b"<html>"), (504, {}, {}), b"HTTP/1.1 2"]
)
def test_retry_repeats_the_same_request(calling: Callable[..., Call], lost: Reply) -> None:
    handler = in_turn(lost, lost, (200, {}, DECISION))
    with loopback(handler) as server:
        assert calling(server.url)("recommend", "ann", ARMS).arm == "b"
    assert len(server.received) == 3
    assert len({asked.body for asked in server.received}) == 1


def test_timeout_is_retried(calling: Callable[..., Call]) -> None:
    seen: list[ReceivedRequest] = []

    async def hangs(asked: ReceivedRequest) -> Reply:
        seen.append(asked)
        if len(seen) == 1:
            await asyncio.sleep(30)
        return 200, {}, {"decision_id": "d1", "reward": 1.0, "corrected": False}

    with loopback(hangs) as server:
        assert calling(server.url, timeout=0.3)("reward", "d1", 1.0).reward == 1.0
    assert [asked.json for asked in seen] == [{"decision_id": "d1", "reward": 1.0}] * 2


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_respected(calling: Callable[..., Call], form: str) -> None:
    def after() -> str:
        return "1" if form == "seconds" else formatdate(time.time() + 2, usegmt=True)  # whole seconds: 1 to 2 from now

    said = iter([503, 200])
    with loopback(lambda _: (next(said), {"Retry-After": after()}, DECISION)) as server:
        start = time.monotonic()
        calling(server.url)("recommend", "ann", ARMS)
        took = time.monotonic() - start
    assert 0.9 < took < 5.0
    assert len(server.received) == 2


def test_retry_after_beyond_the_total_time_fails_at_once(calling: Callable[..., Call]) -> None:
    with loopback(lambda _: (503, {"Retry-After": "3600"}, {"title": "Full", "detail": "disk"})) as server:
        start = time.monotonic()
        with pytest.raises(ServiceError, match="503 Full: disk"):
            calling(server.url)("recommend", "ann", ARMS)
    assert time.monotonic() - start < 3.0
    assert len(server.received) == 1


def test_attempts_are_limited(calling: Callable[..., Call]) -> None:
    with loopback(lambda _: (503, {"Retry-After": "soon"}, b"")) as server:
        with pytest.raises(ServiceError, match="503 Service Unavailable"):
            calling(server.url, retries=2)("clusters")
        assert len(server.received) == 3
        with pytest.raises(ServiceError):
            calling(server.url, retries=1000, total=1.0)("clusters")
        assert 4 < len(server.received) < 20


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
    ("said", "message"),
    [
        ((404, {}, b"<html>\xff"), "404 Not Found: <html>"),
        ((499, {}, b'"text"'), '499 error: "text"'),
        ((302, {"Location": "/"}, b""), "302 Found"),
        ((200, {}, b"<html>"), "200 the response is not JSON: <html>"),
    ],
)
def test_unexpected_responses(calling: Callable[..., Call], said: Reply, message: str) -> None:
    with loopback(lambda _: said) as server, pytest.raises(ServiceError, match=message):
        calling(server.url)("user", "ann")


def test_batches(calling: Callable[..., Call]) -> None:
    problem = {"type": "about:blank", "title": "Unknown", "status": 404, "detail": "no decision 'x'"}

    def handler(asked: ReceivedRequest) -> Reply:
        kind = "decision" if asked.path == "/v1/recommend:batch" else "reward"
        return 200, {}, {"results": [{kind: {"decision_id": "d1"}}, {"problem": problem}]}

    with loopback(handler) as server:
        call = calling(server.url)
        decisions = call("recommend_batch", [{"user": "ann", "arms": ARMS}, {"user": "bob", "arms": ARMS, "count": 1}])
        rewards = call("reward_batch", {"d1": 1.0, "x": np.float32(0.5)})
        call("reward_batch", [("d1", 1.0)])
    assert decisions[0].decision_id == rewards[0].decision_id == "d1"
    assert isinstance(decisions[1], ServiceError)
    assert rewards[1].status == 404
    first, second, third = (asked.json for asked in server.received)
    assert [asked["user"] for asked in first["requests"]] == ["ann", "bob"]
    assert len({asked["decision_id"] for asked in first["requests"]}) == 2
    assert second == {"rewards": [{"decision_id": "d1", "reward": 1.0}, {"decision_id": "x", "reward": 0.5}]}
    assert third == {"rewards": [{"decision_id": "d1", "reward": 1.0}]}


@pytest.mark.parametrize("user", ["ann", "a/b", "100%", "a%2Fb", "..", ".", "ü ?#&+;", "a\nb"])
def test_ids_in_paths_may_be_any_string(calling: Callable[..., Call], user: str) -> None:
    def handler(asked: ReceivedRequest) -> Reply:
        return 200, {}, {"user": user, "similar": [{"user": "bob"}], "members": [], "erased_decisions": 3}

    with loopback(handler) as server:
        call = calling(server.url + "/under/")
        assert call("user", user).user == user
        assert call("similar", user, limit=3)[0].user == "bob"
        assert call("cluster", user).members == []
        assert call("delete_user", user).erased_decisions == 3
    expected = [
        ("GET", "users", ""),
        ("GET", "users", "/similar?limit=3"),
        ("GET", "clusters", ""),
        ("DELETE", "users", ""),
    ]
    for asked, (method, kind, rest) in zip(server.received, expected, strict=True):
        start, end = f"/under/v1/{kind}/", rest
        assert asked.method == method
        assert asked.path.startswith(start)
        assert asked.path.endswith(end)
        encoded = asked.path[len(start) : len(asked.path) - len(end)]
        assert "/" not in encoded
        assert unquote(encoded) == user


def test_clusters_and_health(calling: Callable[..., Call]) -> None:
    with loopback(lambda _: (200, {}, {"clusters": [{"seed": None, "size": 3}], "status": "ok"})) as server:
        call = calling(server.url)
        assert call("clusters") == [Response(seed=None, size=3)]
        assert call("health").status == "ok"
    assert [asked.path for asked in server.received] == ["/v1/clusters", "/v1/health"]


def test_read_calls_send_the_expected_requests(calling: Callable[..., Call]) -> None:
    content = {"decisions": [{"arm": "a"}], "total": 0, "points": []}
    with loopback(lambda _: (200, {}, content)) as server:
        call = calling(server.url)
        assert call("decisions", "a/b", limit=3) == [Response(arm="a")]
        call("groups")
        assert call("groups", sort="reward", limit=5, offset=10, search="ü&").total == 0
        call("status")
        assert call("history").points == []
        call("history", "day", baseline=(100.5, 200))
        call("map")
        call("map", projection="new")
        call("preview", "ann", ARMS, exclude={"a"}, count=1)
    assert [(asked.method, asked.path) for asked in server.received] == [
        ("GET", "/v1/users/a%2Fb/decisions?limit=3"),
        ("GET", "/v1/groups?sort=size&limit=50&offset=0"),
        ("GET", "/v1/groups?sort=reward&limit=5&offset=10&search=%C3%BC%26"),
        ("GET", "/v1/status"),
        ("GET", "/v1/history?span=hour"),
        ("GET", "/v1/history?span=day&baseline_from=100.5&baseline_to=200"),
        ("GET", "/v1/map"),
        ("GET", "/v1/map?projection=new"),
        ("POST", "/v1/preview"),
    ]
    assert server.received[-1].json == {
        "user": "ann",
        "arms": [{"id": "a", "features": [1.0, 0.0]}, {"id": "b", "features": [0.0, 1.0]}],
        "exclude": ["a"],
        "count": 1,
    }


def test_health_is_not_retried(calling: Callable[..., Call]) -> None:
    with loopback(lambda _: (503, {}, {"title": "Full"})) as server, pytest.raises(ServiceError, match="503 Full"):
        calling(server.url)("health")
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


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "recommend",
            ("ann", {"a": [1.0, math.nan]}),
            r"the request\['arms'\]\[0\]\['features'\]\[1\] must be .* not nan",
        ),
        ("recommend", ("ann", {"a": {"age": object()}}), r"\['features'\]\['age'\] must be finite numbers"),
        ("reward", ("d1", math.inf), r"the request\['reward'\] must be .* not inf"),
        ("recommend_batch", ([{"user": "ann"}],), "argument 'arms' is missing"),
        (
            "recommend_batch",
            ([{"user": "ann", "arms": {}, "arm": 1}],),
            "unknown argument 'arm'; allowed are user, arms, ",
        ),
    ],
)
def test_invalid_arguments_are_named_before_sending(
    calling: Callable[..., Call], name: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        calling("http://127.0.0.1:1")(name, *arguments)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "127.0.0.1:80"}, "url must be like"),
        ({"retries": -1}, "retries must be at least 0, not -1"),
        ({"timeout": 0}, "timeout must be above 0, not 0"),
        ({"total": math.nan}, "total must be above 0, not nan"),
    ],
)
def test_settings_are_validated(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Client(**{"url": "http://127.0.0.1", **settings})


def test_concurrent_calls_share_a_client() -> None:
    async def main(server: Loopback) -> None:
        async with AsyncClient(server.url) as client:
            answers = await asyncio.gather(*(client.recommend(f"user {i}", ARMS) for i in range(50)))
        assert [answer.arm for answer in answers] == ["b"] * 50

    with loopback(lambda _: (200, {}, DECISION)) as server:
        asyncio.run(main(server))
    assert {asked.json["user"] for asked in server.received} == {f"user {i}" for i in range(50)}


def test_both_clients_have_the_same_methods() -> None:
    for name in vars(Client):
        if not name.startswith("_") and name != "close":
            assert getattr(Client, name).__doc__ == getattr(AsyncClient, name).__doc__, name
            assert getattr(Client, name).__name__ == name


def test_import_without_httpx_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("raise ImportError('no httpx')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", "import locb.client"], env=environment, capture_output=True, text=True)
    assert "ImportError: locb.client needs httpx: pip install 'locb[client]'" in done.stderr

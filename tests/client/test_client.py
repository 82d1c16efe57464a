"""Calls of Client and AsyncClient: requests and responses."""

import asyncio
import inspect
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from locb.client import AsyncClient, Client, Response, ServiceError, calls
from loopback import Loopback, ReceivedRequest, Reply, loopback

DECISION = {
    "decision_id": "d1",
    "arm": "b",
    "ranking": [{"arm": "b", "score": 0.5}],
    "clusters": [],
    "explanation": None,
}
ARMS = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
Call = Callable[..., Any]  # calls a method by name


def test_recommend(calling: Callable[..., Call]) -> None:
    with loopback(lambda _: (200, {}, DECISION)) as server:
        decision = calling(server.url, token="abc")("recommend", "ann", ARMS, exclude=("a",), count=1, decision_id="d1")
    assert decision.arm == decision["arm"] == "b"
    assert decision.ranking[0].score == 0.5
    assert json.loads(json.dumps(decision)) == DECISION
    with pytest.raises(AttributeError, match="the response has no field 'arms', only decision_id, arm, "):
        _ = decision.arms
    (request,) = server.received
    assert (request.method, request.path) == ("POST", "/v1/recommend")
    assert request.headers["authorization"] == "Bearer abc"
    assert request.headers["content-type"] == "application/json"
    assert request.json == {
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
    first, second = (request.json for request in server.received)
    assert [arm["features"] for arm in first["arms"]] == [[0.5, 1.0], {"age": 2.0, "new": True}]
    assert [arm["features"] for arm in second["arms"]] == [[1, 2], {"genre": "x"}]
    assert len(first["decision_id"]) == 32
    assert first["decision_id"] != second["decision_id"]
    assert set(first) == {"decision_id", "user", "arms"}


def test_batches(calling: Callable[..., Call]) -> None:
    problem = {"type": "about:blank", "title": "Unknown", "status": 404, "detail": "no decision 'x'"}

    def handler(request: ReceivedRequest) -> Reply:
        kind = "decision" if request.path == "/v1/recommend:batch" else "reward"
        return 200, {}, {"results": [{kind: {"decision_id": "d1"}}, {"problem": problem}]}

    with loopback(handler) as server:
        call = calling(server.url)
        decisions = call("recommend_batch", [{"user": "ann", "arms": ARMS}, {"user": "bob", "arms": ARMS, "count": 1}])
        rewards = call("reward_batch", {"d1": 1.0, "x": np.float32(0.5)})
        call("reward_batch", [("d1", 1.0)])
    assert decisions[0].decision_id == rewards[0].decision_id == "d1"
    assert isinstance(decisions[1], ServiceError)
    assert rewards[1].status == 404
    first, second, third = (request.json for request in server.received)
    assert [item["user"] for item in first["requests"]] == ["ann", "bob"]
    assert len({item["decision_id"] for item in first["requests"]}) == 2
    assert second == {"rewards": [{"decision_id": "d1", "reward": 1.0}, {"decision_id": "x", "reward": 0.5}]}
    assert third == {"rewards": [{"decision_id": "d1", "reward": 1.0}]}


@pytest.mark.parametrize("user", ["ann", "a/b", "100%", "a%2Fb", "..", ".", "ü ?#&+;", "a\nb"])
def test_ids_in_paths_may_be_any_string(calling: Callable[..., Call], user: str) -> None:
    def handler(request: ReceivedRequest) -> Reply:
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
    for request, (method, kind, rest) in zip(server.received, expected, strict=True):
        start, end = f"/under/v1/{kind}/", rest
        assert request.method == method
        assert request.path.startswith(start)
        assert request.path.endswith(end)
        encoded = request.path[len(start) : len(request.path) - len(end)]
        assert "/" not in encoded
        assert unquote(encoded) == user


def test_clusters_and_health(calling: Callable[..., Call]) -> None:
    with loopback(lambda _: (200, {}, {"clusters": [{"seed": None, "size": 3}], "status": "ok"})) as server:
        call = calling(server.url)
        assert call("clusters") == [Response(seed=None, size=3)]
        assert call("live").status == call("health").status == "ok"
    assert [request.path for request in server.received] == ["/v1/clusters", "/v1/live", "/v1/health"]


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
        call("history", "month", baseline="previous")
        call("map")
        call("map", projection="new")
        call("preview", "ann", ARMS, exclude={"a"}, count=1)
    assert [(request.method, request.path) for request in server.received] == [
        ("GET", "/v1/users/a%2Fb/decisions?limit=3"),
        ("GET", "/v1/groups?sort=size&limit=50&offset=0"),
        ("GET", "/v1/groups?sort=reward&limit=5&offset=10&search=%C3%BC%26"),
        ("GET", "/v1/status"),
        ("GET", "/v1/history?span=hour"),
        ("GET", "/v1/history?span=day&baseline_from=100.5&baseline_to=200"),
        ("GET", "/v1/history?span=month&baseline=previous"),
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


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "recommend",
            ("ann", {"a": [1.0, math.nan]}),
            r"the request\['arms'\]\[0\]\['features'\]\[1\] must be .* not nan",
        ),
        (
            "recommend",
            ("ann", {"a": {"age": object()}}),
            r"\['features'\]\['age'\] must be a finite number, string, boolean, list or dictionary",
        ),
        ("reward", ("d1", math.inf), r"the request\['reward'\] must be .* not inf"),
        ("recommend_batch", ([{"user": "ann"}],), "argument 'arms' is missing"),
        (
            "recommend_batch",
            ([{"user": "ann", "arms": {}, "arm": 1}],),
            "unknown argument 'arm'; allowed are 'user', 'arms', ",
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
        ({"url": "127.0.0.1:80"}, "url must start with http:// or https://, such as"),
        ({"retries": -1}, "retries must be at least 0, not -1"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0, not 0"),
        ({"total": math.nan}, "total must be a number of seconds above 0, not nan"),
    ],
)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_settings_are_validated(kind: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**{"url": "http://127.0.0.1", **settings})


def test_concurrent_calls_share_a_client() -> None:
    async def main(server: Loopback) -> None:
        async with AsyncClient(server.url) as client:
            answers = await asyncio.gather(*(client.recommend(f"user {i}", ARMS) for i in range(50)))
        assert [answer.arm for answer in answers] == ["b"] * 50

    with loopback(lambda _: (200, {}, DECISION)) as server:
        asyncio.run(main(server))
    assert {request.json["user"] for request in server.received} == {f"user {i}" for i in range(50)}


CALLS = {
    name
    for name, function in vars(calls).items()
    if inspect.isgeneratorfunction(function) and not name.startswith("_") and function.__module__ == calls.__name__
}


def public_methods(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")} - {"close", "aclose"}


def test_both_clients_have_the_same_methods() -> None:
    names = public_methods(Client)
    assert names == public_methods(AsyncClient) == CALLS
    assert {"recommend", "reward", "delete_user", "export"} <= names
    for name in names:
        blocking, coroutine = getattr(Client, name), getattr(AsyncClient, name)
        assert blocking.__name__ == coroutine.__name__ == name
        assert blocking.__doc__ == coroutine.__doc__
        assert blocking.__doc__, name
        assert inspect.signature(blocking) == inspect.signature(coroutine)
        assert inspect.iscoroutinefunction(coroutine)
        assert not inspect.iscoroutinefunction(blocking)


def test_import_without_httpx_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("raise ImportError('no httpx')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", "import locb.client"], env=environment, capture_output=True, text=True)
    assert "ImportError: locb.client needs the package httpx: run pip install 'locb[client]'" in done.stderr

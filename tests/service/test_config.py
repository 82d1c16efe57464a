"""Configuration of a service: ranges of the keys, and keys that reach the part that they configure."""

import socket
from pathlib import Path
from typing import Any

import pytest

from locb.service.config import ServiceConfig
from locb.service.core.service import Service
from locb.service.server import uvicorn_config
from serving import arms, serving


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"default_reward": float("nan")}, "--default-reward must be from -1000000 to 1000000, not nan"),
        ({"default_reward": 1e7}, "--default-reward must be from -1000000 to 1000000, not 10000000.0"),
        ({"snapshot_every": 0}, "--snapshot-every must be at least 1, not 0"),
        ({"port": 65536}, "--port must be from 0 to 65535, not 65536"),
        ({"max_body": 1023}, "--max-body must be at least 1024, not 1023"),
        ({"max_in_flight": 0}, "--max-in-flight must be at least 1, not 0"),
        ({"max_queue": 999}, "--max-queue must be at least 1000, not 999"),
        ({"read_timeout": 0.0}, "--read-timeout must be at least 0.1 seconds, not 0.0"),
        ({"keep_alive_timeout": -1.0}, "--keep-alive-timeout must be at least 0 seconds, not -1.0"),
        ({"reward_wait": -1.0}, "--reward-wait must be at least 0 seconds, not -1.0"),
        ({"shutdown_timeout": -1.0}, "--shutdown-timeout must be at least 0 seconds, not -1.0"),
        ({"backlog": 0}, "--backlog must be at least 1, not 0"),
        ({"decision_cache": 0}, "--decision-cache must be at least 1, not 0"),
        ({"personalizer_user": ""}, "--personalizer-user must be names joined by dots, such as user.id, not ''"),
        (
            {"personalizer_user": "a..b"},
            "--personalizer-user must be names joined by dots, such as user.id, not 'a..b'",
        ),
    ],
)
def test_invalid_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole message is compared
        ServiceConfig(Path("state"), **options)
    assert str(refused.value) == message


def test_server_options_come_from_the_configuration() -> None:
    config = ServiceConfig(Path("state"), backlog=17, keep_alive_timeout=3.5, shutdown_timeout=1.5)
    used = uvicorn_config(lambda *_: None, config)  # type: ignore[arg-type,return-value]  # not called
    assert (used.backlog, used.timeout_keep_alive, used.timeout_graceful_shutdown) == (17, 3.5, 1.5)


def test_default_policy_applies_to_new_stores_only(tmp_path: Path) -> None:
    with serving(tmp_path / "old", policy="linucb-ind"):
        pass
    with serving(tmp_path / "old", policy=None, dim=None) as (client, _):
        assert client.get("/v1/health").json()["policy"] == "linucb-ind"
    with pytest.raises(ValueError, match="the store was created with --policy linucb-ind, not eloc"):
        Service(ServiceConfig(tmp_path / "old", policy="eloc"))
    with serving(tmp_path / "new", policy=None) as (client, _):
        assert client.get("/v1/health").json()["policy"] == "eloc"


def test_idle_connections_are_closed_after_the_keep_alive_timeout(tmp_path: Path) -> None:
    with (
        serving(tmp_path, keep_alive_timeout=0.1) as (client, _),
        socket.create_connection((client.base_url.host, client.base_url.port), timeout=60) as connection,
    ):
        connection.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while part := connection.recv(65536):  # until the service closes the connection
            received += part
        assert received.startswith(b"HTTP/1.1 204 ")


def test_rewards_of_decisions_that_are_not_cached(tmp_path: Path) -> None:
    request = {"user": "ann", "arms": arms([1, 0, 0], [0, 1, 0])}
    with serving(tmp_path, decision_cache=1) as (client, service):
        for decision_id in ("a", "b", "c"):
            assert client.post("/v1/recommend", json=request | {"decision_id": decision_id}).status_code == 200
        rewards = [{"decision_id": decision_id, "reward": 1} for decision_id in ("a", "b", "c")]
        results = client.post("/v1/reward:batch", json={"rewards": rewards}).json()["results"]
        assert [result["reward"]["decision_id"] for result in results] == ["a", "b", "c"]
        assert len(service.engine._recent) == 1

"""Recovery from an unavailable store: requests get 503, and the service recovers automatically."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serving import arms, serving

REQUEST = {"user": "ann", "arms": arms([1, 0, 0], [0, 1, 0])}


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_database_outage(postgres: Any, tmp_path: Path) -> None:
    with serving(tmp_path, store=postgres.create_database()) as (client, service):
        assert client.post("/v1/recommend", json=REQUEST | {"decision_id": "a"}).status_code == 200
        try:
            postgres.stop()
            for _ in range(2):
                refused = client.post("/v1/recommend", json=REQUEST | {"user": "bob", "decision_id": "b"})
                assert refused.status_code == 503
                assert int(refused.headers["retry-after"]) > 0
                assert refused.json()["type"] == "urn:locb:problem:unavailable"
                assert "the store is unavailable" in refused.json()["detail"]
            health = client.get("/v1/health")
            assert (health.status_code, health.json()["status"]) == (503, "unavailable")
            address = urlsplit(str(service.config.store))
            assert f"port {address.port} failed" in client.get("/v1/status").json()["detail"]
            assert str(address.port) not in health.text  # the route needs no token
            assert str(address.hostname) not in health.text
            assert client.get("/v1/users/ann").status_code == 200
        finally:
            postgres.start()
        # The service gets no requests in the meantime, as behind a load balancer that skips unhealthy services.
        assert eventually(lambda: client.get("/v1/health").status_code == 200)
        response = client.post("/v1/recommend", json=REQUEST | {"user": "bob", "decision_id": "b"})
        assert response.status_code == 200
        assert client.post("/v1/reward", json={"decision_id": "b", "reward": 1}).status_code == 200
        assert service.log.last_seq() == service.engine.seq
        assert client.get("/v1/users/bob").json()["served"] == 1


def test_requests_without_writes_do_not_clear_the_error(tmp_path: Path, monkeypatch: Any) -> None:
    from locb.service.store.database import StoreError

    def fails(*_: Any) -> None:
        raise StoreError("database or disk is full")

    with serving(tmp_path) as (client, service):
        client.post("/v1/recommend", json=REQUEST | {"decision_id": "a"})
        for name in ("stage", "commit", "write_settings"):
            monkeypatch.setattr(service.log, name, fails)
        assert client.post("/v1/reward", json={"decision_id": "a", "reward": 1}).status_code == 503
        assert client.post("/v1/reward", json={"decision_id": "unknown", "reward": 1}).status_code == 404
        again = client.post("/v1/recommend", json=REQUEST | {"decision_id": "a"})
        assert again.status_code == 200
        assert client.get("/v1/health").json()["detail"].startswith("the store cannot be written")
        assert client.get("/v1/status").json()["detail"] == "database or disk is full"
        assert client.get("/v1/live").json() == {"status": "ok"}
        time.sleep(1.2)
        assert client.get("/v1/health").status_code == 503
        monkeypatch.undo()
        assert eventually(lambda: client.get("/v1/health").status_code == 200)
        assert client.post("/v1/reward", json={"decision_id": "a", "reward": 1}).status_code == 200

"""Two services on one database: the service that lost its lock stops, and never continues from outdated memory."""

from pathlib import Path
from typing import Any

import pytest

from locb.service.api.routes import ROUTES
from locb.service.core import group_commit
from locb.service.core.audit import audit
from locb.service.core.background import store_watchdog
from locb.service.store import locks
from service.store.test_locks import terminate_connections
from serving import arms, serving, wait_for

ARMS = arms([1, 0, 0], [0, 1, 0])


def recommend(client: Any, user: str, decision_id: str) -> int:
    body = {"user": user, "arms": ARMS, "decision_id": decision_id}
    return int(client.post("/v1/recommend", json=body).status_code)


def test_service_whose_first_failure_is_a_read_does_not_continue(
    postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "RETRY_INTERVAL", 0.01)
    monkeypatch.setattr(locks, "HEARTBEAT_INTERVAL", 3600.0)  # the next commit finds the takeover, not the lease
    monkeypatch.setattr(store_watchdog, "WATCH_INTERVAL", 3600.0)  # the request uses the terminated connection
    url = postgres.create_database()
    with serving(tmp_path / "a", store=url) as (first, first_service):
        assert recommend(first, "ann", "a1") == 200
        terminate_connections(url)  # the service is idle, so it does not notice
        with serving(tmp_path / "b", store=url) as (second, _):
            assert recommend(second, "bob", "b1") == 200
            assert second.post("/v1/reward", json={"decision_id": "b1", "reward": 1.0}).status_code == 200
        terminate_connections(url)  # those that a background task of the first service has opened
        assert recommend(first, "ann", "a1") == 503  # a repeated request: the service reads the log, and cannot
        # Without further requests, the service probes the store and connects again.
        wait_for(lambda: first_service.fatal_error is not None or first.get("/v1/health").status_code == 200)
        statuses = [recommend(first, "eve", f"a{number}") for number in range(2, 6)]
        assert statuses == [503] * 4
        assert first_service.fatal_error is not None
        assert first.get("/v1/health").status_code == 503
        found = {
            (route.method, route.path): first.request(
                route.method, route.path.format(user="ann", seed="ann", event="a1"), json={}
            )
            for route in ROUTES
        }
        assert [key for key, response in found.items() if response.status_code != 503] == [("GET", "/v1/live")]
        detail = found["GET", "/v1/users/{user}"].json()["detail"]
        assert detail == f"the store is unavailable: {first_service.fatal_error}; retry later"
        decisions = [(row.seq, row.id) for chunk in first_service.log.decisions() for row in chunk]
        assert decisions == [(2, b"a1"), (4, b"b1")]
        assert [name for _, _, name in first_service.log.users()] == [b"ann", b"bob"]
    assert audit(tmp_path / "b", url)[1] == []

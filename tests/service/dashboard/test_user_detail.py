"""Views of one user: estimate, decisions, preview."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dashboard_data import DIM, LOCB, genre_arms, get, read_observations

from locb.kernels.eloc.state import EVERYONE, GAP
from locb.service.dashboard import user_detail
from serving import serving, state, wait_for


def test_estimate(served: Any) -> None:
    client, service = served
    index = service.require_index("u3")
    user = get(client, "/v1/users/u3")
    observations = [row for row in read_observations(service) if row.user_index == index]
    rewards = [row.reward for row in observations]
    assert (user["rewards"], user["mean_reward"]) == (len(rewards), pytest.approx(np.mean(rewards)))
    contexts = np.array([np.frombuffer(row.context) for row in observations])
    margin = 1.96 * 0.5 * np.sqrt(np.diag(np.linalg.inv(np.eye(DIM) + contexts.T @ contexts)))
    expected = np.stack([user["theta"] - margin, user["theta"] + margin], axis=1)
    np.testing.assert_allclose(user["intervals"], expected, atol=1e-4)


def test_safety_screen_is_reported(tmp_path: Path) -> None:
    """The model believes that all users are alike, but one user has never had a reward for what the others like."""
    request = {"user": "ann", "arms": [{"id": "a", "features": [1, 0]}, {"id": "b", "features": [0, 1]}]}
    with serving(tmp_path, policy="eloc", dim=2) as (client, service):
        first = client.post("/v1/recommend", json=request).json()
        assert first["explanation"]["screened"] is False
        policy, index = service.policy, service.require_index("ann")
        for number in range(40):
            for user in range(policy.n_users):
                policy.update(user, [1.0, 0.0], float(user != index and number % 10 > 0))
                if user != index:
                    policy.update(user, [0.0, 1.0], float(number % 10 == 0))
        policy._state.learned_scalars[EVERYONE], policy._state.learned_scalars[GAP] = 1e3, 0.0
        second = client.post("/v1/recommend", json=request).json()
        assert (second["arm"], second["explanation"]["screened"]) == ("b", True)
        assert [arm["arm"] for arm in second["ranking"]] == ["b", "a"]
        assert second["ranking"][0]["score"] < second["ranking"][1]["score"]
        assert client.post("/v1/preview", json=request).json()["explanation"] == second["explanation"]
        stored = get(client, "/v1/users/ann/decisions")["decisions"]
        assert [decision["response"] for decision in stored] == [second, first]
    with serving(tmp_path / "other", **LOCB) as (client, _):
        explanation = client.post("/v1/recommend", json=request | {"arms": genre_arms()}).json()["explanation"]
        assert explanation["screened"] is False


def test_decisions(tmp_path: Path) -> None:
    with serving(tmp_path, **LOCB, default_reward=0.25, reward_wait=0.02) as (client, service):
        request = {"user": "ann", "arms": genre_arms(), "exclude": ["drama"]}
        responses = [client.post("/v1/recommend", json=request | {"decision_id": f"d{i}"}).json() for i in range(3)]
        wait_for(lambda: service.event_stats.rewards == 3 or get(client, "/v1/status")["rewards"] == 3)
        client.post("/v1/reward", json={"decision_id": "d1", "reward": 0.75})
        service.engine.reward_wait = 1000.0
        responses.append(client.post("/v1/recommend", json=request | {"decision_id": "d3"}).json())
        responses.append(client.post("/v1/recommend", json=request | {"decision_id": "d4"}).json())
        client.post("/v1/reward", json={"decision_id": "d4", "reward": 1.0})
        response = get(client, "/v1/users/ann/decisions")
        assert response["user"] == "ann"
        decisions = response["decisions"]
        rewards = [(decision["decision_id"], decision["reward_status"], decision["reward"]) for decision in decisions]
        assert rewards == [
            ("d4", "received", 1.0),
            ("d3", "pending", None),
            ("d2", "default", 0.25),
            ("d1", "corrected", 0.75),
            ("d0", "default", 0.25),
        ]
        assert [decision["response"] for decision in decisions] == responses[::-1]
        for decision in decisions:
            assert decision["arm"] == decision["response"]["arm"] != "drama"
            assert decision["features"] == {"kind": decision["arm"]}
            assert abs(decision["time"] - time.time()) < 60
        assert len(get(client, "/v1/users/ann/decisions", limit=2)["decisions"]) == 2
        assert client.get("/v1/users/unknown/decisions").status_code == 404
        assert client.get("/v1/users/ann/decisions?limit=101").status_code == 422
        mean = pytest.approx((0.25 + 0.75 + 0.25 + 1.0) / 4)
        user = get(client, "/v1/users/ann")
        assert (user["rewards"], user["mean_reward"]) == (4, mean)
        assert get(client, "/v1/history")["total"]["mean"] == mean


def test_decisions_are_limited_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_arms = [{"id": f"{number} {'x' * 240}", "features": [1, 0, 0]} for number in range(1000)]
    ids = [f"d{number}" for number in range(20)]
    with serving(tmp_path) as (client, _):
        for decision_id in ids:
            body = {"user": "ann", "arms": long_arms, "decision_id": decision_id, "count": 1000}
            client.post("/v1/recommend", json=body).raise_for_status()
        response = client.get("/v1/users/ann/decisions?limit=100")
        found = [decision["decision_id"] for decision in response.json()["decisions"]]
        assert found == ids[::-1][: len(found)]
        assert 1 < len(found) < 20
        assert len(response.content) < user_detail.MAX_DECISION_BYTES
        monkeypatch.setattr(user_detail, "MAX_DECISION_BYTES", 1)
        (decision,) = get(client, "/v1/users/ann/decisions")["decisions"]
        assert decision["decision_id"] == "d19"


def test_preview_decides_nothing(served: Any) -> None:
    client, service = served
    request = {"user": "u3", "arms": genre_arms(), "count": 2}
    before = state(service)
    preview = client.post("/v1/preview", json=request).json()
    assert client.post("/v1/preview", json=request).json() == preview
    assert state(service) == before
    decision = client.post("/v1/recommend", json=request).json()
    decision.pop("decision_id")
    assert preview == decision
    assert client.post("/v1/preview", json=request | {"user": "unknown"}).status_code == 404
    assert client.post("/v1/preview", json=request | {"decision_id": "d"}).status_code == 422
    assert client.post("/v1/preview", json=request | {"arms": []}).status_code == 422

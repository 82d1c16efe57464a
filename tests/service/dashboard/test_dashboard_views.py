"""All views together: erasure, restart, and every policy."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dashboard_data import LOCB, PATHS, TTLS, get, play, read_observations

import locb
from locb.service.core.service import Service
from locb.service.dashboard import certificate_cache, views
from serving import arms, serving, wait_for

# Fields that differ after a restart.
VOLATILE = (
    "time",
    "started_at",
    "store",
    "snapshot",
    "projection",
    "total",
    "decisions_per_second",
    "rewards_per_second",
)


def test_users_are_added_and_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TTLS:
        if name not in ("STATE_TTL", "TTL_PER_SECOND"):
            monkeypatch.setattr(views, name, 600.0)
    with serving(tmp_path, **LOCB) as (client, service):
        for seed in range(4):
            play(client, 60, seed=seed)
        with monkeypatch.context() as patch:
            patch.setattr(certificate_cache, "MISSING_SECONDS", -1.0)
            assert [row["certificate"] for row in get(client, "/v1/groups")["clusters"]] == [None] * 4
        check_sample(client, monkeypatch)
        check_erasure(client, service)


def check_sample(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the sample of users on the map is stable."""
    with monkeypatch.context() as patch:
        patch.setattr("locb.service.dashboard.map.MAX_USERS", 5)
        first = get(client, "/v1/map")
        assert (first["users"], first["shown"]) == (12, 5)
        assert first["description"] == "Random sample of 5 of 12 users"
        play(client, 60, n_users=14, seed=5)
        second = get(client, "/v1/map")
        assert second["users"] == 14
        assert len(set(first["points"]["user"]) & set(second["points"]["user"])) >= 3
        play(client, 5, seed=6)
        assert get(client, "/v1/map")["points"]["user"] == second["points"]["user"]


def check_erasure(client: Any, service: Service) -> None:
    """Check that no view contains an erased user."""
    seed = get(client, "/v1/groups")["clusters"][0]["seed"]
    paths = [*PATHS, "/v1/map?projection=new", "/v1/groups?sort=seed", "/v1/users/u3/decisions"]
    assert any(f'"{seed}"' in client.get(path).text for path in paths)
    assert client.delete(f"/v1/users/{seed}").status_code == 200
    wait_for(lambda: not service.backfilling)
    for path in paths:
        response = client.get(path)
        assert response.status_code == 200 or path == f"/v1/users/{seed}/decisions"
        assert f'"{seed}"' not in response.text, path
    status = get(client, "/v1/status")
    rewards = [row.reward for row in read_observations(service)]
    assert (status["users"], status["rewarded_users"], status["rewards"]) == (13, 13, len(rewards))
    assert get(client, "/v1/history")["total"]["mean"] == pytest.approx(np.mean(rewards))
    assert get(client, "/v1/map")["users"] == 13
    sizes = [row["size"] for row in get(client, "/v1/groups")["clusters"]]
    assert 0 < max(sizes) <= 13


def test_views_are_equal_after_a_restart(store: Any) -> None:
    paths = (*PATHS, "/v1/users/u3", "/v1/users/u3/decisions")
    with serving(store.folder, store=store.url, **LOCB) as (client, _):
        play(client, 40)
        before = [get(client, path) for path in paths]
    with serving(store.folder, store=store.url, **LOCB) as (client, service):
        wait_for(lambda: not service.backfilling)
        after = [get(client, path) for path in paths]
        for first, second in zip(before, after, strict=True):
            for field in VOLATILE:
                assert (field in first) == (field in second)
                first.pop(field, None)
                second.pop(field, None)
        assert json.dumps(before) == json.dumps(after)


@pytest.mark.parametrize("policy", ["locb", "eloc", "club", "sclub", "linucb-one", "linucb-ind", "custom"])
def test_every_policy(tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "custom", FirstArm)
    with serving(tmp_path, policy=policy) as (client, _):
        for path in PATHS:
            assert get(client, path) is not None, "without users"
        for i in range(30):
            request = {"user": f"u{i % 4}", "arms": arms([1, 0, 0], [0, 0.6, 0.8])}
            decision = client.post("/v1/recommend", json=request).json()
            client.post("/v1/reward", json={"decision_id": decision["decision_id"], "reward": float(i % 3 == 0)})
        status, table, user_map = get(client, "/v1/status"), get(client, "/v1/groups"), get(client, "/v1/map")
        assert status["users"] == status["rewarded_users"] == 4
        distinct = [row for row in table["clusters"] if row["same_as"] is None]
        assert status["clusters"]["forming"] + status["clusters"]["returned"] == len(distinct)
        assert {row["seed"] for row in table["clusters"]} <= {"u0", "u1", "u2", "u3", None}
        for row in table["clusters"]:
            detail = client.get(f"/v1/clusters/{row['seed']}").json() if row["seed"] else None
            assert detail is None or (detail["size"], detail["certificate"]) == (row["size"], row["certificate"])
        if policy.startswith("linucb") or policy == "custom":
            assert table["clusters"] == []
            assert status["cluster_based_share"] == 0.0
            assert set(user_map["points"]["cluster"]) <= {-1}
        else:
            assert any(row["seed"] for row in table["clusters"])
            assert sum(user_map["points"]["cluster_count"]) == sum(row["size"] for row in table["clusters"])
        assert user_map["shown"] == (0 if policy == "custom" else 4)
        user = get(client, "/v1/users/u1")
        assert (user["intervals"] is None) == (policy == "custom")
        assert user["rewards"] == 8
        assert len(get(client, "/v1/users/u1/decisions")["decisions"]) == 8
        request = {"user": "u1", "arms": arms([1, 0, 0], [0, 0.6, 0.8])}
        preview = client.post("/v1/preview", json=request).json()
        decision = client.post("/v1/recommend", json=request).json()
        assert preview == {name: value for name, value in decision.items() if name != "decision_id"}


class FirstArm(locb.Policy):
    """Policy that chooses the first arm and supports only new users."""

    def recommend(self, user: int, contexts: Any) -> int:
        return 0

    def update(self, user: int, context: Any, reward: float) -> None:
        pass

    def add_users(self, count: int) -> None:
        self._n_users += count

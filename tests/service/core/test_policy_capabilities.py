"""An error inside an optional method of a policy is reported, and not treated as a missing method."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from serving import arms, serving, wait_for


class Minimal(locb.Policy):
    """Policy that chooses the first arm and supports only new users."""

    def recommend(self, user: int, contexts: Any) -> int:
        return 0

    def update(self, user: int, context: Any, reward: float) -> None:
        pass

    def add_users(self, count: int) -> None:
        self._n_users += count

    def clusters(self) -> list[locb.Cluster]:
        return [locb.Cluster(None, np.arange(self.n_users))]


class Faulty(Minimal):
    """Policy whose methods for corrections, checkpoints and certificates have the same bug."""

    def correct(self, user: int, context: Any, learned: float, reward: float) -> None:
        self._bug()

    def save(self, path: Any) -> None:
        self._bug()

    def checkpoint(self) -> Any:
        self._bug()

    def certificate(self, cluster: Any) -> float:
        return self._bug()

    def certifier(self, cluster: Any) -> Any:
        return self._bug()

    def _bug(self) -> Any:
        return len(3)  # type: ignore[arg-type]  # the bug


def recommend(client: Any, user: str = "ann") -> str:
    answer = client.post("/v1/recommend", json={"user": user, "arms": arms([1, 0, 0], [0, 1, 0])})
    assert answer.status_code == 200
    return str(answer.json()["decision_id"])


def has_default_reward(client: Any) -> bool:
    """Return whether the default reward of the last decision for ann is learned."""
    decisions = client.get("/v1/users/ann/decisions?limit=1").json()["decisions"]
    return bool(decisions[0]["reward_status"] == "default")


@pytest.fixture(autouse=True)
def _policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "minimal", Minimal)
    monkeypatch.setitem(locb.POLICIES, "faulty", Faulty)


def test_minimal_policy_is_served_without_missing_capabilities(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO),
        serving(tmp_path, policy="minimal", default_reward=0.0, reward_wait=0.0) as (client, _),
    ):
        decision = recommend(client)
        wait_for(lambda: has_default_reward(client))
        assert client.post("/v1/reward", json={"decision_id": decision, "reward": 1.0}).status_code == 200
        assert client.get("/v1/clusters/ann").json()["certificate"] is None
        assert client.get("/v1/users/ann/similar").json()["similar"] == []
    assert (
        "snapshots are disabled, and every startup replays the whole log: Minimal has no methods save()" in caplog.text
    )
    assert "the policy did not learn the correction of a reward: Minimal has no method correct()" in caplog.text
    assert "Traceback" not in caplog.text


def test_personalizer_ranks_with_a_policy_that_does_not_explain(tmp_path: Path) -> None:
    actions = [{"id": name, "features": [{"topic": name}]} for name in ("news", "sport", "film", "music")]
    body = {"actions": actions, "excludedActions": ["news"], "eventId": "e1"}
    with serving(tmp_path, policy="minimal") as (client, service):
        for _ in range(2):  # the second response is the stored one
            answer = client.post("/personalizer/v1.0/rank", json=body)
            assert answer.status_code == 201, answer.text
            assert answer.json()["rewardActionId"] == "sport"
            ranking = [(ranked["id"], ranked["probability"]) for ranked in answer.json()["ranking"]]
            assert ranking == [("news", 0.0), ("sport", 1.0), ("film", 0.0), ("music", 0.0)]
        assert sum(len(chunk) for chunk in service.log.decisions()) == 1


def test_a_bug_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"policy": "faulty", "default_reward": 0.0, "reward_wait": 0.0, "snapshot_every": 1}
    with caplog.at_level(logging.INFO), serving(tmp_path, **options) as (client, _):
        assert "warm-up: the method correct() of the policy failed" in caplog.text
        decision = recommend(client)
        wait_for(lambda: has_default_reward(client))
        assert client.post("/v1/reward", json={"decision_id": decision, "reward": 1.0}).status_code == 200
        assert client.get("/v1/clusters/ann").status_code == 500
        first = caplog.text.count("object of type 'int' has no len()")
        recommend(client, "bob")
        wait_for(lambda: caplog.text.count("object of type 'int' has no len()") > first)  # the next snapshot is tried
    for message in (
        "cannot write the snapshot of event ",
        "rejected a reward of 1",
        "TypeError: object of type 'int' has no len()",
    ):
        assert message in caplog.text
    assert "snapshots are disabled" not in caplog.text
    assert "has no method correct()" not in caplog.text

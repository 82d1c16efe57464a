"""Decisions, rewards and default rewards, through HTTP."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import locb
from locb.service.core.audit import repeat_decisions
from serving import arms, same_state, serving, wait_for

BASIS = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8])


def recommend(client: Any, user: str = "ann", **fields: Any) -> dict[str, Any]:
    response = client.post("/v1/recommend", json={"user": user, "arms": arms(*BASIS), **fields})
    assert response.status_code == 200, response.text
    decision: dict[str, Any] = response.json()
    return decision


def reward(client: Any, decision: dict[str, Any], value: float) -> Any:
    return client.post("/v1/reward", json={"decision_id": decision["decision_id"], "reward": value})


@pytest.mark.parametrize("name", ["linucb-ind", "linucb-one", "locb", "club", "sclub", "eloc"])
def test_decisions_and_explanations_are_those_of_the_policy(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(5)
    with serving(tmp_path, policy=name) as (client, service):
        reference = service.model.build()
        indices: dict[str, int] = {}
        for _ in range(60):
            user = f"user {rng.integers(6)}"
            if user not in indices:
                indices[user] = len(indices)
                reference.add_users(max(0, len(indices) - reference.n_users))
            contexts = rng.normal(size=(4, 3))
            decision = client.post("/v1/recommend", json={"user": user, "arms": arms(*contexts.tolist())}).json()
            expected = reference.explain(indices[user], contexts)
            assert decision["arm"] == "abcd"[expected.arm]
            assert expected.estimate is not None
            assert expected.bonus is not None
            by_arm = {ranked["arm"]: ranked for ranked in decision["ranking"]}
            assert [by_arm[arm]["estimate"] for arm in "abcd"] == expected.estimate.tolist()
            assert [by_arm[arm]["bonus"] for arm in "abcd"] == expected.bonus.tolist()
            scores = [ranked["score"] for ranked in decision["ranking"]]
            assert scores[1:] == sorted(scores[1:], reverse=True)
            assert scores[0] >= max(scores) - 1e-9
            explanation = decision["explanation"]
            assert sum(explanation["contributions"].values()) == pytest.approx(
                decision["ranking"][0]["estimate"], abs=1e-12
            )
            assert sum(source["weight"] for source in explanation["sources"]) == pytest.approx(1.0)
            value = float(rng.random() < 0.5)
            assert reward(client, decision, value).json()["reward"] == value
            reference.update(indices[user], contexts[expected.arm], value)
        policy, mismatches = repeat_decisions(service.log, service.model, 0)
        assert mismatches == []
        assert same_state(policy, service.policy)
        assert same_state(reference, service.policy)


def test_named_features_are_those_of_the_library(tmp_path: Path) -> None:
    values = {"genre": "drama", "length": 0.5, "new": True}
    with serving(tmp_path, dim=8) as (client, service):
        request = {"user": "ann", "arms": [{"id": "film", "features": values}]}
        decision = client.post("/v1/recommend", json=request).json()
        reward(client, decision, 1.0)
        reference = locb.LinUCB(n_users=1, dim=8)
        reference.update(0, locb.features(values, 8), 1.0)
        assert service.policy.theta.tolist() == reference.theta.tolist()
        decision = client.post("/v1/recommend", json=request).json()
        explanation = decision["explanation"]
        assert set(explanation["contributions"]) == {"genre=drama", "length", "new=true"}
        estimate = sum(explanation["contributions"].values()) + explanation["intercept"]
        assert estimate == pytest.approx(decision["ranking"][0]["estimate"], abs=1e-12)


def test_repeated_request_gets_the_same_response(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, service):
        first = recommend(client, decision_id="d1")
        reward(client, first, 1.0)
        assert recommend(client, decision_id="d1") == first
        other = client.post("/v1/recommend", json={"user": "bob", "arms": arms(*BASIS), "decision_id": "d1"})
        assert other.status_code == 409
        assert other.json()["type"] == "urn:locb:problem:conflict"
        assert service.policy.served.sum() == 1
    with serving(tmp_path) as (client, _):  # a new process, which reads the decision from the log
        assert recommend(client, decision_id="d1") == first
        assert (
            client.post("/v1/recommend", json={"user": "x", "arms": arms(*BASIS), "decision_id": "d1"}).status_code
            == 409
        )


def test_reward_is_learned_once(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, service):
        decision = recommend(client)
        for _ in range(3):
            assert reward(client, decision, 1.0).status_code == 200
        repeated = reward(client, decision, 0.0)
        assert repeated.status_code == 409
        assert "already has reward 1" in repeated.json()["detail"]
        assert client.post("/v1/reward", json={"decision_id": "unknown", "reward": 1}).status_code == 404
        assert service.policy.served.tolist() == [1]
    with serving(tmp_path) as (client, service):
        assert reward(client, decision, 1.0).status_code == 200
        assert reward(client, decision, 0.0).status_code == 409
        assert service.policy.served.tolist() == [1]


def test_exclude_and_count(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        decision = recommend(client, exclude=["a"])
        assert {ranked["arm"] for ranked in decision["ranking"]} == {"b", "c"}
        assert decision["arm"] != "a"
        assert len(recommend(client, count=1)["ranking"]) == 1
        assert len(recommend(client, count=9)["ranking"]) == 3


def test_batch_has_a_result_per_item(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        requests = [{"user": f"u{i}", "arms": arms(*BASIS), "decision_id": f"d{i}"} for i in range(3)]
        requests[1]["arms"] = arms([1.0])
        results = client.post("/v1/recommend:batch", json={"requests": requests}).json()["results"]
        assert [set(result) for result in results] == [{"decision"}, {"problem"}, {"decision"}]
        assert results[1]["problem"]["fields"] == ["arms[0].features"]
        rewards = [{"decision_id": f"d{i}", "reward": 1} for i in range(3)]
        results = client.post("/v1/reward:batch", json={"rewards": rewards}).json()["results"]
        assert [set(result) for result in results] == [{"reward"}, {"problem"}, {"reward"}]
        assert results[1]["problem"]["status"] == 404


def test_default_reward_is_learned_and_corrected_exactly(tmp_path: Path) -> None:
    with serving(tmp_path, default_reward=0.25, reward_wait=0.0) as (client, service):
        decision = recommend(client)
        wait_for(lambda: service.policy.served.sum() == 1)
        reference = locb.LinUCB(n_users=1, dim=3)
        context = np.array(BASIS["abc".index(decision["arm"])])
        reference.update(0, context, 0.25)
        assert service.policy.theta.tolist() == reference.theta.tolist()
        late = reward(client, decision, 1.0)
        assert late.json() == {"decision_id": decision["decision_id"], "reward": 1.0, "corrected": True}
        assert reward(client, decision, 1.0).json()["corrected"]
        assert reward(client, decision, 0.25).status_code == 409
        corrected = locb.LinUCB(n_users=1, dim=3)
        corrected.update(0, context, 1.0)
        assert service.policy.theta == pytest.approx(corrected.theta, abs=1e-12)
        assert service.policy.served.tolist() == [1]
        policy, mismatches = repeat_decisions(service.log, service.model, 0)
        assert mismatches == []
        assert same_state(policy, service.policy)


def test_default_rewards_due_while_stopped_are_learned_at_the_next_start(tmp_path: Path) -> None:
    with serving(tmp_path, default_reward=0.0, reward_wait=3600.0) as (client, service):
        recommend(client)
        assert service.policy.served.sum() == 0
    with serving(tmp_path, default_reward=0.0, reward_wait=0.0) as (_, service):
        wait_for(lambda: service.policy.served.sum() == 1)


def test_export_as_parquet(tmp_path: Path) -> None:
    with serving(tmp_path, default_reward=0.5, reward_wait=0.2) as (client, service):
        rewarded = recommend(client, user="ann/ä")
        reward(client, rewarded, 1.0)
        recommend(client, user="bob")
        wait_for(lambda: service.policy.served.sum() == 2)
        (tmp_path / "log.parquet").write_bytes(client.get("/v1/export").content)
    table = pl.read_parquet(tmp_path / "log.parquet")
    assert table["user"].to_list() == ["ann/ä", "bob"]
    assert table["reward"].to_list() == [1.0, 0.5]
    assert table["reward_is_default"].to_list() == [False, True]
    assert table["arm"][0] == rewarded["arm"]
    assert table["context"][0].to_list() == BASIS["abc".index(rewarded["arm"])]
    assert not list(tmp_path.glob("export-*"))


def test_statistics_that_fail_after_a_commit_do_not_fail_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise ArithmeticError("statistics are broken")

    with serving(tmp_path) as (client, service):
        monkeypatch.setattr(type(service.event_stats), "add", fail)
        decision = recommend(client)
        assert reward(client, decision, 1.0).status_code == 200
        # The first request was answered although its statistics failed, so the event loop has logged the failure.
        assert "statistics are broken" in caplog.text
        monkeypatch.undo()
        recommend(client, "bob")
        assert service.policy.n_users == 2
    with serving(tmp_path) as (client, _):
        assert reward(client, decision, 1.0).status_code == 200  # the stored reward
        assert reward(client, decision, 0.0).status_code == 409


def test_requests_are_answered_before_their_statistics_are_updated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()
    waited: list[bool] = []

    with serving(tmp_path) as (client, service):
        add = type(service.event_stats).add

        def add_after_the_answer(*arguments: Any) -> None:
            waited.append(answered.wait(30.0))
            add(*arguments)

        monkeypatch.setattr(type(service.event_stats), "add", add_after_the_answer)
        recommend(client)
        answered.set()
        assert client.get("/v1/status").json()["decisions"] == 1
    assert waited == [True]

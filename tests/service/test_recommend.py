"""Decisions and rewards, as clients see them."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import locb
from locb.service.core.audit import repeat_decisions
from serving import arms, same_state, serving, wait_for

BASIS = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8])


def ask(client: Any, user: str = "ann", **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/recommend", json={"user": user, "arms": arms(*BASIS), **more})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def reward(client: Any, decision: dict[str, Any], value: float) -> Any:
    return client.post("/v1/reward", json={"decision_id": decision["decision_id"], "reward": value})


@pytest.mark.parametrize("name", ["linucb-ind", "linucb-one", "locb", "club", "sclub", "eloc"])
def test_decisions_are_those_of_the_policy_and_explained_to_the_last_digit(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(5)
    with serving(tmp_path, policy=name) as (client, service):
        own = service.model.build()
        places: dict[str, int] = {}
        for _ in range(60):
            user = f"user {rng.integers(6)}"
            if user not in places:
                places[user] = len(places)
                own.add_users(max(0, len(places) - own.n_users))
            contexts = rng.normal(size=(4, 3))
            told = client.post("/v1/recommend", json={"user": user, "arms": arms(*contexts.tolist())}).json()
            expected = own.explain(places[user], contexts)
            assert told["arm"] == "abcd"[expected.arm]
            assert expected.estimate is not None
            assert expected.bonus is not None
            by_arm = {ranked["arm"]: ranked for ranked in told["ranking"]}
            assert [by_arm[arm]["estimate"] for arm in "abcd"] == expected.estimate.tolist()
            assert [by_arm[arm]["bonus"] for arm in "abcd"] == expected.bonus.tolist()
            scores = [ranked["score"] for ranked in told["ranking"]]
            assert scores[1:] == sorted(scores[1:], reverse=True)
            assert scores[0] >= max(scores) - 1e-9
            why = told["explanation"]
            assert sum(why["contributions"].values()) == pytest.approx(told["ranking"][0]["estimate"], abs=1e-12)
            assert sum(source["weight"] for source in why["sources"]) == pytest.approx(1.0)
            value = float(rng.random() < 0.5)
            assert reward(client, told, value).json()["reward"] == value
            own.update(places[user], contexts[expected.arm], value)
        policy, wrong = repeat_decisions(service.log, service.model, 0)
        assert wrong == []
        assert same_state(policy, service.policy)
        assert same_state(own, service.policy)


def test_features_by_name_are_the_library_s(tmp_path: Path) -> None:
    values = {"genre": "drama", "length": 0.5, "new": True}
    with serving(tmp_path, dim=8) as (client, service):
        request = {"user": "ann", "arms": [{"id": "film", "features": values}]}
        told = client.post("/v1/recommend", json=request).json()
        reward(client, told, 1.0)
        own = locb.LinUCB(n_users=1, dim=8)
        own.update(0, locb.features(values, 8), 1.0)
        assert service.policy.theta.tolist() == own.theta.tolist()
        told = client.post("/v1/recommend", json=request).json()
        why = told["explanation"]
        assert set(why["contributions"]) == {"genre=drama", "length", "new=true"}
        whole = sum(why["contributions"].values()) + why["intercept"]
        assert whole == pytest.approx(told["ranking"][0]["estimate"], abs=1e-12)


def test_the_same_decision_again_is_the_same_answer(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, service):
        first = ask(client, decision_id="d1")
        reward(client, first, 1.0)
        assert ask(client, decision_id="d1") == first
        other = client.post("/v1/recommend", json={"user": "bob", "arms": arms(*BASIS), "decision_id": "d1"})
        assert other.status_code == 409
        assert other.json()["type"] == "urn:locb:problem:conflict"
        assert service.policy.served.sum() == 1
    with serving(tmp_path) as (client, _):  # a service that has it in its log alone
        assert ask(client, decision_id="d1") == first
        assert (
            client.post("/v1/recommend", json={"user": "x", "arms": arms(*BASIS), "decision_id": "d1"}).status_code
            == 409
        )


def test_a_reward_counts_once(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, service):
        told = ask(client)
        for _ in range(3):
            assert reward(client, told, 1.0).status_code == 200
        again = reward(client, told, 0.0)
        assert again.status_code == 409
        assert "already has reward 1" in again.json()["detail"]
        assert client.post("/v1/reward", json={"decision_id": "nobody", "reward": 1}).status_code == 404
        assert service.policy.served.tolist() == [1]
    with serving(tmp_path) as (client, service):
        assert reward(client, told, 1.0).status_code == 200
        assert reward(client, told, 0.0).status_code == 409
        assert service.policy.served.tolist() == [1]


def test_excluded_arms_and_short_rankings(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        told = ask(client, exclude=["a"])
        assert {ranked["arm"] for ranked in told["ranking"]} == {"b", "c"}
        assert told["arm"] != "a"
        assert len(ask(client, count=1)["ranking"]) == 1
        assert len(ask(client, count=9)["ranking"]) == 3


def test_batches_answer_each_by_itself(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        asked = [{"user": f"u{i}", "arms": arms(*BASIS), "decision_id": f"d{i}"} for i in range(3)]
        asked[1]["arms"] = arms([1.0])
        answers = client.post("/v1/recommend:batch", json={"requests": asked}).json()["results"]
        assert [set(answer) for answer in answers] == [{"decision"}, {"problem"}, {"decision"}]
        assert answers[1]["problem"]["fields"] == ["arms[0].features"]
        paid = [{"decision_id": f"d{i}", "reward": 1} for i in range(3)]
        answers = client.post("/v1/reward:batch", json={"rewards": paid}).json()["results"]
        assert [set(answer) for answer in answers] == [{"reward"}, {"problem"}, {"reward"}]
        assert answers[1]["problem"]["status"] == 404


def test_a_default_reward_is_learned_in_time_and_corrected_exactly(tmp_path: Path) -> None:
    with serving(tmp_path, default_reward=0.25, reward_wait=0.0) as (client, service):
        told = ask(client)
        wait_for(lambda: service.policy.served.sum() == 1)
        own = locb.LinUCB(n_users=1, dim=3)
        context = np.array(BASIS["abc".index(told["arm"])])
        own.update(0, context, 0.25)
        assert service.policy.theta.tolist() == own.theta.tolist()
        late = reward(client, told, 1.0)
        assert late.json() == {"decision_id": told["decision_id"], "reward": 1.0, "corrected": True}
        assert reward(client, told, 1.0).json()["corrected"]
        assert reward(client, told, 0.25).status_code == 409
        right = locb.LinUCB(n_users=1, dim=3)
        right.update(0, context, 1.0)
        assert service.policy.theta == pytest.approx(right.theta, abs=1e-12)
        assert service.policy.served.tolist() == [1]
        policy, wrong = repeat_decisions(service.log, service.model, 0)
        assert wrong == []
        assert same_state(policy, service.policy)


def test_defaults_that_fell_due_while_stopped_are_learned_at_the_next_start(tmp_path: Path) -> None:
    with serving(tmp_path, default_reward=0.0, reward_wait=3600.0) as (client, service):
        ask(client)
        assert service.policy.served.sum() == 0
    with serving(tmp_path, default_reward=0.0, reward_wait=0.0) as (_, service):
        wait_for(lambda: service.policy.served.sum() == 1)


def test_the_log_as_a_table(tmp_path: Path) -> None:
    with serving(tmp_path, default_reward=0.5, reward_wait=0.2) as (client, service):
        paid = ask(client, user="ann/ä")
        reward(client, paid, 1.0)
        ask(client, user="bob")
        wait_for(lambda: service.policy.served.sum() == 2)
        (tmp_path / "log.parquet").write_bytes(client.get("/v1/export").content)
    table = pl.read_parquet(tmp_path / "log.parquet")
    assert table["user"].to_list() == ["ann/ä", "bob"]
    assert table["reward"].to_list() == [1.0, 0.5]
    assert table["reward_is_default"].to_list() == [False, True]
    assert table["arm"][0] == paid["arm"]
    assert table["context"][0].to_list() == BASIS["abc".index(paid["arm"])]
    assert not list(tmp_path.glob("export-*"))

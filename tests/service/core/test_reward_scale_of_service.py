"""``reward_range`` in a service: the same decisions on another scale of rewards, and a notice about bad scales."""

import logging
import shutil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from locb.policies import REGISTRY
from locb.service.config import ServiceConfig
from locb.service.core.audit import audit
from locb.service.core.service import Service
from serving import arms, same_state, serving, wait_for

SCALE, SHIFT = 64.0, -40.0  # powers of two and small integers, so that the mapping is exact
RANGE = [SHIFT, SHIFT + SCALE]
NAMES = [f"user {i}" for i in range(5)]


class Pair:
    """The same traffic for a service with rewards in [0, 1], and for one with other rewards and a range."""

    def __init__(self, plain: httpx.Client, ranged: httpx.Client) -> None:
        self.plain, self.ranged = plain, ranged

    def recommend(self, user: str, contexts: Any) -> list[dict[str, Any]]:
        request = {"user": user, "arms": arms(*contexts.tolist())}
        return [client.post("/v1/recommend", json=request).json() for client in (self.plain, self.ranged)]

    def reward(self, decisions: list[dict[str, Any]], reward: float) -> None:
        for client, decision, value in zip(
            (self.plain, self.ranged), decisions, (reward, SCALE * reward + SHIFT), strict=True
        ):
            response = client.post("/v1/reward", json={"decision_id": decision["decision_id"], "reward": value})
            assert response.json()["reward"] == value, response.text


def has_same_choice(plain: dict[str, Any], ranged: dict[str, Any]) -> bool:
    """Return whether two decisions are equal, with estimates and bonuses on their own scales."""
    assert (ranged["arm"], ranged["clusters"]) == (plain["arm"], plain["clusters"])
    for mine, other in zip(ranged["ranking"], plain["ranking"], strict=True):
        assert mine["arm"] == other["arm"]
        assert mine["estimate"] == pytest.approx(SHIFT + SCALE * other["estimate"])
        assert mine["bonus"] == pytest.approx(SCALE * other["bonus"])
        assert mine["score"] == pytest.approx(SHIFT + SCALE * other["score"])
    mine, other = ranged["explanation"], plain["explanation"]
    assert mine["sources"] == other["sources"]
    assert mine["intercept"] == SHIFT
    total = sum(mine["contributions"].values()) + mine["intercept"]
    assert total == pytest.approx(ranged["ranking"][0]["estimate"])
    return True


@pytest.mark.parametrize("name", [name for name, spec in REGISTRY.items() if spec.compare_by_default])
def test_rescaled_rewards_give_the_same_decisions(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(5)
    base, other = {"policy": name}, {"policy": name, "parameters": {"reward_range": RANGE}}
    late = []
    with serving(tmp_path / "plain", **base) as (client, one), serving(tmp_path / "ranged", **other) as (client2, two):
        pair = Pair(client, client2)
        for number in range(60):
            decisions = pair.recommend(NAMES[rng.integers(5)], rng.normal(size=(4, 3)))
            assert has_same_choice(*decisions)
            if number % 6:
                pair.reward(decisions, int(rng.integers(65)) / 64.0)
            else:
                late.append(decisions)
        assert same_state(one.policy, two.policy)
    # Both services continue from snapshots, learn default rewards, and correct some of them.
    base |= {"default_reward": 0.25, "reward_wait": 0.0}
    other |= {"default_reward": SHIFT + SCALE * 0.25, "reward_wait": 0.0, "parameters": {}}
    with serving(tmp_path / "plain", **base) as (client, one), serving(tmp_path / "ranged", **other) as (client2, two):
        wait_for(lambda: one.policy.served.sum() == two.policy.served.sum() == 60)
        pair = Pair(client, client2)
        for decisions in late[:5]:
            pair.reward(decisions, 0.75)
        assert same_state(one.policy, two.policy)
        assert two.policy.get_params()["reward_range"] == tuple(RANGE)
        assert one.policy.get_params()["reward_range"] is None
        last = one.policy, two.policy
    # Both services replay their logs.
    shutil.rmtree(tmp_path / "plain" / "snapshots")
    shutil.rmtree(tmp_path / "ranged" / "snapshots")
    base, other = {"policy": name}, {"policy": name}
    with serving(tmp_path / "plain", **base) as (client, one), serving(tmp_path / "ranged", **other) as (client2, two):
        assert same_state(one.policy, last[0])
        assert same_state(two.policy, last[1])
        assert has_same_choice(*Pair(client, client2).recommend(NAMES[0], rng.normal(size=(4, 3))))
    assert audit(tmp_path / "ranged")[1] == []


def test_users_and_clusters_are_in_original_units(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    parameters = {"n_seeds": 3}
    with (
        serving(tmp_path / "plain", policy="locb", parameters=parameters) as (client, _),
        serving(tmp_path / "ranged", policy="locb", parameters=parameters | {"reward_range": RANGE}) as (client2, _),
    ):
        pair = Pair(client, client2)
        for _ in range(60):
            decisions = pair.recommend(NAMES[rng.integers(5)], rng.normal(size=(4, 3)))
            pair.reward(decisions, int(rng.integers(65)) / 64.0)

        def get(path: str) -> list[Any]:
            return [one.get(path).json() for one in (client, client2)]

        plain, ranged = get(f"/v1/users/{NAMES[1]}")
        assert ranged["theta"] == pytest.approx([SCALE * weight for weight in plain["theta"]])
        assert ranged["radius"] == pytest.approx(SCALE * plain["radius"])
        assert np.array(ranged["intervals"]) == pytest.approx(SCALE * np.array(plain["intervals"]))
        assert ranged["mean_reward"] == pytest.approx(SHIFT + SCALE * plain["mean_reward"])
        plain, ranged = get(f"/v1/users/{NAMES[1]}/similar")
        assert [user["user"] for user in ranged["similar"]] == [user["user"] for user in plain["similar"]]
        distances = [SCALE * user["distance"] for user in plain["similar"]]
        assert [user["distance"] for user in ranged["similar"]] == pytest.approx(distances)
        seed = client.get("/v1/clusters").json()["clusters"][0]["seed"]
        plain, ranged = get(f"/v1/clusters/{seed}")
        assert ranged["members"] == plain["members"]
        assert ranged["certificate"] == pytest.approx(SCALE * plain["certificate"])
        plain, ranged = get("/v1/groups")
        assert (plain["max_distance"], ranged["max_distance"]) == (2.0, 2.0 * SCALE)
        assert ranged["clusters"][0]["certificate"] == pytest.approx(SCALE * plain["clusters"][0]["certificate"])
        assert ranged["clusters"][0]["progress"] == plain["clusters"][0]["progress"]


def test_intercept_of_named_features_contains_the_lower_limit(tmp_path: Path) -> None:
    with serving(tmp_path, dim=8, parameters={"reward_range": (10, 20)}) as (client, _):
        request = {"user": "ann", "arms": [{"id": "film", "features": {"genre": "drama", "length": 0.5}}]}
        for _ in range(3):
            decision = client.post("/v1/recommend", json=request).json()
            client.post("/v1/reward", json={"decision_id": decision["decision_id"], "reward": 18})
        explanation = decision["explanation"]
        total = sum(explanation["contributions"].values()) + explanation["intercept"]
        assert total == pytest.approx(decision["ranking"][0]["estimate"])
        assert 10.0 < explanation["intercept"] < total < 18.0


def test_store_keeps_its_range(tmp_path: Path) -> None:
    def start(folder: str, **parameters: Any) -> tuple[float, float] | None:
        with serving(tmp_path / folder, parameters=parameters) as (_, service):
            found: tuple[float, float] | None = service.policy.get_params()["reward_range"]
            return found

    def refuse(folder: str, reward_range: Any) -> str:
        config = ServiceConfig(tmp_path / folder, dim=3, parameters={"reward_range": reward_range})
        with pytest.raises(ValueError, match="choose another --data-dir or --store") as caught:
            Service(config)
        return str(caught.value)

    assert start("ranged", reward_range=(0, 5)) == (0.0, 5.0)
    assert start("ranged") == start("ranged", reward_range=[0.0, 5.0]) == start("ranged", reward_range=(0, 5)) == (0, 5)
    assert "created with --reward-range 0,5, not 0,4" in refuse("ranged", [0, 4])
    assert start("plain") is None
    assert "created without --reward-range 0,4, which cannot be added later" in refuse("plain", [0, 4])
    assert start("plain") is None


def send(client: httpx.Client, *rewards: float) -> None:
    """Request a decision per reward, and send the rewards in one batch."""
    ids = []
    for _ in rewards:
        decision = client.post("/v1/recommend", json={"user": "ann", "arms": arms([1.0, 0.0, 0.0])}).json()
        ids.append(decision["decision_id"])
    batch = [{"decision_id": name, "reward": reward} for name, reward in zip(ids, rewards, strict=True)]
    response = client.post("/v1/reward:batch", json={"rewards": batch})
    assert [result["reward"]["reward"] for result in response.json()["results"]] == list(rewards)


def scale_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if "--reward-range" in record.getMessage()]
    caplog.clear()
    return found


def test_bad_scale_is_logged_once_and_in_the_status(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "locb.service")
    with serving(tmp_path) as (client, service):
        send(client, 1.0, 0.0)
        assert client.get("/v1/status").json()["reward_scale_problem"] is None
        send(client, 500.0)
        send(client, 600.0)
        send(client, *[float(reward) for reward in range(10)])
        (message,) = scale_messages(caplog)
        assert message.startswith(
            "a reward of 500 is not in -0.5 … 1.5, but the policy assumes rewards of about 0 to 1"
        )
        assert service.policy.served.sum() == 14
        wait_for(lambda: client.get("/v1/status").json()["reward_scale_problem"] is not None)
        assert client.get("/v1/status").json()["reward_scale_problem"] == "a reward of 500 is not in -0.5 … 1.5"
    shutil.rmtree(tmp_path / "snapshots")
    with serving(tmp_path) as (client, _):  # the replay finds the same problem
        (message,) = scale_messages(caplog)
        assert message.startswith("rewards from 0 to 600 are not in -0.5 … 1.5")
        assert "from 0 to 600" in client.get("/v1/status").json()["reward_scale_problem"]
    with serving(tmp_path) as (client, _):  # a snapshot does not have it; the next reward does
        assert scale_messages(caplog) == []
        send(client, 400.0)
        assert len(scale_messages(caplog)) == 1


def test_range_prevents_the_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(tmp_path, parameters={"reward_range": [0, 600]}) as (client, _):
        send(client, *[500.0] * 10)
        assert client.get("/v1/status").json()["reward_scale_problem"] is None
    assert scale_messages(caplog) == []


def test_reward_that_the_range_makes_too_large_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(tmp_path, parameters={"reward_range": [0, 1e-95]}) as (client, service):
        send(client, 0.0, 1e-96, 1e6, 2e-96, 0.0, 1e-95)
        assert service.policy.served.sum() == 5
        (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
        assert record.getMessage().startswith("the policy rejected a reward of 1e+06, which stays in the log")
        assert record.exc_info is not None
        assert "which reward_range maps to 1e+101; mapped rewards must be from" in str(record.exc_info[1])
        last = service.policy
    shutil.rmtree(tmp_path / "snapshots")
    with serving(tmp_path) as (_, service):
        assert same_state(service.policy, last)

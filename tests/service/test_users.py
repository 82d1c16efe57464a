"""Users, sets, and users who leave."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from locb.service.core.audit import repeat_decisions
from serving import arms, same_state, serving

ODD = ["a/b", "%2F", "ä ö", "similar", "..", "x" * 256, "\N{PILE OF POO}", "nul\0byte"]


def in_path(user: str) -> str:
    return quote(user, safe="").replace(".", "%2E")  # or else the client takes .. for a way up


def play(client: Any, rng: np.random.Generator, users: list[str], rounds: int) -> None:
    for _ in range(rounds):
        user = users[rng.integers(len(users))]
        told = client.post("/v1/recommend", json={"user": user, "arms": arms(*rng.normal(size=(3, 3)).tolist())}).json()
        client.post("/v1/reward", json={"decision_id": told["decision_id"], "reward": float(rng.random())})


def test_ids_are_any_string(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        for user in ODD:
            client.post("/v1/recommend", json={"user": user, "arms": arms([1, 0, 0])})
            told = client.get(f"/v1/users/{in_path(user)}")
            assert told.status_code == 200, user
            assert told.json()["user"] == user
            assert client.get(f"/v1/users/{in_path(user)}/similar").json()["user"] == user
    with serving(tmp_path) as (client, _):
        for user in ODD:
            assert client.get(f"/v1/users/{in_path(user)}").json()["user"] == user
            assert client.delete(f"/v1/users/{in_path(user)}").json()["erased_decisions"] == 1


def test_what_is_known_of_users_and_sets(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    users = [f"u{i}" for i in range(8)]
    with serving(tmp_path, policy="locb", parameters={"n_seeds": 3, "gamma": 0.5}) as (client, service):
        play(client, rng, users, 120)
        told = client.get("/v1/users/u3").json()
        place = service.require_index("u3")
        assert told["theta"] == service.policy.theta[place].tolist()
        assert told["served"] == service.policy.served[place]
        assert told["radius"] == service.policy.radii[place]
        similar = client.get("/v1/users/u3/similar?limit=3").json()["similar"]
        expected = service.policy.similar_users(place, 3)
        assert [service.require_index(one["user"]) for one in similar] == [one.user for one in expected]
        sets = client.get("/v1/clusters").json()["clusters"]
        assert len(sets) == 3
        for one, cluster in zip(sets, service.policy.clusters(), strict=True):
            assert one["size"] == len(cluster)
            whole = client.get(f"/v1/clusters/{one['seed']}").json()
            assert {service.require_index(user) for user in whole["members"]} == set(cluster.members.tolist())
            assert whole["certificate"] == service.policy.certificate(cluster)
            assert whole["certificate_exact"]
        assert client.get("/v1/clusters/nobody").json()["type"] == "urn:locb:problem:unknown-user"
        apart = next(user for user in users if user not in {one["seed"] for one in sets})
        assert client.get(f"/v1/clusters/{apart}").json()["type"] == "urn:locb:problem:unknown-cluster"
        assert client.get("/v1/users/u3/similar?limit=-1").status_code == 422


@pytest.mark.parametrize("name", ["locb", "eloc", "club", "sclub", "linucb-one", "linucb-ind"])
def test_a_user_who_leaves_has_never_been(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(2)
    users = [f"u{i}" for i in range(6)]
    with serving(tmp_path, policy=name, parameters={"n_seeds": 3} if name in ("locb", "eloc") else {}) as (
        client,
        service,
    ):
        play(client, rng, users, 90)
        waiting = client.post("/v1/recommend", json={"user": "u2", "arms": arms([1, 0, 0])}).json()["decision_id"]
        place = service.require_index("u2")
        kept = [row for chunk in service.log.observations(0) for row in chunk if row.user_index != place]
        without = service.model.build()
        without.add_users(service.policy.n_users - without.n_users)
        gone = client.delete("/v1/users/u2")
        assert gone.status_code == 200
        assert gone.json()["erased_decisions"] > 5
        assert client.get("/v1/users/u2").status_code == 404
        assert client.delete("/v1/users/u2").status_code == 404
        assert client.post("/v1/reward", json={"decision_id": waiting, "reward": 1}).status_code == 404
        assert service.policy.served[place] == 0
        assert service.policy.served.sum() == len(kept)
        again, wrong = repeat_decisions(service.log, service.model, service.log.settings()["rebuilt_at"])
        assert same_state(again, service.policy)
        play(client, rng, [*users, "new"], 60)
        again, wrong = repeat_decisions(service.log, service.model, service.log.settings()["rebuilt_at"])
        assert wrong == []
        assert same_state(again, service.policy)
    with serving(tmp_path, policy=name) as (client, later):
        assert same_state(later.policy, service.policy)
        assert client.get("/v1/users/new").status_code == 200


def test_sums_no_longer_hold_who_left(tmp_path: Path) -> None:
    """Where nobody else came or went, the policy is that of the others alone."""
    rng = np.random.default_rng(3)
    told = []
    with serving(tmp_path / "with") as (client, service):
        client.post("/v1/recommend", json={"user": "first", "arms": arms([1, 0, 0])})
        play(client, rng, ["left", "first", "left"], 50)
        client.delete("/v1/users/left")
        told = [(row.user_index, row.context, row.reward) for chunk in service.log.observations(0) for row in chunk]
        alone = service.model.build()
        alone.add_users(1)
        for place, context, reward in told:
            alone.update(place, np.frombuffer(context), reward)
        assert same_state(alone, service.policy)
    for file in (tmp_path / "with").rglob("*"):
        assert not file.is_file() or b"left" not in file.read_bytes(), file


@pytest.mark.parametrize("policy", ["locb", "eloc"])
def test_answers_to_others_no_longer_name_who_left(store: Any, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locb.service.core.erasure.REDACTED_PER_STEP", 7)
    rng = np.random.default_rng(4)
    left = 'who "left" ä\N{PILE OF POO}\0'
    options = {"policy": policy, "parameters": {"n_seeds": 2}, "store": store.url}
    with serving(store.folder, **options) as (client, service):
        play(client, rng, [left], 3)
        play(client, rng, [left, "bob", "left", "ann"], 40)
        asked = {"user": "bob", "arms": arms([1, 0, 0], [0, 1, 0]), "decision_id": "kept"}
        before = client.post("/v1/recommend", json=asked).json()
        assert left in {one["seed"] for one in before["clusters"]}
        client.delete(f"/v1/users/{in_path(left)}")
        told = [json.loads(row.response) for chunk in service.log.decisions() for row in chunk]
        seeds = {one["seed"] for each in told for one in each["clusters"] + each["explanation"]["sources"]}
        assert left not in seeds
        assert None in seeds
        after = client.post("/v1/recommend", json=asked).json()
        for one in before["clusters"] + before["explanation"]["sources"]:
            one["seed"] = None if one["seed"] == left else one["seed"]
        assert after == before
        _, wrong = repeat_decisions(service.log, service.model, service.log.settings()["rebuilt_at"])
        assert wrong == []
    escaped = json.dumps(left, ensure_ascii=False).encode()[1:-1]
    for file in store.folder.rglob("*"):
        assert not file.is_file() or (left.encode() not in file.read_bytes() and escaped not in file.read_bytes()), file


def test_all_routes_agree_on_who_is_left(tmp_path: Path) -> None:
    """A place that nobody has is not a user, whoever is asked."""
    with serving(tmp_path, policy="locb") as (client, _):
        for user in ("ann", "cat", "dog"):
            told = client.post("/v1/recommend", json={"user": user, "arms": arms([1, 0, 0])}).json()
            client.post("/v1/reward", json={"decision_id": told["decision_id"], "reward": 1.0})
        for user in ("cat", "dog"):
            assert client.delete(f"/v1/users/{user}").status_code == 200
        for left in (["ann"], ["ann", "eve"]):
            told = client.post("/v1/recommend", json={"user": left[-1], "arms": arms([1, 0, 0])}).json()
            assert client.get("/v1/health").json()["users"] == len(left)
            expected = [{"seed": user, "size": len(left), "returned": False} for user in left]
            assert told["clusters"] == expected
            assert client.get("/v1/clusters").json()["clusters"] == expected
            assert client.get("/v1/users/ann").json()["clusters"] == expected
            assert told["explanation"]["sources"][0]["users"] == len(left)
            assert client.get("/v1/clusters/ann").json()["members"] == left
            assert client.get("/v1/clusters/ann").json()["size"] == len(left)

"""Erasure of users: their events and names are deleted, and the policy is rebuilt without them."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locb.service.core import erasure
from locb.service.core.audit import repeat_decisions
from locb.service.core.erasure import Eraser
from locb.service.core.startup import replay
from serving import arms, in_path, play, same_state, serving, wait_for


@pytest.mark.parametrize("name", ["locb", "eloc", "club", "sclub", "linucb-one", "linucb-ind"])
def test_policy_is_rebuilt_without_the_user(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "OBSERVATIONS_PER_STEP", 7)  # requests are served between the steps of the rebuild
    learn, steps = replay.learn, []

    def learn_and_count(policy: Any, observations: Any) -> None:
        steps.append(len(observations))
        learn(policy, observations)

    monkeypatch.setattr(replay, "learn", learn_and_count)
    rng = np.random.default_rng(2)
    users = [f"u{i}" for i in range(6)]
    with serving(tmp_path, policy=name, parameters={"n_seeds": 3} if name in ("locb", "eloc") else {}) as (
        client,
        service,
    ):
        play(client, rng, users, 90)
        pending = client.post("/v1/recommend", json={"user": "u2", "arms": arms([1, 0, 0])}).json()["decision_id"]
        user_index = service.require_index("u2")
        kept = [row for chunk in service.log.observations(0) for row in chunk if row.user_index != user_index]
        response = client.delete("/v1/users/u2")
        assert response.status_code == 200
        assert response.json()["erased_decisions"] > 5
        assert client.get("/v1/users/u2").status_code == 404
        assert client.delete("/v1/users/u2").status_code == 404
        assert client.post("/v1/reward", json={"decision_id": pending, "reward": 1}).status_code == 404
        assert service.policy.served[user_index] == 0
        assert service.policy.served.sum() == len(kept) == sum(steps)
        assert max(steps) == 7
        without = service.model.build()
        added = {seq: user_index for user_index, seq, _ in service.log.users()}
        rewards = {row.seq: row for row in kept}
        for seq in sorted(added | rewards):
            if seq in rewards:
                row = rewards[seq]
                without.update(row.user_index, np.frombuffer(row.context), row.reward)
            elif added[seq] == without.n_users:  # otherwise, one of the initial users
                without.add_users(1)
        assert same_state(without, service.policy)
        play(client, rng, [*users, "new"], 60)
        replayed, mismatches = repeat_decisions(service.log, service.model, service.log.settings()["rebuilt_at"])
        assert mismatches == []
        assert same_state(replayed, service.policy)
    with serving(tmp_path, policy=name) as (client, later):
        assert same_state(later.policy, service.policy)
        assert client.get("/v1/users/new").status_code == 200


def test_rebuilt_policy_equals_a_policy_without_the_user(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = []
    with serving(tmp_path / "with") as (client, service):
        client.post("/v1/recommend", json={"user": "first", "arms": arms([1, 0, 0])})
        play(client, rng, ["erased", "first", "erased"], 50)
        client.delete("/v1/users/erased")
        rows = [(row.user_index, row.context, row.reward) for chunk in service.log.observations(0) for row in chunk]
        reference = service.model.build()
        reference.add_users(1)
        for user_index, context, reward in rows:
            reference.update(user_index, np.frombuffer(context), reward)
        assert same_state(reference, service.policy)
    for file in (tmp_path / "with").rglob("*"):
        assert not file.is_file() or b"erased" not in file.read_bytes(), file


def without_seed(response: dict[str, Any], seed: str) -> dict[str, Any]:
    """Return a response in which a seed is null."""
    response = copy.deepcopy(response)
    for item in response["clusters"] + response["explanation"]["sources"]:
        item["seed"] = None if item["seed"] == seed else item["seed"]
    return response


@pytest.mark.parametrize("policy", ["locb", "eloc"])
def test_name_is_removed_from_responses_to_other_users(store: Any, policy: str) -> None:
    """Also after another user gets the index of the erased user: the responses do not name the other user instead."""
    rng = np.random.default_rng(4)
    erased = 'the "erased" ä\N{PILE OF POO}\0'
    options = {"policy": policy, "parameters": {"n_seeds": 2}, "store": store.url}
    with serving(store.folder, **options) as (client, service):
        play(client, rng, [erased], 3)
        play(client, rng, [erased, "bob", "left", "ann"], 16)  # few rewards: every cluster may contain every user
        request = {"user": "bob", "arms": arms([1, 0, 0], [0, 1, 0]), "decision_id": "kept"}
        before = client.post("/v1/recommend", json=request).json()
        assert erased in {cluster["seed"] for cluster in before["clusters"]}
        assert client.post("/v1/recommend", json=request).json() == before
        decisions = client.get("/v1/users/bob/decisions", params={"limit": 50}).json()["decisions"]
        index = service.require_index(erased)
        client.delete(f"/v1/users/{in_path(erased)}")
        for name in (None, "successor"):
            if name is not None:
                later = client.post("/v1/recommend", json={"user": name, "arms": arms([1, 0, 0])}).json()
                assert service.require_index(name) == index
                assert name in {cluster["seed"] for cluster in later["clusters"]}
            assert client.post("/v1/recommend", json=request).json() == without_seed(before, erased)
            found = client.get("/v1/users/bob/decisions", params={"limit": 50}).json()["decisions"]
            assert [item["response"] for item in found] == [
                without_seed(item["response"], erased) for item in decisions
            ]
        _, mismatches = repeat_decisions(service.log, service.model, service.log.settings()["rebuilt_at"])
        assert mismatches == []
    escaped = json.dumps(erased, ensure_ascii=False).encode()[1:-1]
    for file in store.folder.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert erased.encode() not in content, file
        assert escaped not in content, file


def test_erasure_ends_although_further_users_are_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locb.service.core.erasure.MAX_FINAL_CATCH_UP", 0)
    users = [f"u{number}" for number in range(7)]
    catch_up, rebuilds, rebuilds_at_end = Eraser._catch_up, 0, []
    with ThreadPoolExecutor(len(users)) as threads, serving(tmp_path) as (client, service):
        play(client, np.random.default_rng(5), [*users, "kept"], 80)

        def erase_next(eraser: Eraser, policy: Any, after: int, until: int) -> None:
            nonlocal rebuilds
            if after == 0:  # in each rebuild, another user is erased
                rebuilds += 1
                if rebuilds < len(users):
                    pending = len(service.engine.pending_erasure)
                    responses.append(threads.submit(client.delete, f"/v1/users/{users[rebuilds]}"))
                    wait_for(lambda: len(service.engine.pending_erasure) > pending)
            catch_up(eraser, policy, after, until)

        monkeypatch.setattr(Eraser, "_catch_up", erase_next)
        first = threads.submit(client.delete, "/v1/users/u0")
        first.add_done_callback(lambda _: rebuilds_at_end.append(rebuilds))
        responses = [first]
        wait_for(lambda: rebuilds >= len(users) and not service.rebuilding)
        assert [response.result().status_code for response in responses] == [200] * len(users)
        assert rebuilds_at_end[0] < len(users)
        play(client, np.random.default_rng(6), ["kept", "new"], 20)
        replayed, mismatches = repeat_decisions(service.log, service.model, service.log.settings()["rebuilt_at"])
        assert mismatches == []
        assert same_state(replayed, service.policy)

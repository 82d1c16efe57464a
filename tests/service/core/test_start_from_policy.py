"""Start of a new store from a saved policy: every replay starts from it, and its users cannot be erased."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import create_engine, text

import locb
from locb.service.config import ServiceConfig
from locb.service.core.audit import audit, check_log
from locb.service.core.service import Service
from locb.service.store.database import StoreError, database_url
from serving import play, same_state, serving, wait_for

NAMES = ["ann", "bob", "cay", "dan"]


def saved(path: Path, policy: Any = None) -> Any:
    """Save a policy that has learned 200 rounds, and return it."""
    policy = locb.LOCB(n_users=4, dim=3, n_seeds=2, gamma=0.4) if policy is None else policy
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(200, 5, 3))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    policy.play(locb.Rounds(rng.integers(0, 4, 200), contexts, rng.random((200, 5))))
    policy.save(path)
    return policy


def test_replay_audit_and_erasure_start_from_the_saved_policy(store: Any, tmp_path: Path) -> None:
    policy = saved(tmp_path / "trained.locb")
    (tmp_path / "names.txt").write_text("\n".join(NAMES) + "\n")
    options = {"start_from": str(tmp_path / "trained.locb"), "store": store.url, "dim": None, "policy": None}
    names = {"start_options": {"users": str(tmp_path / "names.txt")}}
    with serving(store.folder, **options, **names) as (client, service):
        assert same_state(service.policy, policy)
        assert client.get("/v1/users/cay").json()["user"] == "cay"
        assert (service.model.policy, service.model.parameters["gamma"]) == ("locb", 0.4)
        play(client, np.random.default_rng(1), ["ann", "cay", "eve"], 15)
        learned = service.policy
        assert learned.served.sum() == 215
    (tmp_path / "trained.locb").unlink()  # the store has a copy
    shutil.rmtree(store.folder / "snapshots")
    with serving(store.folder, **options) as (client, service):
        assert same_state(service.policy, learned)
        refused = client.delete("/v1/users/cay")
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:locb:problem:conflict")
        assert "the service started from a saved policy that contains the user" in refused.json()["detail"]
        assert client.get("/v1/users/cay").status_code == 200
        erased = client.delete("/v1/users/eve").raise_for_status().json()["erased_decisions"]
        wait_for(lambda: not service.rebuilding)
        assert service.policy.served.sum() == 215 - erased
        rebuilt = service.policy
    assert check_log(store.folder, store.url)[1] == []
    replayed, mismatches = audit(store.folder, store.url)
    assert mismatches == []
    assert same_state(replayed, rebuilt)
    engine = create_engine(database_url(store.folder, store.url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE locb_base_policy SET content = :content"), {"content": b"damaged"})
    engine.dispose()
    (damage,) = check_log(store.folder, store.url)[1]
    assert "saved policy of --start-from, which is missing or damaged" in damage.description
    shutil.rmtree(store.folder / "snapshots")
    with pytest.raises(StoreError, match=r"the saved policy in the store \(--start-from\) is missing or damaged"):
        Service(ServiceConfig(store.folder, store.url))
    with pytest.raises(ValueError, match="it started from a saved policy, whose observations are not in the log"):
        Service(ServiceConfig(tmp_path / "third", start_from=store.url or str(store.folder)))


def test_saved_policies_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trained.locb"

    def refused(message: str, **options: Any) -> None:
        with pytest.raises(ValueError, match=message):
            Service(ServiceConfig(tmp_path / "state", **({"start_from": str(path)} | options)))

    path.write_bytes(b"no policy")
    refused("is not a saved policy, or is damaged")
    saved(path, locb.LinUCB(n_users=4, dim=3, shared=True))
    refused("was created with --dim 3, not 4", dim=4)
    refused("was created with --policy linucb-one, not linucb-ind", policy="linucb-ind")
    refused("was created with --alpha 1.0, not 2.0", parameters={"alpha": 2.0})
    refused("--start-option reward is not an option of a saved policy", start_options={"reward": "r"})
    names = tmp_path / "names.txt"
    for content, message in (
        ("ann\n", "has 1 lines, but the saved policy has 4 users"),
        ("ann\nbob\nann\ncay", "has the id 'ann' twice"),
        ("ann\nbob\n\ncay", "line 3: an id must have 1 to 256 characters"),
    ):
        names.write_text(content)
        refused(message, start_options={"users": str(names)})
    saved(path, locb.LinTS(n_users=4, dim=3))
    refused("has a policy that draws random numbers")
    saved(path, locb.LinUCB(n_users=4, dim=3, ties="random"))
    refused("has a policy that draws random numbers")
    saved(path, locb.ELOC(n_users=4, dim=3, n_seeds=2))
    with serving(tmp_path / "state", start_from=str(path), dim=None, policy=None) as (client, service):
        assert service.model.policy == "eloc"
        assert client.get("/v1/users/3").status_code == 200  # without a file, ids of users are numbers

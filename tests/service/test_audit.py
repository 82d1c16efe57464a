"""A log gone through again."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locb.service.core.audit import audit
from locb.service.store.locks import AlreadyOpenError
from serving import arms, same_state, serving


def test_a_log_makes_the_same_decisions_and_the_same_policy(store: Any) -> None:
    rng = np.random.default_rng(8)
    with serving(store.folder, policy="locb", store=store.url) as (client, service):
        for _ in range(60):
            asked = {"user": f"u{rng.integers(5)}", "arms": arms(*rng.normal(size=(3, 3)).tolist())}
            told = client.post("/v1/recommend", json=asked).json()
            client.post("/v1/reward", json={"decision_id": told["decision_id"], "reward": float(rng.random())})
        with pytest.raises(AlreadyOpenError):
            audit(store.folder, store.url)
    policy, wrong = audit(store.folder, store.url)
    assert wrong == []
    assert same_state(policy, service.policy)


def test_a_log_that_was_tampered_with(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        for features in ([1, 0, 0], [0, 1, 0]):
            asked = {"user": "ann", "arms": arms([0.5, 0, 0], features, [0, 0, 0.1])}
            told = client.post("/v1/recommend", json=asked).json()
            client.post("/v1/reward", json={"decision_id": told["decision_id"], "reward": 1.0})
    with sqlite3.connect(tmp_path / "log.db") as database:
        database.execute(
            "UPDATE locb_observations SET reward = -9 WHERE seq = (SELECT min(seq) FROM locb_observations)"
        )
        database.execute("UPDATE locb_decisions SET chosen = 2 WHERE seq = (SELECT max(seq) FROM locb_decisions)")
    database.close()
    policy, wrong = audit(tmp_path)
    assert [(mismatch.logged, mismatch.replayed) for mismatch in wrong] == [(2, 1)]
    assert policy.theta[0, 0] < 0


def test_where_there_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a folder"):
        audit(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no event log"):
        audit(tmp_path / "empty")

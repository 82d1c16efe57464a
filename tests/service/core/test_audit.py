"""Audit of an event log."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locb.service.core.audit import audit
from locb.service.store.locks import AlreadyOpenError
from serving import arms, play, same_state, serving


def test_consistent_log_gives_the_same_decisions_and_policy(store: Any) -> None:
    rng = np.random.default_rng(8)
    with serving(store.folder, policy="locb", store=store.url) as (client, service):
        play(client, rng, [f"u{i}" for i in range(5)], 60)
        with pytest.raises(AlreadyOpenError, match=r"another process \(PID \d+\) uses .*: stop that process"):
            audit(store.folder, store.url)
    policy, mismatches = audit(store.folder, store.url)
    assert mismatches == []
    assert policy.served.sum() == 60
    assert same_state(policy, service.policy)


def test_manipulated_log_is_detected(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        for features in ([1, 0, 0], [0, 1, 0]):
            request = {"user": "ann", "arms": arms([0.5, 0, 0], features, [0, 0, 0.1])}
            decision = client.post("/v1/recommend", json=request).json()
            client.post("/v1/reward", json={"decision_id": decision["decision_id"], "reward": 1.0})
    with sqlite3.connect(tmp_path / "log.db") as database:
        first = "(SELECT min(seq) FROM locb_observations)"
        database.execute(f"UPDATE locb_observations SET reward = -9 WHERE seq = {first}")
        database.execute("UPDATE locb_decisions SET chosen = 2 WHERE seq = (SELECT max(seq) FROM locb_decisions)")
    database.close()
    policy, mismatches = audit(tmp_path)
    assert [(mismatch.logged, mismatch.replayed) for mismatch in mismatches] == [(2, 1)]
    assert policy.theta[0, 0] < 0


def test_missing_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a folder"):
        audit(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no event log"):
        audit(tmp_path / "empty")

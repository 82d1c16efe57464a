"""Retention: the payloads of old decisions are dropped; what was learned, erasure and the hash chain stay exact."""

import shutil
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sqlalchemy import text

from commandline import call
from locb.recommender.events import DEFAULT, Records
from locb.service.core.audit import audit, check_log
from locb.service.core.background import retention
from locb.service.core.decision_encoding import render_stored
from locb.service.store.database import StoreError
from locb.service.store.log import EventLog
from service.store.sample_rows import decision, observation, sample_records
from serving import arms, play, same_state, serving, wait_for

SPAN = 3600.0
USERS = [f"u{number}" for number in range(5)]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that sets the clock forward; old decisions are searched for all the time, in small steps."""
    monkeypatch.setattr(retention, "RETENTION_INTERVAL", 0.02)
    monkeypatch.setattr(retention, "DROP_PAUSE", 0.0)
    monkeypatch.setattr(retention, "DROPPED_PER_STEP", 7)
    now = time.time

    def advance() -> None:
        monkeypatch.setattr(time, "time", lambda: now() + 2 * SPAN)

    return advance


def request_for(user: str, decision_id: str) -> dict[str, Any]:
    return {"user": user, "decision_id": decision_id, "arms": arms([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])}


def export(client: Any, folder: Path) -> pl.DataFrame:
    path = folder / "export.parquet"
    path.write_bytes(client.get("/v1/export").raise_for_status().content)
    return pl.read_parquet(path)


def test_old_payloads_are_dropped_and_the_rest_is_kept(store: Any, tmp_path: Path, later: Any) -> None:
    rng = np.random.default_rng(0)
    options = {"policy": "locb", "parameters": {"n_seeds": 3}, "store": store.url, "retain": SPAN}
    with serving(store.folder, **options, decision_cache=1) as (client, service):
        play(client, rng, USERS, 40)
        old = client.post("/v1/recommend", json=request_for("u1", "old")).json()
        client.post("/v1/recommend", json=request_for("u1", "rewarded"))
        client.post("/v1/reward", json={"decision_id": "rewarded", "reward": 1.0})
        before = export(client, tmp_path)
        assert before["arm"].null_count() == service.retention.position == 0
        later()
        wait_for(lambda: service.log.dropped_until() >= service.engine.seq - 1)
        new = client.post("/v1/recommend", json=request_for("u1", "new")).json()
        assert old.keys() == new.keys()
        play(client, rng, USERS, 20)
        # Old decisions: no response and no new reward, but the id stays in use, and an equal reward is confirmed.
        problem = client.post("/v1/recommend", json=request_for("u1", "old"))
        assert (problem.status_code, problem.json()["type"]) == (409, "urn:locb:problem:conflict")
        assert "its response was dropped" in problem.json()["detail"]
        assert client.post("/v1/reward", json={"decision_id": "old", "reward": 1.0}).status_code == 404
        assert client.post("/v1/reward", json={"decision_id": "rewarded", "reward": 1.0}).status_code == 200
        assert client.post("/v1/recommend", json=request_for("u1", "new")).json() == new
        listed = client.get("/v1/users/u1/decisions", params={"limit": 50}).json()["decisions"]
        assert "new" in {item["decision_id"] for item in listed}.difference(["old", "rewarded"])
        after = export(client, tmp_path)
        kept = ["decision_id", "user", "time", "reward", "reward_time"]
        assert after.head(42).select(kept).equals(before.select(kept))
        for name in ("arm", "estimate", "bonus", "arms"):
            assert after[name].is_null().to_list() == [True] * 42 + [False] * 21
        kept = ["seq", "observations", "context"]  # the features that were learned
        assert (
            after.head(42)
            .filter(pl.col("reward").is_not_null())
            .select(kept)
            .equals(before.filter(pl.col("reward").is_not_null()).select(kept))
        )
        assert after.filter(pl.col("context").is_null())["decision_id"].to_list() == ["old"]
        metrics = client.get("/metrics").text
        assert f"locb_retention_position {float(service.retention.position)}" in metrics
        assert 'locb_background_failures_total{task="retention"} 0.0' in metrics
    policy, mismatches = audit(store.folder, store.url)
    assert mismatches == []
    assert same_state(policy, service.policy)
    events, damage, dropped = check_log(store.folder, store.url)
    assert (events, damage, dropped) == (service.engine.seq, [], service.retention.position)
    shutil.rmtree(store.folder / "snapshots")  # no snapshot is needed: the rewards are kept
    with serving(store.folder, store=store.url, policy="locb") as (client, restarted):
        assert same_state(restarted.policy, service.policy)
        index = restarted.require_index("u1")
        expected = sum(row.user_index != index for chunk in restarted.log.observations(0) for row in chunk)
        client.delete("/v1/users/u1").raise_for_status()  # erasure is exact, also of dropped decisions
        assert restarted.policy.served.sum() == expected
        assert "u1" not in set(export(client, tmp_path)["user"])
    policy, mismatches = audit(store.folder, store.url)
    assert mismatches == []
    assert same_state(policy, restarted.policy)
    assert check_log(store.folder, store.url)[1] == []


def test_dropped_content_is_in_no_file(tmp_path: Path, later: Any) -> None:
    with serving(tmp_path, retain=SPAN) as (client, service):
        for number, marker in enumerate(("SECRET", "SECRET", "KEPT")):
            if marker == "KEPT":
                later()
                wait_for(lambda: service.retention.position >= service.engine.seq)
            features = {f"{marker} feature": 1.0}
            arms = [{"id": f"{marker} arm", "features": features}, {"id": "other", "features": {}}]
            client.post("/v1/recommend", json={"user": f"u{number}", "arms": arms}).raise_for_status()
        service.log.wal_checkpoint(True)
    content = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"KEPT" in content
    assert b"SECRET" not in content
    done = call("store", "check", "--data-dir", ".", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.endswith("up to event 4 were dropped (--retain) or never stored (--start-from).\n")


def test_steps_end_at_the_first_decision_that_is_kept(log: EventLog) -> None:
    log.commit(sample_records())  # decisions 2, 4 and 5 at the times 102, 104 and 105; 2 has a reward
    assert log.drop_payloads(102.0, 10, True) == log.dropped_until() == 0
    assert log.drop_payloads(1000.0, 10, True) == 1  # decision 4 waits for its default reward
    assert log.dropped_until() == 2
    assert log.drop_payloads(1000.0, 10, True) == 0
    log.commit(Records(observations=[observation(7, 4, DEFAULT, 0.0, user_index=1)]))
    assert log.drop_payloads(1000.0, 10, True) == 1
    assert log.dropped_until() == 4
    log.commit(Records(decisions=[decision(8, "d", active_at=None), decision(9, "e", active_at=None)]))
    assert log.drop_payloads(105.5, 10, False) == 1
    assert log.dropped_until() == 5
    assert log.drop_payloads(1000.0, 1, True) == 1  # at most one, although two deferred decisions are due
    assert log.dropped_until() == 8
    assert [bool(row.request) for chunk in log.decisions() for row in chunk] == [False, False, False, False, True]
    assert log.check_all(20) == log.check_recent(3) == log.check_sequence(0) == []
    assert [(found.decision.id, found.response) for found in log.find([b"a"], [b"a"], render_stored)] == [(b"a", b"")]
    assert [len(chunk) for chunk in log.unrewarded_decisions()] == []
    assert len(log.recent_requests(10, 1 << 20)) == len(log.recent_responses(100, 10)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE locb_decisions SET response = id WHERE seq = 2",
        "UPDATE locb_decisions SET chosen = 0 WHERE seq = 2",
        "UPDATE locb_settings SET value = '1' WHERE name = 'dropped_until'",
    ],
)
def test_edited_dropped_decision_is_damage(log: EventLog, statement: str) -> None:
    log.commit(sample_records())
    log.drop_payloads(103.0, 10, False)
    assert log.check_all(20) == []
    with log._engine.begin() as connection:
        connection.execute(text(statement))
    assert [(seq, description[:6]) for seq, description in log.check_all(20)] == [(2, "edited")]


def test_retention_continues_after_an_outage(
    tmp_path: Path, later: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    drop, calls = EventLog.drop_payloads, count()

    def fail_twice(log: EventLog, *arguments: Any) -> int:
        if next(calls) < 2:
            raise StoreError("the disk is full")
        return drop(log, *arguments)

    monkeypatch.setattr(EventLog, "drop_payloads", fail_twice)
    with caplog.at_level("INFO", "locb.service"), serving(tmp_path, retain=SPAN) as (client, service):
        play(client, np.random.default_rng(0), USERS, 10)
        later()
        wait_for(lambda: service.retention.position > 0)
        assert service.background.failures["retention"] == 0
        wait_for(lambda: "dropped the requests and responses of" in caplog.text)
    assert "failed and is tried again later: the disk is full" in caplog.text


def test_nothing_is_dropped_without_the_option(tmp_path: Path, later: Any) -> None:
    with serving(tmp_path) as (client, service):
        later()
        play(client, np.random.default_rng(0), USERS, 3)
        assert "retention" not in service.background.failures
        assert service.log.dropped_until() == 0

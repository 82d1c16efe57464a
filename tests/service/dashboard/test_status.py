"""Current state of the service."""

import time
from pathlib import Path
from typing import Any

import pytest
from dashboard_data import LOCB, count_decisions, get, play, read_observations
from sqlalchemy import select, update

import locb
from locb.service.core import service as service_module
from locb.service.store.log import EventLog
from locb.service.store.schema import decisions, observations
from serving import serving, wait_for

DAY = 86_400.0


def test_status(served: Any) -> None:
    client, service = served
    observations, decisions = read_observations(service), count_decisions(service)
    status = get(client, "/v1/status")
    assert (status["users"], status["rewarded_users"]) == (12, len({row.user_index for row in observations}))
    assert (status["decisions"], status["rewards"]) == (decisions, len(observations))
    assert status["pending_rewards"] == decisions - len(observations) > 0
    assert status["policy"] == "locb"
    assert status["version"] == locb.__version__
    assert status["started_at"] < status["time"] <= time.time()
    assert 0 < status["rewards_per_second"] < status["decisions_per_second"] <= decisions
    assert 0.9 < status["cluster_based_share"] <= 1.0
    returned = sum(cluster.returned_at is not None for cluster in service.policy.clusters())
    assert status["clusters"] == {"returned": returned, "forming": 4 - returned}
    assert status["store"]["kind"] == "sqlite"
    assert status["store"]["position"] == service.engine.seq
    assert status["store"]["bytes"] >= 1000 * decisions
    assert status["store"]["error"] is status["detail"] is status["snapshot"] is None
    assert not status["backfilling"]
    assert not status["rebuilding"]


def test_status_of_a_snapshot(served: Any) -> None:
    client, service = served
    service.snapshots.write(service.policy, service.engine.seq)
    service.snapshots.wait()
    play(client, 1)
    snapshot = get(client, "/v1/status")["snapshot"]
    assert snapshot["events_since"] == service.engine.seq - snapshot["position"] > 0
    assert abs(snapshot["time"] - time.time()) < 60


def pending_metric(client: Any) -> float:
    """Return the value of the metric of pending rewards."""
    (line,) = (line for line in client.get("/metrics").text.splitlines() if line.startswith("locb_pending_rewards "))
    return float(line.split()[1])


def test_pending_rewards_are_the_decisions_of_the_last_day_without_a_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status and the metric count the same, before and after a restart."""
    monkeypatch.setattr(service_module, "CHECKED_EVENTS", 0)  # the test edits the log
    with serving(tmp_path, **LOCB) as (client, service):
        first = play(client, 20)
        pending = count_decisions(service) - len(read_observations(service))
        assert get(client, "/v1/status")["pending_rewards"] == pending_metric(client) == pending > 0
    # Decisions that are older than a day no longer count.
    old = [decision["decision_id"] for decision in first[:10]]
    log = EventLog(tmp_path)
    with log._writing() as connection:
        names = [name.encode() for name in old]
        connection.execute(update(decisions).where(decisions.c.id.in_(names)).values(time=time.time() - 1.01 * DAY))
    recent = {row.decision.seq for row in log.find([decision["decision_id"].encode() for decision in first[10:]])}
    with log._reading() as connection:
        rewarded = {row.decision_seq for row in connection.execute(select(observations))}
    log.close()
    pending = len(recent - rewarded)
    assert 0 < pending < 10
    with serving(tmp_path, **LOCB) as (client, service):
        wait_for(lambda: not service.backfilling)
        assert get(client, "/v1/status")["pending_rewards"] == pending_metric(client) == pending
        for decision in first:
            client.post("/v1/reward", json={"decision_id": decision["decision_id"], "reward": 0.0})
        wait_for(lambda: pending_metric(client) == 0)
        assert get(client, "/v1/status")["pending_rewards"] == 0


def test_pending_rewards_are_not_counted_by_a_scan(tmp_path: Path) -> None:
    class NotIterable(dict[Any, Any]):
        def __iter__(self) -> Any:
            raise AssertionError("the recent decisions were scanned")

        keys = values = items = __iter__

    with serving(tmp_path, **LOCB) as (client, service):
        play(client, 20)
        pending = count_decisions(service) - len(read_observations(service))
        recent, service.engine._recent = service.engine._recent, NotIterable(service.engine._recent)
        assert pending_metric(client) == get(client, "/v1/status")["pending_rewards"] == pending
        service.engine._recent = recent


def test_the_label_of_pending_rewards_states_what_is_counted(served: Any) -> None:
    client, _ = served
    label = "decisions of the last 24 hours without a reward or default reward"
    assert f"# HELP locb_pending_rewards {label.capitalize()}" in client.get("/metrics").text
    fields = client.get("/openapi.json").json()["components"]["schemas"]["Status"]["properties"]
    assert label.capitalize() in fields["pending_rewards"]["description"]
    assert f'"{label}"' in client.get("/page/status_panel.js").text

"""Current state of the service."""

import time
from typing import Any

from dashboard_data import count_decisions, get, play, read_observations

import locb


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

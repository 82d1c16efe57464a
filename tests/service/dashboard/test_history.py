"""Decisions and rewards over time."""

from typing import Any

import numpy as np
import pytest
from dashboard_data import count_decisions, get, read_observations


@pytest.mark.parametrize(("span", "step"), [("hour", 10), ("day", 300), ("month", 10_800), ("all", 86_400)])
def test_spans(served: Any, span: str, step: int) -> None:
    client, service = served
    rewards = np.array([row.reward for row in read_observations(service)])
    history = get(client, "/v1/history", span=span)
    points, total = history["points"], history["total"]
    assert (history["span"], history["step_seconds"]) == (span, step)
    assert sum(point["decisions"] for point in points) == count_decisions(service)
    assert sum(point["rewards"] for point in points) == len(rewards) == total["rewards"]
    assert all(point["time"] % step == 0 for point in points)
    assert all(0 <= point["cluster_based"] <= point["decisions"] for point in points)
    assert total["mean"] == pytest.approx(rewards.mean())
    assert total["low"] < rewards.mean() < total["high"]
    assert total["from"] <= points[0]["time"]
    assert history["baseline"] is history["change"] is None


def test_baseline(served: Any) -> None:
    client, service = served
    history = get(client, "/v1/history", baseline_from=10, baseline_to=1e10)
    assert history["baseline"]["rewards"] == len(read_observations(service))
    assert history["change"] is None  # the baseline contains all rewards
    history = get(client, "/v1/history", baseline_from=10, baseline_to=20)
    assert (history["baseline"]["rewards"], history["baseline"]["mean"]) == (0, None)


@pytest.mark.parametrize(
    "query", [{"span": "year"}, {"baseline_from": 5}, {"baseline_from": 5, "baseline_to": 5}, {"baseline_to": "x"}]
)
def test_invalid_parameters(served: Any, query: dict[str, Any]) -> None:
    client, _ = served
    assert client.get("/v1/history", params=query).status_code == 422

"""Decisions and rewards over time."""

import asyncio
import json
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dashboard_data import count_decisions, get, read_observations

from locb.common.spans import SPANS
from locb.recommender.events import REWARD, ObservationRow, Records
from locb.service.dashboard.history import history
from locb.service.dashboard.page_files import GENERATED_FILES
from locb.service.stats.event_stats import EventStats

DAY = 86_400.0
LENGTHS = {"hour": 3600.0, "day": DAY, "month": 30 * DAY}


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


@pytest.mark.parametrize("span", LENGTHS)
def test_span_and_previous_period_have_the_documented_length_and_do_not_overlap(served: Any, span: str) -> None:
    client, _ = served
    response = get(client, "/v1/history", span=span, baseline="previous")
    total, previous, step = response["total"], response["baseline"], response["step_seconds"]
    assert LENGTHS[span] <= total["to"] - total["from"] < LENGTHS[span] + step
    assert previous["to"] == total["from"]
    assert previous["to"] - previous["from"] == LENGTHS[span]


@pytest.mark.parametrize("span", LENGTHS)
def test_no_reward_is_counted_in_the_span_and_in_the_previous_period(span: str) -> None:
    """A reward every five minutes for 70 days: the two periods have as many rewards as the time that they cover."""
    now, event_stats = time.time(), EventStats()
    times = np.arange(now - 70 * DAY, now, 300.0).tolist()
    rows = [ObservationRow(k, k, 0, REWARD, 0.0, 0.5, when, b"") for k, when in enumerate(times)]
    event_stats.add(Records(observations=rows), [], [])
    result = asyncio.run(history(SimpleNamespace(event_stats=event_stats, log=None), span, "previous"))
    begin, middle, end = result.baseline.from_, result.total.from_, result.total.to
    assert result.baseline.rewards == sum(begin <= when < middle for when in times)
    assert result.total.rewards == sum(middle <= when <= end for when in times)


def test_the_page_and_the_schema_have_the_table_of_spans(served: Any) -> None:
    client, _ = served
    script = client.get("/page/spans.js").text
    assert script.encode() == GENERATED_FILES["spans.js"]
    table = json.loads(script.removeprefix("export const SPANS = ").rstrip(";\n"))
    assert {name: span["seconds"] for name, span in table.items()} == LENGTHS | {"all": None}
    assert {name: span["seconds"] for name, span in table.items()} == {name: s.seconds for name, s in SPANS.items()}
    (parameter,) = (
        each
        for each in client.get("/openapi.json").json()["paths"]["/v1/history"]["get"]["parameters"]
        if each["name"] == "span"
    )
    assert parameter["schema"]["enum"] == list(table)


def test_baseline(served: Any) -> None:
    client, service = served
    history = get(client, "/v1/history", baseline_from=10, baseline_to=1e10)
    assert history["baseline"]["rewards"] == len(read_observations(service))
    assert history["change"] is None  # the baseline contains all rewards
    history = get(client, "/v1/history", baseline_from=10, baseline_to=20)
    assert (history["baseline"]["rewards"], history["baseline"]["mean"]) == (0, None)


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ({"span": "year"}, "span must be one of hour, day, month, all, not 'year'"),
        ({"baseline_from": 5}, "a baseline needs baseline_from and baseline_to: baseline_to is missing"),
        ({"baseline_to": 5}, "a baseline needs baseline_from and baseline_to: baseline_from is missing"),
        ({"baseline_from": 5, "baseline_to": 5}, "baseline_from must be before baseline_to, but 5 is not before 5"),
        ({"baseline_from": 5, "baseline_to": "x"}, "baseline_to must be a Unix time from 0 to 1e+12 seconds, not 'x'"),
        ({"baseline": "next"}, "baseline must be one of previous, not 'next'"),
        (
            {"baseline": "previous", "baseline_from": 5, "baseline_to": 6},
            "a baseline is either baseline=previous, or baseline_from and baseline_to, not both",
        ),
        (
            {"baseline": "previous", "span": "all"},
            "no period precedes the span 'all': use another span, or baseline_from and baseline_to",
        ),
    ],
)
def test_invalid_parameters(served: Any, query: dict[str, Any], detail: str) -> None:
    client, _ = served
    response = client.get("/v1/history", params=query)
    assert (response.status_code, response.json()["detail"]) == (422, detail)

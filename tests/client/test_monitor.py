"""ServiceMonitor: the interval of each request, and the messages when the service does not respond."""

from typing import Any

import pytest

from locb.client import Client
from locb.client.monitor import SLOW_INTERVAL, ServiceMonitor
from loopback import ReceivedRequest, Reply, loopback
from stress.postgres import free_port


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


def answer(request: ReceivedRequest) -> Reply:
    return 200, {}, {"path": request.path, "similar": [], "decisions": []}


def paths(requests: list[ReceivedRequest]) -> list[str]:
    return [request.path.partition("?")[0] for request in requests]


def test_history_and_groups_are_requested_less_often() -> None:
    clock = Clock()
    with loopback(answer) as server, Client(server.url, retries=0) as client:
        monitor = ServiceMonitor(client, clock=clock, max_groups=7)
        for _ in range(6):
            monitor.refresh()
            clock.time += SLOW_INTERVAL / 5
        assert paths(server.received) == [
            "/v1/history",
            "/v1/groups",
            *["/v1/status"] * 5,
            "/v1/history",
            "/v1/groups",
            "/v1/status",
        ]
        assert monitor.snapshot.status is not None
        assert monitor.snapshot.groups["path"].endswith("sort=size&limit=7&offset=0")


@pytest.mark.parametrize("span", ["hour", "day", "month"])
def test_default_baseline_is_the_previous_period_of_the_service(span: str) -> None:
    """The service computes the period, so that it ends exactly where the span starts."""
    with loopback(answer) as server, Client(server.url) as client:
        snapshot = ServiceMonitor(client, span=span, clock=Clock()).refresh()
    assert snapshot.history["path"] == f"/v1/history?span={span}&baseline=previous"
    assert snapshot.baseline_label is None


def test_span_all_has_no_default_baseline() -> None:
    with loopback(answer) as server, Client(server.url) as client:
        assert ServiceMonitor(client, span="all").refresh().history["path"] == "/v1/history?span=all"
        monitor = ServiceMonitor(client, span="all", baseline=lambda now: ((now - 9, now - 5), "then"), clock=Clock())
        assert monitor.refresh().history["path"].endswith("baseline_from=999991.0&baseline_to=999995.0")
        assert monitor.snapshot.baseline_label == "then"


def test_user_replaces_history_and_groups() -> None:
    with loopback(answer) as server, Client(server.url) as client:
        monitor = ServiceMonitor(client, user="a/b")
        monitor.refresh()
        assert monitor.user_data is not None
        assert monitor.user_data.user is not None
    base = "/v1/users/a%2Fb"
    assert paths(server.received) == [base, f"{base}/similar", f"{base}/decisions", "/v1/status"]


def test_unknown_user() -> None:
    def handler(request: ReceivedRequest) -> Reply:
        return (404, {}, {"title": "No"}) if "users" in request.path else answer(request)

    with loopback(handler) as server, Client(server.url) as client:
        monitor = ServiceMonitor(client, user="zoe")
        assert monitor.refresh().problem is None
        assert monitor.user_data is not None
        assert monitor.user_data.user is None


def test_last_state_is_kept_while_unreachable() -> None:
    clock = Clock()
    with loopback(answer, free_port()) as server, Client(server.url, retries=0) as client:
        monitor = ServiceMonitor(client, clock=clock)
        first = monitor.refresh()
        port = server.port
    with Client(f"http://127.0.0.1:{port}", retries=0) as client:
        monitor._client = client
        clock.time += 5
        began = clock.time
        monitor.refresh()
        clock.time += 60
        lost = monitor.refresh()
        assert lost.status == first.status
        assert lost.problem is not None
        assert lost.problem.since == began
        assert lost.problem.message.startswith("Connection lost; the service may be restarting (")
        assert not lost.problem.permanent
        with loopback(answer, port) as server:
            assert monitor.refresh().problem is None
            assert len(server.received) == 3, "after a restart everything is requested again"
    with Client(f"http://127.0.0.1:{port}", retries=0) as client:
        never = ServiceMonitor(client).refresh()
    assert never.status is None
    assert never.problem is not None
    assert never.problem.message.startswith("Cannot connect (")


@pytest.mark.parametrize(
    ("status", "message", "permanent"),
    [
        (401, "The token is missing or unknown", True),
        (403, "does not have the scope 'read'", True),
        (404, "has no route /v1/status: check the address", True),
        (500, "The service returned an error: 500 Broken: all of it.", True),
        (503, "The service returned an error: 503 Broken: all of it.", False),
    ],
)
def test_message_for_each_status(status: int, message: str, permanent: bool) -> None:
    problem: dict[str, Any] = {"title": "Broken", "detail": "all of it"}
    with loopback(lambda _: (status, {}, problem)) as server, Client(server.url, retries=0) as client:
        problem = ServiceMonitor(client).refresh().problem
    assert problem is not None
    assert message in problem.message
    assert problem.permanent == permanent

"""Looking at a service again and again: what is asked how often, and what is said when there is no answer."""

from typing import Any

import pytest

from locb.client import Client
from locb.client.monitor import SLOWER, Watch
from loopback import Asked, Said, loopback


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


def answer(asked: Asked) -> Said:
    return 200, {}, {"path": asked.path, "similar": [], "decisions": []}


def paths(asked: list[Asked]) -> list[str]:
    return [one.path.partition("?")[0] for one in asked]


def test_what_costs_more_is_asked_for_less_often() -> None:
    clock = Clock()
    with loopback(answer) as server, Client(server.url, retries=0) as client:
        watch = Watch(client, clock=clock, most_groups=7)
        for _ in range(6):
            watch.look()
            clock.time += SLOWER / 5
        assert paths(server.asked) == [
            "/v1/history",
            "/v1/groups",
            *["/v1/status"] * 5,
            "/v1/history",
            "/v1/groups",
            "/v1/status",
        ]
        assert watch.seen.now is not None
        assert watch.seen.groups["path"].endswith("sort=size&limit=7&offset=0")


@pytest.mark.parametrize(
    ("span", "asked"),
    [("hour", "baseline_from=992800.0&baseline_to=996400.0"), ("day", "baseline_from=827200.0&baseline_to=913600.0")],
)
def test_rewards_are_compared_with_the_time_before(span: str, asked: str) -> None:
    with loopback(answer) as server, Client(server.url) as client:
        seen = Watch(client, span=span, clock=Clock()).look()
    assert seen.history["path"] == f"/v1/history?span={span}&{asked}"
    assert seen.baseline_told == f"the {span} before"


def test_all_time_has_no_time_before_unless_one_is_given() -> None:
    with loopback(answer) as server, Client(server.url) as client:
        assert Watch(client, span="all").look().history["path"] == "/v1/history?span=all"
        watch = Watch(client, span="all", baseline=lambda now: ((now - 9, now - 5), "then"), clock=Clock())
        assert watch.look().history["path"].endswith("baseline_from=999991.0&baseline_to=999995.0")
        assert watch.seen.baseline_told == "then"


def test_a_user_is_asked_for_instead() -> None:
    with loopback(answer) as server, Client(server.url) as client:
        watch = Watch(client, user="a/b")
        watch.look()
        assert watch.person is not None
        assert watch.person.user is not None
    base = "/v1/users/a%2Fb"
    assert paths(server.asked) == [base, f"{base}/similar", f"{base}/decisions", "/v1/status"]


def test_a_user_who_is_not_known() -> None:
    def handler(asked: Asked) -> Said:
        return (404, {}, {"title": "No"}) if "users" in asked.path else answer(asked)

    with loopback(handler) as server, Client(server.url) as client:
        watch = Watch(client, user="zoe")
        assert watch.look().trouble is None
        assert watch.person is not None
        assert watch.person.user is None


def test_what_was_seen_stays_while_nobody_answers() -> None:
    clock = Clock()
    with loopback(answer) as server, Client(server.url, retries=0) as client:
        watch = Watch(client, clock=clock)
        first = watch.look()
        port = server.port
    with Client(f"http://127.0.0.1:{port}", retries=0) as client:
        watch._client = client
        clock.time += 5
        began = clock.time
        watch.look()
        clock.time += 60
        lost = watch.look()
        assert lost.now == first.now
        assert lost.trouble is not None
        assert lost.trouble.since == began
        assert lost.trouble.told.startswith("It answers no more: it may be restarting (")
        assert not lost.trouble.lasts
        with loopback(answer, port) as server:
            assert watch.look().trouble is None
            assert len(server.asked) == 3, "after a restart everything is asked for anew"
    with Client(f"http://127.0.0.1:{port}", retries=0) as client:
        never = Watch(client).look()
    assert never.now is None
    assert never.trouble is not None
    assert never.trouble.told.startswith("It cannot be reached (")


@pytest.mark.parametrize(
    ("status", "told", "lasts"),
    [
        (401, "It wants a token that it knows", True),
        (403, "not for reading: it needs the scope read", True),
        (404, "There is no /v1/status here", True),
        (500, "It says: 500 Broken: all of it.", True),
        (503, "It says: 503 Broken: all of it.", False),
    ],
)
def test_a_refusal_has_its_sentence(status: int, told: str, lasts: bool) -> None:
    problem: dict[str, Any] = {"title": "Broken", "detail": "all of it"}
    with loopback(lambda _: (status, {}, problem)) as server, Client(server.url, retries=0) as client:
        trouble = Watch(client).look().trouble
    assert trouble is not None
    assert told in trouble.told
    assert trouble.lasts == lasts

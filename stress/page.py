"""The page on a large store: how soon it is of use, and what ten of them cost the service."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from locb import traffic
from stress.history import ARMS, DIM, live
from stress.load import Load
from stress.server import Server
from stress.stores import Place
from tools.chromium import chromium

# Of each panel: its address, what must be there for it to be of use, and what is drawn after that.
PANELS = {
    "now": ("#now", "#now-cards dd >> nth=0", "#reward-chart canvas"),
    "map": ("#map", "#map-users tbody tr >> nth=0", "#map-chart canvas"),
    "groups": ("#groups", "#groups-table tbody tr >> nth=0", "#overlap-chart canvas"),
    "user": ("#user/", "#user-cards dd >> nth=0", "#estimate-chart canvas"),
}
PAGES = 10
GOES = 4


def page(place: Place, events: int, users: int, rate: float = 100.0, seconds: float = 20.0) -> dict[str, Any]:
    """Seconds from opening each panel until its figures and its chart are there, on a store of so many events.

    Then what ten open pages cost: processor time of the service at an even rate of decisions, with and without them,
    in turn.
    """
    found: dict[str, Any] = {"events": live(place.folder, place.url, events, users), "users": users}
    with Server(place.folder, [], place.url) as server, chromium() as browser:
        server.start()
        _wait_drawn(browser, server.url)  # what charts are drawn with is made once, at the first start of a service
        somebody = json.loads(server.get("/v1/map")[1])["points"]["user"][0]
        addresses = [server.url + "/" + panel + somebody * (name == "user") for name, (panel, *_) in PANELS.items()]
        for address, (name, (_, figures, chart)) in zip(addresses, PANELS.items(), strict=True):
            found[f"{name}: figures, seconds"], found[f"{name}: chart, seconds"] = _open(
                browser, address, figures, chart
            )
        plan = traffic.Plan(
            url=server.url, rate=rate, connections=50, users=users, arms=ARMS, dim=DIM, count=1,
            seconds=2 * GOES * (seconds + 5.0) + 10.0,
        )  # fmt: skip
        load = Load(plan)
        load.wait_started()
        alone, beside = [], []
        for _ in range(GOES):
            alone.append(_busy(server.pid, seconds))
            with ExitStack() as pages:
                for number in range(PAGES):
                    pages.enter_context(_new(browser)).goto(addresses[number % len(addresses)])
                time.sleep(3.0)
                beside.append(_busy(server.pid, seconds))
        errors = load.report().errors
        server.stop()
    found["decisions a second meanwhile"] = round(rate)
    found["busy without pages, %"] = round(100.0 * sum(alone) / GOES, 2)
    found[f"busy with {PAGES} pages, %"] = round(100.0 * sum(beside) / GOES, 2)
    found["cost of the pages, % of a processor"] = round(100.0 * (sum(beside) - sum(alone)) / GOES, 2)
    found["errors"] = errors
    return found


def _wait_drawn(browser: Browser, url: str) -> None:
    with _new(browser) as opened:
        opened.goto(url)
        opened.wait_for_selector("#reward-chart canvas", timeout=60_000)


def _open(browser: Browser, url: str, figures: str, chart: str) -> tuple[float, float]:
    with _new(browser) as opened:
        began = time.perf_counter()
        opened.goto(url, wait_until="commit")
        opened.wait_for_selector(figures, timeout=30_000)
        first = time.perf_counter() - began
        opened.wait_for_selector(chart, timeout=30_000)
        return round(first, 2), round(time.perf_counter() - began, 2)


@contextmanager
def _new(browser: Browser) -> Iterator[Page]:
    """A page that has seen nothing yet."""
    context = browser.new_context()
    try:
        yield context.new_page()
    finally:
        context.close()


def _busy(pid: int, seconds: float) -> float:
    """The share of one processor that a process takes."""
    before, began = _processor_seconds(pid), time.perf_counter()
    time.sleep(seconds)
    return (_processor_seconds(pid) - before) / (time.perf_counter() - began)


def _processor_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")

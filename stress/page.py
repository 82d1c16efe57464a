"""The page on a large store: how soon it is of use, and what ten of them cost the service."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Request

from locb import loadtest as traffic
from stress.history import ARMS, DIM, live
from stress.load import Load
from stress.server import Server
from stress.stores import Place
from tools.chromium import chromium

# Of each panel: its address, what must be there for it to be of use, and what is drawn after that.
PANELS = {
    "status": ("#status", "#status-cards dd >> nth=0", "#reward-chart canvas"),
    "map": ("#map", "#map-users tbody tr >> nth=0", "#map-chart canvas"),
    "groups": ("#groups", "#groups-table tbody tr >> nth=0", "#overlap-chart canvas"),
    "user": ("#user/", "#user-cards dd >> nth=0", "#estimate-chart canvas"),
}
PAGES = 10
GOES = 4
SETTLED = 3.0  # seconds after which a page has all that it asks for once


def page(place: Place, events: int, users: int, rate: float = 20.0, seconds: float = 20.0) -> dict[str, Any]:
    """Seconds from opening each panel until its figures and its chart are there, on a store of so many events.

    Then what ten open pages cost: processor time of the service at an even rate of decisions, with and without them,
    in turn. What they ask for is taken down once and then asked for by threads at the same moments: a browser that
    draws ten pages on the same processors makes everything on them slower, which is not the service's cost.
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
            seconds=(2 * GOES + 1) * (seconds + 3.0) + 10.0,
        )  # fmt: skip
        load = Load(plan)
        load.wait_started()
        asked = _asked(browser, [addresses[number % len(addresses)] for number in range(PAGES)], seconds)
        alone, beside = [], []
        for _ in range(GOES):
            alone.append(_busy(server.pid, seconds))
            with ThreadPoolExecutor(PAGES) as threads:
                for requests in asked:
                    threads.submit(_ask_again, server.port, requests)
                beside.append(_busy(server.pid, seconds))
        errors = load.report().errors
        server.stop()
    found["decisions a second meanwhile"] = round(rate)
    found["requests of the pages, a second"] = round(sum(map(len, asked)) / seconds, 1)
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


def _asked(browser: Browser, addresses: list[str], seconds: float) -> list[list[tuple[float, str]]]:
    """What each of some open pages asks for in so many seconds, some time after it was opened: when, and where."""
    with ExitStack() as pages:
        opened = [pages.enter_context(_new(browser)) for _ in addresses]
        for one, address in zip(opened, addresses, strict=True):
            one.goto(address)
        opened[0].wait_for_timeout(SETTLED * 1000.0)
        began = time.perf_counter()
        asked = [_taken_down(one, began) for one in opened]
        opened[0].wait_for_timeout(seconds * 1000.0)
        return asked


def _taken_down(page: Page, began: float) -> list[tuple[float, str]]:
    requests: list[tuple[float, str]] = []

    def take_down(request: Request) -> None:
        requests.append((time.perf_counter() - began, request.url))

    page.on("request", take_down)
    return requests


def _ask_again(port: int, requests: list[tuple[float, str]]) -> None:
    """Ask for the same at the same moments."""
    began = time.perf_counter()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30.0)) as connection:
        for when, url in requests:
            time.sleep(max(0.0, when - (time.perf_counter() - began)))
            parts = urlsplit(url)
            connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path)
            connection.getresponse().read()


def _busy(pid: int, seconds: float) -> float:
    """The share of one processor that a process takes."""
    before, began = _processor_seconds(pid), time.perf_counter()
    time.sleep(seconds)
    return (_processor_seconds(pid) - before) / (time.perf_counter() - began)


def _processor_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")

"""Measurements of the dashboard with a large store: time until each panel is drawn, and CPU time for ten open pages."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Request

from locb import loadtest
from stress.clients.background_load import BackgroundLoad
from stress.generated_history import ARMS, DIM, generate_history
from stress.service_process import ServiceProcess, cpu_seconds
from stress.stores import StoreLocation
from tools.chromium import chromium

# Address of each panel, selector of its first figures, and selector of its chart.
PANELS = {
    "status": ("#status", "#status-cards dd >> nth=0", "#reward-chart canvas"),
    "map": ("#map", "#map-users tbody tr >> nth=0", "#map-chart canvas"),
    "groups": ("#groups", "#groups-table tbody tr >> nth=0", "#overlap-chart canvas"),
    "user": ("#user/", "#user-cards dd >> nth=0", "#estimate-chart canvas"),
}
PAGES = 10  # pages that are open at the same time
REPEATS = 4  # measurements of the CPU time with pages, and without pages
INITIAL_SECONDS = 3.0  # seconds until a page has finished its initial requests


def dashboard(
    location: StoreLocation, events: int, users: int, rate: float = 20.0, seconds: float = 20.0
) -> dict[str, Any]:
    """Measure the time until each panel shows figures and charts, then the CPU time that ten open pages cause.

    The CPU time of the service is measured at a constant rate of decisions, in turn without and with pages. The
    requests of the pages are recorded once and then replayed by threads, because a browser that draws ten pages on the
    same machine would slow the service down.

    Parameters
    ----------
    location : StoreLocation
        Empty store.
    events, users : int
        Number of events and users with which the store is filled.
    rate : float, default 20.0
        Decisions per second.
    seconds : float, default 20.0
        Duration of each measurement of the CPU time.
    """
    found: dict[str, Any] = {"events": generate_history(location.folder, location.url, events, users), "users": users}
    with ServiceProcess(location.folder, [], location.url) as server, chromium() as browser:
        server.start()
        _wait_for_charts(browser, server.url)  # at its first startup, the service prepares the chart files
        user = json.loads(server.get("/v1/map")[1])["points"]["user"][0]
        addresses = [server.url + "/" + panel + user * (name == "user") for name, (panel, *_) in PANELS.items()]
        for address, (name, (_, figures, chart)) in zip(addresses, PANELS.items(), strict=True):
            found[f"{name}: figures, seconds"], found[f"{name}: chart, seconds"] = _open(
                browser, address, figures, chart
            )
        plan = loadtest.Plan(
            url=server.url, rate=rate, connections=50, users=users, arms=ARMS, dim=DIM, count=1,
            seconds=(2 * REPEATS + 1) * (seconds + 3.0) + 10.0,
        )  # fmt: skip
        load = BackgroundLoad(plan)
        load.wait_started()
        recorded = _record_requests(browser, [addresses[number % len(addresses)] for number in range(PAGES)], seconds)
        idle, watched = [], []
        for _ in range(REPEATS):
            idle.append(_cpu_share(server.pid, seconds))
            with ThreadPoolExecutor(PAGES) as threads:
                for requests in recorded:
                    threads.submit(_replay_requests, server.port, requests)
                watched.append(_cpu_share(server.pid, seconds))
        errors = load.report().errors
        server.stop()
    found["decisions per second"] = round(rate)
    found["requests of the pages per second"] = round(sum(map(len, recorded)) / seconds, 1)
    found["CPU without pages, %"] = round(100.0 * sum(idle) / REPEATS, 2)
    found[f"CPU with {PAGES} pages, %"] = round(100.0 * sum(watched) / REPEATS, 2)
    found["CPU of the pages, %"] = round(100.0 * (sum(watched) - sum(idle)) / REPEATS, 2)
    found["errors"] = errors
    return found


def _wait_for_charts(browser: Browser, url: str) -> None:
    with _new(browser) as opened:
        opened.goto(url)
        opened.wait_for_selector("#reward-chart canvas", timeout=60_000)


def _open(browser: Browser, url: str, figures: str, chart: str) -> tuple[float, float]:
    with _new(browser) as opened:
        start = time.perf_counter()
        opened.goto(url, wait_until="commit")
        opened.wait_for_selector(figures, timeout=30_000)
        first = time.perf_counter() - start
        opened.wait_for_selector(chart, timeout=30_000)
        return round(first, 2), round(time.perf_counter() - start, 2)


@contextmanager
def _new(browser: Browser) -> Iterator[Page]:
    """Open a browser page with an empty cache, and close it at the end of the block."""
    context = browser.new_context()
    try:
        yield context.new_page()
    finally:
        context.close()


def _record_requests(browser: Browser, addresses: list[str], seconds: float) -> list[list[tuple[float, str]]]:
    """Return the time (in seconds) and the address of each request that open pages send, one list per page.

    The recording starts after the initial requests of the pages and lasts ``seconds``.
    """
    with ExitStack() as pages:
        opened = [pages.enter_context(_new(browser)) for _ in addresses]
        for opened_page, address in zip(opened, addresses, strict=True):
            opened_page.goto(address)
        opened[0].wait_for_timeout(INITIAL_SECONDS * 1000.0)
        start = time.perf_counter()
        recorded = [_start_recording(opened_page, start) for opened_page in opened]
        opened[0].wait_for_timeout(seconds * 1000.0)
        return recorded


def _start_recording(page: Page, start: float) -> list[tuple[float, str]]:
    requests: list[tuple[float, str]] = []

    def record(request: Request) -> None:
        requests.append((time.perf_counter() - start, request.url))

    page.on("request", record)
    return requests


def _replay_requests(port: int, requests: list[tuple[float, str]]) -> None:
    """Send the recorded requests of one page at the recorded times."""
    start = time.perf_counter()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30.0)) as connection:
        for when, url in requests:
            time.sleep(max(0.0, when - (time.perf_counter() - start)))
            parts = urlsplit(url)
            connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path)
            connection.getresponse().read()


def _cpu_share(pid: int, seconds: float) -> float:
    """Return the share of one CPU that a process uses during the next ``seconds``."""
    before, start = cpu_seconds(pid), time.perf_counter()
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.perf_counter() - start)

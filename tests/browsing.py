"""A browser for tests: Debian's Chromium, kept to this machine, whose complaints fail the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def browser() -> Iterator[Browser]:
    """One that runs until the block ends; skips where there is none."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt install chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield found
        finally:
            found.close()


@dataclass
class Watched:
    """A context, and what was noticed in its pages."""

    context: BrowserContext
    errors: list[str] = field(default_factory=list)  # in the console, and what was thrown
    outside: list[str] = field(default_factory=list)  # requests that would have left this machine
    expected: tuple[str, ...] = ()  # parts of errors that the test brings about

    def page(self) -> Page:
        """A new page."""
        page = self.context.new_page()
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    def guard(self, route: Route) -> None:
        """Let a request through if it stays on this machine."""
        if route.request.url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:")):
            route.fallback()
        else:
            self.outside.append(route.request.url)
            route.abort()


@contextmanager
def watched(browser: Browser, **options: Any) -> Iterator[Watched]:
    """A context in which nothing may leave this machine, and nothing may go wrong but what is expected."""
    context = browser.new_context(**({"viewport": WIDE, "reduced_motion": "reduce"} | options))
    context.set_default_timeout(10_000)
    seen = Watched(context)
    context.route("**/*", seen.guard)
    try:
        yield seen
    finally:
        context.close()
    assert not seen.outside, seen.outside
    errors = [error for error in seen.errors if not any(part in error for part in seen.expected)]
    assert not errors, errors


def serious(page: Page) -> list[str]:
    """What axe-core finds that keeps people out: the rule, and where."""
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    return [
        f"{one['id']}: {one['nodes'][0]['target']} {one['nodes'][0].get('failureSummary', '')}"
        for one in found.response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def sideways(page: Page) -> int:
    """Pixels by which the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

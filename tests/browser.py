"""Browser for tests of pages: Chromium with Playwright. Console errors and requests to other hosts fail the test."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

TIMEOUT_MS = 60_000  # a busy machine can need seconds to draw a chart


@contextmanager
def launch_browser() -> Iterator[Any]:
    """Launch a browser; skip the test if none is installed."""
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    from playwright.sync_api import expect

    from tools.chromium import chromium

    expect.set_options(timeout=TIMEOUT_MS)
    with ExitStack() as opened:
        try:
            browser = opened.enter_context(chromium())
        except FileNotFoundError as error:
            pytest.skip(str(error))
        yield browser


class CheckedPage:
    """Page that records console errors, and blocks and records requests outside ``home``."""

    def __init__(self, browser: Any, home: str, **options: Any) -> None:
        self.errors: list[str] = []
        self.expected: tuple[str, ...] = ()  # substrings of console errors that the test causes deliberately
        self.blocked: list[str] = []
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(TIMEOUT_MS)
        self.page.on("console", lambda message: self._record(message) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

        def filter_request(route: Any) -> None:
            url = route.request.url
            if url.startswith((home, "data:", "blob:")):
                route.continue_()
            else:
                self.blocked.append(url)
                route.abort()

        self.context.route("**/*", filter_request)

    def _record(self, message: Any) -> None:
        self.errors.append(message.text)

    def check(self) -> None:
        """Check that there were no unexpected errors and no blocked requests."""
        errors = [error for error in self.errors if not any(part in error for part in self.expected)]
        assert not errors, errors
        assert not self.blocked, self.blocked


@contextmanager
def open_page(browser: Any, home: str, **options: Any) -> Iterator[CheckedPage]:
    """Open a page, and check it at the end."""
    opened = CheckedPage(browser, home, **options)
    try:
        yield opened
    finally:
        opened.context.close()
    opened.check()


def accessibility_violations(page: Any) -> list[str]:
    """Return the serious violations that axe-core finds."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{violation['id']}: {violation['help']} ({node['target']})"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]

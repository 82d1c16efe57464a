"""A browser for tests of pages: Debian's Chromium by way of Playwright, watched for errors and stray requests."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest


@contextmanager
def browser() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    from tools.chromium import chromium

    with ExitStack() as opened:
        try:
            launched = opened.enter_context(chromium())
        except FileNotFoundError as error:
            pytest.skip(str(error))
        yield launched


class Watched:
    """A page, with the errors it had and the requests to other places that it tried, which are refused."""

    def __init__(self, browser: Any, home: str, **options: Any) -> None:
        self.errors: list[str] = []
        self.expected: tuple[str, ...] = ()  # parts of errors that the test itself brings about
        self.strays: list[str] = []
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.page.on("console", lambda told: self.errors.append(told.text) if told.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

        def judge(route: Any) -> None:
            url = route.request.url
            if url.startswith((home, "data:", "blob:")):
                route.continue_()
            else:
                self.strays.append(url)
                route.abort()

        self.context.route("**/*", judge)

    def check(self) -> None:
        """Nothing went wrong and nothing was asked for elsewhere."""
        errors = [error for error in self.errors if not any(part in error for part in self.expected)]
        assert not errors, errors
        assert not self.strays, self.strays


@contextmanager
def watched(browser: Any, home: str, **options: Any) -> Iterator[Watched]:
    """A page, checked when the block ends."""
    seen = Watched(browser, home, **options)
    try:
        yield seen
    finally:
        seen.context.close()
    seen.check()


def violations(page: Any) -> list[str]:
    """What axe-core finds that is serious, in words."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['help']} ({node['target']})"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]

"""Bad states are told, each in a sentence of its own; the page goes on by itself when they are over."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from browsing import violations, watched
from locb.service.api.auth import Tokens
from serving import arms, serving

AWAY = {"type": "urn:locb:problem:unavailable", "title": "", "status": 503, "detail": "the store is away"}
READER, DECIDER = "reads-and-reads-1", "decides-only-1234"


class Stand:
    """What stands in for the service's own answer to /v1/status."""

    def __init__(self, page: Page, client: httpx.Client) -> None:
        self.page = page
        self.told = client.get("/v1/status").json()
        self.fails = False
        page.clock.install()
        page.route("**/v1/status", self._answer)
        page.goto(str(client.base_url))
        expect(page.locator("#status")).not_to_have_text("asking")

    def _answer(self, route: Route) -> None:
        if self.fails:
            route.abort("connectionrefused")
        else:
            route.fulfill(json=self.told)

    def next(self, seconds: int = 3, **changed: Any) -> str:
        """What the notices say after the next look; the page's clock goes ahead."""
        self.told |= changed
        with self.page.expect_event(
            "requestfailed" if self.fails else "requestfinished", lambda one: "/v1/status" in one.url
        ):
            self.page.clock.fast_forward(1000 * seconds)
        self.page.wait_for_timeout(50)
        return self.page.locator("#notices").inner_text()


def test_each_state_has_its_sentence(browser: Browser, client: httpx.Client) -> None:
    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        stand = Stand(page, client)
        store = stand.told["store"]
        assert "still being read" in stand.next(backfilling=True)
        assert "made anew" in stand.next(backfilling=False, rebuilding=True)
        assert stand.next(rebuilding=False) == ""
        assert "450 requests wait for the disk" in stand.next(store=store | {"queued_requests": 450})
        assert page.locator("#status").inner_text() == "behind"
        said = stand.next(store=store | {"error": "disk full"}, status="unavailable", detail="disk full")
        assert "cannot be written: disk full" in said
        assert page.locator("#status").inner_text() == "not writing"
        assert "No reward has come yet" in stand.next(store=store, status="ok", detail=None, rewards=0)
        assert "Nothing was decided yet" in stand.next(decisions=0)
        assert stand.next(decisions=552, rewards=540) == ""

        stand.fails = True
        seen.expected = ("ERR_CONNECTION_REFUSED",)
        said = stand.next()
        assert "does not answer: it may be restarting" in said
        assert "What you see is of" in said, "the last figures stay, and are told to be old"
        assert page.locator("#status").inner_text() == "no answer"
        assert page.locator(".cards div").first.inner_text().startswith("Decisions a second")
        stand.fails = False
        assert stand.next(seconds=40) == ""
        assert page.locator("#status").inner_text() == "running"


def test_an_unknown_user_is_told(browser: Browser, client: httpx.Client) -> None:
    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        page.goto(f"{client.base_url}/#user/nobody%2Fat%20all")
        expect(page.locator("#user-told")).to_contain_text("There is no user “nobody/at all”")
        expect(page.locator("#user")).to_be_hidden()
        page.goto(f"{client.base_url}/#user/..")
        expect(page.locator("#user-told")).to_contain_text("No browser asks for an address that ends in “..”")
        seen.expected = ("404",)


def test_figures_and_tables_are_there_before_charts(browser: Browser, client: httpx.Client) -> None:
    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        waits = [True]

        def later(route: Route) -> None:
            if waits:
                route.fulfill(status=202, body="null")
            else:
                route.fallback()

        page.route("**/charts.json", later)
        page.goto(f"{client.base_url}/#groups")
        expect(page.locator("#overlap-chart")).to_contain_text("Charts are being prepared")
        expect(page.locator("#groups-table tbody tr").first).to_be_visible()
        waits.clear()
        expect(page.locator("#overlap-chart canvas")).to_be_visible()


def test_thousands_of_groups_come_page_by_page(browser: Browser, client: httpx.Client) -> None:
    told = client.get("/v1/groups?limit=2").json()

    def many(route: Route) -> None:
        offset = int(httpx.URL(route.request.url).params["offset"])
        rows = [told["clusters"][0] | {"seed": f"seed {place}"} for place in range(offset, offset + 25)]
        route.fulfill(json=told | {"total": 5000, "clusters": rows})

    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        page.route("**/v1/groups?*", many)
        page.goto(f"{client.base_url}/#groups")
        expect(page.locator("#groups-place")).to_have_text("1 to 25 of 5,000")
        page.get_by_role("button", name="Next").click()
        expect(page.locator("#groups-table tbody th").first).to_have_text("seed 25")
        page.get_by_role("button", name="Previous").click()
        expect(page.locator("#groups-table tbody th").first).to_have_text("seed 0")
        expect(page.get_by_role("button", name="Previous")).to_be_disabled()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A service with tokens, of which nothing was learned yet but one reward."""
    folder: Path = tmp_path_factory.mktemp("guarded")
    tokens = Tokens({READER: frozenset({"read"}), DECIDER: frozenset({"decide"})})
    with serving(folder, tokens) as (client, _):
        client.headers["authorization"] = f"Bearer {DECIDER}"
        asked = {"user": "ann", "decision_id": "d", "arms": arms([1.0, 0.0, 0.0])}
        client.post("/v1/recommend", json=asked).raise_for_status()
        yield client


def test_a_token_is_asked_for_once_and_kept_for_the_tab(browser: Browser, guarded: httpx.Client) -> None:
    with watched(browser, str(guarded.base_url)) as seen:
        page = seen.page
        seen.expected = ("401", "403")
        page.goto(f"{guarded.base_url}/#user/ann")
        why = page.locator("#token-why")
        expect(why).to_contain_text("to those who have a token")
        assert violations(page) == []
        for token, told in (("not-one-of-those-", "does not know this token"), (DECIDER, "may not read")):
            page.get_by_role("textbox", name="Token").fill(token)
            page.keyboard.press("Enter")
            expect(why).to_contain_text(told)
        page.get_by_role("textbox", name="Token").fill(READER)
        page.keyboard.press("Enter")
        expect(page.locator("#user-cards")).to_contain_text("Rewards learned")
        page.reload()
        expect(page.locator("#user-cards")).to_contain_text("Rewards learned")
        kept = json.loads(page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"))
        assert READER not in json.dumps([kept[0], kept[2]])
        assert READER in json.dumps(kept[1])
        page.get_by_role("button", name="Forget the token").click()
        expect(page.locator("#token")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0


def test_a_policy_without_groups_and_an_empty_history_are_told(browser: Browser, guarded: httpx.Client) -> None:
    with watched(browser, str(guarded.base_url)) as seen:
        page = seen.page
        page.add_init_script(f"sessionStorage.setItem('locb-token', '{READER}')")
        page.goto(f"{guarded.base_url}/#groups")
        expect(page.locator("#groups-told")).to_contain_text("There are no sets")
        page.goto(f"{guarded.base_url}/#map")
        expect(page.locator("#map-chart")).to_contain_text("No user has an estimate yet")
        expect(page.locator("#notices")).to_contain_text("No reward has come yet")


def test_what_one_panel_cannot_show_is_told_until_it_can(browser: Browser, client: httpx.Client) -> None:
    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        seen.expected = ("503",)
        fails = [True]
        page.route("**/v1/groups?*", lambda route: route.fulfill(status=503, json=AWAY) if fails else route.fallback())
        page.goto(f"{client.base_url}/#groups")
        expect(page.locator("#notices")).to_contain_text("The service cannot tell now: the store is away.")
        expect(page.locator("#status")).to_have_text("running")
        fails.clear()
        page.get_by_label("Find a set").fill("user")
        page.keyboard.press("Enter")
        expect(page.locator("#groups-table tbody tr").first).to_be_visible()
        expect(page.locator("#notices")).to_be_empty()

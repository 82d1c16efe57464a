"""Notices, empty states and errors of the page, and its recovery from them."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, LocatorAssertions, Page, Route, expect

from browser import accessibility_violations, open_page
from locb.service.api.auth import Tokens
from serving import arms, serving

UNAVAILABLE = {"type": "urn:locb:problem:unavailable", "title": "", "status": 503, "detail": "the store is unavailable"}
READ_TOKEN, DECIDE_TOKEN = "token-scope-read-1", "token-scope-decide-1"


class FakeStatus:
    """Replacement for the response of /v1/status in a page."""

    def __init__(self, page: Page, client: httpx.Client) -> None:
        self.page = page
        self.response = client.get("/v1/status").json()
        self.fails = False
        page.clock.install()
        page.route("**/v1/status", self._respond)
        page.goto(str(client.base_url))
        expect(page.locator("#connection")).not_to_have_text("connecting")

    def _respond(self, route: Route) -> None:
        if self.fails:
            route.abort("connectionrefused")
        else:
            route.fulfill(json=self.response)

    def notices_after(self, seconds: int = 3, **changes: Any) -> LocatorAssertions:
        """Change fields of the response, and return the expectations about the notices after the next request."""
        self.response |= changes
        event = "requestfailed" if self.fails else "requestfinished"
        with self.page.expect_event(event, lambda request: "/v1/status" in request.url):
            self.page.clock.fast_forward(1000 * seconds)
        return expect(self.page.locator("#notices"))


def test_each_state_has_a_notice(browser: Browser, client: httpx.Client) -> None:
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        status = FakeStatus(page, client)
        store = status.response["store"]
        status.notices_after(backfilling=True).to_contain_text("being read from the log")
        status.notices_after(backfilling=False, rebuilding=True).to_contain_text("being rebuilt")
        status.notices_after(rebuilding=False).to_be_empty()
        scale = status.notices_after(reward_scale_problem="a reward of 500 is not in -0.5 … 1.5")
        scale.to_contain_text("rewards of about 0 to 1, but a reward of 500 is not in -0.5 … 1.5")
        scale.to_contain_text("--reward-range low,high")
        status.notices_after(reward_scale_problem=None).to_be_empty()
        status.notices_after(store=store | {"queued_requests": 450}).to_contain_text("450 requests are queued")
        expect(page.locator("#connection")).to_have_text("degraded")
        failed = {"store": store | {"error": "disk full"}, "status": "unavailable", "detail": "disk full"}
        status.notices_after(**failed).to_contain_text("not writable: disk full")
        expect(page.locator("#connection")).to_have_text("store unavailable")
        status.notices_after(store=store, status="ok", detail=None, rewards=0).to_contain_text("No rewards yet")
        status.notices_after(decisions=0).to_contain_text("No decisions yet")
        status.notices_after(decisions=552, rewards=540).to_be_empty()

        status.fails = True
        opened.expected = ("ERR_CONNECTION_REFUSED",)
        notices = status.notices_after()
        notices.to_contain_text("unreachable. It may be restarting")
        notices.to_contain_text("This page shows the state at")  # the last figures stay visible
        expect(page.locator("#connection")).to_have_text("disconnected")
        assert page.locator(".cards div").first.inner_text().startswith("Decisions per second")
        status.fails = False
        status.notices_after(seconds=40).to_be_empty()
        expect(page.locator("#connection")).to_have_text("running")


def test_unknown_user(browser: Browser, client: httpx.Client) -> None:
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        page.goto(f"{client.base_url}/#user/unknown%2Fuser%20id")
        expect(page.locator("#user-message")).to_contain_text("Unknown user “unknown/user id”")
        expect(page.locator("#user")).to_be_hidden()
        page.goto(f"{client.base_url}/#user/..")
        expect(page.locator("#user-message")).to_contain_text("Browsers cannot request the id “..”")
        opened.expected = ("404",)


def test_tables_are_shown_before_charts(browser: Browser, client: httpx.Client) -> None:
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        building = [True]

        def respond(route: Route) -> None:
            if building:
                route.fulfill(status=202, body="null")
            else:
                route.fallback()

        page.route("**/charts.json", respond)
        page.goto(f"{client.base_url}/#groups")
        expect(page.locator("#overlap-chart")).to_contain_text("Preparing charts")
        expect(page.locator("#groups-table tbody tr").first).to_be_visible()
        building.clear()
        expect(page.locator("#overlap-chart canvas")).to_be_visible()


def test_many_groups_are_shown_in_pages(browser: Browser, client: httpx.Client) -> None:
    response = client.get("/v1/groups?limit=2").json()

    def respond(route: Route) -> None:
        offset = int(httpx.URL(route.request.url).params["offset"])
        rows = [response["clusters"][0] | {"seed": f"seed {number}"} for number in range(offset, offset + 25)]
        route.fulfill(json=response | {"total": 5000, "clusters": rows})

    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        page.route("**/v1/groups?*", respond)
        page.goto(f"{client.base_url}/#groups")
        expect(page.locator("#groups-range")).to_have_text("1 to 25 of 5,000")
        page.get_by_role("button", name="Next").click()
        expect(page.locator("#groups-table tbody th").first).to_have_text("seed 25")
        page.get_by_role("button", name="Previous").click()
        expect(page.locator("#groups-table tbody th").first).to_have_text("seed 0")
        expect(page.get_by_role("button", name="Previous")).to_be_disabled()


@pytest.fixture(scope="module")
def client_with_token(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Client of a service with tokens, with one decision and no reward."""
    folder: Path = tmp_path_factory.mktemp("tokens")
    tokens = Tokens({READ_TOKEN: frozenset({"read"}), DECIDE_TOKEN: frozenset({"decide"})})
    with serving(folder, tokens) as (client, _):
        client.headers["authorization"] = f"Bearer {DECIDE_TOKEN}"
        request = {"user": "ann", "decision_id": "d", "arms": arms([1.0, 0.0, 0.0])}
        client.post("/v1/recommend", json=request).raise_for_status()
        yield client


def test_token_is_requested_once_and_stored_for_the_tab(browser: Browser, client_with_token: httpx.Client) -> None:
    with open_page(browser, str(client_with_token.base_url)) as opened:
        page = opened.page
        opened.expected = ("401", "403")
        page.goto(f"{client_with_token.base_url}/#user/ann")
        reason = page.locator("#token-reason")
        expect(reason).to_contain_text("requires a token")
        assert accessibility_violations(page) == []
        for token, text in (("an-invalid-token-1", "is not valid"), (DECIDE_TOKEN, "does not have the scope “read”")):
            page.get_by_role("textbox", name="Token").fill(token)
            page.keyboard.press("Enter")
            expect(reason).to_contain_text(text)
        page.get_by_role("textbox", name="Token").fill(READ_TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#user-cards")).to_contain_text("Rewards learned")
        page.reload()
        expect(page.locator("#user-cards")).to_contain_text("Rewards learned")
        stored = json.loads(page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"))
        assert READ_TOKEN not in json.dumps([stored[0], stored[2]])
        assert READ_TOKEN in json.dumps(stored[1])
        page.get_by_role("button", name="Remove token").click()
        expect(page.locator("#token")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0


def test_empty_states(browser: Browser, client_with_token: httpx.Client) -> None:
    with open_page(browser, str(client_with_token.base_url)) as opened:
        page = opened.page
        page.add_init_script(f"sessionStorage.setItem('locb-token', '{READ_TOKEN}')")
        page.goto(f"{client_with_token.base_url}/#groups")
        expect(page.locator("#groups-summary")).to_contain_text("No groups:")
        page.goto(f"{client_with_token.base_url}/#map")
        expect(page.locator("#map-chart")).to_contain_text("No user has an estimate yet")
        expect(page.locator("#notices")).to_contain_text("No rewards yet")


def test_map_of_a_single_user_states_no_variance(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _), open_page(browser, str(client.base_url)) as opened:
        request = {"user": "ann", "decision_id": "d", "arms": arms([1.0, 0.0, 0.0])}
        client.post("/v1/recommend", json=request).raise_for_status()
        client.post("/v1/reward", json={"decision_id": "d", "reward": 1.0}).raise_for_status()
        response = client.get("/v1/map").json()
        assert response["explained_variance"] is None
        opened.page.goto(f"{client.base_url}/#map")
        expect(opened.page.locator("#map-description")).to_have_text(f"{response['description']}.")


def test_problem_of_a_panel_is_shown_until_it_is_over(browser: Browser, client: httpx.Client) -> None:
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        opened.expected = ("503",)
        fails = [True]

        def respond(route: Route) -> None:
            if fails:
                route.fulfill(status=503, json=UNAVAILABLE)
            else:
                route.fallback()

        page.route("**/v1/groups?*", respond)
        page.goto(f"{client.base_url}/#groups")
        expect(page.locator("#notices")).to_contain_text("The service is unavailable: the store is unavailable.")
        expect(page.locator("#connection")).to_have_text("running")
        fails.clear()
        page.get_by_label("Find a group").fill("user")
        page.keyboard.press("Enter")
        expect(page.locator("#groups-table tbody tr").first).to_be_visible()
        expect(page.locator("#notices")).to_be_empty()

"""Each panel shows the data of the API, and can be used without a mouse."""

import json
import re
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect
from sample_data import SPECIAL_NAME, USERS

from browser import accessibility_violations, open_page
from locb.common.spans import SPANS
from serving import arms

PANELS = ("status", "map", "groups", "user")


# Whether a canvas has coloured pixels: marks are coloured, axes and labels are grey.
HAS_MARKS = """selector => {
  const canvas = document.querySelector(selector);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4) {
    const [r, g, b, alpha] = data.slice(at, at + 4);
    if (alpha > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) return true;
  }
  return false;
}"""


def card_texts(page: Page, title: str) -> list[str]:
    """Return the figure and the detail of a card."""
    return page.locator(".cards div", has_text=title).locator("dd").all_inner_texts()


def table_cells(page: Page, table: str) -> list[list[str]]:
    rows = page.locator(f"{table} tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def expect_chart(page: Page, selector: str) -> None:
    """Check that a chart has marks and a text alternative."""
    expect(page.locator(f"{selector} canvas")).to_be_visible()
    page.wait_for_function(HAS_MARKS, arg=f"{selector} canvas")
    label = page.locator(f"{selector} .chart").get_attribute("aria-label")
    assert label is not None
    assert len(label.split()) > 1, label


def format_number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def test_status_shows_figures_and_updates_them(browser: Browser, client: httpx.Client) -> None:
    status = client.get("/v1/status").json()
    total = client.get("/v1/history").json()["total"]
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        page.goto(str(client.base_url))
        expect(page.locator("#connection")).to_have_text("running")
        assert card_texts(page, "Decisions per second")[1] == f"{status['decisions']} in total"
        assert card_texts(page, "Users with rewards") == [str(len(USERS)), f"{len(USERS)} users in total"]
        pending = [str(status["pending_rewards"]), "decisions of the last 24 hours without a reward or default reward"]
        assert card_texts(page, "Pending rewards") == pending
        counts = status["clusters"]
        forming = f"{counts['forming']} forming (can still change)"
        assert card_texts(page, "Final groups") == [str(counts["returned"]), forming]
        interval = f"(95% interval {format_number(total['low'])} to"
        summary = f"Mean reward in the last hour: {format_number(total['mean'])} {interval}"
        expect(page.locator("#reward-summary")).to_contain_text(summary)
        expect(page.locator("#store")).to_contain_text(f"{status['store']['position']:,} events")
        expect_chart(page, "#reward-chart")
        expect_chart(page, "#traffic-chart")
        assert page.locator("#notices").inner_text() == ""

        client.post("/v1/reward", json={"decision_id": "11-0", "reward": 1.0}).raise_for_status()
        total_rewards = page.locator(".cards div", has_text="Rewards per second").locator("dd").last
        expect(total_rewards).to_have_text(f"{status['rewards'] + 1} in total")

        titles = page.locator("#spans button").all_inner_texts()
        assert titles == [span.title for span in SPANS.values()]
        with page.expect_response(re.compile(r"/v1/history\?span=month&baseline=previous$")) as compared:
            page.get_by_role("button", name="30 days").click()
            page.get_by_label("Compare with").select_option("previous")
        assert compared.value.json()["baseline"]["to"] == compared.value.json()["total"]["from"]
        expect(page.locator("#reward-summary")).to_contain_text("Mean reward in the last 30 days:")

        page.get_by_role("button", name="All").click()
        page.get_by_label("Compare with").select_option("first")
        expect(page.locator("#reward-summary")).to_contain_text("Baseline (")


def test_map_shows_users_and_opens_them(browser: Browser, client: httpx.Client) -> None:
    response = client.get("/v1/map").json()
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        page.goto(f"{client.base_url}/#map")
        expect(page.locator("#map-description")).to_contain_text(response["description"])
        expect_chart(page, "#map-chart")
        rows = table_cells(page, "#map-users")
        assert {row[0] for row in rows} == set(response["points"]["user"]) == set(USERS)
        page.get_by_label("Find a user").fill("user 44")
        assert [row[0] for row in table_cells(page, "#map-users")] == ["user 44"]
        with page.expect_response(re.compile(r"/v1/map\?projection=new")) as refit:
            page.get_by_role("button", name="Refit projection").click()
        assert refit.value.json()["projection"] != response["projection"]

        # Each coloured mark is a user; a click opens the panel of that user.
        page.get_by_label("Find a user").fill("")
        x, y = page.locator("#map-chart canvas").evaluate(
            """canvas => {
              const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              for (let at = 0; at < data.length; at += 4) {
                const [r, , b, a] = data.slice(at, at + 4);
                const [x, y] = [at / 4 % width, Math.floor(at / 4 / width)];
                if (a > 100 && Math.abs(r - b) > 80 && y < height - 120) return [x, y + 3];
              }
            }"""
        )
        page.locator("#map-chart canvas").hover(position={"x": x, "y": y})
        expect(page.locator(".tooltip")).to_contain_text("user")
        name = page.locator(".tooltip dd").first.inner_text()
        page.locator("#map-chart canvas").click(position={"x": x, "y": y})
        expect(page.locator("#user-title")).to_have_text(name)


def test_groups_shows_the_table_of_the_api(browser: Browser, client: httpx.Client) -> None:
    response = client.get("/v1/groups?limit=25").json()
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        page.goto(f"{client.base_url}/#groups")
        summary = f"{response['returned']} final, {response['forming']} forming"
        expect(page.locator("#groups-summary")).to_contain_text(summary)
        rows = table_cells(page, "#groups-table")
        clusters = response["clusters"]
        assert [row[:2] for row in rows] == [[cluster["seed"], str(cluster["size"])] for cluster in clusters]
        first = clusters[0]
        assert rows[0][2] == ("final" if first["returned"] else "forming")
        assert rows[0][6] == format_number(first["mean_reward"])
        assert all(weight["feature"] in rows[0][7] for weight in first["top_features"])
        expect_chart(page, "#overlap-chart")

        page.get_by_role("button", name="Seed").click()
        expect(page.locator("#groups-table th[aria-sort]")).to_have_text("Seed")
        by_seed = client.get("/v1/groups?sort=seed").json()["clusters"]
        expect(page.locator("#groups-table tbody th").first).to_have_text(by_seed[0]["seed"])
        page.get_by_label("Find a group").fill(first["seed"])
        page.get_by_role("button", name="Find").click()
        expect(page.locator("#groups-table tbody tr")).to_have_count(
            client.get(f"/v1/groups?search={quote(first['seed'])}").json()["total"]
        )


def test_probabilities_are_shown(browser: Browser, default_client: httpx.Client) -> None:
    client = default_client
    status = client.get("/v1/status").json()
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        page.goto(str(client.base_url))
        expect(page.locator("#status-cards")).to_contain_text("Users with a group probability of at least 90%")
        figure, text = card_texts(page, "Users with a group probability of at least 90%")
        assert figure == f"{100 * status['sure_users'] / len(USERS):.0f}%"
        assert text == f"{status['sure_users']} of {len(USERS)} users with rewards"
        assert page.locator("#status-cards div").count() == 6

        clusters = client.get("/v1/groups?limit=25").json()["clusters"]
        page.goto(f"{client.base_url}/#groups")
        expect(page.locator("#groups-summary")).to_contain_text("A member is sure if the user belongs to the group")
        expect(page.locator("#groups-table tbody tr")).to_have_count(len(clusters))
        for row, cluster in zip(table_cells(page, "#groups-table"), clusters, strict=True):
            note = "" if cluster["same_as"] is None else f"\nsame group as {cluster['same_as']}"
            assert row[0] == (cluster["seed"] or "everyone") + note
            share = cluster["sure_share"]
            assert row[2].strip() == ("–" if share is None else f"{int(100 * share)}%")
        page.get_by_role("button", name="Sure members").click()
        expect(page.locator("#groups-table th[aria-sort]")).to_have_text("Sure members")
        assert "at least 90%" in str(page.locator("#groups-table th[aria-sort]").get_attribute("title"))

        page.goto(f"{client.base_url}/#user/user%207")
        detail = client.get("/v1/users/user%207").json()
        best = max(detail["clusters"], key=lambda cluster: cluster["probability"])
        expect(page.locator("#user-cards")).to_contain_text(f"{100 * best['probability']:.0f}%")
        shown = table_cells(page, "#user-groups")
        assert shown[0][1] == f"{100 * best['probability']:.0f}%"
        seeds = {cluster["same_as"] or cluster["seed"] or "everyone" for cluster in detail["clusters"]}
        assert {row[0].partition("\n")[0] for row in shown} == seeds


def test_screened_decision_is_explained(browser: Browser, default_client: httpx.Client) -> None:
    def screen(route: Route) -> None:
        response = route.fetch()
        data = response.json()
        for decision in data.get("decisions", []):
            decision["response"]["explanation"]["screened"] = True
        if "explanation" in data:
            data["explanation"]["screened"] = True
        route.fulfill(response=response, json=data)

    sentence = (
        "The safety screen replaced the arm with the highest score, because the user's own rewards indicate that "
        "another arm may be clearly better."
    )
    with open_page(browser, str(default_client.base_url)) as opened:
        page = opened.page
        page.goto(f"{default_client.base_url}/#user/user%207")
        expect(page.locator("#decisions-table tbody tr").first).to_be_visible()
        expect(page.locator("#panel-user")).not_to_contain_text("safety screen")
        page.route(re.compile("/v1/(preview|users/.*/decisions)"), screen)
        page.reload()
        expect(page.locator("#decisions-table tbody tr").first).to_contain_text(sentence)
        page.get_by_role("button", name="Preview", exact=True).click()
        expect(page.locator("#preview-result")).to_contain_text(sentence)


@pytest.mark.parametrize("user", ["user 7", SPECIAL_NAME])
def test_user_shows_estimate_and_decisions(browser: Browser, client: httpx.Client, user: str) -> None:
    detail = client.get(f"/v1/users/{quote(user, safe='')}").json()
    decisions = client.get(f"/v1/users/{quote(user, safe='')}/decisions?limit=20").json()["decisions"]
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        page.goto(f"{client.base_url}/#user")
        page.get_by_label("User id").fill(user)
        page.keyboard.press("Enter")
        expect(page.locator("#user-title")).to_have_text(user)
        expect(page.locator("#user")).to_be_visible()
        assert card_texts(page, "Rewards learned")[0] == str(detail["served"])
        assert card_texts(page, "Mean reward")[0] == format_number(detail["mean_reward"])
        seeds = {row[0] for row in table_cells(page, "#user-groups")}
        assert seeds == {cluster["seed"] for cluster in detail["clusters"]}
        assert len(table_cells(page, "#user-similar")) == 10
        rows = table_cells(page, "#decisions-table")
        assert [row[1] for row in rows] == [decision["arm"] for decision in decisions]
        first, second = decisions[0]["response"]["ranking"][:2]
        assert rows[0][4] == format_number(first["score"])
        assert rows[0][5] == f"{second['arm']}, −{format_number(first['score'] - second['score'])}"
        for selector in ("#estimate-chart", "#decisions-chart"):
            expect_chart(page, selector)
        expect(page.locator("#estimate-chart")).to_contain_text("features named in recent requests")


def test_preview_shows_the_recommendation_and_decides_nothing(browser: Browser, client: httpx.Client) -> None:
    events = client.get("/v1/status").json()["store"]["position"]
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        page.goto(f"{client.base_url}/#user/user%207")
        expect(page.locator("#decisions-chart canvas")).to_be_visible()
        page.get_by_role("button", name="Preview", exact=True).click()
        expect(page.locator("#preview-result")).to_contain_text("Recommended now:")
        expect_chart(page, "#preview-ranking")
        expect_chart(page, "#preview-parts")
        arm = page.locator("#preview-result strong").inner_text()
        save = page.locator("#preview-parts button").first
        expect(save).to_have_text(f"Save data (CSV): Parts of the score of {arm}")
        others = [other for other in json.loads(page.locator("#preview-arms").input_value()) if other["id"] != arm]
        page.locator("#preview-arms").fill(json.dumps(others))
        page.get_by_role("button", name="Preview", exact=True).click()
        expect(page.locator("#preview-result strong")).not_to_have_text(arm)
        expect(save).not_to_contain_text(arm)
        page.locator("#preview-arms").fill(json.dumps(arms([1.0, 2.0])))
        page.get_by_role("button", name="Preview", exact=True).click()
        expect(page.locator("#preview-result")).to_contain_text("The arms are invalid")
        opened.expected = ("422",)
    assert client.get("/v1/status").json()["store"]["position"] == events


def test_all_panels_by_keyboard(browser: Browser, client: httpx.Client) -> None:
    with open_page(browser, str(client.base_url)) as opened:
        page = opened.page
        page.goto(str(client.base_url))
        expect(page.locator("#connection")).to_have_text("running")
        page.keyboard.press("Tab")
        expect(page.locator("#skip-link")).to_be_focused()
        for name in PANELS:
            page.keyboard.press("Tab")
            expect(page.get_by_role("link", name=name.capitalize(), exact=True)).to_be_focused()
            page.keyboard.press("Enter")
            expect(page.locator(f"#panel-{name}")).to_be_visible()
        page.get_by_label("User id").focus()
        page.keyboard.type("user 3")
        page.keyboard.press("Enter")
        expect(page.locator("#user-groups a").first).to_be_visible()
        page.locator("#user-groups a").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#user-title")).not_to_have_text("user 3")
        page.go_back()
        expect(page.locator("#user-title")).to_have_text("user 3")
        page.goto(f"{client.base_url}/#groups")
        page.locator("#groups-table a").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#user-title")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fixture", ["client", "default_client"])
def test_accessibility_on_a_phone(browser: Browser, fixture: str, scheme: str, request: pytest.FixtureRequest) -> None:
    client: httpx.Client = request.getfixturevalue(fixture)
    phone: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": scheme}
    with open_page(browser, str(client.base_url), **phone) as opened:
        page = opened.page
        for name in PANELS:
            page.goto(f"{client.base_url}/#{'user/user%207' if name == 'user' else name}")
            expect(page.locator(f"#panel-{name} canvas").first).to_be_visible()
            assert accessibility_violations(page) == []
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.evaluate(overflow) == 0, "only tables and charts scroll horizontally, in their boxes"


def test_theme_is_stored(browser: Browser, client: httpx.Client) -> None:
    with open_page(browser, str(client.base_url), color_scheme="light") as opened:
        page = opened.page
        page.goto(str(client.base_url))
        expect_chart(page, "#reward-chart")
        background = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(background)
        page.get_by_role("button", name="Switch to dark theme").click()
        dark = page.evaluate(background)
        assert light != dark
        expect_chart(page, "#reward-chart")
        page.reload()
        expect(page.get_by_role("button", name="Switch to light theme")).to_be_visible()
        assert page.evaluate(background) == dark

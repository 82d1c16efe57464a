"""The page shows what the API tells, in every panel, and is usable without a mouse."""

import json
import re
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from seeded import ODD, PEOPLE

from browsing import violations, watched
from serving import arms

PANELS = ("now", "map", "groups", "user")


def card(page: Page, title: str) -> list[str]:
    """What a card of figures says."""
    return page.locator(".cards div", has_text=title).locator("dd").all_inner_texts()


def cells(page: Page, table: str) -> list[list[str]]:
    rows = page.locator(f"{table} tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def drawn(page: Page, place: str) -> None:
    """A chart is there, and says in words what it shows."""
    expect(page.locator(f"{place} canvas")).to_be_visible()
    assert page.locator(f"{place} .chart").get_attribute("aria-label")


def figure(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def test_now_shows_the_figures_and_a_reward_that_comes_meanwhile(browser: Browser, client: httpx.Client) -> None:
    now = client.get("/v1/status").json()
    total = client.get("/v1/history").json()["total"]
    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        page.goto(str(client.base_url))
        expect(page.locator("#status")).to_have_text("running")
        assert card(page, "Decisions a second")[1] == f"{now['decisions']} in all"
        assert card(page, "Users learned") == [str(len(PEOPLE)), f"of {len(PEOPLE)} who came"]
        assert card(page, "Rewards waited for")[0] == str(now["pending_rewards"])
        assert card(page, "Sets returned") == [str(now["clusters"][k]) + end for k, end in
                                               (("returned", ""), ("forming", " still forming"))]  # fmt: skip
        told = f"Mean reward in the last hour: {figure(total['mean'])} (95% interval {figure(total['low'])} to"
        expect(page.locator("#change")).to_contain_text(told)
        expect(page.locator("#store")).to_contain_text(f"{now['store']['position']:,} events")
        drawn(page, "#reward-chart")
        drawn(page, "#traffic-chart")
        assert page.locator("#notices").inner_text() == ""

        client.post("/v1/reward", json={"decision_id": "11-0", "reward": 1.0}).raise_for_status()
        more = page.locator(".cards div", has_text="Rewards a second").locator("dd").last
        expect(more).to_have_text(f"{now['rewards'] + 1} in all")

        page.get_by_role("button", name="All").click()
        page.get_by_label("Compare with").select_option("first")
        expect(page.locator("#change")).to_contain_text("In the baseline period")


def test_the_map_shows_users_and_opens_them(browser: Browser, client: httpx.Client) -> None:
    told = client.get("/v1/map").json()
    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        page.goto(f"{client.base_url}/#map")
        expect(page.locator("#map-how")).to_contain_text(told["description"])
        drawn(page, "#map-chart")
        rows = cells(page, "#map-users")
        assert {row[0] for row in rows} == set(told["points"]["user"]) == set(PEOPLE)
        page.get_by_label("Find a user").fill("user 44")
        assert [row[0] for row in cells(page, "#map-users")] == ["user 44"]
        with page.expect_response(re.compile(r"/v1/map\?basis=new")) as asked:
            page.get_by_role("button", name="Refresh the axes").click()
        assert asked.value.json()["projection"] != told["projection"]

        # Whatever is drawn in the colour of a group is a user, who opens with a click.
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
        expect(page.locator(".tip")).to_contain_text("user")
        named = page.locator(".tip dd").first.inner_text()
        page.locator("#map-chart canvas").click(position={"x": x, "y": y})
        expect(page.locator("#user-title")).to_have_text(named)


def test_groups_are_those_of_the_api(browser: Browser, client: httpx.Client) -> None:
    told = client.get("/v1/groups?limit=25").json()
    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        page.goto(f"{client.base_url}/#groups")
        expect(page.locator("#groups-told")).to_contain_text(f"{told['returned']} returned, {told['forming']} forming")
        rows = cells(page, "#groups-table")
        assert [row[:2] for row in rows] == [[one["seed"], str(one["size"])] for one in told["clusters"]]
        first = told["clusters"][0]
        assert rows[0][2] == ("returned" if first["returned"] else "forming")
        assert rows[0][6] == figure(first["mean_reward"])
        assert all(one["feature"] in rows[0][7] for one in first["top_features"])
        drawn(page, "#overlap-chart")

        page.get_by_role("button", name="Seed").click()
        expect(page.locator("#groups-table th[aria-sort]")).to_have_text("Seed")
        by_seed = client.get("/v1/groups?sort=seed").json()["clusters"]
        expect(page.locator("#groups-table tbody th").first).to_have_text(by_seed[0]["seed"])
        page.get_by_label("Find a set").fill(first["seed"])
        page.get_by_role("button", name="Find").click()
        expect(page.locator("#groups-table tbody tr")).to_have_count(
            client.get(f"/v1/groups?search={quote(first['seed'])}").json()["total"]
        )


@pytest.mark.parametrize("user", ["user 7", ODD])
def test_a_user_is_found_and_explained(browser: Browser, client: httpx.Client, user: str) -> None:
    known = client.get(f"/v1/users/{quote(user, safe='')}").json()
    decisions = client.get(f"/v1/users/{quote(user, safe='')}/decisions?limit=20").json()["decisions"]
    events = client.get("/v1/status").json()["store"]["position"]
    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        page.goto(f"{client.base_url}/#user")
        page.get_by_label("Id of a user").fill(user)
        page.keyboard.press("Enter")
        expect(page.locator("#user-title")).to_have_text(user)
        expect(page.locator("#user")).to_be_visible()
        assert card(page, "Rewards learned")[0] == str(known["served"])
        assert card(page, "Mean reward")[0] == figure(known["mean_reward"])
        assert {row[0] for row in cells(page, "#user-sets")} == {one["seed"] for one in known["clusters"]}
        assert len(cells(page, "#user-similar")) == 10
        rows = cells(page, "#decisions-table")
        assert [row[1] for row in rows] == [one["arm"] for one in decisions]
        score = decisions[0]["response"]["ranking"][0]["score"]
        assert rows[0][4] == figure(score)
        second = decisions[0]["response"]["ranking"][1]
        assert rows[0][5] == f"{second['arm']}, {figure(score - second['score'])} less"
        for place in ("#estimate-chart", "#decisions-chart"):
            drawn(page, place)
        expect(page.locator("#estimate-chart")).to_contain_text("as recent requests name them")

        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator("#preview-answer")).to_contain_text("Now it would be")
        drawn(page, "#preview-ranking")
        drawn(page, "#preview-parts")
        answered = page.locator("#preview-answer strong").inner_text()
        expect(page.locator("#preview-parts button").first).to_have_text(
            f"Save the data (CSV): What makes the score of {answered}"
        )
        other = [one for one in json.loads(page.locator("#preview-arms").input_value()) if one["id"] != answered]
        page.locator("#preview-arms").fill(json.dumps(other))
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator("#preview-answer strong")).not_to_have_text(answered)
        expect(page.locator("#preview-parts button").first).not_to_contain_text(answered)
        page.locator("#preview-arms").fill(json.dumps(arms([1.0, 2.0])))
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator("#preview-answer")).to_contain_text("The arms do not fit")
        seen.expected = ("422",)
    assert client.get("/v1/status").json()["store"]["position"] == events, "a preview decides nothing"


def test_all_panels_by_keyboard(browser: Browser, client: httpx.Client) -> None:
    with watched(browser, str(client.base_url)) as seen:
        page = seen.page
        page.goto(str(client.base_url))
        expect(page.locator("#status")).to_have_text("running")
        page.keyboard.press("Tab")
        expect(page.locator("#skip")).to_be_focused()
        for name in ("Now", "Map", "Groups", "User"):
            page.keyboard.press("Tab")
            expect(page.get_by_role("link", name=name, exact=True)).to_be_focused()
            page.keyboard.press("Enter")
            expect(page.locator(f"#panel-{name.lower()}")).to_be_visible()
        page.get_by_label("Id of a user").focus()
        page.keyboard.type("user 3")
        page.keyboard.press("Enter")
        expect(page.locator("#user-sets a").first).to_be_visible()
        page.locator("#user-sets a").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#user-title")).not_to_have_text("user 3")
        page.go_back()
        expect(page.locator("#user-title")).to_have_text("user 3")
        page.goto(f"{client.base_url}/#groups")
        page.locator("#groups-table a").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#user-title")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_kept_out(browser: Browser, client: httpx.Client, scheme: str) -> None:
    with watched(browser, str(client.base_url), color_scheme=scheme, viewport={"width": 390, "height": 844}) as seen:
        page = seen.page
        for name in PANELS:
            page.goto(f"{client.base_url}/#{'user/user%207' if name == 'user' else name}")
            expect(page.locator(f"#panel-{name} canvas").first).to_be_visible()
            assert violations(page) == []
            wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.evaluate(wider) == 0, "nothing scrolls sideways but tables and charts in their boxes"


def test_light_and_dark_can_be_chosen_and_are_kept(browser: Browser, client: httpx.Client) -> None:
    with watched(browser, str(client.base_url), color_scheme="light") as seen:
        page = seen.page
        page.goto(str(client.base_url))
        drawn(page, "#reward-chart")
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.get_by_role("button", name="Show in dark colours").click()
        dark = page.evaluate(ground)
        assert light != dark
        drawn(page, "#reward-chart")
        page.reload()
        expect(page.get_by_role("button", name="Show in light colours")).to_be_visible()
        assert page.evaluate(ground) == dark

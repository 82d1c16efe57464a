"""Report pages in a browser: filters, user map, downloads, themes and accessibility."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples import findings

import locb
from browser import CheckedPage, accessibility_violations, launch_browser
from locb.report.comparison_folder import write_comparison
from locb.report.findings_folder import write_findings

ROUNDS, REPEATS = 1_500, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = {"n_users": 20, "n_clusters": 3, "n_arms": 4}
    policies, alphas = ["locb", "linucb-ind", "club"], [0.3, 1.0]
    result = locb.compare(
        policies, alphas=alphas, rounds=ROUNDS, repeats=REPEATS, environment=environment, n_seeds=5, jobs=1
    )
    path = tmp_path_factory.mktemp("explored")
    write_comparison(result, path)
    write_findings(findings(), path)
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launch_browser() as launched:
        yield launched


@pytest.fixture
def opened(chromium: Any, folder: Path) -> Iterator[Any]:
    pages = []

    def open_page(name: str, choices: str = "", **options: Any) -> Any:
        home = folder.as_uri()
        pages.append(CheckedPage(chromium, home, **options))
        page = pages[-1].page
        page.goto(f"{home}/{name}{choices}")
        page.evaluate("report.ready.then(() => true)")
        return page

    yield open_page
    for page in pages:
        page.check()
        page.context.close()


def saved(page: Any, button: Any) -> list[dict[str, str]]:
    with page.expect_download() as download:
        button.click()
    return list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))


def card(page: Any, title: str) -> Any:
    return page.locator("#curves > section").filter(has=page.get_by_role("heading", name=title, exact=True))


def save_data(container: Any) -> Any:
    return container.get_by_role("button", name="Save data").first


def column(rows: list[dict[str, str]], name: str) -> list[float | None]:
    return [float(row[name]) if row[name] else None for row in rows]


def test_downloads_match_the_selection(opened: Any, folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text())
    page = opened("report.html")
    rows = saved(page, save_data(card(page, "Regret")))
    assert {row["policy"] for row in rows} == {"locb", "linucb-ind", "club"}
    assert {row["repeat"] for row in rows} == {"mean"}
    page.get_by_label("club", exact=True).uncheck()
    page.get_by_label("linucb-ind", exact=True).uncheck()
    page.get_by_label("Alpha").select_option("0.3")
    page.get_by_label("Repeats").select_option("2")
    (kept,) = [entry for entry in record["results"] if entry["policy"] == "locb" and entry["alpha"] == 0.3]
    for title, name, rounds in (("Regret", "regret", "rounds"), ("F1 of the clusters", "f1", "cluster_rounds")):
        rows = saved(page, save_data(card(page, title)))
        assert {(row["policy"], row["alpha"], row["repeat"]) for row in rows} == {("locb", "0.3", "2")}
        assert column(rows, "round") == record[rounds]
        assert column(rows, name) == kept["curves"][name][1]
    rewards = [value for value in kept["curves"]["reward"][1] if value is not None]
    assert column(saved(page, save_data(card(page, "Reward"))), "reward") == rewards
    text = card(page, "Clusters").locator(".chart-footer p").inner_text()
    assert text == f"After 1,500 rounds: locb (α = 0.3) {kept['clusters'][1]}."
    again = opened("report.html", page.evaluate("location.hash"))
    assert saved(again, save_data(card(again, "Regret"))) == saved(page, save_data(card(page, "Regret")))
    page.get_by_label("locb", exact=True).uncheck()
    assert "No policy is selected." in card(page, "Regret").inner_text()


def test_user_map_over_rounds(opened: Any, folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text())
    page = opened("report.html", "#alpha=1", reduced_motion="reduce")
    summary = page.locator("#map-summary")
    slider = page.get_by_role("slider", name="Round")
    kept = next(entry for entry in record["results"] if entry["policy"] == "locb" and entry["alpha"] == 1.0)
    last = len(record["cluster_rounds"]) - 1

    def sentence(index: int) -> str:
        count, f1 = kept["curves"]["clusters"][0][index], kept["curves"]["f1"][0][index]
        different = f"{count:.0f} distinct cluster{'s' if count > 1 else ''}, F1 {f1:.3f}."
        return f"After {record['cluster_rounds'][index]:,} of 1,500 rounds: {different}"

    assert summary.inner_text().startswith(sentence(last))
    slider.focus()
    page.keyboard.press("Home")
    assert summary.inner_text().startswith(sentence(0))
    page.keyboard.press("ArrowRight")
    assert summary.inner_text().startswith(sentence(1))
    assert slider.get_attribute("aria-valuetext") == f"after {record['cluster_rounds'][1]} rounds"
    page.get_by_role("button", name="Next").click()  # Play, without the preference for reduced motion
    assert summary.inner_text().startswith(sentence(2))
    users = saved(page, save_data(page.locator("#map-found")))
    assert [row["user"] for row in users] == [str(user) for user in range(20)]
    assert {row["round"] for row in users} == {str(record["cluster_rounds"][2])}
    in_none = sum(row["cluster_count"] == "0" for row in users)
    assert summary.inner_text().endswith(f"{in_none} in none.")
    page.locator("#map").get_by_label("Policy").select_option("club")
    assert page.get_by_role("heading", name="Found by club (α = 1)").is_visible()
    page.get_by_text("Show as a table").click()
    counts = page.locator("#map-table tbody tr").all_inner_texts()
    assert sum(int(line.split()[1]) for line in counts) == 20


def test_tables_can_be_sorted_and_downloaded(opened: Any) -> None:
    page = opened("report.html")
    policies = page.locator("#table-results tbody th")
    before = policies.all_inner_texts()
    page.locator("#table-results").locator("th button", has_text="regret").click()
    assert policies.all_inner_texts() == before[::-1]  # the first click sorts in descending order
    rows = saved(page, save_data(page.locator("#table-results")))
    assert len(rows) == 6
    assert float(rows[0]["regret ±"]) > 0


def test_claims_can_be_filtered_by_verdict(opened: Any) -> None:
    page = opened("index.html")
    assert page.locator(".claim").count() == 2
    page.get_by_role("button", name="does not hold").click()
    assert page.locator(".claim:visible h3").all_inner_texts() == ["LOCB is fast. does not hold"]
    assert page.get_by_role("status").inner_text().startswith("Showing 1 of 2 claims")
    assert not page.get_by_role("heading", name="Accuracy of the clusters").is_visible()
    page.get_by_role("link", name="Accuracy of the clusters").click()  # every link must have a target
    assert page.get_by_role("heading", name="Accuracy of the clusters").is_visible()
    rows = saved(page, save_data(page.locator("#chart-curve")))
    assert column(rows, "regret") == [2.0, 4.0, 6.0, 9.0, 9.0, 9.0]
    rows = saved(page, save_data(page.locator("#table-accuracy-x")))
    assert rows[0]["F1"] == "0.97635"


@pytest.mark.parametrize("name", ["report.html", "index.html"])
def test_pages_are_accessible(opened: Any, name: str) -> None:
    page = opened(name, color_scheme="light")
    assert accessibility_violations(page) == []
    page.get_by_role("button", name="Switch to dark theme").click()
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.querySelectorAll('.chart canvas').length >= 2")
    assert accessibility_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_tables_work_without_javascript(chromium: Any, folder: Path) -> None:
    checked = CheckedPage(chromium, folder.as_uri(), java_script_enabled=False)
    checked.page.goto(f"{folder.as_uri()}/report.html")
    assert checked.page.locator("#table-results tbody tr").count() == 6
    assert "need JavaScript" in checked.page.locator("noscript").text_content()
    assert not checked.page.locator("#explore").is_visible()
    checked.context.close()

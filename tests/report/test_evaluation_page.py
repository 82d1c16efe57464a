"""Report of an evaluation in a browser: charts, tables, downloads and accessibility."""

from pathlib import Path

from browser import accessibility_violations, launch_browser, open_page
from locb.logs.bootstrap import Interval
from locb.logs.results import Evaluation, PolicyEvaluation, PolicyValue, Weights
from locb.report.evaluation_folder import write_evaluation


def sample() -> Evaluation:
    value, better = Interval(0.5, 0.4, 0.6), Interval(0.1, 0.05, 0.15)
    weights = Weights(100, 80.0, 4.0, 98.0, Interval(0.98, 0.9, 1.1), 0.02)
    unknown = PolicyValue("dm", Interval(0.4), Interval(-0.1), assumes_model=True)
    return Evaluation(
        [
            PolicyEvaluation("logged", "logged", [PolicyValue("logged", value)], None, "", ""),
            PolicyEvaluation(
                "new <policy>", "fixed", [PolicyValue("dr", value, better), unknown], weights, "better", "new: better."
            ),
            PolicyEvaluation("eloc", "learning", [], None, "undecided", "eloc: undecided.", ["a warning"]),
        ],
        "logged",
        {"decisions": "100"},
        ["a note"],
        {"curves": {"eloc": [(1, 0.5), (2, 0.25)]}},
    )


def test_page_in_a_browser(tmp_path: Path) -> None:
    write_evaluation(sample(), tmp_path)
    with launch_browser() as browser, open_page(browser, tmp_path.as_uri()) as opened:
        page = opened.page
        page.goto(f"{tmp_path.as_uri()}/report.html")
        page.evaluate("report.ready.then(() => true)")
        assert page.locator(".figure-box canvas").count() == 3
        assert page.locator("tbody tr", has_text="new <policy>").count() == 3
        assert page.locator(".badge").all_inner_texts() == ["better", "undecided"]
        assert page.get_by_text("a note").is_visible()
        with page.expect_download() as download:
            page.locator("#table-estimates").get_by_role("button", name="Save data").click()
        assert Path(download.value.path()).read_text().splitlines()[2].startswith("new <policy>,dr,0.5,0.4 to 0.6,+0.1")
        assert accessibility_violations(page) == []

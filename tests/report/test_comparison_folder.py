"""Folder of a comparison: run.json, images and a self-contained page."""

import json
import re
import struct
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import locb
from locb.evaluation.results import PolicyResult, UserMap
from locb.report.charts.line_charts import regret_chart, regret_rows
from locb.report.charts.report_maps import assign_clusters, project, users_chart
from locb.report.comparison_folder import write_comparison
from locb.report.pages.html import render_document, render_settings, render_table
from locb.report.tables.comparison_table import comparison_rows, format_mean, make_comparison_table


@pytest.fixture(scope="module")
def result() -> locb.Comparison:
    environment = {"n_users": 15, "n_clusters": 3, "n_arms": 4}
    return locb.compare(
        ["locb", "linucb-ind"], alphas=[0.3, 1.0], rounds=800, repeats=3, environment=environment, jobs=1
    )


def test_files_and_their_content(result: locb.Comparison, tmp_path: Path) -> None:
    written = write_comparison(result, tmp_path / "run")
    assert [path.name for path in written] == ["regret.png", "users.png", "report.html", "run.json"]
    for image in written[:2]:
        data = image.read_bytes()
        assert data.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", data[16:24])
        assert width > 800
        assert height > 500
    record = json.loads(written[3].read_text())
    assert record["settings"]["rounds"] == 800
    assert record["seeds"] == [0, 1, 2]
    assert record["versions"]["locb"] == locb.__version__
    assert record["results"][0]["regret"] == result.results[0].final_regret.tolist()
    assert record["results"][2]["f1"] == [None, None, None]
    assert max(map(len, written[3].read_text().splitlines())) > 1000  # one line per curve, not per number
    curves = record["results"][0]["curves"]
    assert record["rounds"] == result.checkpoints.tolist()
    assert [row[-1] for row in curves["regret"]] == pytest.approx(record["results"][0]["regret"], rel=1e-5)
    assert [row[-1] for row in curves["clusters"]] == record["results"][0]["clusters"]
    assert [row[-1] for row in curves["f1"]] == pytest.approx(record["results"][0]["f1"], rel=1e-5)
    assert {len(row) for row in curves["reward"]} == {len(record["rounds"])}
    assert {len(row) for row in curves["f1"]} == {len(record["cluster_rounds"])}
    assert record["results"][2]["curves"].keys() == {"regret", "reward"}


def test_page_is_self_contained(result: locb.Comparison, tmp_path: Path) -> None:
    report = write_comparison(result, tmp_path)[2].read_text()
    outside = re.sub(r"<script.*?</script>", "", report, flags=re.DOTALL)
    assert not re.search(r'src=|href="(?!#)|@import|url\(', outside)
    assert len(re.findall('<script( type="application/json" id="data")?>', report)) == report.count("<script") == 3
    assert len(report) < 1_200_000
    assert result.verdict().split(",")[0] in report
    for row in comparison_rows(result):
        for cell in row:
            assert f">{cell}</td>" in report


def test_text_is_escaped() -> None:
    hostile = "</script><b>&"
    table = render_table("a", [hostile], [[hostile]], hostile)
    page = render_document(hostile, hostile, table + render_settings({"a": hostile}), {"a": {hostile: hostile}}, [])
    assert page.count("<b>") == 0
    assert page.count("&lt;b&gt;&amp;") == 7


def test_regret_chart_shows_the_best_alpha_with_its_band(result: locb.Comparison) -> None:
    rows = regret_rows(result)
    best = result.best_per_policy()[0]
    last = [row for row in rows if row["round"] == 800 and row["policy"].startswith("locb")]
    assert len(last) == 1
    assert last[0]["policy"] == f"locb (α = {best.alpha:g})"
    assert last[0]["regret"] == pytest.approx(best.final_regret.mean())
    spread = 4.30265273 * best.final_regret.std(ddof=1) / np.sqrt(3)
    assert last[0]["high"] - last[0]["low"] == pytest.approx(2 * spread)
    assert min(row["low"] for row in rows) >= 0.0
    assert "layer" in regret_chart(result).to_dict()


def test_second_panel_omits_an_outlier() -> None:
    def entry(policy: str, final: float) -> PolicyResult:
        regret = np.linspace(0, final, 5)[None, :] * np.array([[0.9], [1.1]])
        blank = np.zeros(2)
        return PolicyResult(policy, 1.0, regret, blank, blank.astype(np.int64), blank, blank)

    entries = [entry("good", 10.0), entry("fair", 20.0), entry("bad", 900.0)]
    settings = {"alphas": [1.0], "repeats": 2}
    spec = regret_chart(locb.Comparison(settings, np.arange(1, 6), entries, None, [0, 1])).to_dict()
    assert len(spec["hconcat"]) == 2
    assert "without bad" in spec["hconcat"][1]["title"]["text"]
    shown = [{row["policy"] for row in rows} for rows in spec["datasets"].values()]
    assert sorted(map(len, shown)) == [2, 3]


def test_outdated_images_are_removed(result: locb.Comparison, tmp_path: Path) -> None:
    write_comparison(result, tmp_path)
    write_comparison(replace(result, user_map=None), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["regret.png", "report.html", "run.json"]


def test_found_clusters_are_matched_to_true_clusters() -> None:
    theta = np.array([[0.0, 0.0], [0.0, 0.1], [1.0, 0.0], [1.0, 0.1], [5.0, 5.0]])
    user_map = UserMap("locb", theta, truth=[[0, 1], [2, 3], [4]], found=[[2, 3], [0, 1, 2], [3]])
    true_of, found_of, counts = assign_clusters(user_map)
    assert true_of == [0, 0, 1, 1, 2]
    assert found_of == [0, 0, 1, 1, -1]  # user 2 is in two clusters and gets the better match
    assert counts == [1, 1, 2, 2, 0]
    spec = users_chart(user_map).to_dict()
    assert len(spec["hconcat"]) == 2


def test_many_clusters_have_distinct_styles() -> None:
    theta = np.random.default_rng(0).standard_normal((40, 3))
    singles = [[user] for user in range(40)]
    spec = users_chart(UserMap("locb", theta, singles, singles)).to_dict()
    encoding = spec["hconcat"][0]["encoding"]
    styles = list(zip(encoding["color"]["scale"]["range"], encoding["shape"]["scale"]["range"], strict=True))
    assert len(styles) == 41
    assert len(set(styles)) == 41


def test_projection_keeps_the_two_principal_components() -> None:
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((200, 5)) * np.array([0.1, 3.0, 0.1, 2.0, 0.1])
    points = project(theta)
    assert points.std(axis=0) == pytest.approx([3.0, 2.0], rel=0.2)
    assert project(np.array([[1.0], [2.0]])).shape == (2, 2)


def test_table_fits_80_columns() -> None:
    wide = np.array([10_236.0, 9_999.0, 8_200.0])
    blank = np.array([0.81, 0.82, 0.8])
    entry = PolicyResult(
        "linucb-ind", 0.3, wide[:, None], blank, np.array([100, 99, 98]), blank, np.array([33.1, 33.2, 33.3])
    )
    settings = {"alphas": [0.3], "rounds": 1_000_000, "repeats": 3}
    console = Console(width=80, file=StringIO())
    console.print(make_comparison_table(locb.Comparison(settings, np.array([1]), [entry], None, [0])))
    assert "…" not in console.file.getvalue()
    assert "9,478 ± 2,766" in console.file.getvalue()


def test_table_is_ranked_and_omits_unknown_margins(result: locb.Comparison) -> None:
    rows = comparison_rows(result)
    regrets = [float(row[2].split(" ")[0].replace(",", "")) for row in rows]
    assert regrets == sorted(regrets)
    assert make_comparison_table(result).row_count == 4
    assert format_mean(np.array([1.0]), ".1f") == "1.0"
    assert format_mean(np.array([np.nan, np.nan]), ".1f") == "–"

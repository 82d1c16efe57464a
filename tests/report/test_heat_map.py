"""Heat map: text and colour of its cells."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from locb.evaluation.findings import HeatMap
from locb.report.charts.chart_theme import style
from locb.report.charts.group_charts import likes_chart
from locb.report.charts.heat_map import MAX_LOG_RATIO, format_ratio, heat_map_chart
from locb.report.pages import groups_page


def heat_map(scenarios: int, policies: int) -> HeatMap:
    rows = [
        {
            "panel": "evaluation" if scenario % 3 else "development",
            "scenario": f"scenario-{scenario}",
            "policy": f"policy-{policy}",
            "ratio": 2.0 ** (policy - 2),
            "margin": None if policy == 2 else 0.05,
            "best": policy == 2,
        }
        for scenario in range(scenarios)
        for policy in range(policies)
    ]
    return HeatMap("matrix", "matrix", "Matrix", "subtitle", "policy", "scenario", rows)


def test_cells_have_colour_and_text() -> None:
    spec = heat_map_chart(heat_map(1, 8)).to_dict()
    (rows,) = spec["datasets"].values()
    assert [row["log_ratio"] for row in rows] == [
        -2.0,
        -1.0,
        0.0,
        1.0,
        2.0,
        2.0,
        2.0,
        2.0,
    ]  # clipped at the end of the scale
    assert [row["text"] for row in rows[:4]] == ["0.25 ± 0.05", "0.50 ± 0.05", "1", "2.00 ± 0.05"]
    scale = spec["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == [-MAX_LOG_RATIO, -1.0, 0, 1.0, MAX_LOG_RATIO]
    assert format_ratio(12.34, 1.26) == "12.3 ± 1.3"


@pytest.mark.parametrize("scenarios", [1, 21])
def test_image_contains_every_cell(scenarios: int, tmp_path: Path) -> None:
    style(heat_map_chart(heat_map(scenarios, 6))).save(str(tmp_path / "map.svg"))
    text = (tmp_path / "map.svg").read_text()
    for scenario in range(scenarios):
        assert f">scenario-{scenario}<" in text
    assert len(re.findall(r">0\.25 ± 0\.05<", text)) == scenarios
    assert ("development" in text) == (scenarios > 0)


def test_colours_of_what_groups_like_are_not_determined_by_small_groups() -> None:
    found: Any = SimpleNamespace(groups=pl.DataFrame({"users": [100, 80, 3, 1]}))
    rows = [{"group": str(group), "difference": value} for group, value in enumerate((-2.0, 5.0, 40.0, 242.0))]
    assert groups_page._colour_limit(found, rows) == (5.0, 242.0)
    assert groups_page._colour_limit(found, rows[:2]) == (5.0, 5.0)
    assert groups_page._colour_limit(found, []) == (1.0, 1.0)
    scale = likes_chart(["0", "1"], ["lamp"], 5.0).to_dict()["encoding"]["color"]["scale"]
    assert (scale["domain"], scale["clamp"]) == ([-5.0, -2.5, 0, 2.5, 5.0], True)

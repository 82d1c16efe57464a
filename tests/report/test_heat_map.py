"""The heat map: the figures in its cells, colours that part at 1, and one that can be read at full size."""

import re
from pathlib import Path

import pytest

from locb.evaluation.findings import HeatMap
from locb.report.charts import style
from locb.report.charts.heat_map import FARTHEST, cell_text, heat_map_chart


def heat_map(worlds: int, policies: int) -> HeatMap:
    rows = [
        {
            "panel": "judging" if world % 3 else "development",
            "world": f"world-{world}",
            "policy": f"policy-{policy}",
            "ratio": 2.0 ** (policy - 2),
            "margin": None if policy == 2 else 0.05,
            "best": policy == 2,
        }
        for world in range(worlds)
        for policy in range(policies)
    ]
    return HeatMap("matrix", "matrix", "Matrix", "told", "policy", "world", rows)


def test_cells_have_colours_around_one_and_their_figures() -> None:
    spec = heat_map_chart(heat_map(1, 8)).to_dict()
    (rows,) = spec["datasets"].values()
    assert [row["depth"] for row in rows] == [-2.0, -1.0, 0.0, 1.0, 2.0, 2.0, 2.0, 2.0]  # no deeper than the deepest
    assert [row["text"] for row in rows[:4]] == ["0.25 ± 0.05", "0.50 ± 0.05", "1", "2.00 ± 0.05"]
    scale = spec["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == [-FARTHEST, -1.0, 0, 1.0, FARTHEST]
    assert cell_text(12.34, 1.26) == "12.3 ± 1.3"


@pytest.mark.parametrize("worlds", [1, 21])
def test_the_picture_holds_every_figure(worlds: int, tmp_path: Path) -> None:
    style(heat_map_chart(heat_map(worlds, 6))).save(str(tmp_path / "map.svg"))
    text = (tmp_path / "map.svg").read_text()
    for world in range(worlds):
        assert f">world-{world}<" in text
    assert len(re.findall(r">0\.25 ± 0\.05<", text)) == worlds
    assert ("development" in text) == (worlds > 0)

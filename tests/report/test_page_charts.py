"""The charts that a page fills: they compile, their data sets have names, their colours can be seen."""

import json

import pytest
import vl_convert

from locb.report.charts import COLOURS, THEMES
from locb.report.charts.chart_theme import INK, NOBODY
from locb.report.charts.vega_bundle import page_charts

SETS = {
    "reward": {"points", "baseline"},
    "traffic": {"steps"},
    "map": {"users"},
    "overlap": {"overlap"},
    "parts": {"parts", "scores"},
    "estimate": {"features"},
}


def test_every_chart_compiles_and_takes_rows_by_name() -> None:
    told = page_charts()
    json.dumps(told, allow_nan=False)
    assert told["charts"].keys() == SETS.keys()
    for name, chart in told["charts"].items():
        assert {one["name"] for one in vl_convert.vegalite_to_vega(chart)["data"]} >= SETS[name]


def _lightness(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("theme", "ground"), [("light", "#ffffff"), ("dark", "#181d25")])
def test_every_colour_stands_out_from_the_ground(theme: str, ground: str) -> None:
    instead = THEMES[theme]["colours"]
    shown = [instead.get(colour, colour) for colour in (*COLOURS, NOBODY, INK)]
    assert len(set(shown)) == len(shown), "no two become one"
    for colour in shown:
        low, high = sorted((_lightness(colour), _lightness(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3.0, colour

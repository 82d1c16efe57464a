"""Charts of the dashboard: specifications, dataset names and contrast."""

import json

import pytest
import vl_convert

from locb.report.charts.chart_theme import FOREGROUND, NEUTRAL, PALETTE, THEMES
from locb.report.charts.vega_bundle import page_charts

DATASETS = {
    "reward": {"points", "baseline"},
    "decisions": {"steps"},
    "map": {"users"},
    "overlap": {"overlap"},
    "parts": {"parts", "scores"},
    "estimate": {"features"},
}


def test_charts_compile_and_have_named_datasets() -> None:
    page = page_charts()
    json.dumps(page, allow_nan=False)
    assert page["charts"].keys() == DATASETS.keys()
    for name, chart in page["charts"].items():
        assert {dataset["name"] for dataset in vl_convert.vegalite_to_vega(chart)["data"]} >= DATASETS[name]


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("theme", "background"), [("light", "#ffffff"), ("dark", "#181d25")])
def test_every_colour_has_sufficient_contrast(theme: str, background: str) -> None:
    replacements = THEMES[theme]["colours"]
    shown = [replacements.get(colour, colour) for colour in (*PALETTE, NEUTRAL, FOREGROUND)]
    assert len(set(shown)) == len(shown), "two colours became equal"
    for colour in shown:
        low, high = sorted((_luminance(colour), _luminance(background)))
        assert (high + 0.05) / (low + 0.05) >= 3.0, colour

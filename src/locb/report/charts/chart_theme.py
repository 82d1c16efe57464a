"""Colours and style of all charts."""

from __future__ import annotations

from typing import Any

# Colours of groups and policies, in order of use: the palette of Okabe and Ito for colour-blind readers.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
NEUTRAL = "#BBBBBB"  # users in no group, and sums of remaining values
FOREGROUND, BACKGROUND = "#1A1F26", "#FFFFFF"  # marks on top of any colour, and background of the chart
FONT = 'system-ui, -apple-system, "Segoe UI", sans-serif'

# Colours that replace those above on light and dark pages, so that every mark has a contrast ratio of at least 3 : 1.
_LIGHT_REPLACEMENTS = {
    "#E69F00": "#A87300",
    "#56B4E9": "#3A8FC9",
    "#CC79A7": "#BF6296",
    "#F0E442": "#857C00",
    NEUTRAL: "#858D96",
}
_DARK_REPLACEMENTS = {
    "#0072B2": "#4BA3E3",
    "#D55E00": "#F07B2E",
    "#009E73": "#2DBE92",
    "#CC79A7": "#DE94BC",
    "#E69F00": "#EFB02E",
    "#56B4E9": "#86CDF5",
    "#000000": "#F2F4F7",
    NEUTRAL: "#76818D",
    FOREGROUND: "#E8ECF1",
    BACKGROUND: "#181D25",
}


def _config(text: str, secondary: str, line: str) -> dict[str, Any]:
    """Return the Vega-Lite configuration of charts on a page, with a transparent background."""
    return {
        "background": None,
        "aria": False,  # the HTML element that contains the chart has a text alternative
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": secondary,
            "titleColor": secondary,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "gridColor": line,
            "domainColor": line,
            "tickColor": line,
            "tickSize": 4,
        },
        "legend": {"labelColor": text, "titleColor": secondary, "labelFontSize": 12, "titleFontSize": 12},
        "title": {"color": text, "subtitleColor": secondary, "fontSize": 14, "subtitleFontSize": 12, "anchor": "start"},
        "header": {"labelColor": text, "titleColor": secondary},
        "text": {"color": text},
        "rule": {"color": secondary},
    }


# Themes of charts on a page. The script of the page applies the theme that the reader selects.
THEMES: dict[str, dict[str, Any]] = {
    "light": {"config": _config("#1a1f26", "#57606b", "#e3e7ec"), "colours": _LIGHT_REPLACEMENTS},
    "dark": {"config": _config("#e8ecf1", "#a0abb8", "#2b333d"), "colours": _DARK_REPLACEMENTS},
}


def style(chart: Any) -> Any:
    """Return an Altair chart with the fonts, grid and title style that image files use."""
    return (
        chart.configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=13, gridColor="#eeeeee", titleFontWeight="normal")
        .configure_legend(labelFontSize=12, titleFontSize=13)
        .configure_title(fontSize=15, anchor="start", subtitleFontSize=12, subtitleColor="#555555")
    )

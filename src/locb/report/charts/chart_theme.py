"""What all charts share: colours and style."""

from __future__ import annotations

from typing import Any

# Distinguishable without colour vision trouble (Okabe and Ito), the strongest first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
NOBODY = "#BBBBBB"  # users in no group
INK, PAPER = "#1A1F26", "#FFFFFF"  # what must be seen on top of any colour, and the ground
FONT = 'system-ui, -apple-system, "Segoe UI", sans-serif'

# What stands in the place of some colours on a page, so that every mark has a contrast of 3 or more on its ground.
_ON_LIGHT = {
    "#E69F00": "#A87300",
    "#56B4E9": "#3A8FC9",
    "#CC79A7": "#BF6296",
    "#F0E442": "#857C00",
    NOBODY: "#858D96",
}
_ON_DARK = {
    "#0072B2": "#4BA3E3",
    "#D55E00": "#F07B2E",
    "#009E73": "#2DBE92",
    "#CC79A7": "#DE94BC",
    "#E69F00": "#EFB02E",
    "#56B4E9": "#86CDF5",
    "#000000": "#F2F4F7",
    NOBODY: "#76818D",
    INK: "#E8ECF1",
    PAPER: "#181D25",
}


def _config(ink: str, quiet: str, line: str) -> dict[str, Any]:
    """A Vega-Lite config for a chart on a page: as its text, with no ground of its own."""
    return {
        "background": None,
        "aria": False,  # the box of a chart says in words what it shows
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": quiet,
            "titleColor": quiet,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "gridColor": line,
            "domainColor": line,
            "tickColor": line,
            "tickSize": 4,
        },
        "legend": {"labelColor": ink, "titleColor": quiet, "labelFontSize": 12, "titleFontSize": 12},
        "title": {"color": ink, "subtitleColor": quiet, "fontSize": 14, "subtitleFontSize": 12, "anchor": "start"},
        "header": {"labelColor": ink, "titleColor": quiet},
        "text": {"color": ink},
        "rule": {"color": quiet},
    }


# The looks of charts on a page, of which its reader chooses one; look.js applies them.
THEMES: dict[str, dict[str, Any]] = {
    "light": {"config": _config("#1a1f26", "#57606b", "#e3e7ec"), "colours": _ON_LIGHT},
    "dark": {"config": _config("#e8ecf1", "#a0abb8", "#2b333d"), "colours": _ON_DARK},
}


def style(chart: Any) -> Any:
    """The look of charts in files."""
    return (
        chart.configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=13, gridColor="#eeeeee", titleFontWeight="normal")
        .configure_legend(labelFontSize=12, titleFontSize=13)
        .configure_title(fontSize=15, anchor="start", subtitleFontSize=12, subtitleColor="#555555")
    )

"""Ratios as a heat map: blue below 1, orange above it, the deeper the farther, on a logarithmic scale."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from locb.evaluation.findings import HeatMap
from locb.report.charts.chart_theme import PAPER

FARTHEST = 2.0  # powers of two from 1 at which the colour is deepest
DEEP = 1.5  # from here on the text is white
ROW, COLUMN = 24, 96  # pixels
# Blue and orange differ for every kind of colour vision, and in both directions lightness falls alike.
COLOURS = ("#08519c", "#6baed6", "#f7f7f7", "#fdae6b", "#a63603")


def cell_text(ratio: float, margin: float | None) -> str:
    """A ratio and its margin, in three digits or so.

    Examples
    --------
    >>> cell_text(0.634, 0.04), cell_text(12.34, 1.2), cell_text(523.4, None)
    ('0.63 ± 0.04', '12.3 ± 1.2', '523')
    """
    form = ".2f" if ratio < 10 else ".1f" if ratio < 100 else ",.0f"
    return format(ratio, form) + ("" if margin is None else f" ± {format(margin, form)}")


def heat_map_chart(heat_map: HeatMap) -> Any:
    """A panel a kind of world, one above the other, with the figures in the cells."""
    rows = []
    for row in heat_map.rows:
        depth = max(-FARTHEST, min(FARTHEST, math.log2(row["ratio"])))
        text = "1" if row["best"] else cell_text(row["ratio"], row["margin"])
        rows.append(row | {"depth": depth, "text": text, "white": abs(depth) >= DEEP})
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    longest = max(len(row[heat_map.y]) for row in rows)
    data = alt.InlineData(values=rows)  # the same for all panels, so that a page holds it once
    charts = [
        _panel(heat_map, data, [row for row in rows if row["panel"] == panel], panel, longest) for panel in panels
    ]
    whole: Any = charts[0] if len(charts) == 1 else alt.vconcat(*charts, spacing=18)
    return whole.properties(title=alt.Title(heat_map.title, subtitle=heat_map.subtitle))


def _panel(heat_map: HeatMap, data: Any, rows: list[dict[str, Any]], panel: str, longest: int) -> Any:
    columns = list(dict.fromkeys(row[heat_map.x] for row in rows))
    names = list(dict.fromkeys(row[heat_map.y] for row in rows))
    above = alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False, grid=False, labelPadding=6)
    # Room for the longest name, so that the titles of all panels stand below each other.
    room = 7 * longest + 10
    beside = alt.Axis(ticks=False, domain=False, grid=False, labelPadding=6, labelLimit=220, minExtent=room)
    base = (
        alt.Chart(data)
        .transform_filter(alt.datum.panel == panel)
        .encode(
            x=alt.X(f"{heat_map.x}:N", sort=columns, title=None, axis=above),
            y=alt.Y(f"{heat_map.y}:N", sort=names, title=panel, axis=beside),
        )
    )
    half = FARTHEST / 2
    scale = alt.Scale(domain=[-FARTHEST, -half, 0, half, FARTHEST], range=list(COLOURS), clamp=True)
    powers = [-FARTHEST, -half, 0.0, half, FARTHEST]
    legend = alt.Legend(
        title="ratio",
        values=powers,
        labelExpr="(datum.value <= -2 ? '≤ ' : datum.value >= 2 ? '≥ ' : '') + format(pow(2, datum.value), '.2~f')",
        gradientLength=150,
    )
    squares = base.mark_rect(stroke=PAPER, strokeWidth=1.5).encode(
        color=alt.Color("depth:Q", scale=scale, legend=legend),
        tooltip=[
            alt.Tooltip(f"{heat_map.y}:N"),
            alt.Tooltip(f"{heat_map.x}:N"),
            alt.Tooltip("ratio:Q", format=".3f"),
            alt.Tooltip("margin:Q", format=".3f", title="± (95%)"),
        ],
    )
    figures = base.mark_text(fontSize=12).encode(
        text="text:N", color=alt.condition("datum.white", alt.value("white"), alt.value("#222222"))
    )
    best = base.transform_filter("datum.best").mark_text(fontSize=13, fontWeight="bold", color="#222222")
    cells = squares + figures.transform_filter("!datum.best") + best.encode(text="text:N")
    return cells.properties(width=COLUMN * len(columns), height=ROW * len(names))

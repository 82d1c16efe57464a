"""Heat map of ratios on a logarithmic colour scale, with blue below 1 and orange above 1."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from locb.evaluation.findings import HeatMap
from locb.report.charts.chart_theme import BACKGROUND

MAX_LOG_RATIO = 2.0  # log2 of the ratio at the end of the colour scale
WHITE_TEXT_FROM = 1.5  # log2 of the ratio from which the text is white
ROW_HEIGHT, COLUMN_WIDTH = 24, 96  # pixels
# Blue and orange can be distinguished with every type of colour vision. Both get darker at the same rate.
COLOUR_SCALE = ("#08519c", "#6baed6", "#f7f7f7", "#fdae6b", "#a63603")


def format_ratio(ratio: float, margin: float | None) -> str:
    """Format a ratio and its margin (half the width of the 95% interval) with about three significant digits.

    Examples
    --------
    >>> format_ratio(0.634, 0.04), format_ratio(12.34, 1.2), format_ratio(523.4, None)
    ('0.63 ± 0.04', '12.3 ± 1.2', '523')
    """
    spec = ".2f" if ratio < 10 else ".1f" if ratio < 100 else ",.0f"
    return format(ratio, spec) + ("" if margin is None else f" ± {format(margin, spec)}")


def heat_map_chart(heat_map: HeatMap) -> Any:
    """Return an Altair chart of a heat map: panels below each other, with the ratio as text in each cell.

    The field ``panel`` of each row states the panel to which the cell belongs.
    """
    rows = []
    for row in heat_map.rows:
        log_ratio = max(-MAX_LOG_RATIO, min(MAX_LOG_RATIO, math.log2(row["ratio"])))
        text = "1" if row["best"] and row["ratio"] == 1.0 else format_ratio(row["ratio"], row["margin"])
        rows.append(row | {"log_ratio": log_ratio, "text": text, "white": abs(log_ratio) >= WHITE_TEXT_FROM})
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    longest = max(len(row[heat_map.y]) for row in rows)
    data = alt.InlineData(values=rows)  # shared by all panels, so that a page contains it once
    charts = [
        _panel(heat_map, data, [row for row in rows if row["panel"] == panel], panel, longest) for panel in panels
    ]
    combined: Any = charts[0] if len(charts) == 1 else alt.vconcat(*charts, spacing=18)
    return combined.properties(title=alt.Title(heat_map.title, subtitle=heat_map.subtitle))


def _panel(heat_map: HeatMap, data: Any, rows: list[dict[str, Any]], panel: str, longest: int) -> Any:
    columns = list(dict.fromkeys(row[heat_map.x] for row in rows))
    names = list(dict.fromkeys(row[heat_map.y] for row in rows))
    x_axis = alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False, grid=False, labelPadding=6)
    label_width = 7 * longest + 10  # equal in all panels, so that their titles are aligned
    y_axis = alt.Axis(ticks=False, domain=False, grid=False, labelPadding=6, labelLimit=220, minExtent=label_width)
    base = (
        alt.Chart(data)
        .transform_filter(alt.datum.panel == panel)
        .encode(
            x=alt.X(f"{heat_map.x}:N", sort=columns, title=None, axis=x_axis),
            y=alt.Y(f"{heat_map.y}:N", sort=names, title=panel, axis=y_axis),
        )
    )
    half = MAX_LOG_RATIO / 2
    scale = alt.Scale(domain=[-MAX_LOG_RATIO, -half, 0, half, MAX_LOG_RATIO], range=list(COLOUR_SCALE), clamp=True)
    powers = [-MAX_LOG_RATIO, -half, 0.0, half, MAX_LOG_RATIO]
    legend = alt.Legend(
        title="ratio",
        values=powers,
        labelExpr="(datum.value <= -2 ? '≤ ' : datum.value >= 2 ? '≥ ' : '') + format(pow(2, datum.value), '.2~f')",
        gradientLength=150,
    )
    squares = base.mark_rect(stroke=BACKGROUND, strokeWidth=1.5).encode(
        color=alt.Color("log_ratio:Q", scale=scale, legend=legend),
        tooltip=[
            alt.Tooltip(f"{heat_map.y}:N"),
            alt.Tooltip(f"{heat_map.x}:N"),
            alt.Tooltip("ratio:Q", format=".3f"),
            alt.Tooltip("margin:Q", format=".3f", title="± (95% CI)"),
        ],
    )
    labels = base.mark_text(fontSize=12).encode(
        text="text:N", color=alt.condition("datum.white", alt.value("white"), alt.value("#222222"))
    )
    best = base.transform_filter("datum.best").mark_text(fontSize=13, fontWeight="bold", color="#222222")
    cells = squares + labels.transform_filter("!datum.best") + best.encode(text="text:N")
    return cells.properties(width=COLUMN_WIDTH * len(columns), height=ROW_HEIGHT * len(names))

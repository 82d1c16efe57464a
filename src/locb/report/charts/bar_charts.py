"""Bars that tell a user and the sets: why an arm was recommended, what is estimated, who shares members with whom."""

from __future__ import annotations

from typing import Any

import altair as alt

from locb.report.charts.chart_theme import COLOURS, INK, NOBODY, PAPER

FEATURES = 5  # of which a bar tells each by a colour of its own
ROW = 24  # pixels
CELL = 30


def parts_chart() -> Any:
    """Scores as stacked bars of their parts: what features add, the constant, the bonus; a line where they end.

    ``parts``: row (0, 1, … from the top), part ("0" … "4", "rest", "constant", "estimate" or "bonus"), place (in the
    stack), value, told, arm. ``scores``: row, score. Arrays: ``rows`` and ``names`` are the names of rows and of the
    parts with a number, ``shown`` the parts that the legend tells.
    """
    domain = [*(str(place) for place in range(FEATURES)), "rest", "constant", "estimate", "bonus"]
    colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", NOBODY, "#56B4E9", "#0072B2", "#E69F00"]
    rows = alt.param(name="rows", value=[])
    names = alt.param(name="names", value=[])
    columns = alt.param(name="columns", value=5)  # of the legend: a page sets it by the width of the box
    shown = alt.param(name="shown", value=["bonus"])  # never empty: a legend of nothing has no size
    legend = alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=columns,
        labelLimit=130,
        symbolType="square",
        values=shown,
        labelExpr="indexof(['rest', 'constant', 'estimate', 'bonus'], datum.value) >= 0 ? "
        "(datum.value === 'rest' ? 'other features' : datum.value) : "
        "length(names) > toNumber(datum.value) ? names[toNumber(datum.value)] : '–'",
    )
    axis = alt.Axis(
        title=None, ticks=False, domain=False, labelLimit=165, labelPadding=8, labelExpr="rows[toNumber(datum.value)]"
    )
    y = alt.Y("row:O", axis=axis, scale=alt.Scale(paddingInner=0.3, paddingOuter=0.15))
    bars = (
        alt.Chart(alt.NamedData(name="parts"))
        .mark_bar()
        .encode(
            y=y,
            x=alt.X("value:Q", title="score", stack="zero", axis=alt.Axis(tickCount=5)),
            color=alt.Color("part:N", sort=domain, scale=alt.Scale(domain=domain, range=colours), legend=legend),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("arm:N"),
                alt.Tooltip("told:N", title="part"),
                alt.Tooltip("value:Q", title="adds", format="+.4f"),
            ],
        )
    )
    scores = alt.Chart(alt.NamedData(name="scores")).encode(
        y=y, x="score:Q", tooltip=[alt.Tooltip("score:Q", format=".4f")]
    )
    # A line with an edge, which is seen on any of the colours.
    ends = [
        scores.mark_tick(color=colour, thickness=wide, height=ROW - 3, opacity=1)
        for colour, wide in ((PAPER, 5), (INK, 2))
    ]
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(strokeWidth=1).encode(x="zero:Q")
    return (
        alt.layer(bars, zero, *ends)
        .add_params(rows, names, columns, shown)
        .properties(width="container", height=alt.Step(ROW))
    )


def estimate_chart() -> Any:
    """What a user is estimated to like: a bar a feature, with its interval.

    ``features``: feature (text), place (in the order to show), value, low, high; the last two may be null.
    """
    features = alt.Chart(alt.NamedData(name="features"))
    axis = alt.Axis(title=None, ticks=False, domain=False, labelLimit=150, labelPadding=8)
    y = alt.Y("feature:N", sort=alt.EncodingSortField("place", op="min"), axis=axis)
    told = [
        alt.Tooltip("feature:N"),
        alt.Tooltip("value:Q", title="estimate", format="+.4f"),
        alt.Tooltip("low:Q", title="95% from", format="+.4f"),
        alt.Tooltip("high:Q", title="to", format="+.4f"),
    ]
    bars = features.mark_bar(color=COLOURS[0], opacity=0.75, height={"band": 0.62}).encode(
        y=y, x=alt.X("value:Q", title="estimate", axis=alt.Axis(tickCount=5)), tooltip=told
    )
    span = features.transform_filter("isValid(datum.low)")
    lines = span.mark_rule(color=INK, strokeWidth=1.5).encode(y=y, x="low:Q", x2="high:Q", tooltip=told)
    caps = [
        span.mark_tick(color=INK, thickness=1.5, height=8).encode(y=y, x=f"{end}:Q", tooltip=told)
        for end in ("low", "high")
    ]
    return alt.layer(bars, lines, *caps).properties(width="container", height=alt.Step(ROW - 4))


def overlap_chart() -> Any:
    """How much sets have in common: of the members of a row's set, the share that is in a column's.

    ``overlap``: row, column (names of sets), place_row, place_column, share.
    """
    cells = alt.Chart(alt.NamedData(name="overlap")).encode(
        x=alt.X(
            "column:N",
            sort=alt.EncodingSortField("place_column", op="min"),
            title=None,
            axis=alt.Axis(orient="top", ticks=False, domain=False, labelAngle=-60, labelLimit=90),
        ),
        y=alt.Y(
            "row:N",
            sort=alt.EncodingSortField("place_row", op="min"),
            title=None,
            axis=alt.Axis(ticks=False, domain=False, labelLimit=110, labelPadding=6),
        ),
        tooltip=[
            alt.Tooltip("row:N", title="of the members of"),
            alt.Tooltip("column:N", title="are also in"),
            alt.Tooltip("share:Q", title="share", format=".0%"),
        ],
    )
    # By opacity, so that it goes from the page's own ground to a colour in light and dark; text on it stays readable.
    depth = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.03, 0.55]), legend=None)
    squares = cells.mark_rect(color=COLOURS[0], cornerRadius=2).encode(opacity=depth)
    figures = (
        cells.transform_filter("datum.share > 0")
        .mark_text(fontSize=10.5)
        .encode(text=alt.Text("share:Q", format=".0%"))
    )
    return alt.layer(squares, figures).properties(width=alt.Step(CELL + 4), height=alt.Step(CELL - 4))

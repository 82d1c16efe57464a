"""Bar charts and the overlap matrix of the dashboard.

The charts show the parts of a score, the estimate of a user, and the overlap of groups. Their datasets are empty, and
the script of the page fills them.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from locb.report.charts.chart_theme import BACKGROUND, FOREGROUND, NEUTRAL, PALETTE

MAX_COLOURED_FEATURES = 5  # features with a colour of their own; the other features are summed in one part
ROW_HEIGHT = 24  # pixels
CELL_WIDTH, CELL_HEIGHT = 34, 26  # pixels


def score_parts_chart() -> Any:
    """Return a chart of stacked bars: the parts of the scores of arms, with a tick at each score.

    The parts are the contributions of features, the intercept and the exploration bonus. The page sets:

    - Dataset ``parts``: row (0, 1, … from the top), part ("0" … "4", "rest", "intercept", "estimate" or "bonus"), order
      (position in the stack), value, label and arm.
    - Dataset ``scores``: row and score. Parameters: ``rows`` (names of the rows), ``names`` (names of the numbered
      parts), ``legend_values`` (parts in the legend) and ``columns`` (number of columns of the legend).
    """
    domain = [*(str(index) for index in range(MAX_COLOURED_FEATURES)), "rest", "intercept", "estimate", "bonus"]
    colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", NEUTRAL, "#56B4E9", "#0072B2", "#E69F00"]
    rows = alt.param(name="rows", value=[])
    names = alt.param(name="names", value=[])
    columns = alt.param(name="columns", value=5)  # the page sets it from the available width
    legend_values = alt.param(name="legend_values", value=["bonus"])  # an empty legend would have no size
    legend = alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=columns,
        labelLimit=130,
        symbolType="square",
        values=legend_values,
        labelExpr="indexof(['rest', 'intercept', 'estimate', 'bonus'], datum.value) >= 0 ? "
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
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("arm:N"),
                alt.Tooltip("label:N", title="part"),
                alt.Tooltip("value:Q", title="contribution", format="+.4f"),
            ],
        )
    )
    scores = alt.Chart(alt.NamedData(name="scores")).encode(
        y=y, x="score:Q", tooltip=[alt.Tooltip("score:Q", format=".4f")]
    )
    ticks = [  # a dark tick on a wider light tick is visible on every colour
        scores.mark_tick(color=colour, thickness=thickness, height=ROW_HEIGHT - 3, opacity=1)
        for colour, thickness in ((BACKGROUND, 5), (FOREGROUND, 2))
    ]
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(strokeWidth=1).encode(x="zero:Q")
    return (
        alt.layer(bars, zero, *ticks)
        .add_params(rows, names, columns, legend_values)
        .properties(width="container", height=alt.Step(ROW_HEIGHT))
    )


def estimate_chart() -> Any:
    """Return a chart of the estimate of a user: one bar per feature with its 95% confidence interval.

    The dataset ``features`` has the fields feature (text), order, value, low and high. The fields low and high are the
    ends of the interval, or null if the interval is unknown.
    """
    features = alt.Chart(alt.NamedData(name="features"))
    axis = alt.Axis(title=None, ticks=False, domain=False, labelLimit=150, labelPadding=8)
    y = alt.Y("feature:N", sort=alt.EncodingSortField("order", op="min"), axis=axis)
    tooltip = [
        alt.Tooltip("feature:N"),
        alt.Tooltip("value:Q", title="estimate", format="+.4f"),
        alt.Tooltip("low:Q", title="95% CI from", format="+.4f"),
        alt.Tooltip("high:Q", title="to", format="+.4f"),
    ]
    bars = features.mark_bar(color=PALETTE[0], opacity=0.75, height={"band": 0.62}).encode(
        y=y, x=alt.X("value:Q", title="estimated weight", axis=alt.Axis(tickCount=5)), tooltip=tooltip
    )
    with_interval = features.transform_filter("isValid(datum.low)")
    lines = with_interval.mark_rule(color=FOREGROUND, strokeWidth=1.5).encode(
        y=y, x="low:Q", x2="high:Q", tooltip=tooltip
    )
    caps = [
        with_interval.mark_tick(color=FOREGROUND, thickness=1.5, height=8).encode(y=y, x=f"{end}:Q", tooltip=tooltip)
        for end in ("low", "high")
    ]
    return alt.layer(bars, lines, *caps).properties(width="container", height=alt.Step(ROW_HEIGHT - 4))


def overlap_chart() -> Any:
    """Return a chart of the overlap of groups, as a matrix.

    A cell shows the share of the members of the row's group who are also in the column's group. The dataset ``overlap``
    has the fields row and column (names of groups), row_order, column_order and share.
    """
    cells = alt.Chart(alt.NamedData(name="overlap")).encode(
        x=alt.X(
            "column:N",
            sort=alt.EncodingSortField("column_order", op="min"),
            title=None,
            axis=alt.Axis(orient="top", ticks=False, domain=False, labelAngle=-60, labelLimit=90),
        ),
        y=alt.Y(
            "row:N",
            sort=alt.EncodingSortField("row_order", op="min"),
            title=None,
            axis=alt.Axis(ticks=False, domain=False, labelLimit=110, labelPadding=6),
        ),
        tooltip=[
            alt.Tooltip("row:N", title="members of"),
            alt.Tooltip("column:N", title="who are also in"),
            alt.Tooltip("share:Q", title="share", format=".0%"),
        ],
    )
    # Opacity blends with the background of the page in both themes and keeps the text readable.
    opacity = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.03, 0.55]), legend=None)
    squares = cells.mark_rect(color=PALETTE[0], cornerRadius=2).encode(opacity=opacity)
    labels = (
        cells.transform_filter("datum.share > 0")
        .mark_text(fontSize=10.5)
        .encode(text=alt.Text("share:Q", format=".0%"))
    )
    return alt.layer(squares, labels).properties(width=alt.Step(CELL_WIDTH), height=alt.Step(CELL_HEIGHT))

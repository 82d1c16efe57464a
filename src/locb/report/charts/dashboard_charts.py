"""Charts of a running service. Their datasets are named and empty, and the script of the dashboard fills them."""

from __future__ import annotations

from typing import Any

import altair as alt

from locb.report.charts.chart_theme import BACKGROUND, FOREGROUND, NEUTRAL, PALETTE
from locb.report.charts.report_maps import SHAPES

MAX_COLOURED_FEATURES = 5  # features with a colour of their own; the other features are summed in one part
ROW_HEIGHT = 24  # pixels
CELL_WIDTH, CELL_HEIGHT = 34, 26  # pixels
MAX_COLOURED_GROUPS = 7  # groups with a colour and shape of their own
DECISION_KINDS = ["using a group", "without a group", "unknown"]
_DATE, _TIME_OF_DAY = "%-d %b", "%H:%M"
_TIME_FORMATS = {
    "hours": _TIME_OF_DAY,
    "minutes": _TIME_OF_DAY,
    "seconds": "%H:%M:%S",
    "date": _DATE,
    "week": _DATE,
    "day": _DATE,
}
_TIME_AXIS = alt.Axis(title=None, grid=False, tickCount=6, labelOverlap="greedy", labelFlush=True, format=_TIME_FORMATS)
_TIME_SCALE = alt.Scale(domainMin=alt.ExprRef("start"), domainMax=alt.ExprRef("end"))


def _time_range() -> tuple[Any, Any]:
    """Return the parameters ``start`` and ``end`` of the time axis, in milliseconds since 1970."""
    return alt.param(name="start", value=0), alt.param(name="end", value=1)


def reward_chart(height: int = 220) -> Any:
    """Return a chart of the mean reward over time with its 95% confidence band, and the mean of a baseline period.

    The page sets the following data and parameters. Times are in milliseconds since 1970.

    - Dataset ``points``: time, mean, low and high (null without rewards), rewards (number of rewards), and isolated
      (whether the point has no line to another point; it is then drawn as a dot).
    - Dataset ``baseline``: at most one row with from and to (the period), mean, and until (the time of the last point).
    - Parameters ``start`` and ``end``: the range of the time axis.
    """
    start = alt.X("time:T", axis=_TIME_AXIS, scale=_TIME_SCALE)
    level = alt.Y(
        "mean:Q", title="mean reward per decision", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5)
    )
    # A null value interrupts the line.
    points = alt.Chart(alt.NamedData(name="points")).encode(x=start)
    tooltip = [
        alt.Tooltip("time:T", title="start", format="%-d %b %H:%M:%S"),
        alt.Tooltip("mean:Q", title="mean reward", format=".3f"),
        alt.Tooltip("low:Q", title="95% CI from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("rewards:Q", title="rewards", format=","),
    ]
    band = points.mark_area(color=PALETTE[0], opacity=0.2, line=False).encode(y=alt.Y("low:Q"), y2="high:Q")
    line = points.mark_line(color=PALETTE[0], strokeWidth=2).encode(y=level)
    dots = points.transform_filter("isValid(datum.mean)").mark_point(filled=True, size=26, color=PALETTE[0])
    # Invisible dots provide the tooltip of the line.
    dots = dots.encode(y=level, tooltip=tooltip, opacity=alt.condition("datum.isolated", alt.value(1), alt.value(0)))
    bars = points.transform_filter("datum.isolated && isValid(datum.low)").mark_rule(color=PALETTE[0], opacity=0.5)
    bars = bars.encode(y="low:Q", y2="high:Q")
    base = alt.Chart(alt.NamedData(name="baseline"))
    period = base.mark_rect(color=PALETTE[1], opacity=0.1).encode(x="from:T", x2="to:T")
    mean = base.mark_rule(color=PALETTE[1], strokeWidth=1.5, strokeDash=[5, 4]).encode(
        x="from:T", x2="until:T", y=alt.Y("mean:Q")
    )
    layers = alt.layer(period, band, mean, line, bars, dots).add_params(*_time_range())
    return layers.properties(width="container", height=height)


def decisions_chart(height: int = 120) -> Any:
    """Return a chart of the number of decisions per time step, coloured by whether the decisions used a group.

    The dataset ``steps`` has the fields time and until (start and end of the step in milliseconds since 1970), kind (an
    element of ``DECISION_KINDS``), decisions, low and high (ends of the bar segment). The parameter ``legend_values``
    has the kinds in the legend. The parameters ``start`` and ``end`` are the range of the time axis.
    """
    scale = alt.Scale(domain=DECISION_KINDS, range=[PALETTE[2], NEUTRAL, PALETTE[5]])
    legend_values = alt.param(name="legend_values", value=DECISION_KINDS[:2])
    legend = alt.Legend(
        title=None, orient="top", direction="horizontal", symbolType="square", offset=4, values=legend_values
    )
    bars = alt.Chart(alt.NamedData(name="steps")).mark_bar(binSpacing=0.5)
    return (
        bars.encode(
            x=alt.X("time:T", axis=_TIME_AXIS, scale=_TIME_SCALE),
            x2="until:T",
            y=alt.Y("low:Q", title="decisions", axis=alt.Axis(tickCount=3, format="~s")),
            y2="high:Q",
            color=alt.Color("kind:N", sort=DECISION_KINDS, scale=scale, legend=legend),
            tooltip=[
                alt.Tooltip("time:T", title="start", format="%-d %b %H:%M:%S"),
                alt.Tooltip("decisions:Q", title="decisions", format=","),
                alt.Tooltip("kind:N", title="kind"),
            ],
        )
        .add_params(legend_values, *_time_range())
        .properties(width="container", height=height)
    )


def live_map_chart(height: int = 480) -> Any:
    """Return a scatter chart of users by their estimated preferences in two dimensions.

    The colour and shape of a point show the group of the user. The size shows the number of rewards. A ring marks a
    user who is in several groups. The page sets:

    - Dataset ``users``: user, x, y, served (number of rewards), group ("0" … "6", "others" or "none"), group_label and
      cluster_count (number of groups of the user).
    - Parameters: ``names`` (names of the groups), ``legend_values`` (values of group in the legend), ``columns``
      (number of columns of the legend) and ``selected_user`` (user to highlight).
    """
    domain = [*(str(index) for index in range(MAX_COLOURED_GROUPS)), "others", "none"]
    colours = [*PALETTE[:MAX_COLOURED_GROUPS], NEUTRAL, NEUTRAL]
    shapes = [*SHAPES[:6], "triangle-right", "circle", "triangle-left"]
    names = alt.param(name="names", value=[])
    columns = alt.param(name="columns", value=5)  # the page sets it from the available width
    legend_values = alt.param(name="legend_values", value=["none"])  # an empty legend would have no size
    selected_user = alt.param(name="selected_user", value="")
    selected_group = alt.selection_point(name="group_picked", fields=["group"], bind="legend", toggle="true")
    legend = alt.Legend(
        title=None,
        orient="bottom",
        direction="horizontal",
        columns=columns,
        symbolSize=90,
        symbolStrokeWidth=0,
        labelLimit=120,
        values=legend_values,
        labelExpr="datum.value === 'none' ? 'no group' : datum.value === 'others' ? 'other groups' : "
        "length(names) > toNumber(datum.value) ? names[toNumber(datum.value)] : '–'",
    )
    hidden_axis = alt.Axis(labels=False, ticks=False, domain=False, title=None, tickCount=5)
    users = alt.Chart(alt.NamedData(name="users"))
    position: dict[str, Any] = {
        "x": alt.X("x:Q", axis=hidden_axis, scale=alt.Scale(zero=False)),
        "y": alt.Y("y:Q", axis=hidden_axis, scale=alt.Scale(zero=False)),
    }
    points = users.mark_point(filled=True, stroke=FOREGROUND).encode(
        **position,
        size=alt.Size("served:Q", scale=alt.Scale(type="sqrt", range=[30, 320], zero=True), legend=None),
        color=alt.Color("group:N", sort=domain, scale=alt.Scale(domain=domain, range=colours), legend=legend),
        shape=alt.Shape("group:N", sort=domain, scale=alt.Scale(domain=domain, range=shapes), legend=legend),
        strokeWidth=alt.condition("datum.cluster_count > 1", alt.value(1.3), alt.value(0)),
        opacity=alt.condition(selected_group, alt.value(0.78), alt.value(0.06)),
        tooltip=[
            alt.Tooltip("user:N"),
            alt.Tooltip("group_label:N", title="group"),
            alt.Tooltip("cluster_count:Q", title="groups in total"),
            alt.Tooltip("served:Q", title="rewards", format=","),
        ],
    )
    selected = users.transform_filter("datum.user === selected_user").encode(**position)
    ring = selected.mark_point(size=700, color=FOREGROUND, strokeWidth=2, filled=False)
    label = selected.mark_text(dy=-22, fontWeight="bold", fontSize=13).encode(text="user:N")
    return (
        alt.layer(points.add_params(selected_group), ring, label)
        .add_params(names, columns, legend_values, selected_user)
        .properties(width="container", height=height)
    )


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

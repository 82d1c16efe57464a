"""Charts of a service that is running: their data sets have names and are empty, and a page fills them."""

from __future__ import annotations

from typing import Any

import altair as alt

from locb.report.charts.chart_theme import COLOURS, INK, NOBODY
from locb.report.charts.user_maps import SHAPES

GROUPS = 7  # of which a map tells each by a look of its own
_DATE, _CLOCK = "%-d %b", "%H:%M"
_FORMS = {"hours": _CLOCK, "minutes": _CLOCK, "seconds": "%H:%M:%S", "date": _DATE, "week": _DATE, "day": _DATE}
_TIME = alt.Axis(title=None, grid=False, tickCount=6, labelOverlap="greedy", labelFlush=True, format=_FORMS)
_SPAN = alt.Scale(domainMin=alt.ExprRef("start"), domainMax=alt.ExprRef("end"))


def _ends() -> tuple[Any, Any]:
    """From when to when a chart over time reaches, in milliseconds since 1970; a page sets them."""
    return alt.param(name="start", value=0), alt.param(name="end", value=1)


def reward_chart(height: int = 220) -> Any:
    """The mean reward over time with its 95% interval, and the baseline that it is compared with.

    ``points``: time (milliseconds since 1970), mean, low, high (null where there was none), rewards, and dot: whether
    the point is drawn by itself, since no line leads to it.
    ``baseline``: at most one row of from, to, mean, and the ``until`` of the last point. ``start`` and ``end`` are the
    time that is shown.
    """
    start = alt.X("time:T", axis=_TIME, scale=_SPAN)
    level = alt.Y("mean:Q", title="mean reward", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5))
    # Null breaks the line: a time without rewards is not bridged.
    points = alt.Chart(alt.NamedData(name="points")).encode(x=start)
    told = [
        alt.Tooltip("time:T", title="from", format="%-d %b %H:%M:%S"),
        alt.Tooltip("mean:Q", title="mean reward", format=".3f"),
        alt.Tooltip("low:Q", title="95% from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("rewards:Q", format=","),
    ]
    band = points.mark_area(color=COLOURS[0], opacity=0.2, line=False).encode(y=alt.Y("low:Q"), y2="high:Q")
    line = points.mark_line(color=COLOURS[0], strokeWidth=2).encode(y=level)
    dots = points.transform_filter("isValid(datum.mean)").mark_point(filled=True, size=26, color=COLOURS[0])
    # Those that are not drawn still tell what they are.
    dots = dots.encode(y=level, tooltip=told, opacity=alt.condition("datum.dot", alt.value(1), alt.value(0)))
    bars = points.transform_filter("datum.dot && isValid(datum.low)").mark_rule(color=COLOURS[0], opacity=0.5)
    bars = bars.encode(y="low:Q", y2="high:Q")
    base = alt.Chart(alt.NamedData(name="baseline"))
    period = base.mark_rect(color=COLOURS[1], opacity=0.1).encode(x="from:T", x2="to:T")
    mean = base.mark_rule(color=COLOURS[1], strokeWidth=1.5, strokeDash=[5, 4]).encode(
        x="from:T", x2="until:T", y=alt.Y("mean:Q")
    )
    layers = alt.layer(period, band, mean, line, bars, dots).add_params(*_ends())
    return layers.properties(width="container", height=height)


def traffic_chart(height: int = 120) -> Any:
    """Decisions in each step of time: those that rested on a group, and those that did not.

    ``steps``: time and until (milliseconds since 1970), kind ("with a group", "alone" or "not known any more"),
    decisions, and from where to where they reach: low, high. ``shown`` (an array): the kinds that the legend tells.
    ``start`` and ``end`` are the time that is shown.
    """
    names = ["with a group", "alone", "not known any more"]
    scale = alt.Scale(domain=names, range=[COLOURS[2], NOBODY, COLOURS[5]])
    shown = alt.param(name="shown", value=names[:2])
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="square", offset=4, values=shown)
    bars = alt.Chart(alt.NamedData(name="steps")).mark_bar(binSpacing=0.5)
    return (
        bars.encode(
            x=alt.X("time:T", axis=_TIME, scale=_SPAN),
            x2="until:T",
            y=alt.Y("low:Q", title="decisions", axis=alt.Axis(tickCount=3, format="~s")),
            y2="high:Q",
            color=alt.Color("kind:N", sort=names, scale=scale, legend=legend),
            tooltip=[
                alt.Tooltip("time:T", title="from", format="%-d %b %H:%M:%S"),
                alt.Tooltip("decisions:Q", format=","),
                alt.Tooltip("kind:N", title="decided"),
            ],
        )
        .add_params(shown, *_ends())
        .properties(width="container", height=height)
    )


def live_map_chart(height: int = 480) -> Any:
    """Users where their estimated tastes are: a look a group, larger who was served more, ringed who is in several.

    ``users``: user, x, y, served, group ("0" … "6", "others" or "none"), sets, told (of the group).
    ``names`` (an array) are the groups' names, ``shown`` (another) the values of ``group`` that the legend tells, and
    ``picked`` (text) is the user to point out.
    """
    places = [str(place) for place in range(GROUPS)]
    domain = [*places, "others", "none"]
    colours = [*COLOURS[:GROUPS], NOBODY, NOBODY]
    shapes = [*SHAPES[:6], "triangle-right", "circle", "triangle-left"]
    names = alt.param(name="names", value=[])
    columns = alt.param(name="columns", value=5)  # of the legend: a page sets it by the width of the box
    shown = alt.param(name="shown", value=["none"])  # never empty: a legend of nothing has no size
    picked = alt.param(name="picked", value="")
    chosen = alt.selection_point(name="group_picked", fields=["group"], bind="legend", toggle="true")
    legend = alt.Legend(
        title=None,
        orient="bottom",
        direction="horizontal",
        columns=columns,
        symbolSize=90,
        symbolStrokeWidth=0,
        labelLimit=120,
        values=shown,
        labelExpr="datum.value === 'none' ? 'in no set' : datum.value === 'others' ? 'in other sets' : "
        "length(names) > toNumber(datum.value) ? names[toNumber(datum.value)] : '–'",
    )
    bare = alt.Axis(labels=False, ticks=False, domain=False, title=None, tickCount=5)
    users = alt.Chart(alt.NamedData(name="users"))
    where: dict[str, Any] = {
        "x": alt.X("x:Q", axis=bare, scale=alt.Scale(zero=False)),
        "y": alt.Y("y:Q", axis=bare, scale=alt.Scale(zero=False)),
    }
    points = users.mark_point(filled=True, stroke=INK).encode(
        **where,
        size=alt.Size("served:Q", scale=alt.Scale(type="sqrt", range=[30, 320], zero=True), legend=None),
        color=alt.Color("group:N", sort=domain, scale=alt.Scale(domain=domain, range=colours), legend=legend),
        shape=alt.Shape("group:N", sort=domain, scale=alt.Scale(domain=domain, range=shapes), legend=legend),
        strokeWidth=alt.condition("datum.sets > 1", alt.value(1.3), alt.value(0)),
        opacity=alt.condition(chosen, alt.value(0.78), alt.value(0.06)),
        tooltip=[
            alt.Tooltip("user:N"),
            alt.Tooltip("told:N", title="set"),
            alt.Tooltip("sets:Q", title="in so many sets"),
            alt.Tooltip("served:Q", title="rewards learned", format=","),
        ],
    )
    one = users.transform_filter("datum.user === picked").encode(**where)
    ring = one.mark_point(size=700, color=INK, strokeWidth=2, filled=False)
    label = one.mark_text(dy=-22, fontWeight="bold", fontSize=13).encode(text="user:N")
    return (
        alt.layer(points.add_params(chosen), ring, label)
        .add_params(names, columns, shown, picked)
        .properties(width="container", height=height)
    )

"""Charts of estimates with their 95% intervals, and of mean rewards while policies learn."""

from __future__ import annotations

from typing import Any

import altair as alt

from locb.report.charts.chart_theme import NEUTRAL, PALETTE

ROW_HEIGHT = 24  # pixels


def interval_chart(rows: list[dict[str, Any]], title: str, *, with_zero: bool) -> Any:
    """Return a chart with one row per estimate: a point, and a line for its interval.

    Parameters
    ----------
    rows : list of dict
        Dataset ``rows`` with the fields label, value, low and high (absent if unknown), and role ("decides" or "for
        comparison").
    title : str
        Title of the horizontal axis.
    with_zero : bool
        Whether the axis contains 0, with a vertical line.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    base = alt.Chart(alt.NamedData(name="rows"))
    y = alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=260))
    colour = alt.Color(
        "role:N",
        scale=alt.Scale(domain=["decides", "for comparison"], range=[PALETTE[0], NEUTRAL]),
        legend=alt.Legend(title=None, orient="top"),
    )
    tooltip = [
        alt.Tooltip("label:N", title="estimate"),
        alt.Tooltip("value:Q", format=".4g"),
        alt.Tooltip("low:Q", title="95% CI from", format=".4g"),
        alt.Tooltip("high:Q", title="to", format=".4g"),
    ]
    scale = alt.Scale(zero=with_zero)
    known = base.transform_filter("isValid(datum.low)")
    lines = known.mark_rule(strokeWidth=3).encode(
        y=y, x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", color=colour, tooltip=tooltip
    )
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        y=y, x=alt.X("value:Q", title=title, scale=scale), color=colour, tooltip=tooltip
    )
    layers = [lines, points]
    if with_zero:
        layers.insert(
            0, alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 3]).encode(x="zero:Q")
        )
    return alt.layer(*layers).properties(width="container", height=alt.Step(ROW_HEIGHT))


def learning_chart(names: list[str]) -> Any:
    """Return a chart of the mean reward so far of learning policies.

    The dataset ``rows`` has the fields policy, decision and reward.
    """
    colour = alt.Color(
        "policy:N",
        sort=names,
        scale=alt.Scale(domain=names, range=[PALETTE[index % len(PALETTE)] for index in range(len(names))]),
        legend=alt.Legend(title=None, orient="top"),
    )
    return (
        alt.Chart(alt.NamedData(name="rows"))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("decision:Q", title="accepted decisions", axis=alt.Axis(format=",d", tickCount=5)),
            y=alt.Y("reward:Q", title="mean reward so far", scale=alt.Scale(zero=False)),
            color=colour,
            tooltip=["policy:N", alt.Tooltip("decision:Q", format=","), alt.Tooltip("reward:Q", format=".4g")],
        )
        .properties(width="container", height=260)
    )

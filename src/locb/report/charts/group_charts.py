"""Charts of groups of users with similar preferences: map, what members like, and the choice of gamma."""

from __future__ import annotations

from typing import Any

import altair as alt

from locb.report.charts.chart_theme import NEUTRAL, PALETTE

SHOWN_GROUPS = 7  # groups with a colour of their own on the map
SHAPES = ("circle", "square", "triangle-up", "cross", "diamond", "triangle-down", "triangle-right")
ROW_HEIGHT = 24  # pixels
HEAT_COLOURS = ("#08519c", "#6baed6", "#f7f7f7", "#fdae6b", "#a63603")


def group_map(names: list[str]) -> Any:
    """Return a scatter chart of users. The dataset ``rows`` has x, y, group, user, rows and chance (probability)."""
    colours = [PALETTE[i % len(PALETTE)] if name.isdigit() else NEUTRAL for i, name in enumerate(names)]
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(names))]
    axis = alt.Axis(labels=False, ticks=False, domain=False, title=None)
    legend = alt.Legend(title="group", orient="bottom", columns=4)
    return (
        alt.Chart(alt.NamedData(name="rows"))
        .mark_point(filled=True, size=40, opacity=0.75)
        .encode(
            x=alt.X("x:Q", axis=axis, scale=alt.Scale(zero=False)),
            y=alt.Y("y:Q", axis=axis, scale=alt.Scale(zero=False)),
            color=alt.Color("group:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend),
            shape=alt.Shape("group:N", sort=names, scale=alt.Scale(domain=names, range=shapes), legend=legend),
            tooltip=[
                alt.Tooltip("user:N"),
                alt.Tooltip("group:N"),
                alt.Tooltip("chance:Q", title="probability", format=".2f"),
                alt.Tooltip("rows:Q", format=",d"),
            ],
        )
        .properties(width="container", height=380)
    )


def likes_chart(groups: list[str], features: list[str], limit: float) -> Any:
    """Return a heat map of what groups like. The dataset ``rows`` has group, feature, effect and difference.

    Differences of ``limit`` or more have the strongest colour.
    """
    scale = alt.Scale(domain=[-limit, -limit / 2, 0, limit / 2, limit], range=list(HEAT_COLOURS), clamp=True)
    return (
        alt.Chart(alt.NamedData(name="rows"))
        .mark_rect()
        .encode(
            x=alt.X("group:N", sort=groups, title="group", axis=alt.Axis(labelAngle=0, orient="top", ticks=False)),
            y=alt.Y("feature:N", sort=features, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=220)),
            color=alt.Color("difference:Q", scale=scale, legend=alt.Legend(title="difference")),
            tooltip=[
                alt.Tooltip("group:N"),
                alt.Tooltip("feature:N"),
                alt.Tooltip("effect:Q", format=".3g"),
                alt.Tooltip("difference:Q", title="difference to the average", format="+.3g"),
            ],
        )
        .properties(width="container", height=ROW_HEIGHT * len(features))
    )


def gamma_chart(chosen: float) -> Any:
    """Return two charts over gamma: mean log evidence per held-out user minus the highest one, and number of groups.

    The dataset ``rows`` has gamma, loss (the difference), low and high (loss ± its standard error), groups, and
    assigned (share of held-out users in a group).
    """
    tooltip = [
        alt.Tooltip("gamma:Q"),
        alt.Tooltip("groups:Q"),
        alt.Tooltip("assigned:Q", title="held-out users in a group", format=".0%"),
        alt.Tooltip("loss:Q", title="log evidence minus the best", format=".4f"),
    ]
    x = alt.X(
        "gamma:Q",
        scale=alt.Scale(type="log", nice=False, padding=12),
        title="gamma",
        axis=alt.Axis(format="~g", grid=False),
    )
    base = alt.Chart(alt.NamedData(name="rows"))
    loss = alt.Y("loss:Q", title=["log evidence per held-out", "user, minus the best"])
    line = base.mark_line(point=alt.OverlayMarkDef(size=60), color=PALETTE[0]).encode(x=x, y=loss, tooltip=tooltip)
    error = base.mark_rule(color=PALETTE[0]).encode(x=x, y="low:Q", y2="high:Q")
    mark = alt.Chart(alt.InlineData(values=[{"gamma": chosen}])).mark_rule(strokeDash=[4, 3]).encode(x="gamma:Q")
    count = base.mark_line(point=alt.OverlayMarkDef(size=60), color=PALETTE[1]).encode(
        x=x, y=alt.Y("groups:Q", title="groups", axis=alt.Axis(tickMinStep=1)), tooltip=tooltip
    )
    return alt.vconcat(
        alt.layer(error, line, mark).properties(width=560, height=170),
        alt.layer(count, mark).properties(width=560, height=110),
        spacing=16,
    )

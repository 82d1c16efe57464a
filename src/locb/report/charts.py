"""Charts, each made once: as a picture in a file, in a self-contained page, or as JSON for one that is served."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from locb.arrays import Floats
from locb.clusters import match_clusters
from locb.findings import Series
from locb.results import Comparison, Entry, UserMap, half_width

# Distinguishable without colour vision trouble (Okabe and Ito), the strongest first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
SHAPES = ("circle", "square", "triangle-up", "cross", "diamond", "triangle-down", "stroke")  # one fewer: pairs differ
NOBODY = "#BBBBBB"  # users in no group


def style(chart: Any) -> Any:
    """The look that all charts share."""
    return (
        chart.configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=13, gridColor="#eeeeee", titleFontWeight="normal")
        .configure_legend(labelFontSize=12, titleFontSize=13)
        .configure_title(fontSize=15, anchor="start", subtitleFontSize=12, subtitleColor="#555555")
    )


def label(entry: Entry, sweep: bool) -> str:
    """The name of a line: the policy, with its alpha where several were tried."""
    return f"{entry.policy} (α = {entry.alpha:g})" if sweep and entry.alpha is not None else entry.policy


def regret_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """A row a policy and checkpoint: mean regret and its 95% band, each policy at its best alpha."""
    sweep = len(comparison.settings["alphas"]) > 1
    rows = []
    for entry in comparison.best_of_each():
        mean = entry.regret.mean(axis=0)
        margin = np.broadcast_to(np.nan_to_num(half_width(entry.regret)), mean.shape)
        for t, value, around in zip(comparison.checkpoints.tolist(), mean.tolist(), margin.tolist(), strict=True):
            band = {"low": max(0.0, value - around), "high": value + around}
            rows.append({"policy": label(entry, sweep), "round": t, "regret": value, **band})
    return rows


def regret_chart(comparison: Comparison, width: int = 420, height: int = 340) -> Any:
    """Cumulative regret over rounds: a line a policy, with the 95% band of the mean over repeats.

    Where the worst policy squeezes the others together, a second panel shows the others without it.
    """
    rows = regret_rows(comparison)
    sweep = len(comparison.settings["alphas"]) > 1
    entries = comparison.best_of_each()
    colour_of = {label(entry, sweep): COLOURS[i % len(COLOURS)] for i, entry in enumerate(entries)}
    final = {label(entry, sweep): float(entry.final_regret.mean()) for entry in entries}
    names = sorted(final, key=lambda name: -final[name])
    colour = alt.Color(
        "policy:N",
        sort=names,
        scale=alt.Scale(domain=names, range=[colour_of[name] for name in names]),
        legend=alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1.0),
    )
    picked = alt.selection_point(name="policy_picked", fields=["policy"], bind="legend")

    def panel(shown: list[dict[str, Any]], title: str, subtitle: str, *params: Any) -> Any:
        axis = alt.Axis(format=",d", tickCount=5)
        base = alt.Chart(alt.InlineData(values=shown)).encode(x=alt.X("round:Q", title="round", axis=axis))
        band = base.mark_area().encode(
            y=alt.Y("low:Q", title="cumulative regret"),
            y2="high:Q",
            color=colour,
            opacity=alt.condition(picked, alt.value(0.2), alt.value(0.02)),
        )
        line = base.mark_line(strokeWidth=2).encode(
            y="regret:Q",
            color=colour,
            opacity=alt.condition(picked, alt.value(1.0), alt.value(0.1)),
            tooltip=[
                alt.Tooltip("policy:N"),
                alt.Tooltip("round:Q", format=","),
                alt.Tooltip("regret:Q", format=",.1f"),
                alt.Tooltip("low:Q", format=",.1f", title="95% from"),
                alt.Tooltip("high:Q", format=",.1f", title="to"),
            ],
        )
        return (band + line.add_params(*params)).properties(
            width=width, height=height, title=alt.Title(title, subtitle=subtitle)
        )

    repeats = comparison.settings["repeats"]
    shade = f"mean of {repeats} repeats, shaded: 95% interval" if repeats > 1 else "one repeat"
    chart = panel(rows, "Regret: the lower the better", shade, picked)
    if len(names) > 2 and final[names[0]] > 2.0 * final[names[1]]:
        others = [row for row in rows if row["policy"] != names[0]]
        chart = chart | panel(others, f"The same without {names[0]}", "so that the others can be told apart")
    return chart


def plane(theta: Floats) -> Floats:
    """Users in two dimensions, along the directions in which they differ most: (n, 2)."""
    centred = theta - theta.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    flat: Floats = centred @ directions[:2].T
    if flat.shape[1] < 2:
        flat = np.column_stack([flat, np.zeros(len(flat))])
    return flat


def colour_groups(user_map: UserMap) -> tuple[list[int], list[int], list[int]]:
    """For every user its true cluster, the cluster it was found in, and how many of the found sets hold it.

    A found set counts as the true cluster that it fits best, so that colours agree from panel to panel. A user counts
    for the best-fitting set that holds it; −1 if none does.
    """
    count = len(user_map.theta)
    true_of, found_of, held = [-1] * count, [-1] * count, [0] * count
    for number, members in enumerate(user_map.truth):
        for user in members:
            true_of[user] = number
    quality = [-1.0] * count
    for group in user_map.found:
        fits = [match_clusters([group], [members]).f1 for members in user_map.truth]
        number = int(np.argmax(fits))
        for user in group:
            held[user] += 1
            if fits[number] > quality[user]:
                quality[user], found_of[user] = fits[number], number
    return true_of, found_of, held


def _user_points(rows: list[dict[str, Any]], n_groups: int) -> Any:
    """Users as points, one look a group."""
    names = [f"{number + 1}" for number in range(n_groups)] + ["none"]
    colours = [COLOURS[i % len(COLOURS)] for i in range(n_groups)] + [NOBODY]
    shapes = [SHAPES[i % len(SHAPES)] for i in range(n_groups)] + ["triangle-right"]
    points = alt.Chart(alt.InlineData(values=rows)).mark_point(filled=True, size=70)
    return points.encode(
        x=alt.X("x:Q", title=None, axis=alt.Axis(labels=False, ticks=False)),
        y=alt.Y("y:Q", title=None, axis=alt.Axis(labels=False, ticks=False)),
        color=alt.Color("group:N", title="cluster", sort=names, scale=alt.Scale(domain=names, range=colours)),
        shape=alt.Shape("group:N", title="cluster", sort=names, scale=alt.Scale(domain=names, range=shapes)),
        tooltip=["user:Q", alt.Tooltip("group:N", title="cluster"), alt.Tooltip("sets:Q", title="in so many sets")],
    )


def _user_rows(flat: Floats, groups: list[int], held: list[int], panel: str) -> list[dict[str, Any]]:
    return [
        {"panel": panel, "user": user, "x": x, "y": y, "group": f"{group + 1}" if group >= 0 else "none", "sets": sets}
        for user, ((x, y), group, sets) in enumerate(zip(flat.tolist(), groups, held, strict=True))
    ]


def users_chart(user_map: UserMap, size: int = 330) -> Any:
    """Users in two dimensions, coloured by true cluster on the left and by found cluster on the right."""
    true_of, found_of, held = colour_groups(user_map)
    flat = plane(user_map.theta)
    once = [int(group >= 0) for group in true_of]
    rows = _user_rows(flat, true_of, once, "true") + _user_rows(flat, found_of, held, "found")
    picked = alt.selection_point(name="group_picked", fields=["group"], bind="legend")
    base = _user_points(rows, len(user_map.truth)).encode(
        opacity=alt.condition(picked, alt.value(0.8), alt.value(0.08))
    )
    left = base.add_params(picked).transform_filter("datum.panel == 'true'")
    right = base.transform_filter("datum.panel == 'found'")
    note = f"each user in the best-fitting of its sets; {found_of.count(-1)} of {len(found_of)} users in none"
    heading = alt.Title("True clusters", subtitle="users' θ in two dimensions")
    found = alt.Title(f"Found by {user_map.policy}", subtitle=note)
    return left.properties(width=size, height=size, title=heading) | right.properties(
        width=size, height=size, title=found
    )


def groups_chart(theta: Floats, groups: list[list[int]], title: str, subtitle: str, size: int = 420) -> Any:
    """Users in two dimensions, coloured by group."""
    group_of, held = [-1] * len(theta), [0] * len(theta)
    for number, members in enumerate(groups):
        for user in members:
            group_of[user], held[user] = number, held[user] + 1
    points = _user_points(_user_rows(plane(theta), group_of, held, "users"), len(groups))
    return points.properties(width=size, height=size, title=alt.Title(title, subtitle=subtitle))


def series_chart(series: Series, width: int = 620, height: int = 340) -> Any:
    """Lines with bands, on plain or logarithmic axes; what was not measured is dashed."""
    names = list(dict.fromkeys(row["line"] for row in series.rows))
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    dashes = [[5, 4] if name in series.dashed else [1, 0] for name in names]
    picked = alt.selection_point(name="line_picked", fields=["line"], bind="legend")

    def axis(name: str, log: bool) -> dict[str, Any]:
        values = [float(row[name]) for row in series.rows if name in row]
        large = max(map(abs, values), default=0.0) >= 100
        scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=name == series.y)
        ticks = sorted({float(row[name]) for row in series.rows}) if name == series.x and log else None
        shown = alt.Axis(format="~s" if max(values, default=0) >= 1e6 and log else ",d" if large else "~g", tickCount=6)
        if ticks is not None and len(ticks) <= 8:
            shown.values = ticks
        return {"scale": scale, "axis": shown}

    legend = alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1.0)
    colour = alt.Color("line:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend)
    base = alt.Chart(alt.InlineData(values=series.rows)).encode(
        x=alt.X(f"{series.x}:Q", title=series.x, **axis(series.x, series.log_x))
    )
    vertical = axis(series.y, series.log_y)
    band = (
        base.transform_filter("isValid(datum.low)" + (" && datum.low > 0" if series.log_y else ""))
        .mark_area()
        .encode(
            y=alt.Y("low:Q", title=series.y, **vertical),
            y2="high:Q",
            color=colour,
            opacity=alt.condition(picked, alt.value(0.2), alt.value(0.02)),
        )
    )
    few = len(series.rows) <= 12 * len(names)
    line = base.mark_line(strokeWidth=2, point=few).encode(
        y=alt.Y(f"{series.y}:Q", title=series.y, **vertical),
        color=colour,
        strokeDash=alt.StrokeDash("line:N", sort=names, scale=alt.Scale(domain=names, range=dashes), legend=None),
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.1)),
        tooltip=[alt.Tooltip("line:N"), alt.Tooltip(f"{series.x}:Q"), alt.Tooltip(f"{series.y}:Q", format=",.3~f")],
    )
    heading = alt.Title(series.title, subtitle=series.subtitle)
    return (band + line.add_params(picked)).properties(width=width, height=height, title=heading)

"""Charts, each made once: as a picture in a file, in a self-contained page, or as JSON for one that is served."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from locb.arrays import Floats
from locb.clusters import match_clusters
from locb.results import Comparison, Entry, UserMap, half_width

# Distinguishable without colour vision trouble (Okabe and Ito), the strongest first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
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


def regret_chart(comparison: Comparison, width: int = 640, height: int = 380) -> Any:
    """Cumulative regret over rounds: a line a policy, with the 95% band of the mean over repeats."""
    entries = comparison.best_of_each()
    sweep = len(comparison.settings["alphas"]) > 1
    rows = []
    for entry in entries:
        mean = entry.regret.mean(axis=0)
        margin = np.nan_to_num(half_width(entry.regret))
        for point, t in enumerate(comparison.checkpoints.tolist()):
            value, around = float(mean[point]), float(np.broadcast_to(margin, mean.shape)[point])
            rows.append(
                {
                    "policy": label(entry, sweep),
                    "round": t,
                    "regret": value,
                    "low": value - around,
                    "high": value + around,
                }
            )
    names = [label(entry, sweep) for entry in sorted(entries, key=lambda e: -float(e.final_regret.mean()))]
    order = {label(entry, sweep): COLOURS[i % len(COLOURS)] for i, entry in enumerate(entries)}
    colour = alt.Color(
        "policy:N",
        sort=names,
        scale=alt.Scale(domain=names, range=[order[name] for name in names]),
        legend=alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1.0),
    )
    picked = alt.selection_point(name="policy_picked", fields=["policy"], bind="legend")
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("round:Q", title="round", axis=alt.Axis(format=",d", tickCount=6))
    )
    band = base.mark_area(opacity=0.2).encode(
        y=alt.Y("low:Q", title="cumulative regret"),
        y2="high:Q",
        color=colour,
        opacity=alt.condition(picked, alt.value(0.2), alt.value(0.02)),
    )
    line = (
        base.mark_line(strokeWidth=2)
        .encode(
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
        .add_params(picked)
    )
    repeats = comparison.settings["repeats"]
    shade = f"mean of {repeats} repeats, shaded: 95% interval" if repeats > 1 else "one repeat"
    return (band + line).properties(
        width=width, height=height, title=alt.Title("Regret: the lower the better", subtitle=shade)
    )


def plane(theta: Floats) -> Floats:
    """Users in two dimensions, along the directions in which they differ most: (n, 2)."""
    centred = theta - theta.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    flat: Floats = centred @ directions[:2].T
    if flat.shape[1] < 2:
        flat = np.column_stack([flat, np.zeros(len(flat))])
    return flat


def colour_groups(user_map: UserMap) -> tuple[list[int], list[int], list[int]]:
    """For every user the true cluster, the found one, and how many of the found sets hold it.

    Each true cluster keeps its number for the found set that fits it best, so that colours agree from panel to
    panel. A user counts for the best-fitting of those sets that hold it; −1 if none does.
    """
    count = len(user_map.theta)
    true_of, found_of, held = [-1] * count, [-1] * count, [0] * count
    quality = [0.0] * count
    for number, members in enumerate(user_map.truth):
        for user in members:
            true_of[user] = number
        fits = [match_clusters([group], [members]).f1 for group in user_map.found]
        best = int(np.argmax(fits))
        for user in user_map.found[best]:
            held[user] += 1
            if fits[best] > quality[user]:
                quality[user], found_of[user] = fits[best], number
    return true_of, found_of, held


def users_chart(user_map: UserMap, size: int = 330) -> Any:
    """Users in two dimensions, coloured by true cluster on the left and by found cluster on the right."""
    true_of, found_of, held = colour_groups(user_map)
    flat = plane(user_map.theta)
    rows: list[dict[str, Any]] = []
    for panel, groups in (("true", true_of), ("found", found_of)):
        for user, (x, y) in enumerate(flat.tolist()):
            group = "none" if groups[user] < 0 else f"{groups[user] + 1}"
            times = 1 if panel == "true" else held[user]
            rows.append({"panel": panel, "user": user, "x": x, "y": y, "group": group, "sets": times})
    names = [f"{number + 1}" for number in range(len(user_map.truth))] + ["none"]
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(user_map.truth))] + [NOBODY]
    picked = alt.selection_point(name="group_picked", fields=["group"], bind="legend")
    points = alt.Chart(alt.InlineData(values=rows)).mark_point(filled=True, size=70)
    base = points.encode(
        x=alt.X("x:Q", title=None, axis=alt.Axis(labels=False, ticks=False)),
        y=alt.Y("y:Q", title=None, axis=alt.Axis(labels=False, ticks=False)),
        color=alt.Color("group:N", title="cluster", sort=names, scale=alt.Scale(domain=names, range=colours)),
        shape=alt.Shape("group:N", title="cluster", sort=names, scale=alt.Scale(domain=names)),
        opacity=alt.condition(picked, alt.value(0.8), alt.value(0.08)),
        tooltip=["user:Q", alt.Tooltip("group:N", title="cluster"), alt.Tooltip("sets:Q", title="in so many sets")],
    )
    left = (
        base.add_params(picked)
        .transform_filter("datum.panel == 'true'")
        .properties(width=size, height=size, title=alt.Title("True clusters", subtitle="users' θ in two dimensions"))
    )
    missed = sum(group < 0 for group in found_of)
    note = f"for each true cluster the set that fits it best; {missed} of {len(found_of)} users in none of them"
    right = base.transform_filter("datum.panel == 'found'").properties(
        width=size, height=size, title=alt.Title(f"Found by {user_map.policy}", subtitle=note)
    )
    return left | right

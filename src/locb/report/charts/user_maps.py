"""Maps of users: where they are, and who belongs together."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from locb.common.arrays import Floats
from locb.evaluation.clusters import count_common_users
from locb.evaluation.results import UserMap
from locb.report.charts.chart_theme import COLOURS, INK, NOBODY

SHAPES = ("circle", "square", "triangle-up", "cross", "diamond", "triangle-down", "stroke")  # one fewer: pairs differ


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
    true_of, found_of, held = np.full(count, -1), np.full(count, -1), np.zeros(count, np.int64)
    truth = [np.asarray(members) for members in user_map.truth]
    for number, members in enumerate(truth):
        true_of[members] = number
    found = [np.asarray(members) for members in user_map.found if len(members)]
    if found:
        sizes = np.array([len(members) for members in found])
        fits = 2.0 * count_common_users(truth, found) / (np.array([len(members) for members in truth])[:, None] + sizes)
        quality = np.full(count, -1.0)
        for members, number, fit in zip(found, fits.argmax(axis=0), fits.max(axis=0), strict=True):
            held[members] += 1
            better = members[fit > quality[members]]
            quality[better], found_of[better] = fit, number
    return true_of.tolist(), found_of.tolist(), held.tolist()


def _user_points(data: Any, n_groups: int, legend: Any = alt.Undefined) -> Any:
    """Users as points, one look a group."""
    names = [f"{number + 1}" for number in range(n_groups)] + ["none"]
    colours = [COLOURS[i % len(COLOURS)] for i in range(n_groups)] + [NOBODY]
    shapes = [SHAPES[i % len(SHAPES)] for i in range(n_groups)] + ["triangle-right"]
    points = alt.Chart(data).mark_point(filled=True, size=70)
    look = {"title": "cluster", "sort": names, "legend": legend}
    return points.encode(
        x=alt.X("x:Q", title=None, axis=alt.Axis(labels=False, ticks=False)),
        y=alt.Y("y:Q", title=None, axis=alt.Axis(labels=False, ticks=False)),
        color=alt.Color("group:N", scale=alt.Scale(domain=names, range=colours), **look),
        shape=alt.Shape("group:N", scale=alt.Scale(domain=names, range=shapes), **look),
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
    picked = alt.selection_point(name="group_picked", fields=["group"], bind="legend", toggle="true")
    base = _user_points(alt.InlineData(values=rows), len(user_map.truth)).encode(
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


def map_chart(n_groups: int, height: int = 340) -> Any:
    """Users in two dimensions, to be filled with the rows "users"; the more sets hold one, the thicker its ring."""
    few = n_groups < 12  # more do not fit below a map
    legend = alt.Legend(orient="bottom", columns=6, symbolSize=70, symbolStrokeWidth=0) if few else None
    ring = alt.StrokeWidth("sets:Q", scale=alt.Scale(domain=[1, 6], range=[0, 1.8], clamp=True), legend=None)
    bare: dict[str, Any] = {
        "axis": alt.Axis(labels=False, ticks=False, domain=False, title=None, tickCount=5),
        "scale": alt.Scale(zero=False, padding=16),
    }
    points = _user_points(alt.NamedData(name="users"), n_groups, legend).encode(
        x=alt.X("x:Q", **bare), y=alt.Y("y:Q", **bare), stroke=alt.value(INK), strokeWidth=ring
    )
    return points.properties(width="container", height=height)


def groups_chart(theta: Floats, groups: list[list[int]], title: str, subtitle: str, size: int = 420) -> Any:
    """Users in two dimensions, coloured by group."""
    group_of, held = [-1] * len(theta), [0] * len(theta)
    for number, members in enumerate(groups):
        for user in members:
            group_of[user], held[user] = number, held[user] + 1
    rows = _user_rows(plane(theta), group_of, held, "users")
    points = _user_points(alt.InlineData(values=rows), len(groups))
    return points.properties(width=size, height=size, title=alt.Title(title, subtitle=subtitle))

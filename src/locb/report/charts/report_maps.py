"""Scatter charts of users in two dimensions, coloured by group."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from locb.common.arrays import Floats
from locb.evaluation.clusters import count_common_users
from locb.evaluation.results import UserMap
from locb.report.charts.chart_theme import FOREGROUND, NEUTRAL, PALETTE

SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "cross",
    "diamond",
    "triangle-down",
    "stroke",
)  # 7 shapes and 8 colours give 56 pairs


def project(theta: Floats) -> Floats:
    """Return the positions of users in the plane of the first two principal components: array (users, 2).

    ``theta`` (users, features) has the preference vector of each user.
    """
    if len(theta) == 0:
        return np.empty((0, 2))
    centred = theta - theta.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    points: Floats = centred @ directions[:2].T
    if points.shape[1] < 2:
        points = np.column_stack([points, np.zeros(len(points))])
    return points


def assign_clusters(user_map: UserMap) -> tuple[list[int], list[int], list[int]]:
    """Return three lists with one element per user: true cluster, matched true cluster, and number of found clusters.

    Each found cluster is matched with the true cluster for which its F1 is highest. Of the found clusters that contain
    a user, the cluster with the highest F1 determines the matched true cluster of the user, which gives the colour of
    the user on a map of the found clusters. −1 means that no cluster contains the user.
    """
    count = len(user_map.theta)
    true_of, found_of, cluster_count = np.full(count, -1), np.full(count, -1), np.zeros(count, np.int64)
    truth = [np.asarray(members) for members in user_map.truth]
    for number, members in enumerate(truth):
        true_of[members] = number
    found = [np.asarray(members) for members in user_map.found if len(members)]
    if found:
        sizes = np.array([len(members) for members in found])
        f1 = 2.0 * count_common_users(truth, found) / (np.array([len(members) for members in truth])[:, None] + sizes)
        quality = np.full(count, -1.0)
        for members, number, score in zip(found, f1.argmax(axis=0), f1.max(axis=0), strict=True):
            cluster_count[members] += 1
            better = members[score > quality[members]]
            quality[better], found_of[better] = score, number
    return true_of.tolist(), found_of.tolist(), cluster_count.tolist()


def _user_points(data: Any, n_groups: int, legend: Any = alt.Undefined) -> Any:
    """Return a chart of users as points, with a colour and a shape per group."""
    names = [f"{number + 1}" for number in range(n_groups)] + ["none"]
    colours = [PALETTE[i % len(PALETTE)] for i in range(n_groups)] + [NEUTRAL]
    shapes = [SHAPES[i % len(SHAPES)] for i in range(n_groups)] + ["triangle-right"]
    points = alt.Chart(data).mark_point(filled=True, size=70)
    encoding = {"title": "cluster", "sort": names, "legend": legend}
    return points.encode(
        x=alt.X("x:Q", title=None, axis=alt.Axis(labels=False, ticks=False)),
        y=alt.Y("y:Q", title=None, axis=alt.Axis(labels=False, ticks=False)),
        color=alt.Color("group:N", scale=alt.Scale(domain=names, range=colours), **encoding),
        shape=alt.Shape("group:N", scale=alt.Scale(domain=names, range=shapes), **encoding),
        tooltip=[
            "user:Q",
            alt.Tooltip("group:N", title="cluster"),
            alt.Tooltip("cluster_count:Q", title="clusters in total"),
        ],
    )


def _user_rows(points: Floats, groups: list[int], counts: list[int], panel: str) -> list[dict[str, Any]]:
    return [
        {
            "panel": panel,
            "user": user,
            "x": x,
            "y": y,
            "group": f"{group + 1}" if group >= 0 else "none",
            "cluster_count": count,
        }
        for user, ((x, y), group, count) in enumerate(zip(points.tolist(), groups, counts, strict=True))
    ]


def users_chart(user_map: UserMap, size: int = 330) -> Any:
    """Return two scatter charts of users side by side, coloured by true cluster and by found cluster."""
    true_of, found_of, counts = assign_clusters(user_map)
    points = project(user_map.theta)
    true_counts = [int(group >= 0) for group in true_of]
    rows = _user_rows(points, true_of, true_counts, "true") + _user_rows(points, found_of, counts, "found")
    selection = alt.selection_point(name="group_picked", fields=["group"], bind="legend", toggle="true")
    base = _user_points(alt.InlineData(values=rows), len(user_map.truth)).encode(
        opacity=alt.condition(selection, alt.value(0.8), alt.value(0.08))
    )
    left = base.add_params(selection).transform_filter("datum.panel == 'true'")
    right = base.transform_filter("datum.panel == 'found'")
    note = f"true cluster that matches best; {found_of.count(-1)} of {len(found_of)} users in no found cluster"
    heading = alt.Title("True clusters", subtitle="true θ of users, first two principal components")
    found = alt.Title(f"Clusters found by {user_map.policy}", subtitle=note)
    return left.properties(width=size, height=size, title=heading) | right.properties(
        width=size, height=size, title=found
    )


def map_chart(n_groups: int, height: int = 340) -> Any:
    """Return a scatter chart of users, coloured by cluster. The more clusters contain a user, the thicker is the ring.

    The script of the page fills the dataset ``users``.
    """
    has_legend = n_groups < 12  # more entries do not fit below the chart
    legend = alt.Legend(orient="bottom", columns=6, symbolSize=70, symbolStrokeWidth=0) if has_legend else None
    ring = alt.StrokeWidth("cluster_count:Q", scale=alt.Scale(domain=[1, 6], range=[0, 1.8], clamp=True), legend=None)
    hidden_axis: dict[str, Any] = {
        "axis": alt.Axis(labels=False, ticks=False, domain=False, title=None, tickCount=5),
        "scale": alt.Scale(zero=False, padding=16),
    }
    points = _user_points(alt.NamedData(name="users"), n_groups, legend).encode(
        x=alt.X("x:Q", **hidden_axis), y=alt.Y("y:Q", **hidden_axis), stroke=alt.value(FOREGROUND), strokeWidth=ring
    )
    return points.properties(width="container", height=height)


def groups_chart(theta: Floats, groups: list[list[int]], title: str, subtitle: str, size: int = 420) -> Any:
    """Return a scatter chart of users in two dimensions, coloured by group.

    Parameters
    ----------
    theta : (users, features) array
        Preference vectors of the users, which are projected on two principal components.
    groups : list of list of int
        User indices of each group.
    title, subtitle : str
        Heading of the chart.
    size : int, default 420
        Width and height in pixels.
    """
    group_of, counts = [-1] * len(theta), [0] * len(theta)
    for number, members in enumerate(groups):
        for user in members:
            group_of[user], counts[user] = number, counts[user] + 1
    rows = _user_rows(project(theta), group_of, counts, "users")
    points = _user_points(alt.InlineData(values=rows), len(groups))
    return points.properties(width=size, height=size, title=alt.Title(title, subtitle=subtitle))

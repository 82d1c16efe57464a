"""HTML page of groups of users with similar preferences in a log."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from locb.common.arrays import limit_outliers
from locb.logs.groups.user_groups import UserGroups
from locb.report.charts.group_charts import SHOWN_GROUPS, gamma_chart, group_map, likes_chart
from locb.report.charts.report_maps import project
from locb.report.pages.html import render_document, render_settings, render_table
from locb.report.tables.groups_table import (
    GAMMA_HEADINGS,
    GROUP_HEADINGS,
    LIKE_HEADINGS,
    explain_likes,
    gamma_rows,
    group_rows,
    like_rows,
    map_rows,
)

MAP_USERS = 1500  # users on the map
COLOURED_USERS = 0.95  # share of the users in groups whose differences determine the colours
CHART_GROUPS, CHART_FEATURES = 20, 30  # groups and features in the chart of what members like
GROUP_NOTE = (
    "Groups are numbered by size, the largest is 0. Certificate: upper bound on the distance between any two members. "
    "The bounds of all groups are valid with a probability of at least 1 − delta. Not informative: the rows of the "
    "members do not give a bound below twice norm_bound. Core: the half of the members with the smallest confidence "
    "radii. Stability: mean Jaccard similarity with the best-fitting group in bootstrap samples of users whose rewards "
    "have further noise, as large as the noise in the log. A group has at least two users; others are alone."
)
LIKES_NOTE = (
    "Effect of each feature on the reward, in the units of the reward. An arm: its mean reward. A value of text: "
    "difference from the mean of all rows. A number: change of the reward if the number is one step higher "
    "(usually its standard deviation). The constant is the expected reward if all features have their means. "
    "The difference is that to the average of all groups."
)
GAMMA_NOTE = (
    "Groups were found with one half of a sample of users and scored with the other half. Evidence is the likelihood "
    "of the rewards. The dashed line is the gamma that was used: the largest one within one standard error of the best."
)
MAP_NOTE = (
    "Estimated preferences, first two principal components. The map shows the "
    f"{MAP_USERS:,} users with the most rows, or all users if there are fewer."
)


def render_groups_page(found: UserGroups) -> str:
    """Render the HTML page of groups."""
    charts = _charts(found)
    groups, likes = group_rows(found), like_rows(found)
    tables = {"groups": _csv(GROUP_HEADINGS, groups), "likes": _csv(LIKE_HEADINGS, likes)}
    facts = [*found.summary().items(), *found.columns.items(), *(("skipped", str(rows)) for rows in found.skipped)]
    notes = "".join(f'<p class="note warn">{escape(note)}</p>' for note in found.notes)
    body = [_card("Result", render_table("facts", ("fact", "value"), facts, "Facts about the result") + notes)]
    body.append(_card("Groups", render_table("groups", GROUP_HEADINGS, groups, "Groups"), GROUP_NOTE))
    for name, chart in charts.items():
        box = f'<div id="chart-{name}" class="figure-box" tabindex="-1"></div>'
        table = ""
        if name == "likes":
            table = render_table("likes", LIKE_HEADINGS, likes, "Effects")
            table = f"<details><summary>All effects</summary>{table}</details>"
        elif name == "gamma":
            table = render_table("gammas", GAMMA_HEADINGS, gamma_rows(found), "Values of gamma")
        body.append(_card(chart["title"], box + table, chart["description"]))
    body.append(render_settings(found.settings))
    data = {"charts": charts, "tables": tables}
    subtitle = f"method {found.settings['method']}"
    return render_document("Groups of users with similar preferences", subtitle, "".join(body), data, ["findings.js"])


def _card(title: str, content: str, note: str = "") -> str:
    explained = f'<p class="muted small">{escape(note)}</p>' if note else ""
    return f'<section class="card"><h2>{escape(title)}</h2>{content}{explained}</section>'


def _charts(found: UserGroups) -> dict[str, dict[str, Any]]:
    charts: dict[str, dict[str, Any]] = {}
    if found.users.height > 1:
        charts["map"] = chart_users(found)
    if found.groups.height:
        charts["likes"] = _likes(found)
    if found.gammas.height:
        charts["gamma"] = chart_gammas(found)
    return {name: chart | {"name": name, "spec": chart["spec"].to_dict()} for name, chart in charts.items()}


def chart_users(found: UserGroups) -> dict[str, Any]:
    """Return the map of users: title, description, chart and rows."""
    by_rows = np.argsort(-found.users["rows"].to_numpy(), kind="stable")[:MAP_USERS]
    points, outliers = limit_outliers(project(found.theta[by_rows]))
    rows = map_rows(found, points, by_rows, SHOWN_GROUPS)
    note = MAP_NOTE + (f" {outliers:,} users far from most others are drawn at the edge." if outliers else "")
    present = {row["group"] for row in rows}
    names = sorted((name for name in present if name.isdigit()), key=int)
    names += sorted(name for name in present if not name.isdigit())
    return {"title": "Map of users", "description": note, "spec": group_map(names), "rows": rows}


def chart_gammas(found: UserGroups) -> dict[str, Any]:
    """Return the chart of the values of gamma: title, description, chart and rows."""
    best = float(found.gammas["evidence"].max())
    rows = [
        {**row, "loss": row["evidence"] - best, "low": row["evidence"] - best - row["error"]}
        | {"high": row["evidence"] - best + row["error"]}
        for row in found.gammas.iter_rows(named=True)
    ]
    spec = gamma_chart(found.settings["gamma"])
    return {"title": "Choice of gamma", "description": GAMMA_NOTE, "spec": spec, "rows": rows}


def _likes(found: UserGroups) -> dict[str, Any]:
    import polars as pl

    shown = found.likes.filter((pl.col("group") < CHART_GROUPS) & (pl.col("feature") != "constant"))
    spread = (
        shown.group_by("feature").agg(pl.col("difference").abs().max()).sort("difference", "feature", descending=True)
    )
    features = spread["feature"].head(CHART_FEATURES).to_list()
    rows = shown.filter(pl.col("feature").is_in(features)).with_columns(pl.col("group").cast(pl.String)).to_dicts()
    groups = [str(group) for group in range(min(found.groups.height, CHART_GROUPS))]
    limit, largest = _colour_limit(found, rows)
    note = f"{LIKES_NOTE} {explain_likes(found)}"
    if limit < largest:
        note += f" Differences of {limit:.3g} or more have the same colour; those of small groups reach {largest:.3g}."
    spec = likes_chart(groups, features, limit)
    return {"title": "What members like", "description": note, "spec": spec, "rows": rows}


def _colour_limit(found: UserGroups, rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the largest difference of the largest groups with ``COLOURED_USERS`` of the users, and of all groups."""
    sizes = found.groups["users"].to_numpy()
    before = np.cumsum(sizes) - sizes  # groups are sorted by size
    large = {str(group) for group in np.flatnonzero(before < COLOURED_USERS * sizes.sum()).tolist()}
    differences = [(row["group"] in large, abs(row["difference"])) for row in rows]
    largest = max((value for _, value in differences), default=0.0) or 1.0
    return max((value for inside, value in differences if inside), default=0.0) or largest, largest


def _csv(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([headings, *rows])
    return out.getvalue()

"""Charts of a single run and of the users and groups of a policy, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from locb.common.arrays import Ints
from locb.common.validation import ParameterError
from locb.evaluation.clusters import Cluster
from locb.evaluation.policy_view import PolicyView, user_ids
from locb.evaluation.results import Run
from locb.report.charts.chart_theme import NEUTRAL, PALETTE
from locb.report.charts.report_maps import project

MAX_POINTS = 500  # points of a line
MAX_BARS = 40


def run_chart(run: Run, width: int = 420, height: int = 280) -> Any:
    """Return a chart of the cumulative regret of a run. Add charts of several runs with ``+`` to compare policies."""
    count = len(run.regret)
    points = np.unique(np.linspace(1, max(count, 1), min(MAX_POINTS, count)).round().astype(np.int64))
    name = type(run.policy).__name__
    rows = [{"policy": name, "round": int(t), "regret": float(run.regret[t - 1])} for t in points]
    chart = alt.Chart(alt.InlineData(values=rows)).mark_line(strokeWidth=2)
    return chart.encode(
        x=alt.X("round:Q", title="round", axis=alt.Axis(format=",d", tickCount=5)),
        y=alt.Y("regret:Q", title="cumulative regret"),
        color=alt.Color("policy:N", title=None, scale=alt.Scale(range=list(PALETTE))),
        tooltip=["policy:N", alt.Tooltip("round:Q", format=","), alt.Tooltip("regret:Q", format=",.1f")],
    ).properties(width=width, height=height, title="Cumulative regret (lower is better)")


def policy_users_chart(view: PolicyView, ids: Sequence[Any] | None, size: int = 420) -> Any:
    """Return a scatter chart of users: position by estimated preferences, colour by group.

    Groups may overlap. The groups with a colour together contain as many users as possible. Users whose id is None are
    not shown.

    Raises
    ------
    ValueError
        If the policy has no estimates of users.
    """
    if np.isnan(view.theta).all():
        raise ParameterError(
            "policy", f" {view.name} has no estimates of users, which plot_users needs; use another policy"
        )
    names = user_ids(ids, view.n_users)
    view, n_users = view.without_unnamed(names), _count_named(names, view)
    groups = view.distinct_groups()
    chosen, group_of = _choose_groups(groups, view.n_users)
    labels = [_label(groups[number].seed, number, names) for number in chosen]
    labels += ["another group", "no group"]
    rows = [
        {"user": str(names[user]), "x": x, "y": y, "group": labels[group_of[user]], "rounds": rounds}
        for user, (x, y), rounds in zip(
            view.users.tolist(), project(view.theta).tolist(), view.served.tolist(), strict=True
        )
    ]
    colour_of = dict(zip(labels, [*PALETTE[: len(chosen)], NEUTRAL, "#E4E4E4"], strict=True))
    domain = [label for label in labels if any(row["group"] == label for row in rows)]
    colours = [colour_of[label] for label in domain]
    hidden = alt.Axis(labels=False, ticks=False, title=None)
    chart = alt.Chart(alt.InlineData(values=rows)).mark_point(filled=True, size=60, opacity=0.8)
    shown = "" if len(view.users) == n_users else f"random sample of {len(view.users):,} of {n_users:,} users; "
    colour_note = "colour: a group of the user" if groups else "the policy has no groups"
    subtitle = f"{shown}estimated preferences, first two principal components; {colour_note}"
    return chart.encode(
        x=alt.X("x:Q", axis=hidden, scale=alt.Scale(zero=False)),
        y=alt.Y("y:Q", axis=hidden, scale=alt.Scale(zero=False)),
        color=alt.Color("group:N", title="group", sort=domain, scale=alt.Scale(domain=domain, range=colours)),
        tooltip=["user:N", "group:N", alt.Tooltip("rounds:Q", format=",")],
    ).properties(width=size, height=size, title=alt.Title(f"Users of {view.name}", subtitle=subtitle, anchor="start"))


def policy_groups_chart(view: PolicyView, ids: Sequence[Any] | None, width: int = 420) -> Any:
    """Return a bar chart of the number of users of each distinct group, largest first.

    Users whose id is None are not counted.
    """
    names = user_ids(ids, view.n_users)
    groups = view.without_unnamed(names).distinct_groups()
    n_users = _count_named(names, view)
    rows = [
        {
            "group": _label(group.seed, number, names),
            "users": len(group),
            "state": "still changing" if group.returned_at is None else "final",
            "final since round": group.returned_at,
        }
        for number, group in enumerate(groups[:MAX_BARS])
    ]
    more = f", largest {MAX_BARS}" if len(groups) > MAX_BARS else ""
    colours = alt.Scale(domain=["final", "still changing"], range=[PALETTE[0], PALETTE[4]])
    chart = alt.Chart(alt.InlineData(values=rows)).mark_bar()
    return chart.encode(
        x=alt.X("users:Q", title="users", axis=alt.Axis(format=",d")),
        y=alt.Y("group:N", title=None, sort=[str(row["group"]) for row in rows]),
        color=alt.Color("state:N", title=None, scale=colours),
        tooltip=["group:N", alt.Tooltip("users:Q", format=","), "state:N", "final since round:Q"],
    ).properties(
        width=width,
        title=alt.Title(
            f"Groups of {view.name}", subtitle=f"{len(groups):,} distinct groups of {n_users:,} users{more}"
        ),
    )


def _count_named(names: Sequence[Any], view: PolicyView) -> int:
    return sum(name is not None for name in names[: view.n_users])


def _label(seed: int | None, number: int, names: Sequence[Any]) -> str:
    return f"group {number + 1}" if seed is None else f"around user {names[seed]}"


def _choose_groups(groups: list[Cluster], n_users: int) -> tuple[list[int], Ints]:
    """Return the groups with a colour, and for each user the position of its group in this list.

    Each group is the one with the most users who are not in an earlier group of the list. The position is −2 for a user
    of other groups, and −1 for a user without a group.
    """
    group_of = np.full(n_users, -1)
    for group in groups:
        group_of[group.members] = -2
    chosen: list[int] = []
    while len(chosen) < len(PALETTE):
        new = [int((group_of[group.members] == -2).sum()) for group in groups]
        if not any(new):
            break
        best = int(np.argmax(new))
        members = groups[best].members
        group_of[members[group_of[members] == -2]] = len(chosen)
        chosen.append(best)
    return chosen, group_of

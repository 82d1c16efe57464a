"""Terminal view of one user: estimate, groups, and the last decisions with their explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from locb.report.terminal.formatting import (
    DASH,
    format_count,
    format_interval,
    format_number,
    format_percent,
    format_time,
)
from locb.report.terminal.layout import MIN_TABLE_WIDTH, make_fact_list, make_table
from locb.report.terminal.service_view import render_heading, render_status

if TYPE_CHECKING:
    from locb.client.monitor import ServiceSnapshot, UserData

MAX_FEATURES = 8  # weights in the table of the estimate
SCREENED = (
    "the safety screen replaced the arm with the highest score: the user's own rewards indicate that another arm may "
    "be clearly better"
)
SOURCE_LABELS = {
    "user": "the user's own rewards",
    "cluster": "the group",
    "component": "the group",
    "neighbourhood": "the group",
    "everyone": "everyone",
    "population": "the population prior",
    "other": "other groups",
}
MIN_SOURCE_WEIGHT = 0.005  # evidence sources with this weight or less are not listed


def render_user(snapshot: ServiceSnapshot, data: UserData | None, width: int, *, plain: bool = False) -> RenderableType:
    """Render one user of a service: rewards, groups, similar users, estimate and last decisions.

    Parameters
    ----------
    snapshot : ServiceSnapshot
        Last known state of the service.
    data : UserData or None
        Data of the user; None before the first response.
    width : int
        Columns of the terminal.
    plain : bool, default False
        Whether to omit bars.
    """
    rows: list[tuple[str, str | Text]] = []
    if snapshot.problem is not None or data is None:
        rows.append(("Status", render_status(snapshot)))
    if data is None:
        return Group(render_heading(snapshot), make_fact_list(rows))
    user = data.user
    rows.append(("User", Text(data.name)))
    if user is None:
        rows.append(("Error", "Unknown user: the service has made no decision for this id."))
        return Group(render_heading(snapshot), make_fact_list(rows))
    if user["served"] is not None:
        rows.append(("Learned", f"from {format_count(user['served'], 'reward', 'rewards')}"))
    if user["mean_reward"] is not None:
        rows.append(("Reward", f"mean {format_number(user['mean_reward'])}"))
    rows.append(("Groups", _render_groups(user["clusters"])))
    similar = ", ".join(
        f"{other['user']} (distance {format_number(other['distance'], '.2f')})" for other in data.similar
    )
    rows.append(("Similar", Text(similar or "no other user in the same group")))
    parts: list[RenderableType] = [render_heading(snapshot), make_fact_list(rows)]
    if user["theta"] is not None:
        parts += ["", render_estimate_table(user, bars=not plain and width >= MIN_TABLE_WIDTH)]
    parts += ["", Text("Last decisions" if data.decisions else "No stored decisions.", style="bold")]
    parts += [render_decision(decision, snapshot.time) for decision in data.decisions]
    return Group(*parts)


def _render_groups(groups: Sequence[Mapping[str, Any]]) -> Text:
    descriptions = []
    for group in sorted(groups, key=lambda group: -(group.get("probability") or 0.0)):
        without_seed = "without a seed user" if group.get("probability") is None else "everyone"
        seed = without_seed if group["seed"] is None else f"of {group['seed']}"
        size = "" if group["size"] is None else f"{format_count(group['size'], 'user', 'users')}, "
        state = "final" if group["returned"] else "forming"
        if group.get("probability") is not None:
            state = f"probability {format_percent(group['probability'])}"
        descriptions.append(f"{seed} ({size}{state})")
    return Text("; ".join(descriptions) or "none")


def _feature_weights(user: Mapping[str, Any]) -> list[tuple[str, float, list[float] | None]]:
    """Return (feature, weight, interval) of each feature, by decreasing absolute weight.

    Features have the names of recent requests, or indices if requests have no names. The interval is None if it is
    unknown. A negative index in ``feature_indices`` means that the estimate has the weight with the opposite sign.
    """
    theta, intervals = user["theta"], user["intervals"]
    signed_indices = {str(index): index for index in range(len(theta))}
    if user["feature_indices"]:
        signed_indices = {"intercept": 0, **user["feature_indices"]}
    rows = []
    for name, signed_index in signed_indices.items():
        index, sign = abs(signed_index), -1.0 if signed_index < 0 else 1.0
        known = intervals is not None and intervals[index] is not None
        rows.append((name, sign * theta[index], sorted(sign * end for end in intervals[index]) if known else None))
    rows.sort(key=lambda row: -abs(row[1]))
    return rows


def render_estimate_table(user: Mapping[str, Any], *, bars: bool) -> Table:
    """Render a table of the largest weights in the estimate of a user, with 95% confidence intervals.

    ``bars`` adds a column that shows each weight and its interval graphically.
    """
    weights = _feature_weights(user)
    rows = weights[:MAX_FEATURES]
    title = "Estimated preferences"
    title += f": the {len(rows)} largest of {len(weights)} weights" if len(rows) < len(weights) else ""
    headings = ["feature", "weight", "95% CI"] + ([""] if bars else [])
    table = make_table(title, headings, ("feature", "95% CI", ""))
    scale = max((max(map(abs, [weight, *(interval or ())])) for _, weight, interval in rows), default=0.0) or 1.0
    for name, weight, interval in rows:
        text = DASH if interval is None else format_interval(interval[0], interval[-1], "+.2f")
        drawn = [_render_error_bar(weight, interval, scale)] if bars else []
        table.add_row(Text(name), format_number(weight, "+.2f"), text, *drawn)
    return table


def _render_error_bar(weight: float, interval: Sequence[float] | None, scale: float, half_width: int = 15) -> str:
    """Render a weight as a dot and its interval as a line, on an axis from −scale to scale with zero in the middle.

    Examples
    --------
    >>> _render_error_bar(0.5, [0.0, 1.0], 1.0, half_width=4)
    '    ├─●─┤'
    """

    def column(value: float) -> int:
        return min(max(round(half_width + half_width * value / scale), 0), 2 * half_width)

    row = [" "] * (2 * half_width + 1)
    row[half_width] = "│"
    if interval:
        low, high = column(interval[0]), column(interval[1])
        row[low : high + 1] = "─" * (high + 1 - low)
        row[low], row[high] = "├", "┤"
    row[column(weight)] = "●"
    return "".join(row)


def render_decision(decision: Mapping[str, Any], now: float) -> RenderableType:
    """Render a decision: its time, its arm, its reward, and the terms of the score of the arm."""
    summary = Text.assemble(
        f"{format_time(decision['time'], now)}  ", (str(decision["arm"]), "bold"), f"  {_format_outcome(decision)}"
    )
    explanation = "\n".join(_format_explanation(decision["response"].get("explanation")))
    return Group(summary, Padding(Text(explanation), (0, 0, 0, 2)))


def _format_explanation(explanation: Mapping[str, Any] | None) -> list[str]:
    if explanation is None:
        return ["no explanation: the policy does not explain decisions"]
    contributions = sorted(explanation["contributions"].items(), key=lambda pair: -abs(pair[1]))
    terms = [f"{name} {format_number(value, '+.2f')}" for name, value in contributions if value]
    terms += [f"intercept {format_number(explanation['intercept'], '+.2f')}"] if explanation["intercept"] else []
    terms += [f"bonus {format_number(explanation['bonus'], '+.2f')}"]
    sources = [_format_source(source) for source in explanation["sources"] if source["weight"] > MIN_SOURCE_WEIGHT]
    lines = [f"score: {', '.join(terms)}", *([f"based on {'; '.join(sources)}"] if sources else [])]
    return [*lines, SCREENED] if explanation.get("screened") else lines


def _format_outcome(decision: Mapping[str, Any]) -> str:
    if decision["reward_status"] == "pending" or decision["reward"] is None:
        return "reward pending"
    reward = format_number(decision["reward"], "g")
    return {
        "default": f"no reward received, default {reward}",
        "corrected": f"reward {reward} (corrected)",
    }.get(decision["reward_status"], f"reward {reward}")


def _format_source(source: Mapping[str, Any]) -> str:
    kind, seed = source["kind"], source["seed"]
    if kind == "neighbourhood" and seed is None:  # CAB, RCLUMB: not a group of the policy
        label = "similar users"
    else:
        label = SOURCE_LABELS.get(kind, f"the {kind}")
    label += f" of {seed}" if seed is not None and kind != "user" else ""
    counts = ", ".join(
        format_count(source[name], singular, plural)
        for name, singular, plural in (("users", "user", "users"), ("observations", "reward", "rewards"))
        if source[name] is not None
    )
    weight = f", {format_percent(source['weight'])}" if source["weight"] < 0.995 else ""
    return label + (f" ({counts})" if counts else "") + weight

"""Terminal view of a running service: health, rewards and the largest groups of users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from locb.common.spans import SPANS
from locb.report.terminal.formatting import (
    DASH,
    format_bytes,
    format_count,
    format_duration,
    format_interval,
    format_number,
    format_percent,
    format_rate,
    format_time,
)
from locb.report.terminal.layout import MIN_TABLE_WIDTH, count_lines, make_fact_list, make_table, render_bar
from locb.report.terminal.plot import Line, plot

if TYPE_CHECKING:
    from locb.client.monitor import ConnectionProblem, ServiceSnapshot

UNLIMITED_LINES = 10_000
MIN_BAR_WIDTH = 120  # minimum width of a terminal that shows progress bars in the table of groups
MIN_CHART_LINES = 6  # lines that a chart needs, including margin and heading
MAX_CHART_LINES = 8  # lines of the drawing area of a chart


def render_service(
    snapshot: ServiceSnapshot, width: int, height: int | None = None, *, plain: bool = False
) -> RenderableType:
    """Render the state of a service: status, rates, rewards and the largest groups of users.

    Parameters
    ----------
    snapshot : ServiceSnapshot
        Last known state of the service.
    width : int
        Columns of the terminal.
    height : int, optional
        Lines of the terminal. The default is no limit.
    plain : bool, default False
        Whether to omit charts and bars.
    """
    status = snapshot.status
    parts: list[RenderableType] = [render_heading(snapshot)]
    rows: list[tuple[str, str | Text]] = [("Status", render_status(snapshot))]
    if status is None:
        return Group(*parts, make_fact_list(rows))
    rows += _fact_rows(status, snapshot)
    parts.append(make_fact_list(rows))
    free_lines = UNLIMITED_LINES if height is None else height - count_lines(Group(*parts), width)
    if not plain and free_lines >= MIN_CHART_LINES:
        chart_lines = min(MAX_CHART_LINES, max((free_lines - MIN_CHART_LINES) // 2, 3))
        chart = render_reward_chart(snapshot.history, width, chart_lines)
        if chart is not None:
            parts += ["", chart]
            free_lines -= 1 + count_lines(chart, width)
    if snapshot.groups is not None:
        render = render_group_list if plain or width < MIN_TABLE_WIDTH else render_group_table
        count = min(free_lines, len(snapshot.groups["clusters"]))
        while count > 0 and 1 + count_lines(render(snapshot.groups, count, width), width) > free_lines:
            count -= 1
        parts += ["", render(snapshot.groups, count, width)] if count > 0 else []
    return Group(*parts)


def render_heading(snapshot: ServiceSnapshot) -> Text:
    """Render the heading of a view: version, policy, address and time."""
    heading = Text("locb ", style="bold")
    if snapshot.status is not None:
        heading.append(f"{snapshot.status['version']}, policy {snapshot.status['policy']}, ", style="bold")
    heading.append(snapshot.url)
    heading.append(f" at {format_time(snapshot.time, snapshot.time)}", style="bright_black")
    return heading


def render_status(snapshot: ServiceSnapshot) -> Text:
    """Render the health of a service in one or more sentences, with the most severe problem first."""
    status, problem = snapshot.status, snapshot.problem
    if problem is not None:
        return _render_problem(problem, snapshot)
    if status is None:
        return Text("Connecting …")
    sentences = []
    if status["status"] != "ok":
        reason = status["detail"] or status["store"]["error"] or status["status"]
        sentences.append(
            f"Store failure: {_end_sentence(reason)} Decisions and rewards are rejected until writes succeed."
        )
    if status.get("reward_scale_problem") is not None:
        sentences.append(
            f"The policy assumes rewards of about 0 to 1, but {status['reward_scale_problem']}: start the service with "
            "a new store and --reward-range low,high."
        )
    if status["rebuilding"]:
        sentences.append("Rebuilding the policy after the erasure of a user.")
    if status["backfilling"]:
        sentences.append("Reading older events from the log: figures of the past are incomplete.")
    style = "red" if status["status"] != "ok" else "yellow" if sentences else "green"
    if not status["decisions"]:
        sentences.append(f"No decisions yet. POST to /v1/recommend, or run: locb load {snapshot.url}")
    text = Text(" ".join(sentences) or "Healthy.", style=style)
    return text.append(f" Uptime {format_duration(status['time'] - status['started_at'])}.")


def _render_problem(problem: ConnectionProblem, snapshot: ServiceSnapshot) -> Text:
    text = Text(f"{problem.message} Since {format_time(problem.since, snapshot.time)}", style="red")
    text.append(f" ({format_duration(snapshot.time - problem.since)}).")
    if not problem.permanent:
        text.append(" Retrying.")
    if snapshot.status is not None:
        text.append(f" The figures below are from {format_time(snapshot.status['time'], snapshot.time)}.")
    return text


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _fact_rows(status: Mapping[str, Any], snapshot: ServiceSnapshot) -> list[tuple[str, str | Text]]:
    store, groups = status["store"], status["clusters"]
    group_share = status["cluster_based_share"]
    grouped = (
        "" if group_share is None else f"; {format_percent(group_share)} of decisions in the last hour used a group"
    )
    store_size = "" if store["bytes"] is None else f", {format_bytes(store['bytes'])}"
    decisions = format_count(status["decisions"], "decision", "decisions")
    rewards = format_count(status["rewards"], "reward", "rewards")
    pending = f"{format_count(status['pending_rewards'], 'reward', 'rewards')} of the last 24 hours pending"
    decision_rate = format_rate(status["decisions_per_second"])
    reward_rate = format_rate(status["rewards_per_second"])
    queued = f"{format_count(store['queued_requests'], 'request', 'requests')} queued for writing"
    return [
        ("Rate", f"{decision_rate} decisions and {reward_rate} rewards per second"),
        ("Total", f"{decisions}, {rewards}; {pending}"),
        *_reward_rows(snapshot),
        ("Users", f"{format_count(status['users'], 'user', 'users')}, {status['rewarded_users']:,} with a reward"),
        ("Groups", f"{_groups_fact(status, groups)}{grouped}"),
        ("Store", f"{store['kind']}, {format_count(store['position'], 'event', 'events')}{store_size}; {queued}"),
        ("Snapshot", _snapshot_fact(status)),
    ]


def _groups_fact(status: Mapping[str, Any], groups: Mapping[str, Any]) -> str:
    if status.get("sure_users") is None:
        return f"{groups['returned']:,} final, {groups['forming']:,} forming"
    users = f"{status['sure_users']:,} of {status['rewarded_users']:,} users with a reward"
    return f"{users} belong to a group with a probability of at least 90%"


def _snapshot_fact(status: Mapping[str, Any]) -> str:
    snapshot = status["snapshot"]
    if snapshot is None:
        return "none yet"
    age = format_duration(status["time"] - snapshot["time"])
    return f"{age} old, {format_count(snapshot['events_since'], 'event', 'events')} since"


def _reward_rows(snapshot: ServiceSnapshot) -> list[tuple[str, str | Text]]:
    """Return the facts about rewards: their mean in the time span, and its change from the baseline period."""
    history = snapshot.history
    if history is None:
        return []
    total, baseline, change = history["total"], history["baseline"], history["change"]
    span = SPANS[history["span"]]
    label = snapshot.baseline_label or span.previous
    if total["mean"] is None:
        return [("Reward", f"no rewards in {span.period}")]
    interval = format_interval(total["low"], total["high"])
    details = format_count(total["rewards"], "reward", "rewards") + (f", 95% CI {interval}" if interval else "")
    rows: list[tuple[str, str | Text]] = [
        ("Reward", f"mean {format_number(total['mean'])} in {span.period} ({details})")
    ]
    if baseline is None:
        return rows
    if baseline["mean"] is None:
        rows.append(("Change", f"unknown: no rewards in {label}"))
    elif change is None or change["mean"] is None:
        rows.append(("Change", f"unknown: too few rewards to compare with {label}"))
    else:
        interval = format_interval(change["low"], change["high"], "+.3f")
        significance = ", not significant" if interval and change["low"] <= 0.0 <= change["high"] else ""
        before = f"{format_number(baseline['mean'])} in {label}"
        text = f"{format_number(change['mean'], '+.3f')} from {before}"
        rows.append(("Change", text + (f" (95% CI {interval}{significance})" if interval else "")))
    return rows


def render_reward_chart(history: Mapping[str, Any] | None, width: int, height: int) -> Text | None:
    """Render a chart of the mean reward over time with its 95% confidence band; None with fewer than two points."""
    points = [] if history is None else [point for point in history["points"] if point["mean"] is not None]
    if history is None or len(points) < 2:
        return None
    means = [point["mean"] for point in points]
    lows = [mean if point["low"] is None else point["low"] for point, mean in zip(points, means, strict=True)]
    highs = [mean if point["high"] is None else point["high"] for point, mean in zip(points, means, strict=True)]
    # Bands are clipped, because the wide interval of a point with one or two rewards would flatten the line.
    spread = max(means) - min(means) or 0.1
    lows = [max(low, min(means) - spread) for low in lows]
    highs = [min(high, max(means) + spread) for high in highs]
    times = [point["time"] for point in points]
    line = Line(times, means, lows, highs, style="bold cyan", gap=max(6.0 * history["step_seconds"], 60.0))
    title = f"Mean reward per decision in {SPANS[history['span']].period} (shaded: 95% CI)\n"
    chart = plot(
        [line],
        width,
        height,
        format_y=lambda y: format_number(y, ".2f"),
        format_x=lambda x: format_time(x, times[-1]),
    )
    return Text("").append_text(Text(title, style="bold")).append_text(chart)


def render_group_table(groups: Mapping[str, Any], count: int, width: int) -> Table:
    """Render the largest groups as a table, for wide terminals."""
    headings = ("seed user", "users", "state", "certificate", "mean reward", "preferences")
    table = make_table(_group_title(groups, count), headings, ("seed user", "state", "preferences"))
    for group in groups["clusters"][:count]:
        progress = group["progress"] if group.get("sure_share") is None else group["sure_share"]
        no_bar = width < MIN_BAR_WIDTH or group["returned"] or progress is None
        table.add_row(
            Text(_group_name(group, groups)),
            f"{group['size']:,}",
            _group_state(group) + ("" if no_bar else f" {render_bar(progress)}"),
            _format_certificate(group, groups),
            format_number(group["mean_reward"]),
            Text(_preferences(group) or DASH),
        )
    return table


def render_group_list(groups: Mapping[str, Any], count: int, width: int) -> RenderableType:  # noqa: ARG001 - same signature as render_group_table
    """Render the largest groups as text, for narrow terminals."""
    parts: list[RenderableType] = [Text(_group_title(groups, count), style="bold")]
    for group in groups["clusters"][:count]:
        facts = [format_count(group["size"], "user", "users"), _group_state(group)]
        bound = _format_certificate(group, groups)
        facts += [f"certificate ≤ {bound}"] if bound != DASH else []
        facts += [f"mean reward {format_number(group['mean_reward'])}"] if group["mean_reward"] is not None else []
        preferences = _preferences(group)
        parts.append(Text.assemble((_group_name(group, groups), "bold"), ": ", ", ".join(facts)))
        parts += [Padding(Text(f"preferences: {preferences}"), (0, 0, 0, 2))] if preferences else []
    return Group(*parts)


def _group_title(groups: Mapping[str, Any], count: int) -> str:
    total = format_count(groups["total"], "group", "groups")
    return f"{total}, largest first" if count >= groups["total"] else f"{count:,} largest of {total}"


def _group_name(group: Mapping[str, Any], groups: Mapping[str, Any]) -> str:
    """Return the seed user of a group; for a group without one, "everyone" if the policy is ELOC, otherwise a dash."""
    if group["seed"] is not None:
        return str(group["seed"])
    is_eloc = any(other.get("sure_share") is not None for other in groups["clusters"])
    return "everyone" if is_eloc else DASH


def _group_state(group: Mapping[str, Any]) -> str:
    if group.get("sure_share") is not None:
        return f"{format_percent(group['sure_share'])} sure members"
    if group["returned"]:
        return "final"
    return "forming" if group["progress"] is None else f"forming {format_percent(group['progress'])}"


def _format_certificate(group: Mapping[str, Any], groups: Mapping[str, Any]) -> str:
    """Format the certificate, an upper bound on the distance between two members; a dash if it is not informative."""
    bound = group["certificate"]
    return DASH if bound is None or bound > groups.get("max_distance", 2.0) else format_number(bound, ".2f")


def _preferences(group: Mapping[str, Any]) -> str:
    return ", ".join(f"{entry['feature']} {format_number(entry['weight'], '+.2f')}" for entry in group["top_features"])

"""A service at this moment: how it is, what it earns, its largest groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from locb.report.terminal.formatting import DASH, interval, lasting, many, moment, number, percent, rate, size
from locb.report.terminal.layout import NARROW, bar, facts, lines_of, table
from locb.report.terminal.plot import Line, plot

SPANS = {"hour": "the last hour", "day": "the last day", "month": "the last month", "all": "all time"}
PLENTY = 10_000  # lines: room for everything
WIDE = 120  # columns from which there is room for bars
LEAST_CHART = 6  # lines, with its margin and heading
WIDEST = 2.0  # no two tastes of length 1 at most are farther apart: a larger certificate says nothing


@dataclass(frozen=True)
class Trouble:
    """Why nothing new is known: in a sentence, and since when."""

    told: str
    since: float
    lasts: bool = False  # whether asking again cannot help


@dataclass(frozen=True)
class Seen:
    """What was seen of a service so far, as its API tells it; None where nothing was."""

    url: str
    time: float
    now: Mapping[str, Any] | None = None
    history: Mapping[str, Any] | None = None
    groups: Mapping[str, Any] | None = None
    trouble: Trouble | None = None
    baseline_told: str = "the period chosen"


def service_view(seen: Seen, width: int, height: int | None = None, *, plain: bool = False) -> RenderableType:
    """Everything in its order. With a ``height`` it is made to fit; ``plain`` is words and numbers alone."""
    now = seen.now
    parts: list[RenderableType] = [heading(seen)]
    rows: list[tuple[str, str | Text]] = [("Status", status(seen))]
    if now is None:
        return Group(*parts, facts(rows))
    rows += _facts(now, seen)
    parts.append(facts(rows))
    room = PLENTY if height is None else height - lines_of(Group(*parts), width)
    if not plain and room >= LEAST_CHART:
        chart = reward_chart(seen.history, width, min(8, max((room - LEAST_CHART) // 2, 3)))
        if chart is not None:
            parts += ["", chart]
            room -= 1 + lines_of(chart, width)
    if seen.groups is not None:
        told = groups_told if plain or width < NARROW else groups_table
        most = min(room, len(seen.groups["clusters"]))
        while most > 0 and 1 + lines_of(told(seen.groups, most, width), width) > room:
            most -= 1
        parts += ["", told(seen.groups, most, width)] if most > 0 else []
    return Group(*parts)


def heading(seen: Seen) -> Text:
    """Which service, and when it was looked at."""
    told = Text("locb ", style="bold")
    if seen.now is not None:
        told.append(f"{seen.now['version']}, policy {seen.now['policy']}, ", style="bold")
    told.append(seen.url)
    told.append(f" at {moment(seen.time, seen.time)}", style="bright_black")
    return told


def status(seen: Seen) -> Text:
    """How it is, in one or more sentences; the worst first."""
    now, trouble = seen.now, seen.trouble
    if trouble is not None:
        told = Text(f"{trouble.told} Since {moment(trouble.since, seen.time)}", style="red")
        told.append(f" ({lasting(seen.time - trouble.since)}).")
        if not trouble.lasts:
            told.append(" Asking again.")
        if now is not None:
            told.append(f" What follows was seen at {moment(now['time'], seen.time)}.")
        return told
    if now is None:
        return Text("Asking …")
    sentences = []
    if now["status"] != "ok":
        why = now["detail"] or now["store"]["error"] or now["status"]
        sentences.append(
            f"The store fails: {_sentence(why)} Decisions and rewards are refused until it can be written."
        )
    if now["rebuilding"]:
        sentences.append("The policy is being made anew, since a user was erased.")
    if now["backfilling"]:
        sentences.append("The past of the log is still being read: figures of the past are not complete yet.")
    style = "red" if now["status"] != "ok" else "yellow" if sentences else "green"
    if not now["decisions"]:
        sentences.append("No data yet: nothing has been decided. Ask at /v1/recommend, or try: locb load " + seen.url)
    told = Text(" ".join(sentences) or "All is well.", style=style)
    return told.append(f" Up for {lasting(now['time'] - now['started_at'])}.")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _facts(now: Mapping[str, Any], seen: Seen) -> list[tuple[str, str | Text]]:
    store, snapshot, groups = now["store"], now["snapshot"], now["clusters"]
    shared = now["cluster_based_share"]
    rests = "" if shared is None else f"; {percent(shared)} of the last hour's decisions rest on one"
    kept = "" if store["bytes"] is None else f", {size(store['bytes'])}"
    decided = f"{many(now['decisions'], 'decision', 'decisions')}, {many(now['rewards'], 'reward', 'rewards')}"
    waiting = many(now["pending_rewards"], "decision waits for its reward", "decisions wait for their rewards")
    behind = many(store["queued_requests"], "request waits for the disk", "requests wait for the disk")
    rates = f"{rate(now['decisions_per_second'])} decisions and {rate(now['rewards_per_second'])} rewards a second"
    copied = "none yet"
    if snapshot is not None:
        after = many(snapshot["events_since"], "event", "events")
        copied = f"{lasting(now['time'] - snapshot['time'])} old, {after} came after it"
    return [
        ("Now", rates),
        ("In all", f"{decided}; {waiting}"),
        *_rewards(seen),
        ("Users", f"{many(now['users'], 'user', 'users')}, {now['rewarded_users']:,} of them with a reward learned"),
        ("Groups", f"{groups['returned']:,} returned, {groups['forming']:,} forming{rests}"),
        ("Store", f"{store['kind']}, {many(store['position'], 'event', 'events')}{kept}; {behind}"),
        ("Snapshot", copied),
    ]


def _rewards(seen: Seen) -> list[tuple[str, str | Text]]:
    """The mean reward of the span with its interval, and how it changed."""
    history = seen.history
    if history is None:
        return []
    total, baseline, change = history["total"], history["baseline"], history["change"]
    over = SPANS.get(history["span"], history["span"])
    if total["mean"] is None:
        return [("Reward", f"none in {over}")]
    within = interval(total["low"], total["high"])
    told = f"{number(total['mean'])} on average in {over} ({many(total['rewards'], 'reward', 'rewards')}"
    rows: list[tuple[str, str | Text]] = [("Reward", f"{told}{f', 95% interval {within}' if within else ''})")]
    if baseline is None:
        return rows
    if baseline["mean"] is None:
        rows.append(("Change", f"cannot be told: no reward in {seen.baseline_told}"))
    elif change is None or change["mean"] is None:
        rows.append(("Change", f"cannot be told: too few rewards beside {seen.baseline_told}"))
    else:
        within = interval(change["low"], change["high"], "+.3f")
        sure = "" if not within else ", which may be chance" if change["low"] <= 0.0 <= change["high"] else ""
        told = f"{number(change['mean'], '+.3f')} against {number(baseline['mean'])} in {seen.baseline_told}"
        rows.append(("Change", f"{told}{f' (95% interval {within}{sure})' if within else ''}"))
    return rows


def reward_chart(history: Mapping[str, Any] | None, width: int, height: int) -> Text | None:
    """Mean reward over time with its interval; None without two points."""
    points = [] if history is None else [point for point in history["points"] if point["mean"] is not None]
    if history is None or len(points) < 2:
        return None
    means = [point["mean"] for point in points]
    lows = [mean if point["low"] is None else point["low"] for point, mean in zip(points, means, strict=True)]
    highs = [mean if point["high"] is None else point["high"] for point, mean in zip(points, means, strict=True)]
    # An interval from a reward or two says little, and would squeeze all others.
    spread = max(means) - min(means) or 0.1
    lows = [max(low, min(means) - spread) for low in lows]
    highs = [min(high, max(means) + spread) for high in highs]
    times = [point["time"] for point in points]
    line = Line(times, means, lows, highs, style="bold cyan", gap=max(6.0 * history["step_seconds"], 60.0))
    told = Text(f"Mean reward in {SPANS.get(history['span'], history['span'])} (shaded: 95% interval)\n", style="bold")
    chart = plot([line], width, height, y_told=lambda y: number(y, ".2f"), x_told=lambda t: moment(t, times[-1]))
    return Text("").append_text(told).append_text(chart)


def groups_table(groups: Mapping[str, Any], most: int, width: int) -> Table:
    """The largest sets, a line each; for terminals that are wide."""
    headings = ("around", "users", "state", "apart at most", "reward", "likes")
    made = table(_title(groups, most), headings, ("around", "state", "likes"))
    for group in groups["clusters"][:most]:
        progress = group["progress"]
        bars = "" if width < WIDE or group["returned"] or progress is None else f" {bar(progress)}"
        made.add_row(
            Text(str(group["seed"] or DASH)),
            f"{group['size']:,}",
            _state(group) + bars,
            _apart(group),
            number(group["mean_reward"]),
            Text(_likes(group) or DASH),
        )
    return made


def groups_told(groups: Mapping[str, Any], most: int, width: int) -> RenderableType:  # noqa: ARG001 - as the table
    """The largest sets in words."""
    told: list[RenderableType] = [Text(_title(groups, most), style="bold")]
    for group in groups["clusters"][:most]:
        words = [many(group["size"], "user", "users"), _state(group)]
        words += [f"at most {_apart(group)} apart"] if _apart(group) != DASH else []
        words += [f"reward {number(group['mean_reward'])}"] if group["mean_reward"] is not None else []
        likes = _likes(group)
        told.append(Text.assemble((str(group["seed"] or DASH), "bold"), ": ", ", ".join(words)))
        told += [Padding(Text(f"likes {likes}"), (0, 0, 0, 2))] if likes else []
    return Group(*told)


def _title(groups: Mapping[str, Any], most: int) -> str:
    if most >= groups["total"]:
        return many(groups["total"], "group", "groups") + ", the largest first"
    return f"The {many(most, 'largest', 'largest')} of {many(groups['total'], 'group', 'groups')}"


def _state(group: Mapping[str, Any]) -> str:
    if group["returned"]:
        return "returned"
    return "forming" if group["progress"] is None else f"forming {percent(group['progress'])}"


def _apart(group: Mapping[str, Any]) -> str:
    told = group["certificate"]
    return DASH if told is None or told > WIDEST else number(told, ".2f")


def _likes(group: Mapping[str, Any]) -> str:
    return ", ".join(f"{like['feature']} {number(like['weight'], '+.2f')}" for like in group["top_features"])

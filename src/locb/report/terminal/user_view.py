"""One user: what is known of them, and why they were shown what they were shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from locb.report.terminal.formatting import DASH, interval, many, moment, number, percent
from locb.report.terminal.layout import NARROW, facts, table
from locb.report.terminal.service_view import Seen, heading, status

MOST_FEATURES = 8


@dataclass(frozen=True)
class Person:
    """A user as the API tells them; ``user`` is None if there is nobody of that name."""

    name: str
    user: Mapping[str, Any] | None
    similar: Sequence[Mapping[str, Any]] = ()
    decisions: Sequence[Mapping[str, Any]] = ()


def user_view(seen: Seen, person: Person | None, width: int, *, plain: bool = False) -> RenderableType:
    """The user in the order in which one asks: who, what they like, who is like them, what they were shown."""
    rows: list[tuple[str, str | Text]] = []
    if seen.trouble is not None or person is None:
        rows.append(("Status", status(seen)))
    if person is None:
        return Group(heading(seen), facts(rows))
    user = person.user
    rows.append(("User", Text(person.name)))
    if user is None:
        rows.append(("Known", "There is no user of this name here: nothing was ever decided for them."))
        return Group(heading(seen), facts(rows))
    if user["served"] is not None:
        rows.append(("Learned", f"from {many(user['served'], 'reward', 'rewards')}"))
    if user["mean_reward"] is not None:
        rows.append(("Reward", f"{number(user['mean_reward'])} on average"))
    rows.append(("Groups", _groups(user["clusters"])))
    near = ", ".join(f"{one['user']} ({number(one['distance'], '.2f')} away)" for one in person.similar)
    rows.append(("Alike", Text(near or "nobody shares a group with them")))
    shown: list[RenderableType] = [heading(seen), facts(rows)]
    if user["theta"] is not None:
        shown += ["", estimate_table(user, bars=not plain and width >= NARROW)]
    shown += ["", Text("Last decisions" if person.decisions else "No decision is kept for them.", style="bold")]
    for decision in person.decisions:
        shown.append(decision_told(decision, seen.time))
    return Group(*shown)


def _groups(groups: Sequence[Mapping[str, Any]]) -> Text:
    told = []
    for group in groups:
        size = "" if group["size"] is None else f"{many(group['size'], 'user', 'users')}, "
        around = "one" if group["seed"] is None else f"that of {group['seed']}"
        told.append(f"{around} ({size}{'returned' if group['returned'] else 'forming'})")
    return Text("; ".join(told) or "none")


def _weights(user: Mapping[str, Any]) -> list[tuple[str, float, list[float] | None]]:
    """Feature, weight, interval: by the names of recent requests, else by place; the largest first."""
    theta, around = user["theta"], user["intervals"]
    named = (
        {"constant": 0, **user["feature_indices"]}
        if user["feature_indices"]
        else {str(place): place for place in range(len(theta))}
    )
    rows = []
    for name, told in named.items():
        place, sign = abs(told), -1.0 if told < 0 else 1.0
        within = None if around is None or around[place] is None else sorted(sign * edge for edge in around[place])
        rows.append((name, sign * theta[place], within))
    rows.sort(key=lambda row: -abs(row[1]))
    return rows


def estimate_table(user: Mapping[str, Any], *, bars: bool) -> Table:
    """The largest weights of the estimate with their intervals."""
    every = _weights(user)
    rows = every[:MOST_FEATURES]
    title = "What they like, as far as it is known"
    title += f": the {len(rows)} largest of {len(every)} features" if len(rows) < len(every) else ""
    headings = ["feature", "weight", "95% interval"] + ([""] if bars else [])
    made = table(title, headings, ("feature", "95% interval", ""))
    most = max((max(map(abs, [weight, *(within or ())])) for _, weight, within in rows), default=0.0) or 1.0
    for name, weight, within in rows:
        told = DASH if within is None else interval(within[0], within[-1], "+.2f")
        made.add_row(Text(name), number(weight, "+.2f"), told, *([_whisker(weight, within, most)] if bars else []))
    return made


def _whisker(weight: float, within: Sequence[float] | None, most: float, half: int = 15) -> str:
    """An interval around zero as characters: a line from edge to edge, a dot where the weight is.

    Examples
    --------
    >>> _whisker(0.5, [0.0, 1.0], 1.0, half=4)
    '    ├─●─┤'
    """
    places = [min(max(round(half + half * value / most), 0), 2 * half) for value in [weight, *(within or ())]]
    row = [" "] * (2 * half + 1)
    row[half] = "│"
    if within:
        for place in range(places[1], places[2] + 1):
            row[place] = "─"
        row[places[1]], row[places[2]] = "├", "┤"
    row[places[0]] = "●"
    return "".join(row)


def decision_told(decision: Mapping[str, Any], now: float) -> RenderableType:
    """A decision in words: what, when, what came of it, and what it rested on."""
    told = Text.assemble(
        f"{moment(decision['time'], now)}  ", (str(decision["arm"]), "bold"), f"  {_outcome(decision)}"
    )
    why = "\n".join(_explained(decision["response"].get("explanation")))
    return Group(told, Padding(Text(why), (0, 0, 0, 2)))


def _explained(explained: Mapping[str, Any] | None) -> list[str]:
    if explained is None:
        return ["not explained by this policy"]
    added = sorted(explained["contributions"].items(), key=lambda pair: -abs(pair[1]))
    pieces = [f"{name} {number(value, '+.2f')}" for name, value in added if value]
    pieces += [f"intercept {number(explained['intercept'], '+.2f')}"] if explained["intercept"] else []
    sources = [_lender(source) for source in explained["sources"] if source["weight"] > 0.005]
    told = [f"{', '.join(pieces)}; bonus {number(explained['bonus'], '+.2f')}"]
    return told + ([f"rests on {'; '.join(sources)}"] if sources else [])


def _outcome(decision: Mapping[str, Any]) -> str:
    if decision["reward_status"] == "pending" or decision["reward"] is None:
        return "waits for its reward"
    earned = number(decision["reward"], "g")
    return {
        "default": f"no reward came, learned as {earned}",
        "corrected": f"earned {earned}, later than it was waited for",
    }.get(decision["reward_status"], f"earned {earned}")


def _lender(source: Mapping[str, Any]) -> str:
    kind, seed = source["kind"], source["seed"]
    whose = {"user": "their own rewards", "everyone": "everyone", "population": "everyone"}.get(kind, f"a {kind}")
    whose += f" around {seed}" if seed is not None and kind != "user" else ""
    counted = [
        many(source[name], one, more)
        for name, one, more in (("users", "user", "users"), ("observations", "reward", "rewards"))
        if source[name] is not None
    ]
    counts = f" ({', '.join(counted)})" if counted else ""
    return f"{whose}{counts}" + (f", {percent(source['weight'])}" if source["weight"] < 0.995 else "")

"""Lines over rounds, or over whatever was varied, with bands."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from locb.evaluation.findings import LineChart
from locb.evaluation.results import Comparison, PolicyResult, ci_half_width
from locb.report.charts.chart_theme import COLOURS
from locb.report.curves import Curve


def label(entry: PolicyResult, sweep: bool) -> str:
    """The name of a line: the policy, with its alpha where several were tried."""
    return f"{entry.policy} (α = {entry.alpha:g})" if sweep and entry.alpha is not None else entry.policy


def regret_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """A row a policy and checkpoint: mean regret and its 95% band, each policy at its best alpha."""
    sweep = len(comparison.settings["alphas"]) > 1
    rows = []
    for entry in comparison.best_per_policy():
        mean = entry.regret.mean(axis=0)
        margin = np.broadcast_to(np.nan_to_num(ci_half_width(entry.regret)), mean.shape)
        for t, value, around in zip(comparison.checkpoints.tolist(), mean.tolist(), margin.tolist(), strict=True):
            band = {"low": max(0.0, value - around), "high": value + around}
            rows.append({"policy": label(entry, sweep), "round": t, "regret": value, **band})
    return rows


def _policy_colour(names: list[str], colours: list[str], **legend: Any) -> Any:
    return alt.Color(
        "policy:N",
        sort=names,
        scale=alt.Scale(domain=names, range=colours),
        legend=alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1.0, **legend),
    )


def _picked() -> Any:
    return alt.selection_point(name="policy_picked", fields=["policy"], bind="legend", toggle="true")


def _banded_lines(data: Any, y: str, title: str, form: str, colour: Any, picked: Any) -> tuple[Any, Any]:
    """A line a policy over rounds, and its band; those that are picked in the legend stand out."""
    base = alt.Chart(data).encode(x=alt.X("round:Q", title="round", axis=alt.Axis(format=",d", tickCount=5)))
    band = base.mark_area().encode(
        y=alt.Y("low:Q", title=title),
        y2="high:Q",
        color=colour,
        opacity=alt.condition(picked, alt.value(0.2), alt.value(0.02)),
    )
    line = base.mark_line(strokeWidth=2).encode(
        y=f"{y}:Q",
        color=colour,
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.1)),
        tooltip=[
            alt.Tooltip("policy:N"),
            alt.Tooltip("round:Q", format=","),
            alt.Tooltip(f"{y}:Q", format=form),
            alt.Tooltip("low:Q", format=form, title="95% from"),
            alt.Tooltip("high:Q", format=form, title="to"),
        ],
    )
    return band, line


def curve_chart(curve: Curve, policies: list[str], height: int = 280) -> Any:
    """One curve over rounds, to be filled with the rows "curves": a line a policy and repeat, a colour a policy."""
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(policies))]
    colour = _policy_colour(policies, colours, orient="top", columns=3, columnPadding=18)
    picked = _picked()
    data = alt.NamedData(name="curves")
    band, line = _banded_lines(data, curve.name, curve.axis, curve.form, colour, picked)
    scale = alt.Scale(zero=curve.least == 0.0)
    band = band.transform_filter("isValid(datum.low)").encode(y=alt.Y("low:Q", title=curve.axis, scale=scale))
    # Repeats one by one are lines of the same colour, and thinner than a mean.
    thin = alt.condition("datum.repeat === 'mean'", alt.value(2.0), alt.value(1.4))
    line = line.encode(detail="repeat:N", strokeWidth=thin)
    return (band + line.add_params(picked)).properties(width="container", height=height)


def regret_chart(comparison: Comparison, width: int = 420, height: int = 340) -> Any:
    """Cumulative regret over rounds: a line a policy, with the 95% band of the mean over repeats.

    Where the worst policy squeezes the others together, a second panel shows the others without it.
    """
    rows = regret_rows(comparison)
    sweep = len(comparison.settings["alphas"]) > 1
    entries = comparison.best_per_policy()
    colour_of = {label(entry, sweep): COLOURS[i % len(COLOURS)] for i, entry in enumerate(entries)}
    final = {label(entry, sweep): float(entry.final_regret.mean()) for entry in entries}
    names = sorted(final, key=lambda name: -final[name])
    colour = _policy_colour(names, [colour_of[name] for name in names])
    picked = _picked()

    def panel(shown: list[dict[str, Any]], title: str, subtitle: str, *params: Any) -> Any:
        band, line = _banded_lines(alt.InlineData(values=shown), "regret", "cumulative regret", ",.1f", colour, picked)
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


def series_chart(series: LineChart, width: int = 620, height: int = 340) -> Any:
    """Lines with bands, on plain or logarithmic axes; what was not measured is dashed."""
    names = list(dict.fromkeys(row["line"] for row in series.rows))
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    dashes = [[5, 4] if name in series.dashed else [1, 0] for name in names]
    picked = alt.selection_point(name="line_picked", fields=["line"], bind="legend", toggle="true")

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
        strokeDash=alt.StrokeDash("line:N", sort=names, scale=alt.Scale(domain=names, range=dashes), legend=legend),
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.1)),
        tooltip=[alt.Tooltip("line:N"), alt.Tooltip(f"{series.x}:Q"), alt.Tooltip(f"{series.y}:Q", format=",.3~f")],
    )
    heading = alt.Title(series.title, subtitle=series.subtitle)
    return (band + line.add_params(picked)).properties(width=width, height=height, title=heading)

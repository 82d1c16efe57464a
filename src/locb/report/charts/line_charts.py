"""Line charts with confidence bands, over rounds or over a parameter."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from locb.evaluation.confidence_intervals import ci_half_width
from locb.evaluation.findings import LineChart
from locb.evaluation.results import Comparison
from locb.report.charts.chart_theme import PALETTE
from locb.report.curves import Curve


def regret_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the data of a regret chart: one row per policy and checkpoint, each policy with its best parameters.

    A row has the mean regret over repeats, and the ends of its 95% confidence interval.
    """
    varied = comparison.varied_parameters
    rows = []
    for entry in comparison.best_per_policy():
        mean = entry.regret.mean(axis=0)
        margin = np.broadcast_to(np.nan_to_num(ci_half_width(entry.regret)), mean.shape)
        for t, value, half_width in zip(comparison.checkpoints.tolist(), mean.tolist(), margin.tolist(), strict=True):
            band = {"low": max(0.0, value - half_width), "high": value + half_width}
            rows.append({"policy": entry.label(varied), "round": t, "regret": value, **band})
    return rows


def _policy_colour(names: list[str], colours: list[str], **legend: Any) -> Any:
    return alt.Color(
        "policy:N",
        sort=names,
        scale=alt.Scale(domain=names, range=colours),
        legend=alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1.0, **legend),
    )


def _policy_selection(suffix: str = "") -> Any:
    return alt.selection_point(name=f"policy_picked{suffix}", fields=["policy"], bind="legend", toggle="true")


def _banded_lines(data: Any, y: str, title: str, spec: str, colour: Any, selection: Any) -> tuple[Any, Any]:
    """Return two charts, the confidence bands and the lines of policies over rounds.

    Policies that the reader selects in the legend are highlighted.
    """
    base = alt.Chart(data).encode(x=alt.X("round:Q", title="round", axis=alt.Axis(format=",d", tickCount=5)))
    band = base.mark_area().encode(
        y=alt.Y("low:Q", title=title),
        y2="high:Q",
        color=colour,
        opacity=alt.condition(selection, alt.value(0.2), alt.value(0.02)),
    )
    line = base.mark_line(strokeWidth=2).encode(
        y=f"{y}:Q",
        color=colour,
        opacity=alt.condition(selection, alt.value(1.0), alt.value(0.1)),
        tooltip=[
            alt.Tooltip("policy:N"),
            alt.Tooltip("round:Q", format=","),
            alt.Tooltip(f"{y}:Q", format=spec),
            alt.Tooltip("low:Q", format=spec, title="95% CI from"),
            alt.Tooltip("high:Q", format=spec, title="to"),
        ],
    )
    return band, line


def curve_chart(curve: Curve, policies: list[str], height: int = 280) -> Any:
    """Return a chart of one quantity over rounds, with one line per policy and value of the field ``repeat``.

    The script of the page fills the dataset ``curves``. The repeat "mean" is the mean over repeats.
    """
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(policies))]
    colour = _policy_colour(policies, colours, orient="top", columns=3, columnPadding=18)
    selection = _policy_selection()
    data = alt.NamedData(name="curves")
    band, line = _banded_lines(data, curve.name, curve.axis_title, curve.spec, colour, selection)
    scale = alt.Scale(zero=curve.lower_bound == 0.0)
    band = band.transform_filter("isValid(datum.low)").encode(y=alt.Y("low:Q", title=curve.axis_title, scale=scale))
    # The line of a single repeat has the colour of its policy and is thinner than the line of the mean.
    stroke_width = alt.condition("datum.repeat === 'mean'", alt.value(2.0), alt.value(1.4))
    line = line.encode(detail="repeat:N", strokeWidth=stroke_width)
    return (band + line.add_params(selection)).properties(width="container", height=height)


def regret_chart(comparison: Comparison, width: int = 420, height: int = 340, suffix: str = "") -> Any:
    """Return a chart of the cumulative regret of each policy over rounds, with the 95% confidence band of the mean.

    With three or more policies, a second panel omits the policy with the highest final regret if that regret is more
    than twice the second highest. Charts that are combined need different values of ``suffix``, the end of the name of
    the selection, because Vega-Lite confuses lines with the same selection.
    """
    rows = regret_rows(comparison)
    varied = comparison.varied_parameters
    entries = comparison.best_per_policy()
    colour_of = {entry.label(varied): PALETTE[i % len(PALETTE)] for i, entry in enumerate(entries)}
    final = {entry.label(varied): float(entry.final_regret.mean()) for entry in entries}
    names = sorted(final, key=lambda name: -final[name])
    colour = _policy_colour(names, [colour_of[name] for name in names])
    selection = _policy_selection(suffix)

    def panel(shown: list[dict[str, Any]], title: str, subtitle: str, *params: Any) -> Any:
        band, line = _banded_lines(
            alt.InlineData(values=shown), "regret", "cumulative regret", ",.1f", colour, selection
        )
        return (band + line.add_params(*params)).properties(
            width=width, height=height, title=alt.Title(title, subtitle=subtitle)
        )

    repeats = len(comparison.seeds)
    subtitle = f"mean of {repeats} repeats, shaded: 95% CI" if repeats > 1 else "one repeat"
    chart = panel(rows, "Cumulative regret (lower is better)", subtitle, selection)
    if len(names) > 2 and final[names[0]] > 2.0 * final[names[1]]:
        others = [row for row in rows if row["policy"] != names[0]]
        chart = chart | panel(others, f"Cumulative regret without {names[0]}", "enlarged scale")
    return chart


def line_chart(data: LineChart, width: int = 620, height: int = 340) -> Any:
    """Return an Altair chart of lines with confidence bands. Lines in ``data.dashed`` are dashed."""
    names = list(dict.fromkeys(row["line"] for row in data.rows))
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    dashes = [[5, 4] if name in data.dashed else [1, 0] for name in names]
    selection = alt.selection_point(name="line_picked", fields=["line"], bind="legend", toggle="true")

    def axis(name: str, log: bool) -> dict[str, Any]:
        values = [float(row[name]) for row in data.rows if name in row]
        large = max(map(abs, values), default=0.0) >= 100
        scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=name == data.y)
        ticks = sorted({float(row[name]) for row in data.rows}) if name == data.x and log else None
        made = alt.Axis(format="~s" if max(values, default=0) >= 1e6 and log else ",d" if large else "~g", tickCount=6)
        if ticks is not None and len(ticks) <= 8:
            made.values = ticks
        return {"scale": scale, "axis": made}

    legend = alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1.0)
    colour = alt.Color("line:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend)
    base = alt.Chart(alt.InlineData(values=data.rows)).encode(
        x=alt.X(f"{data.x}:Q", title=data.x, **axis(data.x, data.log_x))
    )
    vertical = axis(data.y, data.log_y)
    band = (
        base.transform_filter("isValid(datum.low)" + (" && datum.low > 0" if data.log_y else ""))
        .mark_area()
        .encode(
            y=alt.Y("low:Q", title=data.y, **vertical),
            y2="high:Q",
            color=colour,
            opacity=alt.condition(selection, alt.value(0.2), alt.value(0.02)),
        )
    )
    few = len(data.rows) <= 12 * len(names)
    line = base.mark_line(strokeWidth=2, point=few).encode(
        y=alt.Y(f"{data.y}:Q", title=data.y, **vertical),
        color=colour,
        strokeDash=alt.StrokeDash("line:N", sort=names, scale=alt.Scale(domain=names, range=dashes), legend=legend),
        opacity=alt.condition(selection, alt.value(1.0), alt.value(0.1)),
        tooltip=[alt.Tooltip("line:N"), alt.Tooltip(f"{data.x}:Q"), alt.Tooltip(f"{data.y}:Q", format=",.3~f")],
    )
    heading = alt.Title(data.title, subtitle=data.subtitle)
    return (band + line.add_params(selection)).properties(width=width, height=height, title=heading)

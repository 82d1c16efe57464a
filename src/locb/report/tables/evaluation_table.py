"""Tables of an evaluation on a log, for terminals and HTML pages."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from locb.logs.results import BETTER, HEADINGS, UNDECIDED, WORSE, Evaluation, format_range, format_signed, summary_rows

VERDICT_STYLES = {BETTER: "green", WORSE: "red", UNDECIDED: "yellow", "baseline": "dim"}
ESTIMATE_HEADINGS = ("policy", "estimator", "value", "95% interval", "minus baseline", "interval of the difference")
WEIGHT_HEADINGS = ("policy", "decisions", "effective decisions", "largest weight", "mean weight", "never logged")


def make_evaluation_table(evaluation: Evaluation) -> Table:
    """Return the table that ``locb evaluate`` prints: one row per policy, with the estimate that decides."""
    table = Table(
        title=f"Mean reward per decision, compared with {evaluation.baseline}",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("policy", "estimator", "verdict") else "right")
    for row in summary_rows(evaluation):
        table.add_row(*(Text(cell) for cell in row[:-1]), Text(row[-1], VERDICT_STYLES[row[-1]]))
    return table


def estimate_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """Return one row of text per policy and estimator."""
    rows: list[tuple[str, ...]] = []
    for result in evaluation.results:
        for value in result.values:
            difference = value.difference
            rows.append(
                (
                    result.policy,
                    value.estimator + (" (assumes model)" if value.assumes_model else ""),
                    f"{value.value.value:.4g}",
                    format_range(value.value),
                    "–" if difference is None else format_signed(difference.value),
                    "–" if difference is None else format_range(difference),
                )
            )
    return rows


def weight_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """Return one row of text per policy with weights: the diagnostics."""
    return [
        (
            result.policy,
            f"{result.weights.decisions:,}",
            f"{result.weights.effective:,.0f}",
            f"{result.weights.largest:.4g}",
            f"{result.weights.mean.value:.3f}",
            f"{result.weights.unsupported:.1%}",
        )
        for result in evaluation.results
        if result.weights is not None
    ]


def chart_rows(evaluation: Evaluation, *, differences: bool) -> list[dict[str, Any]]:
    """Return the points of an interval chart: values, or differences from the baseline, by policy and estimator."""
    rows = []
    for result in evaluation.results:
        for order, value in enumerate(result.values):
            interval = value.difference if differences else value.value
            if interval is None:
                continue
            bounds = {"low": interval.low, "high": interval.high}
            known = {name: bound for name, bound in bounds.items() if bound == bound}
            decides = "decides" if order == 0 else "for comparison"
            label = f"{result.policy}, {value.estimator}"
            rows.append({"label": label, "value": interval.value, **known, "role": decides, "verdict": result.verdict})
    return rows

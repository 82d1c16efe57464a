"""HTML page of an evaluation on a log: verdicts, estimates with intervals, diagnostics and facts about the log."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any

from locb.logs.results import BETTER, ESTIMATORS, UNDECIDED, WORSE, Evaluation
from locb.report.charts.interval_charts import interval_chart, learning_chart
from locb.report.pages.html import render_document, render_settings, render_table
from locb.report.tables.evaluation_table import (
    ESTIMATE_HEADINGS,
    WEIGHT_HEADINGS,
    chart_rows,
    estimate_rows,
    weight_rows,
)

VERDICT_CLASSES = {BETTER: "good", WORSE: "bad", UNDECIDED: "warn"}
WEIGHT_NOTE = (
    "A weight is the probability with which the policy chooses the logged arm, divided by the propensity of that arm. "
    "The mean weight must be near 1. Effective decisions: the number of equally weighted decisions with the same "
    "precision. Never logged: share of the choices of the policy that are arms which were never chosen in the log."
)


def render_evaluation_page(evaluation: Evaluation) -> str:
    """Render the HTML page of an evaluation."""
    charts = _charts(evaluation)
    estimates, weights = estimate_rows(evaluation), weight_rows(evaluation)
    tables = {"estimates": _csv(ESTIMATE_HEADINGS, estimates), "weights": _csv(WEIGHT_HEADINGS, weights)}
    used = {value.estimator for result in evaluation.results for value in result.values}
    meaning = "; ".join(f"{name}: {text}" for name, text in ESTIMATORS.items() if name in used)
    body = [_verdicts(evaluation)]
    for name, chart in charts.items():
        body.append(
            f'<section class="card"><h2>{escape(chart["title"])}</h2>'
            f'<p class="muted small">{escape(chart["description"])}</p>'
            f'<div id="chart-{name}" class="figure-box" tabindex="-1"></div></section>'
        )
    table = render_table("estimates", ESTIMATE_HEADINGS, estimates, "Estimates of all policies")
    body.append(
        f'<section class="card"><h2>Estimates</h2>{table}<p class="muted small">{escape(meaning)}.</p></section>'
    )
    if weights:
        table = render_table("weights", WEIGHT_HEADINGS, weights, "Diagnostics of the weights")
        body.append(
            f'<section class="card"><h2>Diagnostics</h2>{table}<p class="muted small">{WEIGHT_NOTE}</p></section>'
        )
    facts = render_table("log", ("fact", "value"), list(evaluation.log.items()), "Facts about the log")
    body.append(f'<section class="card"><h2>Log</h2>{facts}</section>')
    settings = {name: value for name, value in evaluation.settings.items() if name != "curves"}
    body.append(render_settings(settings))
    data = {"charts": charts, "tables": tables}
    subtitle = f"compared with {evaluation.baseline}"
    return render_document("Evaluation of policies on a log", subtitle, "".join(body), data, ["findings.js"])


def _verdicts(evaluation: Evaluation) -> str:
    items = []
    for result in evaluation.results:
        if not result.sentence:
            continue
        badge = f'<span class="badge {VERDICT_CLASSES[result.verdict]}">{escape(result.verdict)}</span>'
        warnings = "".join(f'<p class="muted small">{escape(text)}</p>' for text in result.warnings)
        items.append(f"<li>{badge} {escape(result.sentence)}{warnings}</li>")
    notes = "".join(f'<p class="note warn">{escape(note)}</p>' for note in evaluation.notes)
    return f'<section class="card"><h2>Verdicts</h2><ul class="plain-list">{"".join(items)}</ul>{notes}</section>'


def _charts(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    charts: dict[str, dict[str, Any]] = {}
    for name, differences, title in (
        ("differences", True, f"Mean reward per decision, minus that of {evaluation.baseline}"),
        ("values", False, "Mean reward per decision"),
    ):
        rows = chart_rows(evaluation, differences=differences)
        if rows:
            spec = interval_chart(rows, title, with_zero=differences).to_dict()
            charts[name] = {"title": title, "description": "Points with 95% intervals.", "spec": spec, "rows": rows}
    curves = evaluation.settings.get("curves", {})
    rows = [
        {"policy": policy, "decision": decision, "reward": reward}
        for policy, points in curves.items()
        for decision, reward in points
    ]
    if rows:
        charts["learning"] = {
            "title": "Mean reward while policies learn",
            "description": "Mean reward of the accepted decisions so far, in the first replay. A decision is accepted "
            "if the policy chooses the logged arm.",
            "spec": learning_chart(list(curves)).to_dict(),
            "rows": rows,
        }
    return {name: chart | {"name": name} for name, chart in charts.items()}


def _csv(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([headings, *rows])
    return out.getvalue()

"""Writing of the choice of a policy on a log to a folder: report.html and tuning.json."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from html import escape
from pathlib import Path
from typing import Any

from locb.logs.results import Tuning
from locb.report.charts.interval_charts import interval_chart
from locb.report.evaluation_folder import to_plain
from locb.report.pages.evaluation_page import VERDICT_CLASSES
from locb.report.pages.html import render_document, render_settings, render_table
from locb.report.tables.tuning_table import HEADINGS, tuning_rows

CHART_NOTE = (
    "Points with 95% intervals. The first row is the value of the choice on users who did not decide it. The other "
    "rows are the estimates of all candidates; the highest of them is too high on average."
)


def render_tuning_page(tuning: Tuning) -> str:
    """Render the HTML page of the choice of a policy."""
    rows: list[dict[str, Any]] = [_point("the choice, on held-out users", tuning.value, "decides")]
    rows += [_point(candidate.name, candidate.value, "for comparison") for candidate in tuning.candidates]
    rows.append(_point("the log", tuning.logged, "for comparison"))
    spec = interval_chart(rows, "mean reward per decision", with_zero=False).to_dict()
    title = "Mean reward per decision"
    charts = {"values": {"name": "values", "title": title, "description": CHART_NOTE, "spec": spec, "rows": rows}}
    table = tuning_rows(tuning)
    candidates = render_table("candidates", HEADINGS, table, "Candidates")
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([HEADINGS, *table])
    badge = f'<span class="badge {VERDICT_CLASSES[tuning.verdict]}">{escape(tuning.verdict)}</span>'
    lines = "".join(f"<p>{escape(line)}</p>" for line in str(tuning).splitlines())
    notes = "".join(f'<p class="note warn">{escape(note)}</p>' for note in tuning.notes)
    facts = render_table("log", ("fact", "value"), list(tuning.log.items()), "Facts about the log")
    body = (
        f'<section class="card"><h2>Result</h2>{badge}{lines}{notes}</section>'
        f'<section class="card"><h2>{title}</h2><div id="chart-values" class="figure-box" tabindex="-1"></div>'
        f'<p class="muted small">{escape(CHART_NOTE)}</p></section>'
        f'<section class="card"><h2>Candidates</h2>{candidates}</section>'
        f'<section class="card"><h2>Log</h2>{facts}</section>{render_settings(tuning.settings)}'
    )
    data = {"charts": charts, "tables": {"candidates": out.getvalue()}}
    return render_document("Choice of a policy on a log", f"winner: {tuning.winner.name}", body, data, ["findings.js"])


def _point(label: str, value: Any, role: str) -> dict[str, Any]:
    bounds = {"low": value.low, "high": value.high}
    return {"label": label, "value": value.value, **{k: v for k, v in bounds.items() if v == v}, "role": role}


def write_tuning(tuning: Tuning, folder: Path) -> list[Path]:
    """Write report.html and tuning.json of the choice of a policy, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    report, record = folder / "report.html", folder / "tuning.json"
    report.write_text(render_tuning_page(tuning), encoding="utf-8")
    content = to_plain(dataclasses.asdict(tuning)) | {"winners_curse": tuning.winners_curse}
    record.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return [report, record]

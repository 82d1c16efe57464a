"""HTML page of a reproduction, verification or scenario matrix: verdicts, claims, figures and tables by section."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html import escape
from typing import Any

from locb.evaluation.findings import (
    FAILS,
    HOLDS,
    NOT_COUNTED,
    UNDECIDED,
    Claim,
    Criterion,
    Figure,
    Findings,
    HeatMap,
    ResultTable,
)
from locb.report.pages.html import render_document, render_settings, render_table
from locb.report.tables.result_table import format_csv, to_csv

VERDICT_CLASSES = {HOLDS: "good", FAILS: "bad", UNDECIDED: "warn", NOT_COUNTED: ""}


def render_findings_page(
    findings: Findings,
    summary: str,
    rule: str,
    format_criterion: Callable[[Criterion], str],
    make_chart: Callable[[Figure], Any],
) -> str:
    """Render the HTML page of findings.

    Parameters
    ----------
    findings : Findings
        Claims, tables and figures of the page.
    summary : str
        Sentence with the number of claims per verdict.
    rule : str
        Text that explains how verdicts are decided.
    format_criterion : callable
        Function that returns a criterion as text.
    make_chart : callable
        Function that returns the Altair chart of a figure.
    """
    verdicts = f"<p><strong>{escape(summary)}</strong> {escape(rule)}</p>" if findings.claims else ""
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in findings.notes)
    entries = "".join(_section_link(findings, name, heading) for name, heading in findings.sections.items())
    nav = f'<nav aria-label="Sections"><ul class="plain-list">{entries}</ul></nav>'
    body = [f'<section class="card">{verdicts}{notes}{nav}</section>']
    if findings.claims:
        body.append('<section class="card" id="filters" aria-label="Filter of claims" hidden></section>')
    figures = {figure.name for figure in findings.figures}
    for name, heading in findings.sections.items():
        claims = [claim for claim in findings.claims if claim.section == name]
        body.append(
            f'<section data-section="{len(claims)}"><div class="heading"><h2 id="{name}">{escape(heading)}</h2></div>'
        )
        body += [_render_claim(claim, figures, format_criterion) for claim in claims]
        body += [_render_figure(figure) for figure in findings.figures if figure.section == name]
        body += [_render_table(table) for table in findings.tables if table.section == name]
        body.append("</section>")
    body.append(render_settings(findings.settings))
    data = {
        "charts": {_slug(figure.name): _chart_data(figure, make_chart) for figure in findings.figures},
        "tables": {_slug(table.name): to_csv(table) for table in findings.tables},
    }
    return render_document(findings.title, "", "".join(body), data, ["findings.js"])


def _slug(name: str) -> str:
    return re.sub(r"\W", "-", name)


def _section_link(findings: Findings, name: str, heading: str) -> str:
    counts = Counter(claim.verdict for claim in findings.claims if claim.section == name)
    badges = " ".join(_badge(verdict, f"{counts[verdict]} × ") for verdict in VERDICT_CLASSES if counts[verdict])
    return f'<li><a href="#{name}">{escape(heading)}</a> {badges}</li>'


def _badge(verdict: str, prefix: str = "") -> str:
    return f'<span class="badge {VERDICT_CLASSES[verdict]}">{prefix}{escape(verdict)}</span>'


def _render_claim(claim: Claim, figures: set[str], format_criterion: Callable[[Criterion], str]) -> str:
    links = f'<a href="#table-{_slug(claim.evidence)}">table</a>'
    if claim.evidence in figures:
        links += f', <a href="#chart-{_slug(claim.evidence)}">figure</a>'
    source = claim.source.capitalize() if claim.source.startswith("not in") else f"In the paper: {claim.source}"
    criteria = "".join(
        f"<li>{escape(format_criterion(criterion))} {_badge(criterion.verdict) if len(claim.criteria) > 1 else ''}</li>"
        for criterion in claim.criteria
    )
    text = claim.vacuous or claim.explanation
    explanation = f"<p>{escape(text)}</p>" if text else ""
    return (
        f'<article class="card claim" data-verdict="{escape(claim.verdict)}" data-data="{escape(claim.data)}">'
        f"<h3>{escape(claim.statement)} {_badge(claim.verdict)}</h3>"
        f'<p class="muted small">{escape(claim.data)}. {escape(source)}. Evidence: {links}.</p>'
        f"<ul>{criteria}</ul>{explanation}</article>"
    )


def _render_figure(figure: Figure) -> str:
    """Render the HTML container of a chart.

    The title is HTML text above the chart, because text in a chart neither wraps nor is read by screen readers.
    """
    css_class = "" if isinstance(figure, HeatMap) else "figure-box"  # the width of a heat map depends on its cells
    return (
        f'<section class="card"><h3>{escape(figure.title)}</h3><p class="muted small">{escape(figure.subtitle)}</p>'
        f'<div id="chart-{_slug(figure.name)}" class="{css_class}" tabindex="-1"></div></section>'
    )


def _chart_data(figure: Figure, make_chart: Callable[[Figure], Any]) -> dict[str, Any]:
    spec: dict[str, Any] = make_chart(figure).to_dict()
    del spec["title"]
    if not isinstance(figure, HeatMap):
        spec["width"] = "container"
    (rows,) = spec.pop("datasets").values()
    return {
        "title": figure.title,
        "description": figure.subtitle,
        "name": figure.name,
        "spec": _use_dataset(spec),
        "rows": rows,
    }


def _use_dataset(spec: Any) -> Any:
    """Return a Vega-Lite specification with every data source replaced by the dataset ``rows``."""
    if isinstance(spec, list):
        return [_use_dataset(part) for part in spec]
    if not isinstance(spec, dict):
        return spec
    return {name: {"name": "rows"} if name == "data" else _use_dataset(part) for name, part in spec.items()}


def _render_table(table: ResultTable) -> str:
    table_text = render_table(_slug(table.name), *format_csv(to_csv(table)), table.title)
    note = f'<p class="muted small">{escape(table.note)}</p>' if table.note else ""
    if table.name.endswith("-settings"):
        content = f"<details><summary>{escape(table.title)}</summary>{table_text}{note}</details>"
    else:
        content = f"<h3>{escape(table.title)}</h3>{table_text}{note}"
    return f'<section class="card">{content}</section>'

"""The page of findings: from claim to evidence, with every verdict first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html import escape
from typing import Any

from locb.evaluation.findings import FAILS, HOLDS, UNDECIDED, Claim, Criterion, Figure, Findings, HeatMap, ResultTable
from locb.report.pages.html import document, settings_html, table_html
from locb.report.tables.result_table import from_csv, to_csv

KINDS = {HOLDS: "good", FAILS: "bad", UNDECIDED: "warn"}


def findings_page(
    findings: Findings,
    lead: str,
    rule: str,
    format_criterion: Callable[[Criterion], str],
    chart_of: Callable[[Figure], Any],
) -> str:
    """All verdicts first, then a section a target with its claims, figures and tables.

    ``lead`` counts the verdicts, ``rule`` says how they come about.
    """
    told = f"<p><strong>{escape(lead)}</strong> {escape(rule)}</p>" if findings.claims else ""
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in findings.notes)
    entries = "".join(_section_link(findings, name, heading) for name, heading in findings.sections.items())
    nav = f'<nav aria-label="Sections"><ul class="plain">{entries}</ul></nav>'
    body = [f'<section class="card">{told}{notes}{nav}</section>']
    if findings.claims:
        body.append('<section class="card" id="filters" aria-label="Which claims to show" hidden></section>')
    figures = {figure.name for figure in findings.figures}
    for name, heading in findings.sections.items():
        claims = [claim for claim in findings.claims if claim.section == name]
        body.append(
            f'<section data-section="{len(claims)}"><div class="head"><h2 id="{name}">{escape(heading)}</h2></div>'
        )
        body += [_claim_html(claim, figures, format_criterion) for claim in claims]
        body += [_figure_html(figure) for figure in findings.figures if figure.section == name]
        body += [_table_html(table) for table in findings.tables if table.section == name]
        body.append("</section>")
    body.append(settings_html(findings.settings))
    data = {
        "charts": {_word(figure.name): _chart(figure, chart_of) for figure in findings.figures},
        "tables": {_word(table.name): to_csv(table) for table in findings.tables},
    }
    return document(findings.title, "", "".join(body), data, ["claims.js"])


def _word(name: str) -> str:
    return re.sub(r"\W", "-", name)


def _section_link(findings: Findings, name: str, heading: str) -> str:
    found = Counter(claim.verdict for claim in findings.claims if claim.section == name)
    marks = " ".join(_badge(verdict, f"{found[verdict]} × ") for verdict in (HOLDS, FAILS, UNDECIDED) if found[verdict])
    return f'<li><a href="#{name}">{escape(heading)}</a> {marks}</li>'


def _badge(verdict: str, before: str = "") -> str:
    return f'<span class="badge {KINDS[verdict]}">{before}{escape(verdict)}</span>'


def _claim_html(claim: Claim, figures: set[str], format_criterion: Callable[[Criterion], str]) -> str:
    links = f'<a href="#table-{_word(claim.evidence)}">table</a>'
    if claim.evidence in figures:
        links += f', <a href="#chart-{_word(claim.evidence)}">figure</a>'
    source = claim.source.capitalize() if claim.source.startswith("not in") else f"In the paper: {claim.source}"
    parts = "".join(
        f"<li>{escape(format_criterion(criterion))} {_badge(criterion.verdict) if len(claim.criteria) > 1 else ''}</li>"
        for criterion in claim.criteria
    )
    why = f"<p>{escape(claim.explanation)}</p>" if claim.explanation else ""
    return (
        f'<article class="card claim" data-verdict="{escape(claim.verdict)}" data-data="{escape(claim.data)}">'
        f"<h3>{escape(claim.statement)} {_badge(claim.verdict)}</h3>"
        f'<p class="quiet small">{escape(claim.data)}. {escape(source)}. Evidence: {links}.</p>'
        f"<ul>{parts}</ul>{why}</article>"
    )


def _figure_html(figure: Figure) -> str:
    """A place for a chart; what it is called stands above it as text, which is read out and wraps."""
    kind = "" if isinstance(figure, HeatMap) else "figure-box"  # a heat map is as wide as its cells
    return (
        f'<section class="card"><h3>{escape(figure.title)}</h3><p class="quiet small">{escape(figure.subtitle)}</p>'
        f'<div id="chart-{_word(figure.name)}" class="{kind}" tabindex="-1"></div></section>'
    )


def _chart(figure: Figure, chart_of: Callable[[Figure], Any]) -> dict[str, Any]:
    spec: dict[str, Any] = chart_of(figure).to_dict()
    del spec["title"]
    if not isinstance(figure, HeatMap):
        spec["width"] = "container"
    (rows,) = spec.pop("datasets").values()
    return {"title": figure.title, "told": figure.subtitle, "name": figure.name, "spec": _with_rows(spec), "rows": rows}


def _with_rows(spec: Any) -> Any:
    """The same specification with all data from the set "rows"."""
    if isinstance(spec, list):
        return [_with_rows(part) for part in spec]
    if not isinstance(spec, dict):
        return spec
    return {name: {"name": "rows"} if name == "data" else _with_rows(part) for name, part in spec.items()}


def _table_html(table: ResultTable) -> str:
    inside = table_html(_word(table.name), *from_csv(to_csv(table)), table.title)
    note = f'<p class="quiet small">{escape(table.note)}</p>' if table.note else ""
    if table.name.endswith("-settings"):
        told = f"<details><summary>{escape(table.title)}</summary>{inside}{note}</details>"
    else:
        told = f"<h3>{escape(table.title)}</h3>{inside}{note}"
    return f'<section class="card">{told}</section>'

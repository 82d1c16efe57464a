"""Writing of the results of a reproduction, verification or scenario matrix to a folder, and tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from locb.evaluation.findings import (
    FAILS,
    HOLDS,
    NOT_COUNTED,
    UNDECIDED,
    Criterion,
    Figure,
    Findings,
    GroupMap,
    HeatMap,
    ResultTable,
    combine_verdicts,
)
from locb.report.charts.chart_theme import style
from locb.report.charts.heat_map import heat_map_chart
from locb.report.charts.line_charts import line_chart
from locb.report.charts.report_maps import groups_chart
from locb.report.pages.findings_page import render_findings_page
from locb.report.tables.result_table import format_csv, format_header, to_csv, to_markdown

VERDICT_STYLES = {HOLDS: "green", FAILS: "red", UNDECIDED: "yellow", NOT_COUNTED: "dim"}
VERDICT_RULE = (
    "A verdict comes from paired differences between runs on the same environments and rounds. A claim holds if every "
    "difference is significantly above zero, does not hold if one is significantly below zero, and is undecided "
    "otherwise. The tests are those of 95% intervals (Student's t; Wilson's interval for probabilities), corrected "
    "with Holm's method for all claims of a family: the claims on one data set, the theorems, or the evaluation or "
    "the development scenarios. A claim about all cases holds if it is true in each of them. A claim that was tested "
    "in several variants counts once, and holds only if it holds in all of them. Claims that cannot fail, or that the "
    "data cannot decide, are listed apart and not counted."
)
CRITERIA_SEPARATOR = "; "  # separates the criteria of a claim in CSV files


def format_criterion(criterion: Criterion) -> str:
    """Return the result of a criterion as text.

    The text is the detail of the criterion, if it has one. Otherwise, it is the statement and the measured difference ±
    half the width of its 95% interval.
    """
    if criterion.detail:
        return criterion.detail
    mean, margin = criterion.difference.mean, criterion.difference.margin
    if abs(mean) >= 10:
        spec = ",.0f" if abs(mean) >= 100 else ".1f"
    else:
        spec = ".3f" if mean == 0 or abs(mean) >= 0.0005 else ".2g"
    if margin != margin:
        return f"{criterion.statement}: by {format(mean, spec)}, one repeat"
    return f"{criterion.statement}: by {format(mean, spec)}" + (f" ± {format(margin, spec)}" if margin else "")


def claims_table(findings: Findings) -> ResultTable:
    """Return a table of all claims with their verdicts and evidence."""
    rows = [
        {
            "section": claim.section,
            "data": claim.data,
            "claim": claim.statement,
            "source": claim.source,
            "verdict": claim.verdict,
            "p holds": None if claim.adjusted is None else claim.adjusted[0],
            "p fails": None if claim.adjusted is None else claim.adjusted[1],
            "evidence": CRITERIA_SEPARATOR.join(format_criterion(criterion) for criterion in claim.criteria),
            "explanation": claim.vacuous or claim.explanation,
            "family": claim.family,
        }
        for claim in findings.claims
    ]
    return ResultTable("claims", "", "Claims", rows)


def contents_table(findings: Findings) -> ResultTable:
    """Return a table of contents: the sections, tables, figures and notes in reading order."""
    rows = []
    for section, heading in findings.sections.items():
        rows.append({"section": section, "kind": "section", "name": section, "title": heading, "note": ""})
        items: list[Any] = [*findings.tables, *findings.figures]
        for item in items:
            if item.section == section:
                kind = "table" if isinstance(item, ResultTable) else "figure"
                note = item.note if isinstance(item, ResultTable) else item.subtitle
                rows.append({"section": section, "kind": kind, "name": item.name, "title": item.title, "note": note})
    rows += [{"section": "", "kind": "note", "name": "", "title": "", "note": note} for note in findings.notes]
    return ResultTable("contents", "", "Contents", rows)


def summarize_verdicts(findings: Findings) -> str:
    """Return a sentence with the number of claims of the findings per verdict."""
    return count_verdicts(claims_table(findings).rows)


def make_verdict_table(findings: Findings) -> Table:
    """Return the claims of the findings, with verdicts and evidence, as a table for a terminal."""
    return make_claims_table(claims_table(findings).rows)


def make_claims_table(claims: Iterable[Mapping[str, str]]) -> Table:
    """Return the rows of claims.csv as a table for a terminal. See :func:`claims_table` for the columns."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
    for heading in ("claim", "data", "verdict", "evidence"):
        table.add_column(heading, overflow="fold", ratio=3 if heading == "evidence" else 2 if heading == "claim" else 1)
    for claim in claims:
        evidence = claim["evidence"].replace(CRITERIA_SEPARATOR, "\n")
        evidence += f"\n[dim]{claim['explanation']}[/]" if claim["explanation"] and claim["verdict"] != HOLDS else ""
        table.add_row(
            claim["claim"], claim["data"], f"[{VERDICT_STYLES[claim['verdict']]}]{claim['verdict']}[/]", evidence
        )
    return table


def combine_variants(claims: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    """Return the verdict of each claim, by section, family and statement. Claims that are not counted are left out.

    Variants of a claim, for example at several gammas, have one verdict. ``claims`` are rows of claims.csv.
    """
    variants: dict[tuple[str, str, str], list[str]] = {}
    for claim in claims:
        if claim["verdict"] != NOT_COUNTED:
            key = (claim["section"], claim.get("family") or "", claim["claim"])
            variants.setdefault(key, []).append(claim["verdict"])
    return {key: combine_verdicts(verdicts) for key, verdicts in variants.items()}


def count_verdicts(claims: Iterable[Mapping[str, Any]]) -> str:
    """Return a sentence with the number of claims of each verdict. ``claims`` are rows of claims.csv."""
    rows = list(claims)
    counts = Counter(combine_variants(rows).values())
    apart = sum(row["verdict"] == NOT_COUNTED for row in rows)
    listed = f" Not counted: {apart} that cannot fail or that the data cannot decide." if apart else ""
    return f"Claims: {counts[HOLDS]} hold, {counts[FAILS]} do not hold, {counts[UNDECIDED]} are undecided.{listed}"


def make_chart(figure: Figure) -> Any:
    """Return the Altair chart of a figure: a group map, a heat map or a line chart."""
    if isinstance(figure, GroupMap):
        return groups_chart(figure.theta, figure.groups, figure.title, figure.subtitle)
    return heat_map_chart(figure) if isinstance(figure, HeatMap) else line_chart(figure)


def write_findings(findings: Findings, folder: Path) -> list[Path]:
    """Write findings to a folder: tables/ (CSV and Markdown), figures/ (PNG and SVG) and index.html.

    Return the paths of index.html, tables/ and figures/.
    """
    for name in ("tables", "figures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for table in [*findings.tables, claims_table(findings), contents_table(findings)]:
        text = to_csv(table)
        header = format_header(findings.provenance)
        (folder / "tables" / f"{table.name}.csv").write_text(header + text, encoding="utf-8")
        note = f"\n\n{table.note}" if table.note else ""
        markdown = f"# {table.title}\n\n{to_markdown(*format_csv(text))}{note}\n"
        (folder / "tables" / f"{table.name}.md").write_text(markdown, encoding="utf-8")
    for figure in findings.figures:
        chart = style(make_chart(figure))
        chart.save(str(folder / "figures" / f"{figure.name}.png"), scale_factor=2)
        chart.save(str(folder / "figures" / f"{figure.name}.svg"))
    index = folder / "index.html"
    page = render_findings_page(findings, summarize_verdicts(findings), VERDICT_RULE, format_criterion, make_chart)
    index.write_text(page, encoding="utf-8")
    return [index, folder / "tables", folder / "figures"]

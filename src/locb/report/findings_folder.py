"""The folder of a reproduction or a verification: tables, figures, and one page from claim to evidence."""

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
    UNDECIDED,
    Criterion,
    Figure,
    Findings,
    GroupMap,
    HeatMap,
    ResultTable,
)
from locb.report.charts import groups_chart, series_chart, style
from locb.report.charts.heat_map import heat_map_chart
from locb.report.pages.findings_page import findings_page
from locb.report.tables.result_table import from_csv, to_csv, to_markdown

COLOURS = {HOLDS: "green", FAILS: "red", UNDECIDED: "yellow"}
RULE = (
    "A verdict comes from paired differences between runs on the same environments and rounds. "
    "A claim holds if the 95% interval of every difference is above zero, does not hold if one interval is "
    "below zero, and is undecided otherwise. Claims about probabilities use Wilson's interval. "
    "Claims about all cases are decided by counting."
)
CLAIMS, CONTENTS = "claims", "contents"
CRITERIA_SEPARATOR = "; "  # of the evidence of a claim


def format_criterion(criterion: Criterion) -> str:
    """One comparison in words: what is said to be above zero, and by how much it is."""
    if criterion.detail:
        return criterion.detail
    mean, margin = criterion.difference.mean, criterion.difference.margin
    if abs(mean) >= 10:
        form = ",.0f" if abs(mean) >= 100 else ".1f"
    else:
        form = ".3f" if mean == 0 or abs(mean) >= 0.0005 else ".2g"
    if margin != margin:
        return f"{criterion.statement}: by {format(mean, form)}, one repeat"
    return f"{criterion.statement}: by {format(mean, form)}" + (f" ± {format(margin, form)}" if margin else "")


def claims_table(findings: Findings) -> ResultTable:
    """Every claim with its verdict and what it rests on."""
    rows = [
        {
            "section": claim.section,
            "data": claim.data,
            "claim": claim.statement,
            "source": claim.source,
            "verdict": claim.verdict,
            "evidence": CRITERIA_SEPARATOR.join(format_criterion(criterion) for criterion in claim.criteria),
            "explanation": claim.explanation,
        }
        for claim in findings.claims
    ]
    return ResultTable(CLAIMS, "", "Claims", rows)


def contents_table(findings: Findings) -> ResultTable:
    """What there is, in the order of reading."""
    rows = []
    for section, heading in findings.sections.items():
        rows.append({"section": section, "kind": "section", "name": section, "title": heading, "note": ""})
        things: list[Any] = [*findings.tables, *findings.figures]
        for thing in things:
            if thing.section == section:
                kind = "table" if isinstance(thing, ResultTable) else "figure"
                note = thing.note if isinstance(thing, ResultTable) else thing.subtitle
                rows.append({"section": section, "kind": kind, "name": thing.name, "title": thing.title, "note": note})
    rows += [{"section": "", "kind": "note", "name": "", "title": "", "note": note} for note in findings.notes]
    return ResultTable(CONTENTS, "", "Contents", rows)


def verdicts_told(findings: Findings) -> str:
    """One sentence: how many claims hold."""
    return verdicts_counted(claim.verdict for claim in findings.claims)


def verdict_table(findings: Findings) -> Table:
    """What the terminal shows: a line a claim."""
    return claims_shown(claims_table(findings).rows)


def claims_shown(claims: Iterable[Mapping[str, str]]) -> Table:
    """Rows of the table of claims for a terminal."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
    for heading in ("claim", "data", "verdict", "evidence"):
        table.add_column(heading, overflow="fold", ratio=3 if heading == "evidence" else 2 if heading == "claim" else 1)
    for claim in claims:
        told = claim["evidence"].replace(CRITERIA_SEPARATOR, "\n")
        told += f"\n[dim]{claim['explanation']}[/]" if claim["explanation"] and claim["verdict"] != HOLDS else ""
        table.add_row(claim["claim"], claim["data"], f"[{COLOURS[claim['verdict']]}]{claim['verdict']}[/]", told)
    return table


def verdicts_counted(verdicts: Iterable[str]) -> str:
    """One sentence: how many claims hold."""
    counts = Counter(verdicts)
    return f"Claims: {counts[HOLDS]} hold, {counts[FAILS]} do not hold, {counts[UNDECIDED]} are undecided."


def chart_of(figure: Figure) -> Any:
    """The chart of a figure."""
    if isinstance(figure, GroupMap):
        return groups_chart(figure.theta, figure.groups, figure.title, figure.subtitle)
    return heat_map_chart(figure) if isinstance(figure, HeatMap) else series_chart(figure)


def write_findings(findings: Findings, folder: Path) -> list[Path]:
    """Write tables/ (CSV and Markdown), figures/ (PNG and SVG) and index.html; the files to look at first."""
    for name in ("tables", "figures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for table in [*findings.tables, claims_table(findings), contents_table(findings)]:
        text = to_csv(table)
        (folder / "tables" / f"{table.name}.csv").write_text(text, encoding="utf-8")
        note = f"\n\n{table.note}" if table.note else ""
        markdown = f"# {table.title}\n\n{to_markdown(*from_csv(text))}{note}\n"
        (folder / "tables" / f"{table.name}.md").write_text(markdown, encoding="utf-8")
    for figure in findings.figures:
        chart = style(chart_of(figure))
        chart.save(str(folder / "figures" / f"{figure.name}.png"), scale_factor=2)
        chart.save(str(folder / "figures" / f"{figure.name}.svg"))
    index = folder / "index.html"
    page = findings_page(findings, verdicts_told(findings), RULE, format_criterion, chart_of)
    index.write_text(page, encoding="utf-8")
    return [index, folder / "tables", folder / "figures"]

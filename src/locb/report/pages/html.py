"""Rendering of self-contained HTML pages, with content, data, styles and scripts in one file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from locb.report.charts.chart_theme import THEMES
from locb.report.charts.vega_bundle import vega_script

_NUMBER = re.compile(r"[-−+]?[\d,.]+(e[-+]?\d+)?( ± [\d,.]+(e[-+]?\d+)?)?|–|")


def render_table(
    name: str, headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str, css_class: str = ""
) -> str:
    """Render an HTML table. The script of the page makes the table sortable.

    If the data of the page has CSV for ``name``, the script also adds a download button.

    Parameters
    ----------
    name : str
        Name of the table, part of its HTML id.
    headings, rows : sequence
        Text of the headings and cells. Columns of numbers are right-aligned.
    caption : str
        Caption for screen readers.
    css_class : str, default ""
        CSS class of the table.
    """
    numeric = [
        any(row[column] not in ("", "–") for row in rows) and all(_NUMBER.fullmatch(row[column]) for row in rows)
        for column in range(len(headings))
    ]

    def cell(tag: str, text: str, is_number: bool) -> str:
        attribute = ' class="number"' if is_number else ""
        return f"<{tag}{attribute}>{escape(text)}</{tag.split()[0]}>"

    head = "".join(cell('th scope="col"', text, is_number) for text, is_number in zip(headings, numeric, strict=True))
    body = "".join(
        "<tr>" + "".join(cell("td", text, is_number) for text, is_number in zip(row, numeric, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div id="table-{name}" data-table="{name}" tabindex="-1"><div class="scroll"><table class="{css_class}">'
        f'<caption class="visually-hidden">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )


def render_settings(settings: Mapping[str, Any]) -> str:
    """Render settings as JSON in a collapsed section."""
    content = f"<pre>{escape(json.dumps(settings, indent=2))}</pre>"
    return f'<section class="card"><details><summary>Settings and versions</summary>{content}</details></section>'


def render_document(title: str, subtitle: str, body: str, data: Mapping[str, Any], scripts: Sequence[str]) -> str:
    """Render a complete HTML page.

    Parameters
    ----------
    title, subtitle : str
        Heading of the page.
    body : str
        HTML of the main element.
    data : mapping
        Data for the scripts, written as JSON. ``tables`` maps the names of tables to their CSV.
    scripts : sequence of str
        Names of scripts in report/assets/ for this kind of page. They run after the scripts that all pages share.
    """
    data_json = json.dumps({"themes": THEMES, **data}, separators=(",", ":")).replace("<", "\\u003c")
    code = "\n".join(_asset(name) for name in ("ui.js", "ui_chart.js", "ui_table.js", "report.js", *scripts))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_asset('theme.css')}\n{_asset('report.css')}</style></head><body>"
        '<a class="skip-link" href="#main">Skip to the results</a>'
        f'<header class="topbar"><div class="container"><h1>{escape(title)}</h1>'
        f'<span class="muted">{escape(subtitle)}</span>'
        '<button type="button" id="theme" class="button ghost small push-right" hidden></button></div></header>'
        f'<main class="container" id="main" tabindex="-1">'
        '<noscript><p class="note warn">Charts, sorting and filters need JavaScript, which is disabled. Tables and '
        f"settings are complete.</p></noscript>{body}</main>"
        f'<script type="application/json" id="data">{data_json}</script>'
        f"<script>{_vega()}</script><script>{code}</script></body></html>"
    )


def _asset(name: str) -> str:
    return (files("locb.report") / "assets" / name).read_text(encoding="utf-8")


_vega = cache(vega_script)  # the first call takes 1 to 2 s

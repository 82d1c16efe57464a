"""A page that needs nothing but itself: what it tells, its data, its look and its scripts in one file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from locb.report.charts import THEMES
from locb.report.charts.vega_bundle import vega

_NUMBER = re.compile(r"[-−+]?[\d,.]+(e[-+]?\d+)?( ± [\d,.]+(e[-+]?\d+)?)?|–|")


def table_html(name: str, headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str, kind: str = "") -> str:
    """A table; every cell is text. The page's script lets it be sorted, and saved if the page has its data."""
    numbers = [
        any(row[place] not in ("", "–") for row in rows) and all(_NUMBER.fullmatch(row[place]) for row in rows)
        for place in range(len(headings))
    ]

    def cell(tag: str, text: str, number: bool) -> str:
        look = ' class="number"' if number else ""
        return f"<{tag}{look}>{escape(text)}</{tag.split()[0]}>"

    head = "".join(cell('th scope="col"', text, number) for text, number in zip(headings, numbers, strict=True))
    body = "".join(
        "<tr>" + "".join(cell("td", text, number) for text, number in zip(row, numbers, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div id="table-{name}" data-table="{name}" tabindex="-1"><div class="scroll"><table class="{kind}">'
        f'<caption class="only-heard">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )


def settings_html(settings: Mapping[str, Any]) -> str:
    """What was asked for, folded up."""
    told = f"<pre>{escape(json.dumps(settings, indent=2))}</pre>"
    return f'<section class="card"><details><summary>Settings and versions</summary>{told}</details></section>'


def document(title: str, about: str, body: str, data: Mapping[str, Any], scripts: Sequence[str]) -> str:
    """A whole page. ``data`` is for its scripts, which are named as files in assets/ and follow those of all pages.

    In ``data``, ``tables`` maps the names of tables to their CSV.
    """
    told = json.dumps({"themes": THEMES, **data}, separators=(",", ":")).replace("<", "\\u003c")
    code = "\n".join(_asset(name) for name in ("look.js", "report.js", *scripts))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_asset('look.css')}\n{_asset('report.css')}</style></head><body>"
        '<a class="skip" href="#main">Skip to the results</a>'
        f'<header class="top"><div class="wide"><h1>{escape(title)}</h1><span class="quiet">{escape(about)}</span>'
        '<button type="button" id="theme" class="button plain small spread" hidden></button></div></header>'
        f'<main class="wide" id="main" tabindex="-1">'
        '<noscript><p class="note warn">Charts, sorting and filters need JavaScript, which is off. The tables and '
        f"settings are all here.</p></noscript>{body}</main>"
        f'<script type="application/json" id="data">{told}</script>'
        f"<script>{_vega()}</script><script>{code}</script></body></html>"
    )


def _asset(name: str) -> str:
    return (files("locb.report") / "assets" / name).read_text(encoding="utf-8")


_vega = cache(vega)  # a second or two

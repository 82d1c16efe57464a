"""A page that needs nothing but itself: charts, their scripts and the table in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import vl_convert

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222;
       background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; } th, td { padding: .3rem .8rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #222; } tbody tr { border-bottom: 1px solid #ddd; }
tbody tr:first-child { font-weight: 600; }
pre { background: #f5f5f5; padding: 1rem; overflow-x: auto; }
"""


def table_html(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; every cell is text."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _inside_script(value: Any) -> str:
    """JSON that cannot end the script it stands in."""
    return json.dumps(value).replace("</", "<\\/")


def page(title: str, lead: str, table: str, charts: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The whole page. ``charts`` maps a heading to a Vega-Lite specification."""
    sections, calls = [], []
    for number, (heading, spec) in enumerate(charts.items()):
        sections.append(f'<h2>{escape(heading)}</h2><div class="scroll"><div id="chart{number}"></div></div>')
        calls.append(f'vegaEmbed("#chart{number}", {_inside_script(spec)}, {{actions: {{export: true}}}});')
    scripts = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")  # with Vega and Vega-Lite in it
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1><p>{escape(lead)}</p>{table}{''.join(sections)}"
        f"<h2>Settings</h2><pre>{escape(json.dumps(settings, indent=2))}</pre>"
        f"<script>{scripts}</script><script>{''.join(calls)}</script></body></html>"
    )

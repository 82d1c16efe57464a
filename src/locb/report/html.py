"""A page that needs nothing but itself: charts, their scripts and the table in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from locb.report.vega import vega_script

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222;
       background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; } th, td { padding: .3rem .8rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #222; } tbody tr { border-bottom: 1px solid #ddd; }
.first tbody tr:first-child { font-weight: 600; }
.quiet { color: #555; font-size: .9rem; } h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
.claim { border-left: 3px solid #ddd; padding-left: 1rem; margin: 1rem 0; } .claim ul { margin: .3rem 0; }
.badge { border-radius: .8rem; padding: .05rem .6rem; font-size: .8rem; font-weight: 600; white-space: nowrap; }
.holds { background: #d8f0e3; color: #0b4a2d; } .fails { background: #fbdcd5; color: #7a1f0a; }
.open { background: #f3ecd0; color: #574400; }
details { margin: 1rem 0; } summary { cursor: pointer; }
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
    """The page of a comparison. ``charts`` maps a heading to a Vega-Lite specification."""
    body = [f'<p>{escape(lead)}</p><div class="first">{table}</div>']
    for number, heading in enumerate(charts):
        body.append(f'<h2>{escape(heading)}</h2><div class="scroll"><div id="chart{number}"></div></div>')
    body.append(f"<h2>Settings</h2><pre>{escape(json.dumps(settings, indent=2))}</pre>")
    return document(title, "".join(body), {f"chart{number}": spec for number, spec in enumerate(charts.values())})


def document(title: str, body: str, charts: Mapping[str, Any]) -> str:
    """A whole page. ``charts`` maps the id of an element of the body to a Vega-Lite specification."""
    calls = [
        f'vegaEmbed("#{name}", {_inside_script(spec)}, {{actions: {{export: true}}}});' for name, spec in charts.items()
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1>{body}"
        f"<script>{vega_script()}</script><script>{''.join(calls)}</script></body></html>"
    )

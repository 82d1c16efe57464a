"""HTML page of a comparison: result table, interactive curves and user map."""

from __future__ import annotations

from html import escape
from typing import Any

from locb.evaluation.results import Comparison
from locb.report.charts.chart_theme import PALETTE
from locb.report.charts.line_charts import curve_chart
from locb.report.charts.report_maps import map_chart
from locb.report.curves import CURVES, curves_page_data
from locb.report.pages.cluster_timeline import cluster_timeline_data
from locb.report.pages.html import render_document, render_settings, render_table
from locb.report.tables.comparison_table import COLUMN_NOTES, comparison_headings, comparison_rows, make_result_table
from locb.report.tables.result_table import to_csv

_INTERACTIVE_SECTIONS = """
<section id="explore" aria-labelledby="explore-heading" hidden>
<div class="heading"><h2 id="explore-heading">Curves over rounds</h2></div>
<div class="card controls" id="choices"></div>
<div class="columns" id="curves"></div>
</section>
<section id="map" aria-labelledby="map-heading" hidden>
<div class="heading"><h2 id="map-heading">Users and clusters</h2></div>
<div class="card"><div class="controls" id="map-choices"></div><p id="map-summary" aria-live="polite"></p>
<div class="columns map"><div><h3>True clusters</h3><div id="map-true"></div></div>
<div><h3 id="map-found-heading"></h3><div id="map-found"></div></div></div>
<p class="muted small" id="map-description"></p>
<details><summary>Show as a table</summary><div id="map-table"></div></details></div>
</section>
"""


def render_comparison_page(comparison: Comparison, provenance: dict[str, Any]) -> str:
    """Render the HTML page of a comparison.

    Parameters
    ----------
    comparison : Comparison
        Results to show.
    provenance : dict
        Settings, random seeds and versions of the run, shown at the end of the page.
    """
    settings = comparison.settings
    repeats = settings["repeats"]
    notes = "".join(f'<p class="note warn">{escape(note)}</p>' for note in comparison.notes)
    repeats_text = f"mean of {repeats} repeats ± 95% CI" if repeats > 1 else "one repeat"
    rows = comparison_rows(comparison)
    table = render_table(
        "results", comparison_headings(comparison), rows, "Results, lowest regret first", "highlight-first"
    )
    body = (
        f'<section class="card" aria-labelledby="result"><div class="heading"><h2 id="result">Result</h2>'
        f'<p class="muted">{settings["rounds"]:,} rounds, {repeats_text}</p></div>'
        f'<p class="note info">{escape(comparison.verdict())}</p>{notes}'
        f"{table}"
        f'<p class="muted small">{escape(COLUMN_NOTES)}</p></section>'
    )
    timeline = cluster_timeline_data(comparison)
    data = {
        "policies": settings["policies"],
        "colours": PALETTE,
        "parameters": _varied_values(comparison),
        "repeats": repeats,
        "seeds": comparison.seeds,
        "rounds": settings["rounds"],
        "entries": [
            {"policy": entry.policy, "parameters": entry.parameters, "regret": float(entry.final_regret.mean())}
            for entry in comparison.results
        ],
        "curves": _curve_data(comparison),
        "map": timeline,
        "map_spec": map_chart(timeline["n_clusters"]).to_dict() if timeline else None,
        "tables": {"results": to_csv(make_result_table(comparison))},
    }
    names = ", ".join(settings["policies"])
    scripts = ("comparison_curves.js", "comparison_map.js")
    return render_document(
        "Comparison of policies", names, body + _INTERACTIVE_SECTIONS + render_settings(provenance), data, scripts
    )


def _varied_values(comparison: Comparison) -> dict[str, list[Any]]:
    """Return the values of each parameter of which a policy has several values."""
    values: dict[str, list[Any]] = {name: [] for name in comparison.varied_parameters}
    for name, found in values.items():
        for entry in comparison.results:
            if name in entry.parameters and entry.parameters[name] not in found:
                found.append(entry.parameters[name])
    return values


def _curve_data(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the data and chart specification of each curve."""
    data = curves_page_data(comparison)
    return [
        {
            "name": curve.name,
            "title": curve.title,
            "description": curve.description,
            "digits": 0 if curve.spec.startswith(",") else int(curve.spec[1]),
            "spec": curve_chart(curve, comparison.settings["policies"]).to_dict(),
            **data[curve.name],
        }
        for curve in CURVES
        if curve.name in data
    ]

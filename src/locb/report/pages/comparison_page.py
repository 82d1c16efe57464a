"""The page of a comparison: who won, and everything over rounds to explore."""

from __future__ import annotations

from html import escape
from typing import Any

from locb.evaluation.findings import Measurement, ResultTable
from locb.evaluation.results import Comparison
from locb.report.charts import COLOURS, curve_chart, map_chart
from locb.report.curves import CURVES, curves_shown
from locb.report.pages.cluster_timeline import forming_shown
from locb.report.pages.html import document, settings_html, table_html
from locb.report.tables.comparison_table import COLUMNS_TOLD, HEADINGS, comparison_rows
from locb.report.tables.result_table import to_csv

_EXPLORE = """
<section id="explore" aria-labelledby="explore-heading" hidden>
<div class="head"><h2 id="explore-heading">Over the rounds</h2></div>
<div class="card controls" id="choices"></div>
<div class="columns" id="curves"></div>
</section>
<section id="map" aria-labelledby="map-heading" hidden>
<div class="head"><h2 id="map-heading">Users and their groups</h2></div>
<div class="card"><div class="controls" id="map-choices"></div><p id="map-told" aria-live="polite"></p>
<div class="columns map"><div><h3>True clusters</h3><div id="map-true"></div></div>
<div><h3 id="map-found-heading"></h3><div id="map-found"></div></div></div>
<p class="quiet small" id="map-how"></p>
<details><summary>The same as a table</summary><div id="map-table"></div></details></div>
</section>
"""


def comparison_page(comparison: Comparison, about: dict[str, Any]) -> str:
    """The whole page; ``about`` are the settings, seeds and versions that it tells."""
    settings = comparison.settings
    repeats = settings["repeats"]
    notes = "".join(f'<p class="note warn">{escape(note)}</p>' for note in comparison.notes)
    over = f"mean of {repeats} repeats ± 95% interval" if repeats > 1 else "one repeat"
    body = (
        f'<section class="card" aria-labelledby="result"><div class="head"><h2 id="result">Result</h2>'
        f'<p class="quiet">{settings["rounds"]:,} rounds, {over}</p></div>'
        f'<p class="note info">{escape(comparison.verdict())}</p>{notes}'
        f"{table_html('results', HEADINGS, comparison_rows(comparison), 'Results, lowest regret first', 'first')}"
        f'<p class="quiet small">{escape(COLUMNS_TOLD)}</p></section>'
    )
    best = comparison.best_per_policy()
    forming = forming_shown(comparison)
    data = {
        "policies": settings["policies"],
        "colours": COLOURS,
        "alphas": settings["alphas"],
        "repeats": repeats,
        "seeds": comparison.seeds,
        "rounds": settings["rounds"],
        "entries": [{"policy": entry.policy, "alpha": entry.alpha} for entry in comparison.results],
        "best": [place for place, entry in enumerate(comparison.results) if any(entry is one for one in best)],
        "curves": _curves(comparison),
        "map": forming,
        "map_spec": map_chart(forming["n_groups"]).to_dict() if forming else None,
        "tables": {"results": to_csv(_results(comparison))},
    }
    names = ", ".join(settings["policies"])
    scripts = ("curves.js", "map.js")
    return document("Bandits compared", names, body + _EXPLORE + settings_html(about), data, scripts)


def _curves(comparison: Comparison) -> list[dict[str, Any]]:
    """Each curve with its chart, to be filled by the page's script."""
    shown = curves_shown(comparison)
    return [
        {
            "name": curve.name,
            "title": curve.title,
            "told": curve.told,
            "digits": 0 if curve.form.startswith(",") else int(curve.form[1]),
            "spec": curve_chart(curve, comparison.settings["policies"]).to_dict(),
            **shown[curve.name],
        }
        for curve in CURVES
        if curve.name in shown
    ]


def _results(comparison: Comparison) -> ResultTable:
    """The table's numbers in full, for a file."""
    rows = [
        {
            "policy": entry.policy,
            "alpha": entry.alpha,
            "regret": Measurement.from_values(entry.final_regret),
            "reward": Measurement.from_values(entry.reward),
            "clusters": Measurement.from_values(entry.n_clusters),
            "f1": Measurement.from_values(entry.f1),
            "microseconds_per_round": Measurement.from_values(entry.microseconds_per_round),
        }
        for entry in comparison.results
    ]
    return ResultTable("results", "", "Results", rows)

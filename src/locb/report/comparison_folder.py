"""Writing of the results of a comparison to a folder: run.json, charts and report.html."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from locb.evaluation.results import Comparison
from locb.report.charts.chart_theme import style
from locb.report.charts.line_charts import regret_chart
from locb.report.charts.report_maps import groups_chart, users_chart
from locb.report.curves import curves_to_json
from locb.report.pages.comparison_page import render_comparison_page


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """Return the content of run.json: settings, random seeds, versions, results and curves of a comparison."""
    return {
        "settings": comparison.settings,
        "seeds": comparison.seeds,
        "versions": comparison.versions,
        "verdict": comparison.verdict(),
        "notes": comparison.notes,
        "rounds": comparison.checkpoints.tolist(),  # rounds of the points of the regret and reward curves
        "cluster_rounds": comparison.cluster_checkpoints.tolist(),  # rounds of the points of the cluster and F1 curves
        "results": [
            {
                "policy": entry.policy,
                "environment": entry.environment,
                "alpha": entry.alpha,
                "parameters": entry.parameters,
                "regret": entry.final_regret.tolist(),
                "reward": entry.reward.tolist(),
                "clusters": entry.n_clusters.tolist(),
                "f1": [None if value != value else value for value in entry.f1.tolist()],
                "microseconds_per_round": entry.microseconds_per_round.tolist(),
                "curves": curves_to_json(comparison, entry),
            }
            for entry in comparison.results
        ],
    }


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the charts, report.html and run.json of a comparison, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = {"regret.png": regret_chart(comparison)}
    if comparison.user_map is not None:
        charts["users.png"] = users_chart(comparison.user_map)
    written = []
    for name, chart in charts.items():
        style(chart).save(str(folder / name), scale_factor=2)
        written.append(folder / name)
    if comparison.user_map is None:
        (folder / "users.png").unlink(missing_ok=True)  # an earlier comparison may have written it
    data = comparison_to_json(comparison)
    provenance = {"settings": data["settings"], "seeds": data["seeds"], "versions": data["versions"]}
    report = folder / "report.html"
    report.write_text(render_comparison_page(comparison, provenance), encoding="utf-8")
    record = folder / "run.json"
    record.write_text(_join_number_lists(json.dumps(data, indent=1)) + "\n", encoding="utf-8")
    return [*written, report, record]


def _join_number_lists(text: str) -> str:
    """Return indented JSON with each list of numbers on one line."""
    return re.sub(r"\[\n[\s\d.,eE+\-nul]+\]", lambda match: f"[{' '.join(match[0][1:-1].split())}]", text)


def write_group_chart(theta: Any, groups: list[list[int]], title: str, subtitle: str, path: Path) -> None:
    """Write an image file (.png or .svg) of users in two dimensions, coloured by group.

    See :func:`locb.report.charts.report_maps.groups_chart` for the parameters.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    style(groups_chart(theta, groups, title, subtitle)).save(str(path), scale_factor=2)

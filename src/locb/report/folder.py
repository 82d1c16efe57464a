"""The folder of a run: what was asked, the pictures, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from locb.report.charts import groups_chart, regret_chart, style, users_chart
from locb.report.html import page, table_html
from locb.report.tables import COLUMNS_TOLD, HEADINGS, comparison_rows
from locb.results import Comparison


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Settings, seeds, versions and the figures, as JSON takes them."""
    return {
        "settings": comparison.settings,
        "seeds": comparison.seeds,
        "versions": comparison.versions,
        "verdict": comparison.verdict(),
        "notes": comparison.notes,
        "results": [
            {
                "policy": entry.policy,
                "alpha": entry.alpha,
                "regret": entry.final_regret.tolist(),
                "reward": entry.reward.tolist(),
                "clusters": entry.n_clusters.tolist(),
                "f1": [None if value != value else value for value in entry.f1.tolist()],
                "microseconds": entry.microseconds.tolist(),
            }
            for entry in comparison.entries
        ],
    }


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write run.json, the pictures and report.html; the files, in the order in which to look at them."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = {"Regret over rounds": ("regret.png", regret_chart(comparison))}
    if comparison.user_map is not None:
        charts["Users and their clusters"] = ("users.png", users_chart(comparison.user_map))
    written = []
    for name, chart in charts.values():
        style(chart).save(str(folder / name), scale_factor=2)
        written.append(folder / name)
    if comparison.user_map is None:
        (folder / "users.png").unlink(missing_ok=True)  # of an earlier run
    data = comparison_json(comparison)
    specs = {heading: json.loads(style(chart).to_json()) for heading, (_, chart) in charts.items()}
    table = table_html(HEADINGS, comparison_rows(comparison))
    about = {"settings": data["settings"], "seeds": data["seeds"], "versions": data["versions"]}
    report = folder / "report.html"
    title = f"Bandits compared: {', '.join(comparison.settings['policies'])}"
    report.write_text(
        page(title, " ".join([comparison.verdict(), *comparison.notes, COLUMNS_TOLD]), table, specs, about),
        encoding="utf-8",
    )
    record = folder / "run.json"
    record.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return [*written, report, record]


def write_groups(theta: Any, groups: list[list[int]], title: str, subtitle: str, path: Path) -> None:
    """Write a picture of users in two dimensions, coloured by group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    style(groups_chart(theta, groups, title, subtitle)).save(str(path), scale_factor=2)

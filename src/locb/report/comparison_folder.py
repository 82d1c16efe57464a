"""The folder of a run: what was asked, the pictures, the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from locb.evaluation.results import Comparison
from locb.report.charts import groups_chart, regret_chart, style, users_chart
from locb.report.curves import curves_json
from locb.report.pages.comparison_page import comparison_page


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Settings, seeds, versions, the figures, and the curves over rounds, as JSON takes them."""
    return {
        "settings": comparison.settings,
        "seeds": comparison.seeds,
        "versions": comparison.versions,
        "verdict": comparison.verdict(),
        "notes": comparison.notes,
        "rounds": comparison.checkpoints.tolist(),  # of the curves of regret and reward
        "cluster_rounds": comparison.cluster_checkpoints.tolist(),  # of the curves of clusters and F1
        "results": [
            {
                "policy": entry.policy,
                "alpha": entry.alpha,
                "regret": entry.final_regret.tolist(),
                "reward": entry.reward.tolist(),
                "clusters": entry.n_clusters.tolist(),
                "f1": [None if value != value else value for value in entry.f1.tolist()],
                "microseconds_per_round": entry.microseconds_per_round.tolist(),
                "curves": curves_json(comparison, entry),
            }
            for entry in comparison.results
        ],
    }


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write run.json, the pictures and report.html; the files, in the order in which to look at them."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = {"regret.png": regret_chart(comparison)}
    if comparison.user_map is not None:
        charts["users.png"] = users_chart(comparison.user_map)
    written = []
    for name, chart in charts.items():
        style(chart).save(str(folder / name), scale_factor=2)
        written.append(folder / name)
    if comparison.user_map is None:
        (folder / "users.png").unlink(missing_ok=True)  # of an earlier run
    data = comparison_json(comparison)
    about = {"settings": data["settings"], "seeds": data["seeds"], "versions": data["versions"]}
    report = folder / "report.html"
    report.write_text(comparison_page(comparison, about), encoding="utf-8")
    record = folder / "run.json"
    record.write_text(_lists_on_a_line(json.dumps(data, indent=1)) + "\n", encoding="utf-8")
    return [*written, report, record]


def _lists_on_a_line(text: str) -> str:
    """Indented JSON in which a list of numbers takes one line, not one a number."""
    return re.sub(r"\[\n[\s\d.,eE+\-nul]+\]", lambda found: f"[{' '.join(found[0][1:-1].split())}]", text)


def write_groups(theta: Any, groups: list[list[int]], title: str, subtitle: str, path: Path) -> None:
    """Write a picture of users in two dimensions, coloured by group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    style(groups_chart(theta, groups, title, subtitle)).save(str(path), scale_factor=2)

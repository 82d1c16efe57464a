"""The comparison as a table, for a terminal and for a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from locb.evaluation.results import Comparison, ci_half_width

COLUMNS_TOLD = (
    "Regret: what was lost against always showing the best arm. Reward: mean a round. Clusters: different sets found, "
    "which may overlap. F1: how well the true clusters are found, each by the set that fits it best."
)
HEADINGS = ("policy", "alpha", "regret", "reward", "clusters", "F1", "µs/round")


def with_margin(values: Any, form: str) -> str:
    """Mean ± half of its 95% interval; a dash where there is nothing to average."""
    if np.isnan(values).all():
        return "–"
    margin = float(ci_half_width(values))
    mean = format(float(np.mean(values)), form)
    return mean if math.isnan(margin) else f"{mean} ± {format(margin, form)}"


def comparison_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """One row a policy and alpha, lowest regret first."""
    ranked = sorted(comparison.results, key=lambda entry: float(entry.final_regret.mean()))
    return [
        (
            entry.policy,
            "–" if entry.alpha is None else f"{entry.alpha:g}",
            with_margin(entry.final_regret, ",.0f"),
            f"{entry.reward.mean():.4f}",
            f"{entry.n_clusters.mean():.1f}" if entry.n_clusters.any() else "–",
            with_margin(entry.f1, ".3f"),
            f"{entry.microseconds_per_round.mean():.2f}",
        )
        for entry in ranked
    ]


def comparison_table(comparison: Comparison) -> Table:
    """The table that ``locb compare`` prints."""
    settings = comparison.settings
    repeats = settings["repeats"]
    over = f"{repeats} repeats: mean ± 95% interval" if repeats > 1 else "1 repeat"
    title = f"{settings['rounds']:,} rounds, {over}, lowest regret first"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "policy" else "right", no_wrap=True)
    for place, row in enumerate(comparison_rows(comparison)):
        table.add_row(*row, style="bold green" if place == 0 else None)
    return table


def facts_table(title: str, facts: Sequence[tuple[str, str]]) -> Table:
    """Two columns: what, and how much."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, show_header=False, padding=(0, 2))
    for what, how_much in facts:
        table.add_row(what, how_much)
    return table

"""Result table of a comparison, for terminals, HTML pages and CSV files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from locb.evaluation.confidence_intervals import ci_half_width
from locb.evaluation.findings import Measurement, ResultTable
from locb.evaluation.results import Comparison, format_value

COLUMN_NOTES = (
    "Regret: expected reward lost compared with always choosing the best arm, summed over the rounds; reward: mean per "
    "round; clusters: number of distinct clusters, which may overlap; F1: mean F1 score over the true clusters, each "
    "compared with the found cluster that has the highest F1 for it; µs/round: computation time per round."
)


def format_mean(values: Any, spec: str) -> str:
    """Return the mean ± half the width of its 95% confidence interval as text; a dash if all values are NaN.

    A single value has no interval, so the text is the value alone. The same applies to equal values.
    """
    if np.isnan(values).all():
        return "–"
    margin = float(ci_half_width(values))
    mean = format(float(np.mean(values)), spec)
    return mean if math.isnan(margin) or not np.ptp(values) else f"{mean} ± {format(margin, spec)}"


def repeats_text(repeats: int) -> str:
    """Return the number of repeats, and what the table shows of them."""
    return f"{repeats} repeats: mean ± 95% CI" if repeats > 1 else "1 repeat"


def comparison_headings(comparison: Comparison) -> tuple[str, ...]:
    """Return the headings of the result table. Alpha is always shown, and other parameters if they vary."""
    return ("policy", *_shown_parameters(comparison), "regret", "reward", "clusters", "F1", "µs/round")


def _shown_parameters(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(["alpha", *comparison.varied_parameters]))


def comparison_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the formatted rows of the result table: one per policy and parameters, lowest regret first."""
    names = _shown_parameters(comparison)
    ranked = sorted(comparison.results, key=lambda entry: float(entry.final_regret.mean()))
    return [
        (
            entry.policy,
            *(format_value(entry.parameters[name]) if name in entry.parameters else "–" for name in names),
            format_mean(entry.final_regret, ",.0f"),
            f"{entry.reward.mean():.4f}",
            f"{entry.n_clusters.mean():.1f}" if entry.n_clusters.any() else "–",
            format_mean(entry.f1, ".3f"),
            f"{entry.microseconds_per_round.mean():.2f}",
        )
        for entry in ranked
    ]


def make_comparison_table(comparison: Comparison) -> Table:
    """Return the result table that ``locb compare`` prints."""
    settings = comparison.settings
    title = f"{settings['rounds']:,} rounds, {repeats_text(settings['repeats'])}, lowest regret first"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in comparison_headings(comparison):
        table.add_column(heading, justify="left" if heading == "policy" else "right", no_wrap=True)
    for index, row in enumerate(comparison_rows(comparison)):
        table.add_row(*row, style="bold green" if index == 0 else None)
    return table


def format_comparison(comparison: Comparison) -> str:
    """Return the best result of each policy as a plain text table, with the verdict; one table per environment."""
    if comparison.parts:
        return "\n\n".join(f"{name}\n{format_comparison(part)}" for name, part in comparison.parts.items())
    best = {id(result) for result in comparison.best_per_policy()}
    ranked = sorted(comparison.results, key=lambda entry: float(entry.final_regret.mean()))
    kept = [row for entry, row in zip(ranked, comparison_rows(comparison), strict=True) if id(entry) in best]
    rows = [comparison_headings(comparison), *kept]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    each = ", best parameters of each policy" if len(kept) < len(ranked) else ""
    title = f"{comparison.checkpoints[-1]:,} rounds, {repeats_text(len(comparison.seeds))}"
    return "\n".join([f"{title}{each}", *lines, comparison.verdict(), *comparison.notes])


def make_facts_table(title: str, facts: Sequence[tuple[str, str]]) -> Table:
    """Return a table for a terminal with one row per fact: its name and its value."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, show_header=False, padding=(0, 2))
    for name, value in facts:
        table.add_row(name, value)
    return table


def make_result_table(comparison: Comparison) -> ResultTable:
    """Return the results as a table of unrounded numbers, for the CSV download."""
    rows = [
        {
            "policy": entry.policy,
            "alpha": entry.alpha,
            **entry.parameters,
            "regret": Measurement.from_values(entry.final_regret),
            "reward": Measurement.from_values(entry.reward),
            "clusters": Measurement.from_values(entry.n_clusters),
            "f1": Measurement.from_values(entry.f1),
            "microseconds_per_round": Measurement.from_values(entry.microseconds_per_round),
        }
        for entry in comparison.results
    ]
    return ResultTable("results", "", "Results", rows)

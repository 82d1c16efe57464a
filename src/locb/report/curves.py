"""Curves of a comparison over rounds: regret, reward, number of clusters and F1 of the clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.confidence_intervals import ci_half_width
from locb.evaluation.results import Comparison, PolicyResult

REWARD_WINDOWS = 20  # the reward curve is a mean over 1/20 of all rounds
MAX_PAGE_NUMBERS = 150_000  # limit of the numbers on a page; larger comparisons show fewer points


@dataclass(frozen=True)
class Curve:
    """Definition of a quantity that is drawn over rounds."""

    name: str  # also the name of the column in files
    title: str
    description: str
    axis_title: str
    spec: str  # format specification of the values
    values: Callable[[Comparison, PolicyResult], Floats | None]  # array (repeats, points); None if not applicable
    rounds: Callable[[Comparison], Ints]  # round of each point
    lower_bound: float = 0.0  # smallest possible value; confidence bands are clipped to the bounds
    upper_bound: float = np.inf  # largest possible value


def recent_reward(comparison: Comparison, entry: PolicyResult) -> Floats | None:
    """Return the mean reward per round in the window before each checkpoint: array (repeats, points).

    The window has 5% of all rounds, and fewer at the start. Values in the first 1% of all rounds are NaN, because a
    mean of few rewards is not informative. The result is None if the rewards were not recorded.
    """
    if entry.cumulative_reward is None:
        return None
    checkpoints = comparison.checkpoints
    window = max(1, int(checkpoints[-1]) // REWARD_WINDOWS)
    rounds = np.concatenate([[0], checkpoints])
    cumulative = np.concatenate([np.zeros((len(entry.cumulative_reward), 1)), entry.cumulative_reward], axis=1)
    start = np.searchsorted(rounds, checkpoints - window, side="right") - 1
    start = np.maximum(start, 0)
    means: Floats = (cumulative[:, 1:] - cumulative[:, start]) / (checkpoints - rounds[start])
    means[:, checkpoints < window / 5] = np.nan
    return means


CURVES = (
    Curve(
        "regret",
        "Regret",
        "Expected reward lost compared with always choosing the best arm, summed over rounds. Lower is better.",
        "cumulative regret",
        ",.1f",
        lambda _, entry: entry.regret,
        lambda comparison: comparison.checkpoints,
    ),
    Curve(
        "reward",
        "Reward",
        "Mean reward per round over the preceding 5% of all rounds, or fewer at the start. Higher is better.",
        "reward per round",
        ".3f",
        recent_reward,
        lambda comparison: comparison.checkpoints,
        lower_bound=-np.inf,
    ),
    Curve(
        "clusters",
        "Clusters",
        "Number of distinct clusters. Clusters of LOCB and ELOC may overlap.",
        "distinct clusters",
        ".1f",
        lambda _, entry: entry.cluster_history.count.astype(np.float64) if entry.cluster_history else None,
        lambda comparison: comparison.cluster_checkpoints,
    ),
    Curve(
        "f1",
        "F1 of the clusters",
        "Mean over the true clusters of the highest F1 score of a found cluster. 1 is a perfect match.",
        "F1",
        ".3f",
        lambda _, entry: entry.cluster_history.f1 if entry.cluster_history else None,
        lambda comparison: comparison.cluster_checkpoints,
        upper_bound=1.0,
    ),
)


def round_numbers(values: Any) -> Any:
    """Return a number, or nested lists of numbers, rounded to six significant digits, with None for NaN."""
    if isinstance(values, list):
        return [round_numbers(value) for value in values]
    return None if values != values else float(f"{values:.6g}")


def curves_to_json(comparison: Comparison, entry: PolicyResult) -> dict[str, Any]:
    """Return the curves of one result for run.json: by name, one list of values per repeat."""
    curves = {curve.name: curve.values(comparison, entry) for curve in CURVES}
    return {name: round_numbers(values.tolist()) for name, values in curves.items() if values is not None}


def curves_page_data(comparison: Comparison) -> dict[str, Any]:
    """Return the curves for a page by name: the values of every repeat, and the mean with its 95% confidence band.

    In large comparisons, the curves of regret and reward have only every second point, or fewer, to limit the size of
    the page.
    """
    repeats = comparison.settings["repeats"]
    numbers = (repeats + 3) * len(comparison.results) * 2 * len(comparison.checkpoints)
    step = -(-numbers // MAX_PAGE_NUMBERS)
    data: dict[str, Any] = {}
    for curve in CURVES:
        rounds = curve.rounds(comparison)
        kept = np.arange(len(rounds) - 1, -1, -step if rounds is comparison.checkpoints else -1)[::-1]
        lines = []
        for entry in comparison.results:
            values = curve.values(comparison, entry)
            lines.append(None if values is None else _line_data(values[:, kept], curve))
        if any(lines):
            data[curve.name] = {"rounds": rounds[kept].tolist(), "lines": lines}
    return data


def _line_data(values: Floats, curve: Curve) -> dict[str, Any]:
    mean = values.mean(axis=0)
    line = {"repeats": values.tolist(), "mean": mean.tolist()}
    if len(values) > 1:
        half_width = ci_half_width(values)
        line["low"] = np.maximum(curve.lower_bound, mean - half_width).tolist()
        line["high"] = np.minimum(curve.upper_bound, mean + half_width).tolist()
    return {name: round_numbers(value) for name, value in line.items()}

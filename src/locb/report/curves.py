"""What happened over the rounds of a comparison: regret, reward, groups and how well they match, repeat by repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.results import Comparison, PolicyResult, ci_half_width

WINDOW = 20  # rewards are averaged over the last of so many parts of a run
LARGEST = 150_000  # numbers that a page holds; beyond them it shows fewer points


@dataclass(frozen=True)
class Curve:
    """One kind of curve."""

    name: str  # of its column in files
    title: str
    told: str  # what a reader must know to read it
    axis: str
    form: str  # of its numbers
    values: Callable[
        [Comparison, PolicyResult], Floats | None
    ]  # (repeats, rounds); None where a policy has no such curve
    at: Callable[[Comparison], Ints]  # (rounds,)
    least: float = 0.0  # no band goes below this, and an axis from zero begins there
    most: float = np.inf  # no band goes beyond this


def recent_reward(comparison: Comparison, entry: PolicyResult) -> Floats | None:
    """The mean reward of the rounds before each checkpoint: of a twentieth of all rounds, or fewer at the start.

    NaN at the first checkpoints, before a hundredth of all rounds: means of a few rewards say nothing.
    """
    if entry.cumulative_reward is None:
        return None
    at = comparison.checkpoints
    window = max(1, int(at[-1]) // WINDOW)
    rounds = np.concatenate([[0], at])
    earned = np.concatenate([np.zeros((len(entry.cumulative_reward), 1)), entry.cumulative_reward], axis=1)
    begin = np.searchsorted(rounds, at - window, side="right") - 1
    begin = np.maximum(begin, 0)
    means: Floats = (earned[:, 1:] - earned[:, begin]) / (at - rounds[begin])
    means[:, at < window / 5] = np.nan
    return means


CURVES = (
    Curve(
        "regret",
        "Regret",
        "What was lost so far against always showing the best arm: the lower the better.",
        "cumulative regret",
        ",.1f",
        lambda _, entry: entry.regret,
        lambda comparison: comparison.checkpoints,
    ),
    Curve(
        "reward",
        "Reward",
        "Mean of the last twentieth of all rounds, fewer at the start: the higher the better.",
        "mean reward",
        ".3f",
        recent_reward,
        lambda comparison: comparison.checkpoints,
        least=-np.inf,
    ),
    Curve(
        "clusters",
        "Sets of users",
        "How many different sets there are. Sets of LOCB and ELOC may overlap.",
        "different sets",
        ".1f",
        lambda _, entry: entry.cluster_history.count.astype(np.float64) if entry.cluster_history else None,
        lambda comparison: comparison.cluster_checkpoints,
    ),
    Curve(
        "f1",
        "F1 of the sets",
        "How well the true clusters are found, each by the set that fits it best: 1 is all of them.",
        "F1",
        ".3f",
        lambda _, entry: entry.cluster_history.f1 if entry.cluster_history else None,
        lambda comparison: comparison.cluster_checkpoints,
        most=1.0,
    ),
)


def plain(values: Any) -> Any:
    """Numbers in six digits, as JSON takes them, with None for NaN; lists of them alike."""
    if isinstance(values, list):
        return [plain(value) for value in values]
    return None if values != values else float(f"{values:.6g}")


def curves_json(comparison: Comparison, entry: PolicyResult) -> dict[str, Any]:
    """The curves of an entry for files: a list a repeat."""
    kept = {curve.name: curve.values(comparison, entry) for curve in CURVES}
    return {name: plain(values.tolist()) for name, values in kept.items() if values is not None}


def curves_shown(comparison: Comparison) -> dict[str, Any]:
    """The curves for a page: of every entry each repeat, and the mean of all with its 95% band.

    Where that would be too much for a page, every second point is left out, or more.
    """
    repeats = comparison.settings["repeats"]
    numbers = (repeats + 3) * len(comparison.results) * 2 * len(comparison.checkpoints)
    step = -(-numbers // LARGEST)
    shown: dict[str, Any] = {}
    for curve in CURVES:
        at = curve.at(comparison)
        kept = np.arange(len(at) - 1, -1, -step if at is comparison.checkpoints else -1)[::-1]
        lines = []
        for entry in comparison.results:
            values = curve.values(comparison, entry)
            lines.append(None if values is None else _line(values[:, kept], curve))
        if any(lines):
            shown[curve.name] = {"rounds": at[kept].tolist(), "lines": lines}
    return shown


def _line(values: Floats, curve: Curve) -> dict[str, Any]:
    mean = values.mean(axis=0)
    line = {"repeats": values.tolist(), "mean": mean.tolist()}
    if len(values) > 1:
        around = ci_half_width(values)
        line["low"] = np.maximum(curve.least, mean - around).tolist()
        line["high"] = np.minimum(curve.most, mean + around).tolist()
    return {name: plain(value) for name, value in line.items()}

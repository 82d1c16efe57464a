"""A comparison read back from its run.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.results import Comparison, PolicyResult
from locb.report.curves import CURVES, Curve

RECORD = "run.json"


@dataclass(frozen=True)
class Lines:
    """A curve of every policy that has it, at the policy's best alpha: the mean of all repeats."""

    curve: Curve
    rounds: Ints  # (rounds,)
    means: dict[str, Floats]  # (rounds,) by policy


@dataclass(frozen=True)
class RunRecord:
    """What run.json tells: the comparison without its map of users, and its curves over rounds."""

    comparison: Comparison
    lines: list[Lines]  # none in the record of an earlier locb


def read_run(folder: Path) -> RunRecord:
    """The comparison that was written to this folder.

    Raises
    ------
    ValueError
        If run.json is not one of ``locb compare``.
    """
    path = folder / RECORD
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        comparison = _comparison(kept)
        return RunRecord(comparison, _lines(kept["results"], comparison))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        told = "is not JSON" if isinstance(error, json.JSONDecodeError) else f"lacks {error}"
        raise ValueError(f"{path} is not a run of locb compare: it {told}") from error


def _comparison(kept: dict[str, Any]) -> Comparison:
    entries = [
        PolicyResult(
            policy=result["policy"],
            alpha=result["alpha"],
            regret=_regret(result),
            reward=np.array(result["reward"], dtype=np.float64),
            n_clusters=np.array(result["clusters"]),
            f1=np.array(result["f1"], dtype=np.float64),
            microseconds_per_round=np.array(result["microseconds_per_round"], dtype=np.float64),
        )
        for result in kept["results"]
    ]
    return Comparison(
        settings=kept["settings"],
        checkpoints=np.array(kept.get("rounds", [kept["settings"]["rounds"]])),
        results=entries,
        user_map=None,
        seeds=kept["seeds"],
        versions=kept["versions"],
        notes=kept["notes"],
        cluster_checkpoints=np.array(kept.get("cluster_rounds", []), dtype=np.int64),
    )


def _regret(result: dict[str, Any]) -> Floats:
    """Regret over rounds, (repeats, points); its end is kept with more digits than the curve."""
    final: Floats = np.array(result["regret"], dtype=np.float64)[:, None]
    if "curves" not in result:
        return final
    return np.concatenate([np.array(result["curves"]["regret"], dtype=np.float64)[:, :-1], final], axis=1)


def _lines(results: list[dict[str, Any]], comparison: Comparison) -> list[Lines]:
    best = [(entry.policy, entry.alpha) for entry in comparison.best_per_policy()]
    shown = [result for result in results if (result["policy"], result["alpha"]) in best]
    found = []
    for curve in CURVES:
        means = {
            result["policy"]: np.array(result["curves"][curve.name], dtype=np.float64).mean(axis=0)
            for result in shown
            if curve.name in result.get("curves", {})
        }
        if means:
            found.append(Lines(curve, curve.at(comparison), means))
    return found

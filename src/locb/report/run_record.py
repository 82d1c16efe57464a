"""Reader of run.json, the record that ``locb compare`` writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.results import Comparison, PolicyResult
from locb.report.curves import CURVES, Curve

RECORD_FILE = "run.json"


@dataclass(frozen=True)
class CurveMeans:
    """Values of one curve for every policy with its best parameters, as means over repeats."""

    curve: Curve
    rounds: Ints  # round of each point
    means: dict[str, Floats]  # policy → value at each point


@dataclass(frozen=True)
class RunRecord:
    """Content of run.json: the comparison without its user map, and its curves."""

    comparison: Comparison
    curves: list[CurveMeans]  # empty if run.json has no curves


def read_run(folder: Path) -> RunRecord:
    """Read the comparison that was written to a folder.

    Raises
    ------
    OSError
        If run.json does not exist or cannot be read.
    ValueError
        If run.json does not have the format that ``locb compare`` writes.
    """
    path = folder / RECORD_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        comparison = _parse_comparison(record)
        return RunRecord(comparison, _parse_curves(record["results"], comparison))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        reason = "not valid JSON" if isinstance(error, json.JSONDecodeError) else f"missing or invalid field {error}"
        raise ValueError(f"{path} is not a record of locb compare: {reason}; run locb compare again") from error


def _parse_comparison(record: dict[str, Any]) -> Comparison:
    results = [
        PolicyResult(
            policy=result["policy"],
            alpha=result["alpha"],
            regret=_parse_regret(result),
            reward=np.array(result["reward"], dtype=np.float64),
            n_clusters=np.array(result["clusters"]),
            f1=np.array(result["f1"], dtype=np.float64),
            microseconds_per_round=np.array(result["microseconds_per_round"], dtype=np.float64),
            parameters=result.get("parameters", {}),
            environment=result.get("environment", "synthetic"),
        )
        for result in record["results"]
    ]
    return Comparison(
        settings=record["settings"],
        checkpoints=np.array(record.get("rounds", [record["settings"]["rounds"]])),
        results=results,
        user_map=None,
        seeds=record["seeds"],
        versions=record["versions"],
        notes=record["notes"],
        cluster_checkpoints=np.array(record.get("cluster_rounds", []), dtype=np.int64),
    )


def _parse_regret(result: dict[str, Any]) -> Floats:
    """Return the regret over rounds as an array (repeats, points).

    The last point comes from the field ``regret``, which has more digits than the curve.
    """
    final: Floats = np.array(result["regret"], dtype=np.float64)[:, None]
    if "curves" not in result:
        return final
    return np.concatenate([np.array(result["curves"]["regret"], dtype=np.float64)[:, :-1], final], axis=1)


def _parse_curves(results: list[dict[str, Any]], comparison: Comparison) -> list[CurveMeans]:
    best = comparison.best_per_policy()
    pairs = zip(results, comparison.results, strict=True)
    selected = [result for result, entry in pairs if any(entry is other for other in best)]
    curves = []
    for curve in CURVES:
        means = {
            result["policy"]: np.array(result["curves"][curve.name], dtype=np.float64).mean(axis=0)
            for result in selected
            if curve.name in result.get("curves", {})
        }
        if means:
            curves.append(CurveMeans(curve, curve.rounds(comparison), means))
    return curves

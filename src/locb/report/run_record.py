"""A comparison read back from its run.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from locb.results import Comparison, Entry

RECORD = "run.json"


def read_comparison(folder: Path) -> Comparison:
    """The comparison that was written to this folder, without its map of users.

    Raises
    ------
    ValueError
        If run.json is not one of ``locb compare``.
    """
    path = folder / RECORD
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return _comparison(kept)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        told = "is not JSON" if isinstance(error, json.JSONDecodeError) else f"lacks {error}"
        raise ValueError(f"{path} is not a run of locb compare: it {told}") from error


def _comparison(kept: dict[str, Any]) -> Comparison:
    entries = [
        Entry(
            policy=result["policy"],
            alpha=result["alpha"],
            regret=np.array(result["regret"], dtype=np.float64)[:, None],
            reward=np.array(result["reward"], dtype=np.float64),
            n_clusters=np.array(result["clusters"]),
            f1=np.array([np.nan if value is None else value for value in result["f1"]]),
            microseconds=np.array(result["microseconds"], dtype=np.float64),
        )
        for result in kept["results"]
    ]
    return Comparison(
        settings=kept["settings"],
        checkpoints=np.array([kept["settings"]["rounds"]]),
        entries=entries,
        user_map=None,
        seeds=kept["seeds"],
        versions=kept["versions"],
        notes=kept["notes"],
    )

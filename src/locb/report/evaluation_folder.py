"""Writing of an evaluation on a log to a folder: report.html and evaluation.json."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from locb.logs.results import Evaluation
from locb.report.pages.evaluation_page import render_evaluation_page


def evaluation_to_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the content of evaluation.json. Bounds that are not known are null."""
    content: dict[str, Any] = to_plain(dataclasses.asdict(evaluation))
    return content


def to_plain(value: Any) -> Any:
    """Return a value as JSON types; numbers that are not known become None."""
    if isinstance(value, dict):
        return {name: to_plain(part) for name, part in value.items()}
    if hasattr(value, "_asdict"):
        return to_plain(value._asdict())
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def write_evaluation(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Write report.html and evaluation.json of an evaluation, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    report, record = folder / "report.html", folder / "evaluation.json"
    report.write_text(render_evaluation_page(evaluation), encoding="utf-8")
    record.write_text(json.dumps(evaluation_to_json(evaluation), indent=1) + "\n", encoding="utf-8")
    return [report, record]

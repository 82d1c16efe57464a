"""The log as a table for analysts."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from locb.service.schemas import RankedArm, RecommendRequest
from locb.service.store.log import Log


class _Answer(msgspec.Struct):
    arm: str
    ranking: list[RankedArm]


_answer = msgspec.json.Decoder(_Answer).decode
_request = msgspec.msgpack.Decoder(RecommendRequest).decode
_json = msgspec.json.Encoder().encode


def export_parquet(log: Log, folder: Path) -> Path:
    """Write all decisions with their rewards to a Parquet file in a new folder, a chunk at a time."""
    import polars as pl

    time = pl.Datetime("us", "UTC")
    schema: dict[str, Any] = {
        "decision_id": pl.String,
        "user": pl.String,
        "time": time,
        "arm": pl.String,
        "estimate": pl.Float64,
        "bonus": pl.Float64,
        "context": pl.List(pl.Float64),
        "arms": pl.String,
        "reward": pl.Float64,
        "reward_time": time,
        "reward_is_default": pl.Boolean,
    }
    room = Path(tempfile.mkdtemp(prefix="export-", dir=folder))
    try:
        pl.DataFrame(schema=schema).write_parquet(room / "00000000.part")
        for number, rows in enumerate(log.records(), 1):
            frame = pl.DataFrame([_told(row) for row in rows], schema, orient="row")
            frame.write_parquet(room / f"{number:08d}.part")
        pl.scan_parquet(room / "*.part").sink_parquet(room / "locb.parquet")
        for part in room.glob("*.part"):
            part.unlink()
    except BaseException:
        shutil.rmtree(room, ignore_errors=True)
        raise
    return room / "locb.parquet"


def _told(row: Any) -> tuple[Any, ...]:
    answer = _answer(row.answer)
    by_default = row.reward is None and row.default is not None
    reward, when = (row.default, row.default_time) if by_default else (row.reward, row.reward_time)
    return (
        row.id.decode(),
        None if row.user is None else row.user.decode(),
        _moment(row.time),
        answer.arm,
        answer.ranking[0].estimate,
        answer.ranking[0].bonus,
        np.frombuffer(row.context).tolist(),
        _json(_request(row.request).arms).decode(),
        reward,
        None if when is None else _moment(when),
        None if reward is None else by_default,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

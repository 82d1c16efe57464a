"""Export of the event log as a Parquet file."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl  # at startup: an import by the first export would block the event loop for 50 ms

from locb.service.schemas import RankedArm, RecommendRequest
from locb.service.store.log import EventLog

FOLDER_PREFIX = "export-"
FRAME_ROWS = 50  # rows per data frame; no other thread can run Python code while a frame is built, about 1 ms
PART_FRAMES = 100  # data frames that are in memory at once


class _Response(msgspec.Struct):
    arm: str
    ranking: list[RankedArm]


_decode_response = msgspec.json.Decoder(_Response).decode
_decode_request = msgspec.msgpack.Decoder(RecommendRequest).decode
_encode_json = msgspec.json.Encoder().encode


def export_parquet(log: EventLog, folder: Path) -> Path:
    """Write all decisions with their rewards to a Parquet file, and return the path of the file.

    The file is in a new temporary folder inside ``folder``. The log is read in chunks, so the memory use does not
    depend on the length of the log.
    """
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
    target = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=folder))
    try:
        pl.DataFrame(schema=schema).write_parquet(target / "00000000.part")
        chunks, number = log.decisions_with_rewards(FRAME_ROWS), 0
        while frames := [
            pl.DataFrame([_export_row(row) for row in rows], schema, orient="row")
            for rows in islice(chunks, PART_FRAMES)
        ]:
            number += 1
            pl.concat(frames).write_parquet(target / f"{number:08d}.part")
        pl.scan_parquet(target / "*.part").sink_parquet(target / "locb.parquet")
        for part in target.glob("*.part"):
            part.unlink()
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return target / "locb.parquet"


def remove_exports(folder: Path) -> None:
    """Remove the export folders that a killed process has left."""
    for export in folder.glob(f"{FOLDER_PREFIX}*"):
        shutil.rmtree(export, ignore_errors=True)


def _export_row(row: Any) -> tuple[Any, ...]:
    response = _decode_response(row.response)
    is_default = row.reward is None and row.default is not None
    reward, reward_time = (row.default, row.default_time) if is_default else (row.reward, row.reward_time)
    return (
        row.id.decode(),
        None if row.user is None else row.user.decode(),
        _utc(row.time),
        response.arm,
        response.ranking[0].estimate,
        response.ranking[0].bonus,
        np.frombuffer(row.context).tolist(),
        _encode_json(_decode_request(row.request).arms).decode(),
        reward,
        None if reward_time is None else _utc(reward_time),
        None if reward is None else is_default,
    )


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

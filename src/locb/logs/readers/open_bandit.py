"""Reader of the Open Bandit Dataset: impressions of a fashion shop, with clicks and propensities."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locb.common.validation import check_int
from locb.logs.arm_features import described_features
from locb.logs.log import Log
from locb.logs.readers.columns import TableOptions
from locb.logs.readers.table_logs import read_table

ITEMS_FILE = "item_context.csv"
USER_PREFIX, ITEM_PREFIX = "user_feature_", "item_feature_"


@dataclass(frozen=True)
class OpenBanditOptions:
    """Options of :func:`read_open_bandit`."""

    position: int | None = None
    items: str | Path | None = None
    allow_skipped: bool = False


def read_open_bandit(files: list[Path], options: OpenBanditOptions) -> Log:
    """Read the CSV layout of the Open Bandit Dataset.

    Each row is one decision: an item at one of three positions. The log has no user ids. Visitors with the same values
    in all columns user_feature_* are one user. Every decision offers all items.

    Parameters
    ----------
    files : list of Path
        CSV files of one campaign and one policy, such as random/all/all.csv, and optionally item_context.csv.
    options : OpenBanditOptions
        ``position``: use only the rows of this position (1, 2 or 3). By default, all rows are used, although the
        position influences the clicks. ``items``: path of item_context.csv, whose columns become the features of the
        items. By default, the file in the folder of the first file is used; without it, items have only ids.
        ``allow_skipped``: whether more than half of the rows may be skipped.
    """
    import polars as pl

    tables = [file for file in files if file.name != ITEMS_FILE]
    frame = pl.concat([pl.scan_csv(file, infer_schema=False) for file in tables], how="diagonal")
    names = frame.collect_schema().names()
    users = [name for name in names if name.startswith(USER_PREFIX)]
    needed = ["timestamp", "item_id", "position", "click", "propensity_score", *users]
    rows = frame.select(name for name in needed if name in names).collect()
    note = (
        "rows of all three positions are used, although the position influences the clicks; to use one position, set "
        "position (--position) to 1, 2 or 3"
    )
    notes = [note]
    if options.position is not None:
        position = check_int("position", options.position, 1)
        before = rows.height
        rows = rows.filter(pl.col("position") == str(position))
        notes = [f"only position {position} is used: {rows.height:,} of {before:,} rows"]
    path = tables[0].with_name(ITEMS_FILE) if options.items is None else Path(options.items)
    items = pl.read_csv(path, infer_schema_length=None) if options.items is not None or path.exists() else None
    arms: Any = None
    if items is not None:
        arms = [str(item) for item in items["item_id"].to_list()]
    table_options = TableOptions(
        user=users or None,
        chosen="item_id",
        arms=arms,
        reward="click",
        propensity="propensity_score",
        time="timestamp" if "timestamp" in names else None,
        allow_skipped=options.allow_skipped,
    )
    log = read_table(rows, table_options)
    if items is not None:
        described = [name for name in items.columns if name.startswith(ITEM_PREFIX)]
        keyed = items.with_columns(pl.col("item_id").cast(pl.String))
        features, more = described_features(keyed, "item_id", described, pl.Series(log.arm_ids))
        log = dataclasses.replace(log, features=features)
        notes += more
    return dataclasses.replace(log, notes=(*log.notes, *notes))

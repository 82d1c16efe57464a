"""Logs from which a service can start: files that ``locb.Log.read`` reads, exports, and stores of services."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from locb.common.arrays import Bools, Floats, Ints
from locb.common.feature_hashing import feature_row
from locb.common.live_store import store_address
from locb.logs.arm_features import identity_features
from locb.logs.log import Log, LogWarning, SkippedRows
from locb.logs.readers.read import detect_format, find_files
from locb.recommender.events import CORRECTION, DEFAULT, MAX_ID_LENGTH, Records
from locb.service.core.startup.store_events import StoreEvents
from locb.service.core.startup.table_events import TableEvents, immediate_rewards
from locb.service.store.export import StoredLog

_COLUMNS = ("user", "chosen", "arms", "reward", "time")
READER_OPTIONS = ("format", *_COLUMNS, "missing_reward", "decimal", "separator", "header", "position")
EXPORT_COLUMNS = {"decision_id", "user", "time", "context", "seq", "observations"}  # of an export with all rewards


class Events(Protocol):
    """Events of a log in the order in which the policy learns them."""

    def batches(self, size: int) -> Iterator[Records]:
        """Yield the events in batches of about ``size`` events, with sequence numbers from 1 without gaps."""


@dataclass
class LogSource:
    """Log from which a service starts.

    Attributes
    ----------
    events : Events
        The events.
    count : int
        Number of observations; 0 if it is not known.
    dim : int
        Number of features per arm.
    notes : list of str
        What is not imported, and assumptions.
    model : dict or None
        Model of the service that has written the log, if it is known.
    close : callable
        Must be called at the end.
    """

    events: Events
    count: int
    dim: int
    notes: list[str] = field(default_factory=list)
    model: dict[str, Any] | None = None
    close: Callable[[], None] = lambda: None


def open_log_source(source: str, dim: int | None, options: dict[str, Any], prefix: str) -> LogSource:
    """Open a log: the store of a service, an export of a service, or a log in another format.

    Parameters
    ----------
    source : str
        Path, pattern, or address of a store.
    dim : int or None
        Number of features per arm. If None, it is that of the log.
    options : dict
        Options of ``locb.Log.read``.
    prefix : str
        Start of the ids of decisions that have none.

    Raises
    ------
    ValueError
        If the log cannot be read, has no reward, or does not have ``dim`` features per arm.
    """
    for name in options:
        if name not in READER_OPTIONS:
            allowed = ", ".join(READER_OPTIONS)
            raise ValueError(f"--start-option {name} is not an option for reading a log: its options are {allowed}")
    address = store_address(source)
    if address is not None and options.get("format", "auto") in ("auto", "store"):
        if options.keys() - {"format"}:
            raise ValueError(
                "--start-option cannot be used with the store of a service, whose columns are known: omit it"
            )
        found = _open_store(address)
    else:
        files = find_files(source)
        frame = _read_export(files[0]) if len(files) == 1 and not options else None
        found = _open_export(frame) if frame is not None else _open_log(files, dim, options, prefix)
    if dim is not None and found.dim != dim:
        found.close()
        raise ValueError(
            f"the log {source} has {found.dim} features per arm, but --dim is {dim}: use --dim {found.dim}"
        )
    return found


def _open_store(address: str) -> LogSource:
    log = StoredLog(address)
    model = log.settings()["model"]
    if model.get("base") is not None:
        log.close()
        reason = "it started from a saved policy, whose observations are not in the log"
        raise ValueError(f"a service cannot start from the store {log.name}: {reason}; start from that policy instead")
    return LogSource(StoreEvents(log), log.counts(log.last_event())[1], model["dim"], [], model, log.close)


# Exports of a service


def _read_export(path: Path) -> Any:
    """Return the data frame of an export with all rewards, or None if the file is not such an export."""
    import polars as pl

    if path.suffix.lower() != ".parquet":
        return None
    try:
        lazy = pl.scan_parquet(path)
        if not set(lazy.collect_schema().names()) >= EXPORT_COLUMNS:
            return None
        return lazy.select(sorted(EXPORT_COLUMNS)).collect()
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"cannot read {path}: {str(error).splitlines()[0]}") from error


def _open_export(frame: Any) -> LogSource:
    import polars as pl

    if frame["decision_id"].n_unique() < frame.height:
        raise ValueError("the export has two decisions with the same id: use one complete export")
    lengths = frame["context"].list.len().drop_nulls().unique().to_list()
    if len(lengths) != 1:
        reason = "no features" if not lengths else f"arms with {min(lengths)} and with {max(lengths)} features"
        raise ValueError(f"the export has {reason}: use an export of one service")
    names, users = np.unique(frame["user"].to_numpy().astype(str), return_inverse=True)
    learned = (
        frame.with_row_index("decision")
        .select("decision", has_context=pl.col("context").is_not_null(), observation=pl.col("observations"))
        .explode("observation")
        .drop_nulls("observation")
        .unnest("observation")
        .sort("decision", "seq")
        .with_columns(previous=pl.col("reward").shift(1).over("decision").fill_null(0.0))
    )
    notes = []
    dropped = learned.filter(~pl.col("has_context")).height
    if dropped:
        advice = "start from the store of the service instead, which has them"
        notes.append(str(SkippedRows(f"the service dropped the request of the reward (--retain); {advice}", dropped)))
    learned = learned.filter("has_context")
    contexts = frame["context"].drop_nulls()
    position = np.cumsum(frame["context"].is_not_null().to_numpy()) - 1
    decisions = learned["decision"].to_numpy().astype(np.int64)
    kinds, ids = learned["kind"].to_numpy().astype(np.int64), frame["decision_id"]
    events = TableEvents(
        names.tolist(),
        users.astype(np.int64),
        lambda rows: [name.encode() for name in ids.gather(rows).to_list()],
        _unix_times(frame["time"]),
        np.zeros(frame.height, np.int64),
        frame["seq"].to_numpy(),
        decisions,
        learned["seq"].to_numpy(),
        learned["reward"].to_numpy(),
        np.where(kinds >= CORRECTION, learned["previous"].to_numpy(), 0.0),
        _unix_times(learned["time"]),
        kinds,
        np.asarray(contexts.explode().to_numpy()).reshape(-1, lengths[0]),
        position[decisions],
    )
    defaults = int((kinds == DEFAULT).sum())
    if defaults:
        notes.append(f"{defaults:,} rewards are default rewards of the service")
    return LogSource(events, len(decisions), lengths[0], notes)


def _unix_times(column: Any) -> Floats:
    return np.asarray(column.dt.epoch("us").to_numpy() / 1e6, np.float64)


# Logs in other formats


def _open_log(files: list[Path], dim: int | None, options: dict[str, Any], prefix: str) -> LogSource:
    log_format = options.get("format", "auto")
    log_format = detect_format(files) if log_format == "auto" else log_format
    given = options | {"format": log_format}
    if dim is not None and log_format in ("table", "dsjson"):
        given["dim"] = dim  # named features are hashed as in the service
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # the notes have these messages
        log = Log.read(files, **given)
    notes = [*map(str, log.skipped), *log.notes]
    if not log.has_users:
        raise ValueError("the log names no users: name the column of the user, as --start-option user=COLUMN")
    features = log.features
    if log.arm_ids and np.array_equal(features, identity_features(log.arm_ids)):
        if dim is None:
            raise ValueError("--dim is required, because the arms of the log have only ids: add --dim N")
        features = np.array([feature_row({"arm": arm}, dim) for arm in log.arm_ids])
        example = '{"arm": ID}'
        notes.append(f"arms have only ids: each is learned with the features {example}, which requests must send, too")
    names = np.array(log.user_ids)
    too_long = np.char.str_len(names) > MAX_ID_LENGTH
    usable: Bools = ~too_long[log.users]
    if not usable.all():
        reason = f"the id of the user has more than {MAX_ID_LENGTH} characters"
        notes.append(str(SkippedRows(reason, int((~usable).sum()))))
    log = log.select(np.flatnonzero(usable))
    rewarded = int(np.isfinite(log.rewards).sum())
    if not rewarded:
        raise ValueError(
            "no row of the log has a reward: name the column of the reward, as --start-option reward=COLUMN"
        )
    if rewarded < len(log):
        notes.append(f"{len(log) - rewarded:,} decisions have no reward: they are stored, but nothing is learned")
    if log.times is None:
        notes.append("the log has no times: rows are learned in their order, with the current time")
    times = np.full(len(log), time.time()) if log.times is None else log.times

    def ids(rows: Ints) -> list[bytes]:
        return [b"%s-%012d" % (prefix.encode(), row) for row in rows.tolist()]

    events = immediate_rewards(
        log.user_ids,
        log.users.astype(np.int64),
        ids,
        times,
        log.chosen.astype(np.int64),
        log.rewards,
        features,
        log.rows_of(log.chosen).astype(np.int64),
    )
    return LogSource(events, rewarded, int(features.shape[1]), notes)

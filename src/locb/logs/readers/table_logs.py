"""Reader of logs in tables: one row per decision, in files or data frames. Also reads the export of the service."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Bools, Floats
from locb.common.validation import MAX_REWARD, ParameterError, check_float, check_int
from locb.datasets.column_values import parse_numbers, parse_times
from locb.datasets.source_files import Source
from locb.datasets.table_files import (
    DETECTED_SEPARATORS,
    READERS,
    TEXT_SEPARATORS,
    TextFormat,
    check_text_format,
    file_suffix,
    read_frame,
)
from locb.logs.arm_features import DEFAULT_DIM, described_features
from locb.logs.log import MIN_PROPENSITY, Log, LogParts, Offers, SkippedRows
from locb.logs.readers.columns import UNIFORM, Columns, TableOptions, find_columns, given_columns
from locb.logs.readers.offers import catalogue_offer, chosen_positions, collect_offers

EXAMPLES = 3  # examples per reason to skip rows
ROW, FILE = "row of the log", "file of the log"  # columns that the reader adds
EXPORT_COLUMNS = {"decision_id", "arm", "arms", "context", "reward_is_default"}  # of ``GET /v1/export``


def read_table(source: Any, options: TableOptions) -> Log:
    """Read a log from a table with one row per decision.

    Parameters
    ----------
    source : list of Path, data frame or mapping
        Files of the same format, a Polars, pandas or Arrow table, or a mapping of column names to values.
    options : TableOptions
        ``user``: column of the user, or several columns that identify the user together. ``chosen``: column of the
        chosen arm. ``arms``: column of the offered arms (JSON, a list, or ids separated by "|"), or the ids of the arms
        of every decision; by default, every decision offers all arms of the column ``chosen``. ``reward``: any number;
        ``missing_reward`` replaces missing rewards. ``propensity``: column of the probability of the chosen arm,
        "uniform" if all arms had the same probability, or a number. ``time``: column of the time. ``features``:
        columns that describe the chosen arm. ``dim``: number of features into which named features of arms are hashed.
        ``decimal``: decimal separator. ``separator``, ``header``: format of text files. A column that is not given is
        found by its name.
    """
    if isinstance(source, list):
        frame, columns = _read_files(source, options)
        name = source[0].name if len(source) == 1 else f"{len(source)} files"
    else:
        frame, name = to_frame(source), "the table"
        columns = find_columns(frame.columns, options, name)
    dim = None if options.dim is None else check_int("dim", options.dim, 1)
    is_export = set(frame.columns) >= EXPORT_COLUMNS
    if is_export and dim is None:
        lengths = frame["context"].drop_nulls().list.len()
        dim = int(lengths[0]) if len(lengths) else None
    if ROW not in frame.columns:
        frame = frame.with_row_index(ROW, offset=1)
    return _TableLog(frame, columns, options, dim or DEFAULT_DIM, is_export).build()


def _read_files(files: list[Path], options: TableOptions) -> tuple[Any, Columns]:
    """Return the needed columns of all files as one data frame, with the file and the row of each decision."""
    import polars as pl

    frames, columns = [], None
    for path in files:
        source = Source(path)
        suffix = file_suffix(source)
        text_format = TextFormat(options.separator, bool(options.header))
        check_text_format(source, text_format)
        if path.suffix.lower() == ".parquet":
            try:
                lazy = pl.scan_parquet(path)
                available = lazy.collect_schema().names()
            except (pl.exceptions.PolarsError, OSError) as error:
                raise ValueError(f"cannot read {path} as .parquet: {str(error).splitlines()[0]}") from error
            columns = columns or find_columns(available, options, path.name)
            extra = ["context", "reward_is_default", "decision_id"] if set(available) >= EXPORT_COLUMNS else []
            missing = [column for column in columns.names if column not in available]
            if missing:
                absent = f"{path} has no column {', '.join(missing)}, unlike {files[0].name}"
                raise ValueError(f"{absent}; every file must have the columns that are used")
            frame = lazy.select(list(dict.fromkeys([*columns.names, *extra]))).collect()
        else:
            if suffix not in READERS and options.header:
                separator = options.separator or guess_separator(source, suffix)
                text_format = TextFormat(separator, True)
                columns = columns or find_columns(_header(source, separator), options, path.name)
            given = given_columns(options) if suffix not in READERS else []
            names, keys = (given, given) if columns is None else (columns.names, columns.keys)
            frame = read_frame(source, names, keys, text_format)
            columns = columns or find_columns(frame.columns, options, path.name)
            frame = frame.select(columns.names)
        frame = frame.with_columns(pl.col(column).cast(pl.String) for column in columns.keys)
        frame = frame.with_row_index(ROW, offset=1)
        frames.append(frame.with_columns(pl.lit(f"{path.name} ").alias(FILE)) if len(files) > 1 else frame)
    assert columns is not None  # noqa: S101 - there is at least one file
    return pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else frames[0], columns


def _first_line(source: Source) -> str:
    with source.open() as stream:
        line: str = next((line for line in stream if line.strip()), b"").decode("utf-8-sig", "replace").rstrip("\r\n")
    return line


def guess_separator(source: Source, suffix: str) -> str:
    """Return the separator that gives the header the most columns; of equal ones, the usual one of the suffix."""
    line, usual = _first_line(source), TEXT_SEPARATORS.get(suffix, ",")
    return max(DETECTED_SEPARATORS, key=lambda separator: (line.count(separator), separator == usual))


def _header(source: Source, separator: str) -> list[str]:
    line = _first_line(source)
    return line.split(separator) if len(separator) > 1 else next(csv.reader([line], delimiter=separator), [])


def to_frame(source: Any) -> Any:
    """Return a Polars, pandas or Arrow table, or a mapping of columns, as a Polars data frame."""
    import polars as pl

    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    try:
        if isinstance(source, Mapping):
            return pl.DataFrame(dict(source), strict=False)
        if hasattr(source, "notna"):
            return _from_pandas(source)
        if hasattr(source, "__arrow_c_stream__"):
            return pl.DataFrame(source)
        return pl.DataFrame({str(name): source[name].tolist() for name in source.columns}, strict=False)
    except (TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        raise ParameterError("source", f" must be a path, a data frame or a mapping of columns: {error}") from error


def _from_pandas(frame: Any) -> Any:
    import polars as pl

    frame = frame.reset_index(drop=True)  # Polars needs labels from 0 for some types
    try:
        return pl.DataFrame(frame)
    except (ImportError, LookupError, TypeError, ValueError):  # no pyarrow, or values of several types in a column
        values = frame.astype(object).where(frame.notna(), None)
        return pl.DataFrame({str(name): values[name].tolist() for name in frame.columns}, strict=False)


class _TableLog:
    """Builder of a log from a data frame. It collects the reasons for which rows are skipped."""

    def __init__(self, frame: Any, columns: Columns, options: TableOptions, dim: int, is_export: bool) -> None:
        self.frame, self.columns, self.options, self.dim = frame, columns, options, dim
        self.usable = np.ones(frame.height, bool)
        self.skipped: list[SkippedRows] = []
        self.notes: list[str] = []
        self.is_export = is_export

    def build(self) -> Log:
        """Return the log."""
        import polars as pl

        columns, height = self.columns, self.frame.height
        users = self._ids(columns.user, "the user is missing") if columns.user else None
        no_arm = "the chosen arm is missing" + (" (the service dropped the request)" if self.is_export else "")
        chosen_ids = self._ids([columns.chosen], no_arm)
        rewards = self._rewards()
        times = None
        if columns.time:
            times, wrong = parse_times(self.frame[columns.time])
            self._skip(wrong, f"the time ({columns.time}) is missing or has an unknown format", columns.time)
        if columns.arms is None:
            offers, arm_ids, features = catalogue_offer(columns.catalogue, chosen_ids.filter(chosen_ids != ""))
            offer = np.zeros(height, np.int64)
            if columns.catalogue is None:
                self.notes.append(f"no column of arms: every decision is assumed to offer all {len(arm_ids):,} arms")
        else:
            lists = self.frame[columns.arms].to_list()
            collected = collect_offers(lists, self.usable, self.dim)
            for reason, wrong in collected.wrong.items():
                self._skip(wrong, f"the arms ({columns.arms}) cannot be used: {reason}", columns.arms)
            offers, arm_ids, offer, features = collected.offers, collected.arm_ids, collected.offer, collected.features
        position = chosen_positions(offers, arm_ids, offer, chosen_ids, self.usable)
        self._skip(position < 0, "the chosen arm is not among the offered arms", columns.chosen)
        propensities = self._propensities(offers, offer)
        if columns.features:
            features = self._described(arm_ids, features)
        keep = self.usable
        parts = LogParts(
            users=None if users is None else users.filter(pl.Series(keep)),
            offer=offer[keep],
            offers=offers,
            arm_ids=arm_ids,
            features=features,
            chosen=position[keep],
            rewards=rewards[keep],
            propensities=propensities[keep],
            times=None if times is None else times[keep],
        )
        return parts.finish(columns.describe(), self.skipped, self.notes)

    def _skip(self, wrong: Bools, reason: str, column: str = "") -> None:
        """Mark rows as not usable. Rows that are already marked are not counted again."""
        rows = np.flatnonzero(wrong & self.usable)
        if not rows.size:
            return
        self.usable[rows] = False
        examples = []
        for row in rows[:EXAMPLES].tolist():
            file = self.frame[FILE][row] if FILE in self.frame.columns else ""
            value = f": {str(self.frame[column][row])[:60]!r}" if column else ""
            examples.append(f"{file}row {self.frame[ROW][row]}{value}")
        self.skipped.append(SkippedRows(reason, int(rows.size), tuple(examples)))

    def _ids(self, names: Sequence[str], reason: str) -> Any:
        """Return the text of ids as a series; rows without an id are skipped. Several columns are joined by "/"."""
        import polars as pl

        parts = []
        for name in names:
            column = self.frame[name]
            if column.dtype.is_nested():
                part = "chosen" if name == self.columns.chosen else "user"
                raise ParameterError(part, f": column {name!r} must have numbers or text, not {column.dtype}")
            if column.dtype.is_float():
                column = column.fill_nan(None)
                whole = column.cast(pl.Int64, strict=False)
                column = whole if (whole == column).fill_null(True).all() else column
            parts.append(column.cast(pl.String).str.strip_chars().replace({"": None}))
        joined = parts[0] if len(parts) == 1 else pl.DataFrame(parts).select(pl.concat_str(pl.all(), separator="/"))
        joined = joined if isinstance(joined, pl.Series) else joined.to_series()
        self._skip(joined.is_null().to_numpy(), reason)
        return joined.fill_null("")

    def _rewards(self) -> Floats:
        columns, options = self.columns, self.options
        if columns.reward is None:
            return np.full(self.frame.height, np.nan)
        rewards, wrong = parse_numbers(self.frame[columns.reward], options.decimal)
        wrong |= np.abs(rewards) > MAX_REWARD
        self._skip(wrong, f"the reward ({columns.reward}) is not a number", columns.reward)
        if options.missing_reward is not None:
            value = check_float("missing_reward", options.missing_reward, -MAX_REWARD)
            missing = int((np.isnan(rewards) & self.usable).sum())
            rewards[np.isnan(rewards)] = value
            if missing:
                self.notes.append(f"{missing:,} missing rewards were replaced by {value:g}")
        if self.is_export:
            defaults = int((self.frame["reward_is_default"].fill_null(False).to_numpy() & self.usable).sum())
            if defaults:
                self.notes.append(f"{defaults:,} rewards are default rewards of the service")
        return rewards

    def _propensities(self, offers: Offers, offer: Any) -> Floats:
        given = self.columns.propensity
        if given is None:
            return np.full(self.frame.height, np.nan)
        if given == UNIFORM:
            return 1.0 / offers.sizes[offer] if len(offers) else np.full(self.frame.height, np.nan)
        if not isinstance(given, str):
            return np.full(self.frame.height, check_float("propensity", given, MIN_PROPENSITY, 1.0))
        values, wrong = parse_numbers(self.frame[given], self.options.decimal)
        wrong |= (values < MIN_PROPENSITY) | (values > 1.0)
        self._skip(wrong, f"the propensity ({given}) is not from {MIN_PROPENSITY:g} to 1", given)
        return values

    def _described(self, arm_ids: Sequence[str], features: Floats | None) -> Floats:
        import polars as pl

        if features is not None:
            raise ParameterError(
                "features", f" must be omitted, because the arms in column {self.columns.arms!r} already have features"
            )
        frame = self.frame.filter(pl.Series(self.usable))
        described, notes = described_features(frame, self.columns.chosen, self.columns.features, pl.Series(arm_ids))
        self.notes += notes
        return described

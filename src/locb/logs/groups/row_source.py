"""Sources of rows (user, features, reward) for groups: files, data frames and logs, read in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Bools, Floats
from locb.common.live_store import store_address
from locb.common.validation import MAX_REWARD, ParameterError
from locb.datasets.source_files import Source
from locb.datasets.table_files import READERS, TextFormat, check_text_format, file_suffix
from locb.logs.groups.row_features import (
    CATEGORY,
    MAX_DIM,
    ColumnFeatures,
    NumberParser,
    describe_column,
    set_categories,
)
from locb.logs.log import Log, SkippedRows
from locb.logs.readers.columns import Columns, TableOptions, find_columns
from locb.logs.readers.table_logs import EXAMPLES, EXPORT_COLUMNS, guess_separator, to_frame

HEAD = 10_000  # rows from which the format of the columns is detected
DEFAULT_BATCH = 500_000


class RowBatch(NamedTuple):
    """Rows of a log: users (a Polars series of ids), features (n, d) and rewards (n,)."""

    users: Any
    features: Floats
    rewards: Floats


class LogRows:
    """Rows of a log in memory: the features and the reward of the chosen arm of each decision."""

    def __init__(self, log: Log) -> None:
        if not log.has_users:
            raise ParameterError(
                "user",
                ": the log has no user ids, so there are no groups of users; name the user when you read the log",
            )
        self.log = log
        self.columns = log.columns or {}
        self.skipped = list(log.skipped)
        self.is_one_hot = bool(log.arm_ids) and np.array_equal(log.features, np.eye(len(log.arm_ids)))
        if self.is_one_hot:
            self.names = [str(arm) for arm in log.arm_ids]
        else:
            self.names = [f"feature {position}" for position in range(log.dim)]

    def batches(self, rows: int) -> Iterator[RowBatch]:
        """Return the rows in batches. Decisions without a reward are omitted."""
        import polars as pl

        log, names = self.log, pl.Series("user", list(self.log.user_ids), dtype=pl.String)
        missing = int(np.isnan(log.rewards).sum())
        if missing:
            self.skipped.append(SkippedRows("the reward is missing", missing))
        known = np.flatnonzero(np.isfinite(log.rewards))
        positions = log.rows_of(log.chosen)
        for start in range(0, len(known), rows):
            part = known[start : start + rows]
            yield RowBatch(names.gather(log.users[part]), log.features[positions[part]], log.rewards[part])


class TableRows:
    """Rows of a table, in files or in a data frame, which are read one batch after the other.

    Parameters
    ----------
    tables : list of (str, polars.LazyFrame)
        Name of each part of the table, for messages, and its rows.
    options : TableOptions
        Names and formats of columns.
    """

    def __init__(self, tables: Sequence[tuple[str, Any]], options: TableOptions) -> None:
        self.tables, self.options = tables, options
        available = tables[0][1].collect_schema().names()
        if not options.features and set(available) >= EXPORT_COLUMNS:
            self.options = options = TableOptions(**{**vars(options), "features": ("context",)})
        required = ("user", "reward") if options.features else ("user", "reward", "chosen")
        found = find_columns(available, options, tables[0][0], required)
        self._found = found
        described = list(found.features) or [found.chosen]
        self._names = list(dict.fromkeys([*found.user, str(found.reward), *described]))
        self.columns = _describe(found, bool(options.features))
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}
        head = self._select(tables[0]).head(HEAD).collect()
        self._integer_ids = len(found.user) == 1 and head[found.user[0]].dtype.is_integer()
        self._reward = NumberParser.detect(head[str(found.reward)], options.decimal)
        self._features = [
            describe_column(name, head[name], options.decimal)
            if options.features
            else ColumnFeatures(name, CATEGORY, [])
            for name in described
        ]
        for features in self._features:
            if features.kind == CATEGORY:
                set_categories(features, self._categories(features.column), not options.features)
        self.names = [name for features in self._features for name in features.names]
        self.is_one_hot = not options.features and len(self._features[0].values) == len(self.names)
        if not 0 < len(self.names) <= MAX_DIM:
            raise ParameterError("features", f" must give 1 to {MAX_DIM} features per row, not {len(self.names)}")

    @property
    def skipped(self) -> list[SkippedRows]:
        """Rows that were skipped so far, by reason."""
        return [SkippedRows(reason, count, tuple(self._examples[reason])) for reason, count in self._counts.items()]

    def _select(self, table: tuple[str, Any]) -> Any:
        name, lazy = table
        missing = [column for column in self._names if column not in lazy.collect_schema().names()]
        if missing:
            absent = f"{name} has no column {', '.join(missing)}, unlike {self.tables[0][0]}"
            raise ValueError(f"{absent}; every file must have the columns that are used")
        return lazy.select(self._names)

    def _categories(self, column: str) -> list[str]:
        import polars as pl

        parts = [
            self._select(table).select(pl.col(column).cast(pl.String).str.strip_chars().unique())
            for table in self.tables
        ]
        values = pl.concat(parts).collect(engine="streaming")[column].unique().drop_nulls().to_list()
        return [value for value in values if value]

    def batches(self, rows: int) -> Iterator[RowBatch]:
        """Return the usable rows in batches of about ``rows`` rows, in the order of the table."""
        import polars as pl

        for table in self.tables:
            start = 0
            try:
                for batch in self._select(table).collect_batches(chunk_size=rows, maintain_order=True):
                    yield self._parse(batch, table[0] if len(self.tables) > 1 else "", start)
                    start += batch.height
            except pl.exceptions.PolarsError as error:
                raise ValueError(f"cannot read {table[0]}: {str(error).splitlines()[0]}") from error

    def _parse(self, batch: Any, name: str, start: int) -> RowBatch:
        import polars as pl

        usable = np.ones(batch.height, bool)

        def skip(wrong: Bools, reason: str, column: str) -> None:
            rows = np.flatnonzero(wrong & usable)
            if rows.size:
                usable[rows] = False
                self._counts[reason] = self._counts.get(reason, 0) + int(rows.size)
                examples = self._examples.setdefault(reason, [])
                for row in rows[: EXAMPLES - len(examples)].tolist():
                    value = batch[column][row]
                    shown = "" if value is None else f": {str(value)[:60]!r}"
                    examples.append(f"{name} row {start + row + 1}{shown}".strip())

        users = self._ids(batch)
        skip(users.is_null().to_numpy(), f"the user ({' + '.join(self._found.user)}) is missing", self._found.user[0])
        reward = str(self._found.reward)
        rewards, wrong = self._reward.parse(batch[reward])
        skip(wrong | (np.abs(rewards) > MAX_REWARD), f"the reward ({reward}) is not a number", reward)
        if self.options.missing_reward is None:
            skip(np.isnan(rewards), f"the reward ({reward}) is missing", reward)
        else:
            rewards = np.where(np.isnan(rewards), float(self.options.missing_reward), rewards)
        features = np.empty((batch.height, len(self.names)))
        at = 0
        for part in self._features:
            wrong = part.fill(batch[part.column], features[:, at : at + part.dim])
            what = f"the feature ({part.column}) is missing or not a number"
            if part.kind == CATEGORY:
                what = f"the {'feature' if self.options.features else 'chosen arm'} ({part.column}) is missing"
            skip(wrong, what, part.column)
            at += part.dim
        if usable.all():
            return RowBatch(users, features, rewards)
        return RowBatch(users.filter(pl.Series(usable)), features[usable], rewards[usable])

    def _ids(self, batch: Any) -> Any:
        """Return the ids of the users: integers, or text. Several columns are joined by "/"."""
        import polars as pl

        if self._integer_ids:
            return batch[self._found.user[0]].cast(pl.Int64, strict=False).rename("user")
        parts = []
        for column in self._found.user:
            key = pl.col(column)
            if batch[column].dtype.is_float():
                key = (
                    pl.when(key == key.round())
                    .then(key.cast(pl.Int64, strict=False).cast(pl.String))
                    .otherwise(key.fill_nan(None).cast(pl.String))
                )
            text = key.cast(pl.String).str.strip_chars()
            parts.append(pl.when(text != "").then(text))
        return batch.select(pl.concat_str(parts, separator="/").alias("user"))["user"]


RowSource = LogRows | TableRows


def _describe(found: Columns, has_features: bool) -> dict[str, str]:
    parts = found.describe()
    kept = ("user", "reward", "features") if has_features else ("user", "reward", "chosen")
    return {name: parts[name] for name in kept}


def open_rows(source: Any, log_format: str, options: dict[str, Any]) -> RowSource:
    """Return the rows of a log: a ``Log``, files, or a data frame; see :func:`locb.find_groups`."""
    import polars as pl

    from locb.logs.readers.read import detect_format, find_files, make_options

    if isinstance(source, Log):
        if options:
            raise ParameterError(next(iter(options)), " is not an option of a Log, which is already read; omit it")
        return LogRows(source)
    if log_format == "store" or store_address(source) is not None:
        return LogRows(Log.read(source, format=log_format, **options))
    is_path = isinstance(source, str | Path) or (isinstance(source, list | tuple) and len(source) > 0)
    if not is_path:
        lazy = source if isinstance(source, pl.LazyFrame) else to_frame(source).lazy()
        return TableRows([("the table", lazy)], make_options(TableOptions, options, "table"))
    files = find_files(source)
    if log_format not in ("auto", "table") or detect_format(files) != "table":
        return LogRows(Log.read(source, format=log_format, **options))
    table_options = make_options(TableOptions, options, "table")
    return TableRows([(file.name, _scan(file, table_options)) for file in files], table_options)


def _scan(path: Path, options: TableOptions) -> Any:
    import polars as pl

    source = Source(path)
    suffix = file_suffix(source)
    check_text_format(source, TextFormat(options.separator, bool(options.header)))
    if suffix == ".parquet":
        return pl.scan_parquet(path)
    if suffix in READERS:
        return pl.scan_ndjson(path, infer_schema_length=HEAD)
    separator = options.separator or guess_separator(source, suffix)
    if len(separator.encode()) > 1:
        raise ParameterError("separator", f" must be one character to read a log in batches, not {separator!r}")

    def number(names: list[str]) -> list[str]:
        return [str(position + 1) for position in range(len(names))]

    return pl.scan_csv(
        path,
        separator=separator,
        has_header=bool(options.header),
        infer_schema=False,
        encoding="utf8-lossy",
        with_column_names=None if options.header else number,
    )

"""Sources of rows (user, features, reward) for groups: files, data frames and logs, read in batches of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import count
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
    VECTOR,
    ColumnFeatures,
    NumberParser,
    describe_column,
    find_row_columns,
    parse_ids,
    set_categories,
)
from locb.logs.log import Log, SkippedRows
from locb.logs.readers.columns import Columns, TableOptions
from locb.logs.readers.table_logs import EXAMPLES
from locb.logs.readers.table_parts import EXPORT_COLUMNS, guess_separator, to_lazy

HEAD = 10_000  # rows from which the format of the columns is detected
DEFAULT_BATCH = 500_000


class RowBatch(NamedTuple):
    """Rows of a partition of a log: users (a Polars series of ids), features (n, d) and rewards (n,)."""

    partition: int
    users: Any
    features: Floats
    rewards: Floats


class Table(NamedTuple):
    """Part of a table: ``rows`` rows from row ``start`` of what ``scan`` returns, a ``polars.LazyFrame``."""

    name: str  # for messages
    scan: Callable[[], Any]
    start: int = 0
    rows: int | None = None  # None: all rows


class LogRows:
    """Rows of a log in memory: the features and the reward of the chosen arm of each decision.

    The attributes ``names``, ``is_vector``, ``is_one_hot`` and ``text_columns`` are those of ``TableRows``.
    """

    is_vector = True

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
        self.text_columns = [0 if self.is_one_hot else -1] * len(self.names)
        missing = int(np.isnan(log.rewards).sum())
        if missing:
            self.skipped.append(SkippedRows("the reward is missing", missing))

    def batches(self, rows: int, partition_rows: int) -> Iterator[RowBatch]:
        """Return the rows in batches within partitions. Decisions without a reward are omitted."""
        import polars as pl

        log, names = self.log, pl.Series("user", list(self.log.user_ids), dtype=pl.String)
        known = np.flatnonzero(np.isfinite(log.rewards))
        positions = log.rows_of(log.chosen)
        for partition, start, size in _pieces(0, len(known), rows, partition_rows):
            part = known[start : start + size]
            yield RowBatch(partition, names.gather(log.users[part]), log.features[positions[part]], log.rewards[part])


class TableRows:
    """Rows of a table, in files or in a data frame, which are read one batch after the other.

    Parameters
    ----------
    tables : list of Table
        Parts of the table.
    options : TableOptions
        Names and formats of columns.
    in_files : bool, default False
        Whether the table is in files, so that other processes can read it.

    Attributes
    ----------
    names : list of str
        Name of each feature.
    is_vector : bool
        Whether the features of a row are a vector of their own: arms, one column of text, or only lists of numbers.
    is_one_hot : bool
        Whether each feature is one arm or one value of text, and a row has exactly one of them.
    text_columns : list of int
        For each feature, the number of its column if the feature is one value of text or one arm, otherwise −1.
    """

    def __init__(self, tables: Sequence[Table], options: TableOptions, *, in_files: bool = False) -> None:
        self.tables, self.options, self.in_files = tables, options, in_files
        self._has_several_files = len(tables) > 1
        available = tables[0].scan().collect_schema().names()
        if not options.features and set(available) >= EXPORT_COLUMNS:
            self.options = options = TableOptions(**{**vars(options), "features": ("context",)})
        found = find_row_columns(available, options, tables[0].name)
        self._found = found
        described = list(found.features) or [found.chosen]
        self._names = list(dict.fromkeys([*found.user, str(found.reward), *described]))
        self.columns = _describe(found, bool(options.features))
        self.skipped_by_check: dict[tuple[int, str], SkippedRows] = {}  # by (number of the check, reason)
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
        first, kinds = self._features[0], {features.kind for features in self._features}
        self.is_vector = kinds == {VECTOR} or (len(self._features) == 1 and first.kind == CATEGORY)
        self.is_one_hot = self.is_vector and first.kind == CATEGORY and len(first.values) == len(self.names)
        self.text_columns = [
            number if features.kind == CATEGORY and len(features.values) == features.dim else -1
            for number, features in enumerate(self._features)
            for _ in features.names
        ]
        if not 0 < len(self.names) <= MAX_DIM:
            raise ParameterError("features", f" must give 1 to {MAX_DIM} features per row, not {len(self.names)}")

    @property
    def skipped(self) -> list[SkippedRows]:
        """Rows that were skipped so far, by reason."""
        return [self.skipped_by_check[key] for key in sorted(self.skipped_by_check)]

    def part(self, tables: Sequence[Table]) -> TableRows:
        """Return a source of other parts of the same table, without skipped rows."""
        other = copy(self)
        other.tables, other.skipped_by_check = tables, {}
        return other

    def add_skipped(self, skipped_by_check: dict[tuple[int, str], SkippedRows]) -> None:
        """Add the rows that a source of a later part has skipped."""
        for key, rows in skipped_by_check.items():
            self._skip(key, rows.count, rows.examples)

    def _skip(self, key: tuple[int, str], count: int, examples: Sequence[str]) -> None:
        before = self.skipped_by_check.get(key, SkippedRows(key[1], 0))
        self.skipped_by_check[key] = SkippedRows(key[1], before.count + count, (*before.examples, *examples)[:EXAMPLES])

    def partitions(self, rows: int) -> list[list[Table]]:
        """Return the parts of the table that contain ``rows`` rows each, in order; the last one can be smaller."""
        found: list[list[Table]] = []
        position = 0
        for table in self.tables:
            height = self._count(table)
            for partition, start, size in _pieces(position, height, rows, rows):
                if partition == len(found):
                    found.append([])
                found[partition].append(Table(table.name, table.scan, start, size))
            position += height
        return found

    def _count(self, table: Table) -> int:
        """Return the number of rows. Text is parsed, because Polars counts the lines of a compressed file as rows."""
        import polars as pl

        lazy = self._select(table)
        if table.name.endswith(".parquet"):
            return int(lazy.select(pl.len()).collect().item())
        return sum(batch.height for batch in lazy.select(self._names[0]).collect_batches(chunk_size=DEFAULT_BATCH))

    def _select(self, table: Table) -> Any:
        lazy = table.scan()
        missing = [column for column in self._names if column not in lazy.collect_schema().names()]
        if missing:
            absent = f"{table.name} has no column {', '.join(missing)}, unlike {self.tables[0].name}"
            raise ValueError(f"{absent}; every file must have the columns that are used")
        lazy = lazy.select(self._names)
        return lazy if table.rows is None else lazy.slice(table.start, table.rows)

    def _categories(self, column: str) -> list[str]:
        import polars as pl

        parts = [
            self._select(table).select(pl.col(column).cast(pl.String).str.strip_chars().unique())
            for table in self.tables
        ]
        values = pl.concat(parts).collect(engine="streaming")[column].unique().drop_nulls().to_list()
        return [value for value in values if value]

    def batches(self, rows: int, partition_rows: int) -> Iterator[RowBatch]:
        """Return the usable rows in batches of at most about ``rows`` rows, in the order of the table.

        Partition p has the rows p · ``partition_rows``, … of the table, including unusable rows.
        """
        import polars as pl

        position = 0
        for table in self.tables:
            row = table.start
            try:
                for frame in self._select(table).collect_batches(chunk_size=rows, maintain_order=True):
                    for partition, start, size in _pieces(position, frame.height, rows, partition_rows):
                        name = table.name if self._has_several_files else ""
                        yield self._parse(partition, frame.slice(start, size), name, row + start)
                    position += frame.height
                    row += frame.height
            except pl.exceptions.PolarsError as error:
                raise ValueError(f"cannot read {table.name}: {str(error).splitlines()[0]}") from error
            if table.rows is not None and row != table.start + table.rows:
                wrong = f"{table.name} has {row - table.start:,} rows from row {table.start + 1:,} on"
                raise ValueError(f"{wrong}, not {table.rows:,}; do not change the files while they are read")

    def _parse(self, partition: int, batch: Any, name: str, start: int) -> RowBatch:
        import polars as pl

        usable = np.ones(batch.height, bool)
        checks = count()

        def skip(wrong: Bools, reason: str, column: str) -> None:
            key = (next(checks), reason)
            rows = np.flatnonzero(wrong & usable)
            if rows.size:
                usable[rows] = False
                values = [(row, batch[column][row]) for row in rows[:EXAMPLES].tolist()]
                examples = [
                    f"{name} row {start + row + 1}{'' if value is None else f': {str(value)[:60]!r}'}".strip()
                    for row, value in values
                ]
                self._skip(key, int(rows.size), examples)

        users = parse_ids(batch, self._found.user, self._integer_ids)
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
            return RowBatch(partition, users, features, rewards)
        return RowBatch(partition, users.filter(pl.Series(usable)), features[usable], rewards[usable])


RowSource = LogRows | TableRows


def _pieces(position: int, height: int, rows: int, partition_rows: int) -> Iterator[tuple[int, int, int]]:
    """Return (partition, start, size) of pieces of at most ``rows`` of ``height`` rows within partitions.

    ``position`` is the number of rows before them.
    """
    start = 0
    while start < height:
        partition, inside = divmod(position + start, partition_rows)
        size = min(rows, partition_rows - inside, height - start)
        yield partition, start, size
        start += size


def _describe(found: Columns, has_features: bool) -> dict[str, str]:
    parts = found.describe()
    kept = ("user", "reward", "features") if has_features else ("user", "reward", "chosen")
    return {name: parts[name] for name in kept}


def open_rows(source: Any, log_format: str, options: dict[str, Any]) -> RowSource:
    """Return the rows of a log: a ``Log``, files, or a data frame; see :func:`locb.find_groups`."""
    from locb.logs.readers.read import detect_format, find_files, make_options

    if isinstance(source, Log):
        if options:
            raise ParameterError(next(iter(options)), " is not an option of a Log, which is already read; omit it")
        return LogRows(source)
    if log_format == "store" or store_address(source) is not None:
        return LogRows(Log.read(source, format=log_format, **options))
    is_path = isinstance(source, str | Path) or (isinstance(source, list | tuple) and len(source) > 0)
    if not is_path:
        lazy = to_lazy(source)
        return TableRows([Table("the table", lambda: lazy)], make_options(TableOptions, options, "table"))
    files = find_files(source)
    if log_format not in ("auto", "table") or detect_format(files) != "table":
        return LogRows(Log.read(source, format=log_format, **options))
    table_options = make_options(TableOptions, options, "table")
    tables = [Table(file.name, partial(_scan, file.resolve(), table_options)) for file in files]
    return TableRows(tables, table_options, in_files=True)


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

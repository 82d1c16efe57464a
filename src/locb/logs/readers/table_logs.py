"""Reader of logs in tables: one row per decision, in files or data frames. Also reads the export of the service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from locb.common.arrays import Bools, Floats, IndexArray
from locb.common.validation import MAX_REWARD, ParameterError, check_float, check_int
from locb.datasets.column_values import TextIndex, parse_numbers
from locb.logs.arm_features import DEFAULT_DIM, described_features
from locb.logs.log import MIN_PROPENSITY, Log, Offers, SkippedRows
from locb.logs.readers.columns import UNIFORM, ColumnFormats, Columns, TableOptions, find_columns
from locb.logs.readers.log_parts import LogParts
from locb.logs.readers.offers import ColumnOffers, one_list
from locb.logs.readers.table_parts import EXPORT_COLUMNS, TablePart, needed_columns, open_files, to_lazy
from locb.logs.row_arrays import RowBuffer, by_block

BATCH = 250_000  # rows
EXAMPLES = 3  # examples per reason to skip rows


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
        ``decimal``: decimal separator. ``separator``, ``header``: format of text files. ``allow_skipped``: whether more
        than half of the rows may be skipped. A column that is not given is found by its name.

    Raises
    ------
    ValueError
        If more than half of the rows cannot be used, unless ``allow_skipped`` is True.
    """
    if isinstance(source, list):
        parts, columns = open_files(source, options)
    else:
        frame = to_lazy(source)
        available = frame.collect_schema().names()
        columns = find_columns(available, options, "the table")
        parts = [TablePart(frame.select(needed_columns(columns, available)))]
    dim = None if options.dim is None else check_int("dim", options.dim, 1)
    is_export = set(parts[0].frame.collect_schema().names()) >= EXPORT_COLUMNS
    if is_export and dim is None:
        dim = _length_of_context(parts)
    return _TableReader(parts, columns, options, dim or DEFAULT_DIM, is_export).read()


def _length_of_context(parts: Sequence[TablePart]) -> int | None:
    for part in parts:
        lengths = part.frame.select("context").drop_nulls().head(1).collect()["context"].list.len()
        if len(lengths):
            return int(lengths[0])
    return None


class _TableReader:
    """Reader of a table in batches. It collects the usable rows, and the reasons for which rows are skipped."""

    def __init__(
        self, parts: Sequence[TablePart], columns: Columns, options: TableOptions, dim: int, is_export: bool
    ) -> None:
        self.parts, self.columns, self.options, self.is_export = parts, columns, options, is_export
        self.formats = ColumnFormats.detect([part.frame for part in parts], columns, options.decimal)
        self.skipped: dict[tuple[int, str], SkippedRows] = {}  # by number of the check and reason
        self.notes = list(columns.notes)
        self.offers = ColumnOffers(dim) if columns.arms else None
        self.catalogue = None if columns.catalogue is None else list(dict.fromkeys(columns.catalogue))
        self.users, self.chosen_ids = TextIndex(), TextIndex()
        self.described = [_Descriptions(columns.chosen, name) for name in columns.features]
        self.replaced = self.defaults = 0  # missing rewards, default rewards
        self.rows = {name: RowBuffer(np.int32) for name in ("user", "offer", "chosen")}
        self.rows |= {name: RowBuffer(np.float64) for name in ("reward", "propensity", "time")}

    def read(self) -> Log:
        """Return the log."""
        for part in self.parts:
            name, row = f"{part.path.name} " if part.path and len(self.parts) > 1 else "", 0
            for frame in _batches(part):
                _Batch(self, frame, name, row).read()
                row += frame.height
        return self._finish()

    def skip(self, key: tuple[int, str], rows: SkippedRows) -> None:
        """Count skipped rows. The first examples of a reason are kept."""
        before = self.skipped.get(key, SkippedRows(rows.reason, 0))
        examples = (*before.examples, *rows.examples)[:EXAMPLES]
        self.skipped[key] = SkippedRows(rows.reason, before.count + rows.count, examples)

    def _finish(self) -> Log:
        columns = self.columns
        arrays = {name: buffer.build() for name, buffer in self.rows.items()}
        chosen, features = arrays["chosen"], None
        if self.options.missing_reward is not None and self.replaced:
            value = float(self.options.missing_reward)
            self.notes.append(f"{self.replaced:,} missing rewards were replaced by {value:g}")
        if self.defaults:
            self.notes.append(f"{self.defaults:,} rewards are default rewards of the service")
        if self.offers is not None:
            offers, arm_ids, features = self.offers.builder.build()
        elif self.catalogue is not None:
            arm_ids = self.catalogue
            offers = one_list(arm_ids)
        else:
            arm_ids, ranks = self.chosen_ids.rank()
            offers = one_list(arm_ids)
            chosen = by_block(np.int32, len(chosen), lambda rows: ranks[arrays["chosen"][rows]])
            self.notes.append(f"no column of arms: every decision is assumed to offer all {len(arm_ids):,} arms")
        n_rows = len(chosen)
        offer = arrays["offer"] if self.offers is not None else np.broadcast_to(np.int32(0), n_rows)
        users = None
        if columns.user:
            names, user_ranks = self.users.rank()
            users = names, by_block(np.int32, n_rows, lambda rows: user_ranks[arrays["user"][rows]])
        parts = LogParts(
            users=users,
            offer=offer,
            offers=offers,
            arm_ids=arm_ids,
            features=self._described(arm_ids, features) if columns.features else features,
            chosen=chosen,
            rewards=arrays["reward"] if columns.reward else np.broadcast_to(np.nan, n_rows),
            propensities=self._propensities(arrays["propensity"], offers, offer),
            times=arrays["time"] if columns.time else None,
        )
        skipped = [self.skipped[key] for key in sorted(self.skipped, key=lambda key: key[0])]  # stable
        if not self.options.allow_skipped:
            _check_skipped(skipped, n_rows)
        return parts.finish(columns.describe(), skipped, self.notes)

    def _propensities(self, values: Floats, offers: Offers, offer: IndexArray) -> Floats:
        given = self.columns.propensity
        if given == UNIFORM and len(offers):
            return np.asarray(by_block(np.float64, len(offer), lambda rows: 1.0 / offers.sizes[offer[rows]]))
        if given is None or given == UNIFORM:
            return np.broadcast_to(np.nan, len(offer))
        if isinstance(given, str):
            return values
        return np.broadcast_to(check_float("propensity", given, MIN_PROPENSITY, 1.0), len(offer))

    def _described(self, arm_ids: Sequence[str], features: Floats | None) -> Floats:
        import polars as pl

        if features is not None:
            raise ParameterError(
                "features", f" must be omitted, because the arms in column {self.columns.arms!r} already have features"
            )
        frame = pl.concat([part.values for part in self.described], how="diagonal")
        described, notes = described_features(frame, self.columns.chosen, self.columns.features, pl.Series(arm_ids))
        self.notes += notes
        return described


def _check_skipped(skipped: Sequence[SkippedRows], used: int) -> None:
    """Raise a ValueError if more than half of the rows are skipped; the others may not represent the log."""
    count = sum(rows.count for rows in skipped)
    if count > used > 0:
        reasons = "; ".join(map(str, skipped))
        raise ValueError(
            f"{count:,} of {used + count:,} rows cannot be used, which is more than half: {reasons}. Correct the log "
            f"or the options, or set allow_skipped to True (--allow-skipped) to use the other {used:,} rows"
        )


def _batches(part: TablePart) -> Iterator[Any]:
    import polars as pl

    try:
        yield from part.frame.collect_batches(chunk_size=BATCH, maintain_order=True)
    except pl.exceptions.PolarsError as error:
        what = f"{part.path} as {part.path.suffix}" if part.path else "the table"
        raise ValueError(f"cannot read {what}: {str(error).splitlines()[0]}") from error


class _Descriptions:
    """Values of a column that describes arms: up to two distinct values per arm, in the order of the rows.

    A second value is enough to know that the values of an arm differ.
    """

    def __init__(self, arm: str, column: str) -> None:
        self.arm, self.column = arm, column
        self.values: Any = None

    def add(self, frame: Any) -> None:
        """Add the rows of a data frame."""
        import polars as pl

        value = pl.col(self.column)
        if frame[self.column].dtype.is_float():
            value = pl.when(value.is_finite()).then(value)
        found = frame.select(pl.col(self.arm).cast(pl.String), value.alias(self.column))
        self.values = found.clear() if self.values is None else self.values
        found = pl.concat([self.values, found.drop_nulls(self.column)]).unique(maintain_order=True)
        self.values = found.group_by(self.arm, maintain_order=True).head(2).select(found.columns)


class _Batch:
    """Rows of a table that are read together. They start at row ``start`` of their file ``name``."""

    def __init__(self, reader: _TableReader, frame: Any, name: str, start: int) -> None:
        self.reader, self.frame, self.name, self.start = reader, frame, name, start
        self.columns, self.formats = reader.columns, reader.formats
        self.usable = np.ones(frame.height, bool)
        self.checks = count()

    def read(self) -> None:
        """Check the rows, and append the usable ones to the arrays of the reader."""
        import polars as pl

        reader, columns = self.reader, self.columns
        values: dict[str, Any] = {}
        if columns.user:
            values["user"] = self._ids(columns.user, "the user is missing")
        no_arm = "the chosen arm is missing" + (" (the service dropped the request)" if reader.is_export else "")
        chosen_ids = self._ids([columns.chosen], no_arm)
        if columns.reward:
            values["reward"] = self._rewards(columns.reward)
        if self.formats.times is not None:
            name = str(columns.time)
            values["time"], wrong = self.formats.times.parse(self.frame[name])
            self._skip(wrong, f"the time ({name}) is missing or has an unknown format", name)
        values |= self._arms(chosen_ids)
        if isinstance(columns.propensity, str) and columns.propensity != UNIFORM:
            kind = f"from {MIN_PROPENSITY:g} to 1"
            values["propensity"] = self._numbers("propensity", columns.propensity, MIN_PROPENSITY, 1.0, kind)
        if columns.user:
            values["user"] = values["user"].filter(pl.Series(self.usable))
            reader.rows["user"].append(reader.users.encode(values.pop("user")))
        for name, column in values.items():
            reader.rows[name].append(column[self.usable])
        described = self.frame.filter(pl.Series(self.usable)) if reader.described else self.frame
        for name in self.formats.numeric_features:
            numbers, _ = parse_numbers(described[name], self.formats.decimals[name])
            described = described.with_columns(pl.Series(name, numbers))
        for descriptions in reader.described:
            descriptions.add(described)

    def _skip(self, wrong: Bools, reason: str, column: str = "", check: int | None = None) -> None:
        """Mark rows as not usable. Rows that are already marked are not counted again."""
        key = (next(self.checks) if check is None else check, reason)
        rows = np.flatnonzero(wrong & self.usable)
        if not rows.size:
            return
        self.usable[rows] = False
        examples = []
        for row in rows[:EXAMPLES].tolist():
            value = self.frame[column][row] if column else ""
            text = "empty" if value is None else repr(str(value)[:60])
            examples.append(f"{self.name}row {self.start + row + 1}" + (f": {text}" if column else ""))
        self.reader.skip(key, SkippedRows(reason, int(rows.size), tuple(examples)))

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
                column = column.cast(pl.Int64, strict=False) if name in self.formats.whole else column
            parts.append(column.cast(pl.String).str.strip_chars().replace({"": None}))
        joined = parts[0] if len(parts) == 1 else pl.DataFrame(parts).select(pl.concat_str(pl.all(), separator="/"))
        joined = joined if isinstance(joined, pl.Series) else joined.to_series()
        self._skip(joined.is_null().to_numpy(), reason)
        return joined.fill_null("")

    def _numbers(self, part: str, column: str, low: float, high: float, kind: str) -> Floats:
        """Return the numbers of a column, NaN if missing. Rows without one from ``low`` to ``high`` are skipped."""
        decimal = self.formats.decimals.get(column)
        values, wrong = parse_numbers(self.frame[column], decimal)
        wrong |= (values < low) | (values > high)
        other, is_other = {".": ",", ",": "."}.get(decimal or ""), np.zeros(len(wrong), bool)
        if other and wrong.any():
            numbers, _ = parse_numbers(self.frame[column], other)
            is_other = wrong & (numbers >= low) & (numbers <= high)
        separators = f"with the decimal separator {decimal!r}, but is with {other!r}: set decimal to {other!r}"
        self._skip(is_other, f"the {part} ({column}) is not {kind} {separators} (--decimal {other})", column)
        self._skip(wrong, f"the {part} ({column}) is not {kind}", column)
        return values

    def _rewards(self, column: str) -> Floats:
        reader, options = self.reader, self.reader.options
        rewards = self._numbers("reward", column, -MAX_REWARD, MAX_REWARD, "a number")
        if options.missing_reward is not None:
            value = check_float("missing_reward", options.missing_reward, -MAX_REWARD)
            reader.replaced += int((np.isnan(rewards) & self.usable).sum())
            rewards[np.isnan(rewards)] = value
        if reader.is_export:
            is_default = self.frame["reward_is_default"].fill_null(False).to_numpy()
            reader.defaults += int((is_default & self.usable).sum())
        return rewards

    def _arms(self, chosen_ids: Any) -> dict[str, Any]:
        """Return the list of arms of each row, and the position (or the number) of the chosen arm."""
        import polars as pl

        reader, column = self.reader, self.columns.arms
        check, last = next(self.checks), next(self.checks)
        found: dict[str, Any] = {}
        if reader.offers is not None:
            name = str(column)
            found["offer"], found["chosen"], reasons = reader.offers.read(self.frame[name], chosen_ids, self.usable)
            for reason, wrong in reasons.items():
                self._skip(wrong, f"the arms ({name}) cannot be used: {reason}", name, check)
        elif reader.catalogue is not None:
            positions = dict(zip(reader.catalogue, range(len(reader.catalogue)), strict=True))
            found["chosen"] = chosen_ids.replace_strict(positions, default=-1, return_dtype=pl.Int32).to_numpy()
        else:
            known = (chosen_ids != "").to_numpy()
            found["chosen"] = np.zeros(len(known), np.int32)
            found["chosen"][known] = reader.chosen_ids.encode(chosen_ids.filter(pl.Series(known)))
        self._skip(found["chosen"] < 0, "the chosen arm is not among the offered arms", self.columns.chosen, last)
        return found

"""Columns of the rows of a table: ids of users, and features (numbers, lists of numbers, categories, ids of arms)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from locb.common.arrays import Bools, Floats
from locb.common.validation import MAX_CONTEXT, ParameterError, ParameterName
from locb.datasets.column_values import bare_numbers, detect_decimal, parse_numbers
from locb.logs.arm_features import identity_features
from locb.logs.readers.columns import Columns, TableOptions, find_columns

MAX_CATEGORIES = 64  # distinct values of a column of text
MAX_DIM = 128  # features of a row
NUMBER, VECTOR, CATEGORY = "number", "vector", "category"


def is_plain_number(column: Any) -> bool:
    """Return whether a column of a data frame has numbers or booleans."""
    import polars as pl

    return bool(column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null))


def find_row_columns(available: Sequence[str], options: TableOptions, source: str) -> Columns:
    """Return the columns of a table: the user, the reward, and the features or the chosen arm."""
    required = ("user", "reward") if options.features else ("user", "reward", "chosen")
    try:
        return find_columns(available, options, source, required)
    except ParameterError as error:
        if error.args[0] != "chosen" or options.chosen is not None:
            raise
        found = find_columns(available, options, source, ("user", "reward"))
        other = [name for name in available if name not in found.names]
        examples = f", such as {', '.join(other[:2])}" if other else ""
        shown = f" to columns that describe what the user was shown{examples}"
        raise ParameterError("chosen", *error.args[1:], "; or set ", ParameterName("features"), shown) from error


def parse_ids(batch: Any, columns: Sequence[str], is_integer: bool) -> Any:
    """Return the ids of the users: integers, or text. Several columns are joined by "/"."""
    import polars as pl

    if is_integer:
        return batch[columns[0]].cast(pl.Int64, strict=False).rename("user")
    parts = []
    for column in columns:
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


@dataclass
class NumberParser:
    """Parser of a column of numbers whose format is known, so that each value is parsed alone.

    ``decimal`` is the decimal separator of text; None for a column of numbers.
    """

    decimal: str | None

    @classmethod
    def detect(cls, head: Any, decimal: str | None) -> NumberParser:
        """Return the parser for a column that starts with ``head``. ``decimal`` is detected if it is None."""
        import polars as pl

        return cls(None if is_plain_number(head) else decimal or detect_decimal(bare_numbers(head.cast(pl.String))))

    def parse(self, column: Any) -> tuple[Floats, Bools]:
        """Return numbers (NaN where there is none), and a mask of values that are not numbers."""
        import polars as pl

        if self.decimal == "." and column.dtype == pl.String:
            numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
            if numbers.null_count() == column.null_count() and numbers.is_finite().fill_null(True).all():
                values: Floats = numbers.fill_null(np.nan).to_numpy()
                return values, np.zeros(len(values), bool)
        return parse_numbers(column, self.decimal)


@dataclass
class ColumnFeatures:
    """Features from one column of a table."""

    column: str
    kind: str
    names: list[str]
    parser: NumberParser | None = None
    values: list[str] = field(default_factory=list)  # of a category
    codes: Floats | None = None  # features (values, d) of a category

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.names)

    def fill(self, column: Any, out: Floats) -> Bools:
        """Write the features of the rows of a column to ``out`` (n, dim), and return a mask of invalid rows."""
        import polars as pl

        if self.kind == VECTOR:
            flat = column.cast(pl.List(pl.Float64))
            wrong: Bools = (flat.list.len() != self.dim).fill_null(True).to_numpy()
            rows = flat.filter(pl.Series(~wrong)).explode().to_numpy() if not wrong.all() else np.empty(0)
            out[~wrong] = rows.reshape(-1, self.dim)
            out[wrong] = 0.0
        elif self.kind == NUMBER:
            assert self.parser is not None  # noqa: S101 - set for numbers
            out[:, 0], wrong = self.parser.parse(column)
        else:
            assert self.codes is not None  # noqa: S101 - set for categories
            text = column.cast(pl.String).str.strip_chars()
            index = dict(zip(self.values, range(len(self.values)), strict=True))
            codes = text.replace_strict(index, default=-1, return_dtype=pl.Int64).fill_null(-1).to_numpy()
            out[:] = self.codes[codes]
            out[codes < 0] = 0.0
            missing: Bools = codes < 0
            return missing
        bad: Bools = wrong | ~(np.abs(out) <= MAX_CONTEXT).all(axis=1)
        return bad


def describe_column(name: str, head: Any, decimal: str | None) -> ColumnFeatures:
    """Return the features of a column that describes rows; ``head`` are its first values.

    The values of a category are not known yet.
    """
    if head.dtype.is_nested():
        lengths = head.drop_nulls().list.len() if hasattr(head.list, "len") else []
        dim = int(lengths[0]) if len(lengths) else 0
        if not dim or not head.dtype.inner.is_numeric():
            raise ParameterError("features", f": column {name!r} must have lists of numbers, not {head.dtype}")
        return ColumnFeatures(name, VECTOR, [f"{name}[{position}]" for position in range(dim)])
    parser = NumberParser.detect(head, decimal)
    numbers, wrong = parser.parse(head)
    if is_plain_number(head) or (np.isfinite(numbers).any() and wrong.mean() < 0.5):
        return ColumnFeatures(name, NUMBER, [name], parser)
    return ColumnFeatures(name, CATEGORY, [])


def set_categories(features: ColumnFeatures, values: Sequence[str], is_arm: bool) -> None:
    """Set the values of a category. Each value is one feature; the ids of more than 64 arms are hashed.

    Raises
    ------
    ValueError
        If a column that is not the arm has more than 64 values.
    """
    features.values = sorted(values)
    if len(values) > MAX_CATEGORIES and not is_arm:
        raise ParameterError(
            "features",
            f": column {features.column!r} has {len(values):,} distinct values, but at most {MAX_CATEGORIES} are "
            "allowed; omit the column, or combine rare values",
        )
    features.codes = identity_features(features.values)
    prefix = "" if is_arm else f"{features.column}="
    features.names = [f"{prefix}{value}" for value in features.values]
    if len(values) > MAX_CATEGORIES:
        features.names = [f"hash {position}" for position in range(MAX_CATEGORIES)]

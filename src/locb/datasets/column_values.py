"""Values of columns: numbers with currency signs and decimal commas, and times in several formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Bools, Floats, IndexArray, Ints

TRUE_WORDS, FALSE_WORDS = ("true", "yes", "y", "t", "ja"), ("false", "no", "n", "f", "nein")
MISSING_WORDS = ("", "null", "none", "na", "n/a", "nan", "\\n", "-")
TIME_FORMATS = (
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y/%m/%d",
    "%d.%m.%Y %H:%M:%S%.f",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%m/%d/%Y %H:%M:%S%.f",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y",
    "%d/%m/%Y %H:%M:%S%.f",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y",
)
TIME_UNITS = {1e17: 1e9, 1e14: 1e6, 1e11: 1e3}  # units per second of numbers with a median above the key
ZONED_FORMATS = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f %#z")


def parse_numbers(column: Any, decimal: str | None = None) -> tuple[Floats, Bools]:
    """Return the numbers of a column (NaN where there is none), and a mask of values that are not numbers.

    Text may have currency signs, percent signs, spaces and separators of thousands. "yes", "true" and similar words are
    1, "no" and "false" are 0. Missing values are NaN, but are not in the mask. If separators of thousands do not
    separate groups of three digits, or follow a leading 0 ("0,100"), the number is not valid, because it probably has
    another decimal separator.

    Parameters
    ----------
    column : polars.Series
        Numbers, booleans or text.
    decimal : {".", ","}, optional
        Decimal separator of text. By default, it is detected from the whole column.
    """
    import polars as pl

    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        numbers = column.cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
        wrong = np.isinf(numbers)
        return numbers, wrong
    if column.dtype.is_nested() or column.dtype.is_temporal():
        return np.full(len(column), np.nan), np.ones(len(column), bool)
    text = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    missing = text.is_null() | text.is_in(list(MISSING_WORDS))
    bare = bare_numbers(text)
    point, thousands = (",", ".") if (decimal or detect_decimal(bare)) == "," else (".", ",")
    groups = rf"^[+-]?[1-9]\d{{0,2}}([{thousands}]\d{{3}})+([{point}]\d*)?(e[+-]?\d+)?$"
    is_mixed = bare.str.contains(thousands, literal=True) & ~bare.str.contains(groups)
    bare = bare.set(is_mixed.fill_null(False), "another decimal separator")
    bare = bare.str.replace_all(thousands, "", literal=True).str.replace(point, ".", literal=True)
    numbers = bare.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy().copy()
    wrong = ~np.isfinite(numbers) & ~missing.fill_null(True).to_numpy()
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers, wrong


def bare_numbers(text: Any) -> Any:
    """Return the numbers in a column of text without currency signs, percent signs and spaces, as text."""
    lower = text.str.strip_chars().str.to_lowercase()
    words = lower.replace_strict(dict.fromkeys(TRUE_WORDS, "1") | dict.fromkeys(FALSE_WORDS, "0"), default=lower)
    return words.str.replace_all(r"[\s'’_%€$£¥₹]|eur|usd|gbp|chf", "").str.replace("−", "-")


def detect_decimal(text: Any) -> str:
    """Return the decimal separator of numbers in a column of text: "," or ".".

    It is a comma if commas follow points ("1.234,50"), or if there are commas, no points, and a comma that cannot
    separate thousands, because it is not followed by three digits ("2,5") or follows a leading 0 ("0,100"). In all
    other cases it is a point.

    Examples
    --------
    >>> import polars as pl
    >>> [detect_decimal(pl.Series(values)) for values in (["1.234,50"], ["2,5", "1"], ["0,100"], ["1,234"], ["0.5"])]
    [',', ',', ',', '.', '.']
    """
    import polars as pl

    return choose_decimal(text.to_frame("text").select(decimal_signs(pl.col("text"))).item())


def decimal_signs(text: Any) -> Any:
    """Return an expression of the signs in a column of text that determine its decimal separator."""
    import polars as pl

    patterns = (r"\..*,", r"\.", r",(\d{0,2}|\d{4,})(e[-+]?\d+)?$|^[-+]?0,\d")
    return pl.concat_list([text.str.contains(pattern).any() for pattern in patterns])


def choose_decimal(signs: Any) -> str:
    """Return the decimal separator of a column with the given ``decimal_signs``."""
    comma_after_point, point, comma = signs
    return "," if comma_after_point or (comma and not point) else "."


def parse_times(column: Any) -> tuple[Floats, Bools]:
    """Return the times of a column in seconds since 1970 (UTC), and a mask of values that are not times.

    Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970, according to their size. Text is ISO
    8601, or has one of the formats in ``TIME_FORMATS``. The format that fits the most values has priority; the other
    formats are used for the remaining values. Times without a zone are UTC.
    """
    return TimeParser.detect(column.to_frame("time").lazy(), "time").parse(column)


@dataclass(frozen=True)
class TimeParser:
    """Parser of a column of times whose format is known, so that each value is parsed alone."""

    unit: float  # of numbers, per second
    order: tuple[int, ...] = ()  # formats of text, as indices of ``_readings``; the first one has priority

    @classmethod
    def detect(cls, frame: Any, name: str) -> TimeParser:
        """Return the parser for the column ``name`` of a lazy frame."""
        import polars as pl

        dtype, column = frame.collect_schema()[name], pl.col(name)
        if dtype.is_nested() or dtype.is_temporal():
            return cls(1.0)
        readings = [column.cast(pl.Float64)] if dtype.is_numeric() else _readings(column)
        facts = {f"{size:g}": _compare_with(readings[0].abs(), size) for size in TIME_UNITS}
        facts |= {str(number): reading.is_null().sum() for number, reading in enumerate(readings)}
        facts["0"] += readings[0].is_nan().sum()
        found = frame.select(**facts).collect(engine="streaming").row(0, named=True)
        unit = next((unit for size, unit in TIME_UNITS.items() if _median_exceeds(found[f"{size:g}"], size)), 1.0)
        missing = [found[str(number)] for number in range(len(readings))]
        return cls(unit, tuple(sorted(range(len(readings)), key=missing.__getitem__)))  # stable: earlier formats first

    def parse(self, column: Any) -> tuple[Floats, Bools]:
        """Return the times of a column in seconds, and a mask of values that are not times."""
        import polars as pl

        dtype = column.dtype
        if dtype.is_numeric():
            numbers = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
            return numbers / self.unit, ~np.isfinite(numbers)
        if dtype.is_temporal() and dtype not in (pl.Time, pl.Duration):
            seconds = _to_seconds(column)
            return seconds, ~np.isfinite(seconds)
        best = np.full(len(column), np.nan)
        if dtype.is_nested() or dtype.is_temporal():
            return best, np.ones(len(column), bool)
        readings = _readings(pl.col("time"))
        text = column.to_frame("time")
        for number in self.order:
            found = text.select(readings[number]).to_series()
            other = _to_seconds(found) if number else found.fill_null(np.nan).to_numpy() / self.unit
            best = np.where(np.isnan(best), other, best)
            if not np.isnan(best).any():
                break
        return best, np.isnan(best)


def _readings(column: Any) -> list[Any]:
    """Return expressions of a column of text: as numbers, and as times of each format."""
    import polars as pl

    text = column.cast(pl.String).str.strip_chars()
    readings = [text.str.replace(r"^(\d+),(\d+)$", "${1}.${2}").cast(pl.Float64, strict=False)]
    plain = text.str.replace(r"\s*(Z|UTC|GMT)$", "")
    for formats, series in ((ZONED_FORMATS, text), (TIME_FORMATS, plain)):
        for layout in formats:
            zone = {"time_zone": "UTC"} if formats is ZONED_FORMATS else {}
            kind = pl.Date if "%H" not in layout else pl.Datetime("us", **zone)
            readings.append(series.str.strptime(kind, layout, strict=False, exact=True))
    return readings


def _to_seconds(column: Any) -> Floats:
    import polars as pl

    micros: Floats = column.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64).fill_null(np.nan).to_numpy()
    return micros / 1e6


def _compare_with(numbers: Any, size: float) -> Any:
    """Return an expression of the numbers of finite values up to ``size`` and above it, and of those next to it."""
    import polars as pl

    values = numbers.filter(numbers.is_finite())
    lower, upper = values.filter(values <= size), values.filter(values > size)
    return pl.struct(lower=lower.count(), upper=upper.count(), below=lower.max(), above=upper.min())


def _median_exceeds(facts: dict[str, Any], size: float) -> bool:
    """Return whether the median of numbers with the given facts, of ``_compare_with``, is above ``size``."""
    lower, upper = facts["lower"], facts["upper"]
    if lower == upper:
        return bool(lower) and (facts["below"] + facts["above"]) / 2 > size
    return bool(upper > lower)


def encode_text(values: Any) -> tuple[list[str], Ints]:
    """Return the distinct values of a series or array of text in alphabetical order, and the index of each value.

    Examples
    --------
    >>> encode_text(np.array(["b", "a", "b"]))
    (['a', 'b'], array([1, 0, 1]))
    """
    import polars as pl

    column = pl.Series("text", values, dtype=pl.String).to_frame()
    distinct = column.unique().sort("text")
    numbered = distinct.with_columns(pl.Series("index", np.arange(distinct.height)))
    found = column.join(numbered, on="text", how="left", maintain_order="left")
    return distinct["text"].to_list(), found["index"].to_numpy()


class TextIndex:
    """Numbers of the distinct values of a column of text that is read in batches."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def encode(self, values: Any) -> IndexArray:
        """Return the number of each value of a series of text. New values get the next numbers."""
        distinct, codes = encode_text(values)
        numbers = self._numbers
        table = np.array([numbers.setdefault(value, len(numbers)) for value in distinct], np.int32)
        found: IndexArray = table[codes]
        return found

    def rank(self) -> tuple[list[str], IndexArray]:
        """Return all values in alphabetical order, and the position in this order of each number."""
        names = sorted(self._numbers)
        ranks = np.empty(len(names), np.int32)
        ranks[[self._numbers[name] for name in names]] = np.arange(len(names))
        return names, ranks

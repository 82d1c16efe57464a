"""Values of columns: numbers with currency signs and decimal commas, and times in several formats."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.common.arrays import Bools, Floats, Ints

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
ZONED_FORMATS = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f %#z")


def parse_numbers(column: Any, decimal: str | None = None) -> tuple[Floats, Bools]:
    """Return the numbers of a column (NaN where there is none), and a mask of values that are not numbers.

    Text may have currency signs, percent signs, spaces and separators of thousands. "yes", "true" and similar words are
    1, "no" and "false" are 0. Missing values are NaN, but are not in the mask. If separators of thousands do not
    separate groups of three digits, the number is not valid, because it probably has another decimal separator.

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
    groups = rf"^[+-]?\d{{1,3}}([{thousands}]\d{{3}})+([{point}]\d*)?(e[+-]?\d+)?$"
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

    It is a comma if commas follow points ("1.234,50"), or if there are commas, no points, and a comma that is not
    followed by three digits ("0,5"). In all other cases it is a point.

    Examples
    --------
    >>> import polars as pl
    >>> [detect_decimal(pl.Series(values)) for values in (["1.234,50"], ["0,5", "1"], ["1,234"], ["0.5"])]
    [',', ',', '.', '.']
    """
    if text.str.contains(r"\..*,").any():
        return ","
    if text.str.contains(r",.*\.").any() or text.str.contains(r"\.").any():
        return "."
    return "," if text.str.contains(r",(\d{0,2}|\d{4,})(e[-+]?\d+)?$").any() else "."


def parse_times(column: Any) -> tuple[Floats, Bools]:
    """Return the times of a column in seconds since 1970 (UTC), and a mask of values that are not times.

    Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970, according to their size. Text is ISO
    8601, or has one of the formats in ``TIME_FORMATS``. The format that fits the most values has priority; the other
    formats are used for the remaining values. Times without a zone are UTC.
    """
    import polars as pl

    if column.dtype.is_numeric():
        numbers = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        return _scale_times(numbers), ~np.isfinite(numbers)
    if column.dtype.is_temporal() and column.dtype not in (pl.Time, pl.Duration):
        seconds = _to_seconds(column)
        return seconds, ~np.isfinite(seconds)
    if column.dtype.is_nested() or column.dtype.is_temporal():
        return np.full(len(column), np.nan), np.ones(len(column), bool)
    text = column.cast(pl.String).str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    found = [_scale_times(numbers.fill_null(np.nan).to_numpy())]
    plain = text.str.replace(r"\s*(Z|UTC|GMT)$", "")
    for formats, series in ((ZONED_FORMATS, text), (TIME_FORMATS, plain)):
        for layout in formats:
            zone = {"time_zone": "UTC"} if formats is ZONED_FORMATS else {}
            kind = pl.Date if "%H" not in layout else pl.Datetime("us", **zone)
            found.append(_to_seconds(series.str.strptime(kind, layout, strict=False, exact=True)))
    found.sort(key=lambda seconds: int(np.isnan(seconds).sum()))  # stable: earlier formats have priority
    best = found[0].copy()
    for other in found[1:]:
        if not np.isnan(best).any():
            break
        best = np.where(np.isnan(best), other, best)
    return best, np.isnan(best)


def _to_seconds(column: Any) -> Floats:
    import polars as pl

    micros: Floats = column.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64).fill_null(np.nan).to_numpy()
    return micros / 1e6


def _scale_times(numbers: Floats) -> Floats:
    """Return numbers of seconds, milliseconds, microseconds or nanoseconds as seconds, according to their size."""
    finite = np.abs(numbers[np.isfinite(numbers)])
    if not finite.size:
        return numbers.copy()
    typical = float(np.median(finite))
    unit = 1e9 if typical > 1e17 else 1e6 if typical > 1e14 else 1e3 if typical > 1e11 else 1.0
    return numbers / unit


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

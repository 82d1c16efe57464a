"""Reading of text files and JSON lines line by line, and of columns of ratings as arrays."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from locb.datasets.source_files import Source

RATING = "expected an integer user, an integer item and a finite number"


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line) for each non-empty line of a text file in UTF-8.

    Lines that are not valid UTF-8 are read as Latin-1.
    """
    with source.open() as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                line = raw.decode("latin-1")
            if line := line.rstrip("\r\n"):
                yield number, line


def json_lines(source: Source, kind: Any) -> Iterator[Any]:
    """Yield the JSON objects of a file with one object per line, decoded as the type ``kind``.

    An invalid line raises a ValueError that names the line.
    """
    decode = msgspec.json.Decoder(kind).decode
    with source.open() as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                yield decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ValueError(f"{source.name}, line {number}: {error}") from None


def rating_columns(source: Source, separator: str, header: bool, columns: Sequence[str | int]) -> tuple[Any, Any, Any]:
    """Return three arrays from a ratings file: users (integers), items (integers) and ratings (floats).

    An invalid line raises a ValueError that names the line. So does a file without ratings or without a column.

    Parameters
    ----------
    source : Source
        Ratings file.
    separator : str
        Separator of the columns.
    header : bool
        Whether the first line has the names of the columns.
    columns : sequence of str or int
        Columns of user, item and rating: names if there is a header, else indices from 0.
    """
    import polars as pl

    with source.open() as stream:
        data = stream.read()
    if not (data.partition(b"\n")[2] if header else data).strip():
        raise ValueError(f"{source.name} has no ratings; at least one is required")
    if header:
        header_line = data.split(b"\n", 1)[0].decode("utf-8-sig", "replace")
        header_names = [field.strip() for field in header_line.split(separator)]
        missing = [str(column) for column in columns if column not in header_names]
        if missing:
            absent, available = (", ".join(map(repr, names)) for names in (missing, header_names))
            raise ValueError(f"{source.name} has no column {absent}; it has {available}")
        indices = [header_names.index(str(column)) for column in columns]
    else:
        # Polars takes separators of one character only. It reads "::" as two separators with an empty field between.
        indices = [len(separator) * int(column) for column in columns]
    table = pl.read_csv(
        io.BytesIO(data),
        separator=separator[0],
        has_header=False,
        skip_rows=1 if header else 0,
        columns=indices,
        infer_schema=False,
        quote_char=None,  # quotes around numbers are stripped below
        truncate_ragged_lines=True,
    )
    types = (pl.Int64, pl.Int64, pl.Float64)
    texts = [table.get_column(name).str.strip_chars(' "\r') for name in table.columns]
    order = np.argsort(np.argsort(indices))
    blank = np.logical_and.reduce([(text.is_null() | (text == "")).fill_null(True).to_numpy() for text in texts])
    found = [texts[order[c]].filter(~pl.Series(blank)).cast(dtype, strict=False) for c, dtype in enumerate(types)]
    if any(column.null_count() for column in found) or not found[2].is_finite().all():
        raise ValueError(_find_invalid_line(source, separator, header, columns if not header else indices))
    return found[0].to_numpy(), found[1].to_numpy(), found[2].to_numpy()


def _find_invalid_line(source: Source, separator: str, header: bool, indices: Sequence[Any]) -> str:
    """Return an error message with the number and the text of the first line that is not a valid rating."""
    for number, line in text_lines(source):
        if header and number == 1:
            continue
        fields = next(csv.reader([line])) if separator == "," else line.split(separator)
        try:
            user, item, rating = (fields[int(index)] for index in indices)
            if not np.isfinite([int(user), int(item), float(rating)]).all():
                raise ValueError
        except (ValueError, IndexError):
            return f"{source.name}, line {number}: cannot parse as a rating ({RATING}): {line[:80]!r}"
    return f"{source.name}: a line cannot be parsed as a rating ({RATING})"

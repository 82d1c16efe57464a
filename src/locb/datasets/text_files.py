"""Text files line by line, and big columns of ratings all at once."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from locb.datasets.source_files import Source


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1, without line ends, blank ones left out; UTF-8 or, failing that, Latin-1."""
    with source.open() as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                line = raw.decode("latin-1")
            if line := line.rstrip("\r\n"):
                yield number, line


def json_lines(source: Source, kind: Any) -> Iterator[Any]:
    """The objects of a file, one a line, or a ValueError that names the line."""
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
    """Users, items (whole numbers) and ratings of a file, or a ValueError that names the first bad line."""
    import polars as pl

    with source.open() as stream:
        data = stream.read()
    if not (data.partition(b"\n")[2] if header else data).strip():
        raise ValueError(f"{source.name} holds no ratings")
    if header:
        named = [field.strip() for field in data.split(b"\n", 1)[0].decode("utf-8-sig", "replace").split(separator)]
        missing = [str(column) for column in columns if column not in named]
        if missing:
            raise ValueError(f"{source.name} has no column {', '.join(missing)}; it has {', '.join(named)}")
        places = [named.index(str(column)) for column in columns]
    else:
        # A separator of two characters is read as two of one, with nothing between.
        places = [len(separator) * int(column) for column in columns]
    table = pl.read_csv(
        io.BytesIO(data),
        separator=separator[0],
        has_header=False,
        skip_rows=1 if header else 0,
        columns=places,
        infer_schema=False,
        quote_char=None,  # no field of a rating needs quotes; those that have them are stripped
        truncate_ragged_lines=True,
    )
    kinds = (pl.Int64, pl.Int64, pl.Float64)
    texts = [table.get_column(name).str.strip_chars(' "\r') for name in table.columns]
    order = np.argsort(np.argsort(places))
    blank = np.logical_and.reduce([(text.is_null() | (text == "")).fill_null(True).to_numpy() for text in texts])
    found = [texts[order[c]].filter(~pl.Series(blank)).cast(kind, strict=False) for c, kind in enumerate(kinds)]
    if any(column.null_count() for column in found) or not found[2].is_finite().all():
        raise ValueError(_first_bad_line(source, separator, header, columns if not header else places))
    return found[0].to_numpy(), found[1].to_numpy(), found[2].to_numpy()


def _first_bad_line(source: Source, separator: str, header: bool, places: Sequence[Any]) -> str:
    """Read again, slowly, to the first line that is no rating."""
    for number, line in text_lines(source):
        if header and number == 1:
            continue
        fields = next(csv.reader([line])) if separator == "," else line.split(separator)
        try:
            user, item, rating = (fields[int(place)] for place in places)
            if not np.isfinite([int(user), int(item), float(rating)]).all():
                raise ValueError
        except (ValueError, IndexError):
            return f"{source.name}, line {number}: no rating in {line[:80]!r}"
    return f"{source.name}: a line holds no rating"

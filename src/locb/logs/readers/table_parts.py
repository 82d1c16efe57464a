"""Tables as lazy frames: files of a log, and data frames of several libraries."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from locb.common.validation import ParameterError
from locb.datasets.source_files import Source
from locb.datasets.table_files import (
    DETECTED_SEPARATORS,
    READERS,
    TEXT_SEPARATORS,
    TextFormat,
    check_text_format,
    decode_windows,
    file_suffix,
    read_frame,
)
from locb.logs.readers.columns import Columns, TableOptions, find_columns, given_columns

EXPORT_COLUMNS = {"decision_id", "arm", "arms", "context", "reward_is_default"}  # of ``GET /v1/export``
PIECE = 1 << 24  # bytes of a text file from which the types of columns are inferred together


class TablePart(NamedTuple):
    """Part of a table: a Polars lazy frame, and the file that it reads (None for a data frame)."""

    frame: Any
    path: Path | None = None


def open_files(files: list[Path], options: TableOptions) -> tuple[list[TablePart], Columns]:
    """Return the needed columns of each file, with equal types, and the columns of the log.

    Parquet, and text files in UTF-8 with a header and a separator of one byte, are read in batches. Other files are
    loaded.
    """
    import polars as pl

    frames: list[Any] = []
    notes: list[str] = []
    columns = None
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
            missing = [column for column in columns.names if column not in available]
            if missing:
                absent = f"{path} has no column {', '.join(missing)}, unlike {files[0].name}"
                raise ValueError(f"{absent}; every file must have the columns that are used")
            frame: Any = lazy.select(needed_columns(columns, available))
        else:
            if suffix not in READERS and options.header:
                separator = options.separator or guess_separator(source, suffix)
                text_format = TextFormat(separator, True)
                columns = columns or find_columns(_header(source, separator), options, path.name)
            given = given_columns(options) if suffix not in READERS else []
            names, keys = (given, given) if columns is None else (columns.names, columns.keys)
            frame = None
            try:
                frame = _scan_text(source, names, keys, text_format) if suffix not in READERS else None
            except UnicodeDecodeError:
                notes.append(
                    f"{path.name} is not in UTF-8 and is read as Windows-1252; if it has another encoding, convert it"
                )
            if frame is None:
                frame = read_frame(source, names, keys, text_format).lazy()
            columns = columns or find_columns(frame.collect_schema().names(), options, path.name)
            frame = frame.select(columns.names)
        frames.append(frame.with_columns(pl.col(column).cast(pl.String) for column in columns.keys))
    assert columns is not None  # noqa: S101 - there is at least one file
    columns.notes += notes
    if len(frames) > 1:
        schema: Any = pl.concat(frames, how="vertical_relaxed").collect_schema()
        frames = [frame.cast(schema) for frame in frames]
    return [TablePart(frame, path) for path, frame in zip(files, frames, strict=True)], columns


def needed_columns(columns: Columns, available: Sequence[str]) -> list[str]:
    """Return the columns of a table that are read. An export of the service is recognized by its columns."""
    extra = sorted(EXPORT_COLUMNS) if set(available) >= EXPORT_COLUMNS else []
    return list(dict.fromkeys([*columns.names, *extra]))


def _scan_text(source: Source, names: Sequence[str], keys: Sequence[str], text_format: TextFormat) -> Any:
    """Return a text file as a lazy frame; None if it must be loaded, or if loading it raises an error.

    Raises
    ------
    UnicodeDecodeError
        If the file is not in UTF-8. It must then be loaded.
    """
    import polars as pl

    separator = str(text_format.separator)
    if not text_format.header or len(separator.encode()) > 1:
        return None
    try:
        schema = _infer_schema(source, names, keys, separator)
        return pl.scan_csv(source.path, separator=separator, schema=schema) if schema else None
    except pl.exceptions.PolarsError:
        return None


def _infer_schema(source: Source, names: Sequence[str], keys: Sequence[str], separator: str) -> Any:
    """Return the types of columns that all rows of a text file together have in ``read_frame``.

    Polars would load the whole file to infer them. The types are None if a column is missing, there are no rows, or
    numbers need more than 64 bits, so that the types of pieces do not determine the type of the column.
    """
    import polars as pl

    known: dict[str, Any] = {}
    for piece in _pieces(source):
        piece.decode("utf-8")
        columns = pl.scan_csv(piece, separator=separator, infer_schema=False).collect_schema().names()
        if not set(names) <= set(columns):
            return None
        known = known or dict.fromkeys(columns, pl.String) | {name: None for name in names if name not in keys}
        inferred = [name for name, dtype in known.items() if dtype != pl.String]
        types: Any = {name: pl.String for name in columns if name not in inferred}
        frame = pl.read_csv(piece, separator=separator, infer_schema_length=None, schema_overrides=types, columns=names)
        for name in inferred:
            column, before, dtype = frame[name], known[name], frame[name].dtype
            if column.null_count() == frame.height:
                continue
            if dtype == pl.Int128 or (dtype == pl.Float64 and (column.is_finite() & (column.abs() >= 2.0**63)).any()):
                return None
            if before is not None and before != dtype:
                dtype = pl.Float64() if {before, dtype} == {pl.Int64(), pl.Float64()} else pl.String()
            known[name] = dtype
    return {name: pl.String if dtype is None else dtype for name, dtype in known.items()}


def _pieces(source: Source) -> Iterator[bytes]:
    """Return the rows of a text file in pieces of about ``PIECE`` bytes, each with the header of the file."""
    rest = b""
    with source.open() as stream:
        header = next((line for line in stream if line.strip()), b"")
        while data := stream.read(PIECE):
            rest += data
            end = _end_of_row(rest)
            if end:
                yield header + rest[:end]
                rest = rest[end:]
    if rest.strip():
        yield header + rest


def _end_of_row(text: bytes) -> int:
    """Return the length of the complete rows at the start of a text. A line break in quotes is part of a row."""
    end = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, end)
    while end and quotes % 2:
        start = text.rfind(b"\n", 0, end - 1) + 1
        quotes -= text.count(b'"', start, end)
        end = start
    return end


def _first_line(source: Source) -> str:
    with source.open() as stream:
        line = next((line for line in stream if line.strip()), b"")
    try:
        return str(line.decode("utf-8-sig")).rstrip("\r\n")
    except UnicodeDecodeError:
        return decode_windows(line).rstrip("\r\n")


def guess_separator(source: Source, suffix: str) -> str:
    """Return the separator that gives the header the most columns; of equal ones, the usual one of the suffix."""
    line, usual = _first_line(source), TEXT_SEPARATORS.get(suffix, ",")
    return max(DETECTED_SEPARATORS, key=lambda separator: (line.count(separator), separator == usual))


def _header(source: Source, separator: str) -> list[str]:
    line = _first_line(source)
    return line.split(separator) if len(separator) > 1 else next(csv.reader([line], delimiter=separator), [])


def to_lazy(source: Any) -> Any:
    """Return a Polars, pandas or Arrow table, or a mapping of columns, as a Polars lazy frame."""
    import polars as pl

    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return source.lazy()
    try:
        if isinstance(source, Mapping):
            return pl.DataFrame(dict(source), strict=False).lazy()
        if hasattr(source, "notna"):
            return _from_pandas(source).lazy()
        if hasattr(source, "__arrow_c_stream__"):
            return pl.DataFrame(source).lazy()
        return pl.DataFrame({str(name): source[name].tolist() for name in source.columns}, strict=False).lazy()
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

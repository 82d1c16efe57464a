"""Tables in files: text with separators, Parquet, and JSON lines."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import BytesIO
from itertools import islice
from typing import Any, NamedTuple

from locb.common.validation import ParameterError
from locb.datasets.source_files import Source
from locb.datasets.text_files import json_lines

TEXT_SEPARATORS = {".csv": ",", ".tsv": "\t", ".dat": "::", ".txt": "\t"}  # usual separator of each kind of text file
READERS = {".parquet": "read_parquet", ".jsonl": "read_ndjson", ".ndjson": "read_ndjson", ".json": "read_ndjson"}
DETECTED_SEPARATORS = (",", "\t", ";", "::", "|")
SAMPLE_LINES = 20  # lines from which the separator of a file without a header is detected


class TextFormat(NamedTuple):
    """Format of a text file with a table."""

    separator: str | None = None  # separator of the columns; None to detect it
    header: bool = True  # whether the first line has the names of the columns; if False, columns are numbered from 1


def file_suffix(source: Source) -> str:
    """Return the suffix of a file in lower case, without .gz."""
    return (source.path.with_suffix("") if source.path.suffix == ".gz" else source.path).suffix.lower()


def check_text_format(source: Source, text_format: TextFormat) -> None:
    """Raise a ValueError if the separator is empty, or if a format is set for a Parquet or JSON lines file."""
    if text_format.separator == "":
        raise ParameterError("separator", " must have at least one character, not ''")
    if file_suffix(source) in READERS and text_format != TextFormat():
        option = "header" if text_format.separator is None else "separator"
        raise ParameterError(option, f" is an option of text files, not of {file_suffix(source)} files; omit it")


def read_frame(source: Source, required: Sequence[str], keys: Sequence[str], text_format: TextFormat) -> Any:
    """Return the table in a file as a Polars data frame.

    Parameters
    ----------
    source : Source
        File of the table. Its suffix determines the format.
    required : sequence of str
        Columns that the table must have.
    keys : sequence of str
        Columns of users and items. In a text file they are read as text, so that "007" does not become 7.
    text_format : TextFormat
        Separator and header of a text file.

    Raises
    ------
    ValueError
        If the format is unknown, or if the table cannot be read, has no rows or lacks a column.
    """
    suffix = file_suffix(source)
    is_text = suffix not in READERS
    if is_text and suffix not in TEXT_SEPARATORS and text_format.separator is None:
        raise ValueError(
            f"{source.name}: the file name must end in {', '.join([*TEXT_SEPARATORS, *READERS])}, optionally with .gz, "
            f"not {suffix!r}; for other text files, set separator (--separator)"
        )
    with source.open() as stream:
        data = stream.read()
    if not data.strip():
        raise ValueError(f"{source.name} is empty; it must have at least one row")
    try:
        found = _read_text(data, suffix, required, keys, text_format) if is_text else _read_binary(data, suffix)
    except Exception as error:  # Polars errors have no common base class
        if READERS.get(suffix) == "read_ndjson":
            list(json_lines(source, dict))  # raises an error that names the line
        raise ValueError(f"cannot read {source.name} as {suffix or 'text'}: {str(error).splitlines()[0]}") from error
    missing = [column for column in required if column not in found.columns]
    if missing:
        hint = _suggest_format(found.columns, text_format) if is_text else ""
        absent, available = (", ".join(map(repr, names)) for names in (missing, found.columns))
        raise ValueError(f"{source.name} has no column {absent}; it has {available}{hint}")
    if found.height == 0:
        raise ValueError(f"{source.name} has no rows; it must have at least one")
    return found


def _suggest_format(columns: list[str], text_format: TextFormat) -> str:
    """Return the end of an error message about missing columns: which option the file may need."""
    if len(columns) == 1 and text_format.separator is None:
        return "; if it has several columns, set separator (--separator)"
    if text_format.header and any(column.replace(".", "", 1).isdigit() for column in columns):
        return (
            "; if the first line has values instead of names, set header to False (--no-header) and number the columns "
            "from 1"
        )
    return ""


def _read_binary(data: bytes, suffix: str) -> Any:
    import polars as pl

    return getattr(pl, READERS[suffix])(data)


def _read_text(data: bytes, suffix: str, required: Sequence[str], keys: Sequence[str], text_format: TextFormat) -> Any:
    import polars as pl

    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        data = decode_windows(data).encode()
    header, usual = text_format.header, TEXT_SEPARATORS.get(suffix, ",")
    separator = text_format.separator or detect_separator(data, required, keys, header, usual)
    is_long = len(separator.encode()) > 1
    if is_long:  # Polars takes separators of one byte only
        substitute = next(bytes([code]) for code in range(31, 0, -1) if bytes([code]) not in data)
        data, separator = data.replace(separator.encode(), substitute), substitute.decode()
    options: dict[str, Any] = {"separator": separator, "has_header": header, "infer_schema_length": None}
    options |= {"quote_char": None} if is_long else {}  # in files with "::", a quote is a character like any other
    if not header:
        width = pl.read_csv(data, **options, n_rows=1).width
        options["new_columns"] = [str(number) for number in range(1, width + 1)]
    return pl.read_csv(data, **options, schema_overrides=dict.fromkeys(keys, pl.String))


def decode_windows(data: bytes) -> str:
    """Return text in Windows-1252. Text with bytes that have no character in it is ISO 8859-1 (Latin-1)."""
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def detect_separator(data: bytes, required: Sequence[str], keys: Sequence[str], header: bool, usual: str) -> str:
    """Return the separator of a text file.

    The function tries ``usual`` first, then the other elements of ``DETECTED_SEPARATORS``. With a header, it returns
    the first separator that gives all ``required`` columns. Without a header, it returns the first separator that gives
    each of the first 20 lines enough columns, and ``keys`` columns that contain no other separator. If no separator
    qualifies, it returns the one that gives the most columns.
    """
    sample_lines = 1 if header else SAMPLE_LINES
    sample = b"".join(islice((line for line in BytesIO(data) if line.strip()), sample_lines)).decode("utf-8-sig")
    candidates = sorted(DETECTED_SEPARATORS, key=lambda separator: separator != usual)
    rows = {separator: _split_lines(sample.splitlines(), separator) for separator in candidates}
    for separator in candidates:
        if header:
            if all(column in rows[separator][0] for column in required):
                return separator
            continue
        try:
            columns = [[row[int(column) - 1] for column in required] for row in rows[separator]]
        except (IndexError, ValueError):
            continue
        values = [value for row in columns for value, column in zip(row, required, strict=True) if column in keys]
        others = [other for other in candidates if other != separator]
        if len(rows[separator][0]) > 1 and not any(other in value for other in others for value in values):
            return separator
    return max(candidates, key=lambda separator: len(rows[separator][0]))


def _split_lines(lines: list[str], separator: str) -> list[list[str]]:
    if len(separator) > 1:
        return [line.split(separator) for line in lines]
    return [row for row in csv.reader(lines, delimiter=separator) if row]

"""Arrays with one entry per decision: computed in blocks of rows, and kept in temporary files if they are large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any

import numpy as np

from locb.common.arrays import IndexArray, Ints

BLOCK = 1_000_000  # rows that are computed together
MAX_IN_MEMORY = 32 * 2**20  # bytes of an array; a larger one is in a temporary file


class RowBuffer:
    """Array to which rows are appended.

    An array above ``MAX_IN_MEMORY`` is in a temporary file that is mapped into memory, so that the operating system can
    write its pages back. The file has no name. Its space is freed with the array, even if the process is killed.
    """

    def __init__(self, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)
        self._parts: list[Any] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None

    def append(self, rows: Any) -> None:
        """Append a copy of rows (n,)."""
        part = np.array(rows, self._dtype)
        self._bytes += part.nbytes
        if self._file is None and self._bytes > MAX_IN_MEMORY:
            self._file = TemporaryFile(prefix="locb-")  # noqa: SIM115 - build closes it
            self._parts, earlier = [], self._parts
            for values in earlier:
                self._write(self._file, values)
        if self._file is None:
            self._parts.append(part)
        else:
            self._write(self._file, part)

    def _write(self, file: IO[bytes], values: Any) -> None:
        try:
            file.write(values.data)
            file.flush()
        except OSError as error:
            advice = "set TMPDIR to a folder with more space, in which temporary files of large logs are written"
            raise OSError(error.errno, f"{error.strerror}; {advice}", gettempdir()) from error

    def build(self) -> Any:
        """Return the array. No rows can be appended later."""
        if self._file is None:
            return self._parts[0] if len(self._parts) == 1 else np.concatenate([np.empty(0, self._dtype), *self._parts])
        with self._file as file:  # the mapping keeps the file
            return np.asarray(np.memmap(file, self._dtype, "r+"))


def blocks(count: int) -> Iterator[slice]:
    """Return the slices of ``BLOCK`` rows each that contain ``count`` rows together, in order."""
    return (slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))


def store(dtype: Any, parts: Iterable[Any]) -> Any:
    """Return an array from its parts, in order."""
    buffer = RowBuffer(dtype)
    for part in parts:
        buffer.append(part)
    return buffer.build()


def by_block(dtype: Any, count: int, compute: Callable[[slice], Any]) -> Any:
    """Return an array of ``count`` rows; ``compute`` returns the rows of a slice."""
    return store(dtype, map(compute, blocks(count)))


def take(values: Any, rows: Any) -> Any:
    """Return the given rows of an array: a slice (without a copy), indices, or a mask."""
    if isinstance(rows, slice) or max(len(rows), len(values)) <= BLOCK:
        return values[rows]
    rows = np.asarray(rows)
    if rows.dtype == bool:
        if len(rows) != len(values):
            raise IndexError(f"a mask of {len(values)} rows must have {len(values)} values, not {len(rows)}")
        return by_block(values.dtype, len(rows), lambda span: values[span][rows[span]])
    return by_block(values.dtype, len(rows), lambda span: values[rows[span]])


def find(count: int, is_true: Callable[[slice], Any]) -> Ints:
    """Return the indices of the rows for which ``is_true``, which returns a mask for a slice, is True."""
    found: Ints = store(np.int64, (span.start + np.flatnonzero(is_true(span)) for span in blocks(count)))
    return found


def add_by_index(totals: Any, indices: Any, values: Any) -> None:
    """Add each value to the entry of ``totals`` with its index, in the order of the rows."""
    for span in blocks(len(indices)):
        np.add.at(totals, indices[span], values[span])


def number_distinct(values: Any) -> tuple[IndexArray, int]:
    """Return the rank of each value among the distinct values, and how many there are. Values are small integers ≥ 0.

    Examples
    --------
    >>> number_distinct(np.array([5, 7, 5]))
    (array([0, 1, 0], dtype=int32), 2)
    """
    count = len(values)
    is_present = np.zeros(max((int(values[span].max()) for span in blocks(count)), default=-1) + 1, bool)
    for span in blocks(count):
        is_present[values[span]] = True
    rank = np.cumsum(is_present, dtype=np.int32) - np.int32(1)
    return by_block(np.int32, count, lambda span: rank[values[span]]), int(is_present.sum())


def argsort_ascending(values: Any) -> Any:
    """Return the indices that sort an array, stably; None if it is already sorted."""
    if all((np.diff(values[max(span.start - 1, 0) : span.stop]) >= 0).all() for span in blocks(len(values))):
        return None
    return np.argsort(values, kind="stable")

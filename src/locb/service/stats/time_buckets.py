"""Sums per time bucket, in arrays that are ordered by time, so that queries need no loop over the buckets."""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Floats, Ints


class TimeBuckets:
    """Sums of rows per time bucket of one width. Buckets without rows take no memory.

    Parameters
    ----------
    width : int
        Width of a bucket in seconds.
    retention : float
        Minimum time for which buckets are kept, in seconds.
    columns : int
        Number of columns of a row.
    """

    def __init__(self, width: int, retention: float, columns: int) -> None:
        self._width = width
        self._retention = retention
        self._keys = np.zeros(0, np.int64)  # start times of the buckets in multiples of the width, ascending
        self._sums = np.zeros((0, columns))

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, times: Ints, rows: Floats, now: float) -> None:
        """Add rows to the buckets of the given Unix times.

        ``now`` is the current Unix time. Rows whose bucket is older than the retention are ignored.
        """
        oldest = (now - self._retention) / self._width - 1.0
        keys = times // self._width
        recent = keys >= oldest
        keys, rows = sum_by_key(keys[recent], rows[recent])
        index = np.searchsorted(self._keys, keys)
        known = index < len(self._keys)
        known[known] = self._keys[index[known]] == keys[known]
        self._sums[index[known]] += rows[known]
        if not known.all():
            self._keys = np.insert(self._keys, index[~known], keys[~known])
            self._sums = np.insert(self._sums, index[~known], rows[~known], axis=0)
        if len(self._keys) > 1.1 * self._retention / self._width + 10:
            first = int(np.searchsorted(self._keys, oldest))
            self._keys, self._sums = self._keys[first:].copy(), self._sums[first:].copy()

    def total(self, start: float, stop: float) -> Floats:
        """Return the sum of the buckets that overlap the period [start, stop), in Unix time."""
        total: Floats = self._sums[self._slice(start, stop)].sum(axis=0)
        return total

    def grouped(self, width: int, start: float, stop: float) -> tuple[Ints, Floats]:
        """Return the start times and sums of wider buckets, which combine the buckets that overlap [start, stop).

        ``width`` is the width of the wider buckets in seconds, a multiple of the width of the buckets.
        """
        selected = self._slice(start, stop)
        return sum_by_key(self._keys[selected] * self._width // width * width, self._sums[selected])

    @property
    def first_time(self) -> float | None:
        """Start time of the first bucket, or None if there is none."""
        return float(self._keys[0] * self._width) if len(self._keys) else None

    def _slice(self, start: float, stop: float) -> slice:
        first, last = np.searchsorted(self._keys, [np.floor(start / self._width), stop / self._width]).tolist()
        return slice(first, max(first, last))


def sum_by_key(keys: Ints, rows: Floats) -> tuple[Ints, Floats]:
    """Return the distinct keys in ascending order, and for each key the sum of its rows."""
    if not len(keys):
        return keys, rows
    if not (keys[1:] >= keys[:-1]).all():
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
    starts = np.flatnonzero(np.append(True, keys[1:] > keys[:-1]))
    return keys[starts], np.add.reduceat(rows, starts, axis=0)

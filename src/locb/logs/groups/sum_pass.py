"""Pass over a log that sums the rows of each user: in this process, or on a Dask or Ray cluster.

The log is divided into partitions of a fixed number of rows. The rows of a user are added in their order within a
partition, and the sums of partitions in the order of the partitions. Therefore, the result is the same everywhere, to
the last bit.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError
from locb.logs.groups.partition_sums import PartitionSums, check_memory
from locb.logs.groups.reward_limits import RewardCounts, RewardLimits
from locb.logs.groups.row_source import DEFAULT_BATCH, HEAD, RowBatch, RowSource, Table, TableRows
from locb.logs.groups.user_sums import UserSums, convert_sums
from locb.logs.log import SkippedRows
from locb.parallel.task_graphs import TaskGraph

PARTITION_ROWS = 4_000_000
PACKAGES = ("numpy", "numba", "polars")  # other versions can give other last bits, and other hashes of users


class Sizes(NamedTuple):
    """Sizes of a pass: rows per batch, rows per partition, and the largest size of the sums in GiB."""

    batch_rows: int
    partition_rows: int
    max_memory: float


def sum_by_user(
    source: RowSource,
    *,
    batch_rows: int = DEFAULT_BATCH,
    partition_rows: int = PARTITION_ROWS,
    max_memory: float = 4.0,
    robust: bool = False,
    progress: Callable[[int], None] | None = None,
    tasks: TaskGraph | None = None,
) -> UserSums:
    """Return the sums of the rows of each user, from one pass over a source, or from two if there are outliers.

    The result does not depend on ``batch_rows`` and ``tasks``. Its last bits depend on ``partition_rows``.

    Parameters
    ----------
    source : RowSource
        Rows of the log.
    batch_rows : int
        Approximate number of rows in memory at the same time.
    partition_rows : int
        Number of rows per partition.
    max_memory : float
        Largest size of the sums in GiB. While a partition is added, its sums take the same size again.
    robust : bool
        Whether a second pass limits the rewards if there are outliers; see ``RewardCounts.find_limits``.
    progress : callable, optional
        Function that is called with the number of rows that were read.
    tasks : TaskGraph, optional
        Cluster that reads and sums the partitions. By default, this process.
    """
    sizes = Sizes(batch_rows, partition_rows, max_memory)
    report = progress or _ignore

    def read(rows: RowSource, limits: RewardLimits | None) -> tuple[UserSums, _RowSum]:
        if tasks is None:
            ids, moments, row_sum = _sum_here(rows, sizes, limits, report)
        else:
            ids, moments, row_sum = _sum_on_cluster(tasks, require_files(rows), sizes, limits, report)
        assert row_sum.shift is not None  # noqa: S101 - set by the first row
        return convert_sums(ids, moments, rows, row_sum.shift, row_sum.extremes), row_sum

    sums, row_sum = read(source, None)
    limits = row_sum.counts.find_limits() if robust else None
    if limits is None:
        return sums
    rewards = sums.rewards
    del sums
    again = source.part(source.tables) if isinstance(source, TableRows) else source  # does not count skipped rows again
    return replace(read(again, limits)[0], rewards=rewards, limits=limits)


def require_files(source: RowSource) -> TableRows:
    """Return the source, or raise a ParameterError if workers of a cluster cannot read it."""
    if not isinstance(source, TableRows) or not source.in_files:
        kinds = "a table in files (CSV, JSON lines or Parquet) that all workers can read"
        raise ParameterError("on", f" requires {kinds}; omit it to read this log in this process")
    return source


def _ignore(rows: int) -> None:
    """Report no progress."""


class _RowSum:
    """Addition of rows: the shift that is subtracted from all rows, extremes of the rows, and counts of rewards.

    If there are limits, rewards beyond them are replaced by the limit, and are not counted.
    """

    def __init__(self, shift: Floats | None = None, limits: RewardLimits | None = None) -> None:
        self.shift, self.limits, self.counts = shift, limits, RewardCounts()
        self.extremes = np.array([0.0, math.inf, -math.inf])
        self.rows = 0

    def add(self, sums: PartitionSums, batches: Iterable[RowBatch], progress: Callable[[int], None]) -> None:
        """Add the rows of a partition to its sums."""
        for batch in batches:
            if not len(batch.rewards):
                continue
            if self.shift is None:
                self.shift = _shift(batch)
            if self.limits is None:
                self.counts.add(batch.rewards)
            else:
                batch = batch._replace(rewards=batch.rewards.clip(self.limits.low, self.limits.high))
            sums.add_batch(batch, self.shift, self.extremes)
            self.rows += len(batch.rewards)
            progress(self.rows)

    def include(self, other: _RowSum) -> None:
        """Include the extremes, the counts and the number of rows of another partition."""
        highest = np.maximum(self.extremes, other.extremes)
        self.extremes = np.array([highest[0], min(self.extremes[1], other.extremes[1]), highest[2]])
        self.counts.include(other.counts)
        self.rows += other.rows


def _shift(batch: RowBatch) -> Floats:
    """Return the shift: of the first row of the log, because it must not depend on the size of batches."""
    first = np.append(batch.features[0], batch.rewards[0])
    return np.where(np.abs(first) > 1.0, first, 0.0)


def _sum_here(
    source: RowSource, sizes: Sizes, limits: RewardLimits | None, progress: Callable[[int], None]
) -> tuple[Any, Floats, _RowSum]:
    dim = len(source.names)
    row_sum, total = _RowSum(None, limits), None
    partitions = groupby(source.batches(sizes.batch_rows, sizes.partition_rows), lambda batch: batch.partition)
    for _, batches in partitions:
        sums = PartitionSums(dim, sizes.max_memory)
        row_sum.add(sums, batches, progress)
        if total is None:
            total = sums
        else:
            total.add_users(sums)
    if total is None:
        raise _no_rows(source)
    total.trim()
    return total.index.ids, total.moments, row_sum


def _no_rows(source: RowSource) -> ValueError:
    reasons = "; ".join(str(rows) for rows in source.skipped) or "the source has no rows"
    return ValueError(f"the log has no usable row: {reasons}")


@dataclass
class _Partition:
    """Facts about a partition that a worker has summed."""

    row_sum: _RowSum
    skipped: dict[tuple[int, str], SkippedRows]
    versions: list[str]
    host: str


def _sum_on_cluster(
    tasks: TaskGraph, source: TableRows, sizes: Sizes, limits: RewardLimits | None, progress: Callable[[int], None]
) -> tuple[Any, Floats, _RowSum]:
    """Sum partitions on workers, and add the sums of users with the same hash on one worker.

    Partitions are submitted in windows. A window waits until the partitions of the window before the last are read, so
    that few sums of partitions are in memory at the same time.
    """
    head = source.part(source.tables)
    shift = next((_shift(batch) for batch in head.batches(HEAD, HEAD) if len(batch.rewards)), None)
    if shift is None:
        raise _no_rows(head)
    partitions = list(enumerate(source.partitions(sizes.partition_rows)))
    parts, row_sum = min(tasks.workers, len(partitions)), _RowSum(shift)
    shared = tasks.share(source.part([]))
    merged: list[Any] = []
    waiting: list[Any] = []
    for start in range(0, len(partitions), 2 * tasks.workers):
        summed = [
            tasks.submit_parts(_sum_partition, parts + 1, shared, tables, number, parts, (shift, limits), sizes)
            for number, tables in partitions[start : start + 2 * tasks.workers]
        ]
        merged = [
            tasks.submit(_merge, *merged[part : part + 1], *(split[part] for split in summed)) for part in range(parts)
        ]
        _finish(tasks, waiting, source, row_sum, progress)
        waiting = [split[-1] for split in summed]
    _finish(tasks, waiting, source, row_sum, progress)
    ids, moments = _collect(tasks, merged, sizes.max_memory)
    return ids, moments, row_sum


def _finish(
    tasks: TaskGraph, waiting: Sequence[Any], source: TableRows, row_sum: _RowSum, progress: Callable[[int], None]
) -> None:
    """Wait for partitions, and add their facts."""
    own = _versions()
    for task in waiting:
        found: _Partition = tasks.result(task)
        if found.versions != own:
            wrong = f"worker {found.host} has {', '.join(found.versions)}, but this process has {', '.join(own)}"
            raise ValueError(f"{wrong}; install the same versions, because others can give other results")
        source.add_skipped(found.skipped)
        row_sum.include(found.row_sum)
        progress(row_sum.rows)


def _collect(tasks: TaskGraph, merged: Sequence[Any], max_memory: float) -> tuple[Any, Floats]:
    """Return the ids and the moments of all users, in the order of their first row."""
    import polars as pl

    ranks = [tasks.result(tasks.submit(_ranks, part)) for part in merged]
    order = np.argsort(np.concatenate(ranks))
    targets = np.empty_like(order)
    targets[order] = np.arange(len(order))
    bounds = np.cumsum([0, *map(len, ranks)])
    ids, moments = [], np.empty((0, 0))
    for part, start, stop in zip(merged, bounds, bounds[1:], strict=False):
        sums: PartitionSums = tasks.result(part)
        if not moments.size:
            check_memory(len(order), sums.dim, max_memory)
            moments = np.empty((len(order), sums.moments.shape[1]))
        if stop > start:
            ids.append(sums.index.ids)
            moments[targets[start:stop]] = sums.moments
    return pl.concat(ids).gather(order).rechunk(), moments


def _versions() -> list[str]:
    own = import_module(__name__.partition(".")[0]).__version__  # the source may not be installed
    return [f"locb {own}", *(f"{package} {version(package)}" for package in PACKAGES)]


def _sum_partition(
    source: TableRows,
    tables: Sequence[Table],
    number: int,
    parts: int,
    mapping: tuple[Floats, RewardLimits | None],
    sizes: Sizes,
) -> list[Any]:
    """Task: return the sums of a partition, split into parts by the hash of the user, and the facts about it."""
    source, host = source.part(tables), socket.gethostname()
    sums, row_sum = PartitionSums(len(source.names), sizes.max_memory), _RowSum(*mapping)
    try:
        row_sum.add(sums, source.batches(sizes.batch_rows, sizes.partition_rows), _ignore)
    except FileNotFoundError as error:
        shared = "every worker needs the files of the log under the same path"
        raise ValueError(f"worker {host} cannot read the log: {error}; {shared}") from error
    sums.trim()
    return [*sums.split(parts, number), _Partition(row_sum, source.skipped_by_check, _versions(), host)]


def _merge(*sums: PartitionSums) -> PartitionSums:
    """Task: return the sums of users in several partitions, which are added in order."""
    total = PartitionSums(sums[0].dim, sums[0].max_memory)
    for part in sums:
        total.add_users(part)
    total.trim()
    return total


def _ranks(sums: PartitionSums) -> Ints:
    """Task: return the ranks of users."""
    return sums.ranks

"""Moments of each user's rows in one partition of a log, and their addition over partitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError
from locb.kernels.groups.moments import add_rows
from locb.logs.groups.row_source import RowBatch

GIB = 2**30
FIRST_CAPACITY = 1024  # users
CHUNK = 65_536  # users whose moments are added at a time


class UserIndex:
    """Index of user ids, numbered in the order of their first row."""

    def __init__(self) -> None:
        self._known: Any = None
        self.size = 0

    def encode(self, users: Any) -> Any:
        """Return the index of each user of a series as 32-bit integers. New users are added."""
        import polars as pl

        frame = users.rename("user").to_frame()
        if self._known is None:
            self._known = pl.DataFrame({"user": users.clear(), "index": pl.Series([], dtype=pl.Int32)})
        found = frame.join(self._known, on="user", how="left", maintain_order="left")
        if found["index"].null_count():
            new = found.filter(pl.col("index").is_null()).select("user").unique(maintain_order=True)
            numbers = pl.Series("index", np.arange(self.size, self.size + new.height, dtype=np.int32))
            self._known = pl.concat([self._known, new.with_columns(numbers)])
            self.size = self._known.height
            found = frame.join(self._known, on="user", how="left", maintain_order="left")
        return found["index"].to_numpy()

    @property
    def ids(self) -> Any:
        """Ids of all users (a Polars series)."""
        return self._known["user"].rechunk()


class PartitionSums:
    """Moments of the users of one partition, or of several partitions after ``add_users``.

    Parameters
    ----------
    dim : int
        Number of features.
    max_memory : float
        Largest size of the moments in GiB.

    Attributes
    ----------
    index : UserIndex
        Users, in the order of their first row.
    moments : (≥ users, (dim + 2)(dim + 3) / 2) floats
        Moments of each user, see ``locb.kernels.groups.moments``.
    ranks : (users,) ints
        Ascending numbers that order the users of all parts of a log by their first row. Only ``split`` creates them.
    """

    def __init__(self, dim: int, max_memory: float) -> None:
        self.dim, self.max_memory = dim, max_memory
        self.index = UserIndex()
        self.moments: Floats = np.zeros((FIRST_CAPACITY, (dim + 2) * (dim + 3) // 2))
        self.ranks: Ints = np.empty(0, np.int64)

    def add_batch(self, batch: RowBatch, shift: Floats, extremes: Floats) -> None:
        """Add rows one after the other, so that the result does not depend on the size of batches.

        Parameters
        ----------
        batch : RowBatch
            Rows.
        shift : (dim + 1,) floats
            Features and reward that are subtracted from each row.
        extremes : (3,) floats
            Largest squared norm of the features, lowest and highest reward so far. They are changed.
        """
        users, features, rewards = self._encode(batch.users), batch.features, batch.rewards
        if shift.any():
            features, rewards = features - shift[:-1], rewards - shift[-1]
        # Arrays of Polars can be read-only, for which Numba would compile the kernel again.
        users, features, rewards = (np.require(values, None, ["C", "W"]) for values in (users, features, rewards))
        add_rows(self.moments, users, features, rewards, extremes)

    def add_users(self, other: PartitionSums) -> None:
        """Add the moments of the users of another partition, which comes later in the log."""
        if not other.index.size:
            return
        before = self.index.size
        users = self._encode(other.index.ids)
        self.ranks = np.append(self.ranks, other.ranks[users[: len(other.ranks)] >= before])
        for start in range(0, len(users), CHUNK):  # each user occurs once
            self.moments[users[start : start + CHUNK]] += other.moments[start : min(start + CHUNK, len(users))]

    def split(self, parts: int, partition: int) -> list[PartitionSums]:
        """Return the users in ``parts`` parts, by the hash of their ids, which all partitions split alike."""
        if not self.index.size:
            return [self] * parts
        ids = self.index.ids
        codes = (ids.hash() % parts).to_numpy()
        found = []
        for part in range(parts):
            rows = np.flatnonzero(codes == part)
            own = PartitionSums(self.dim, self.max_memory)
            own.index.encode(ids.gather(rows))
            own.moments, own.ranks = self.moments[rows], (partition << 32) + rows
            found.append(own)
        return found

    def trim(self) -> None:
        """Release the memory for further users."""
        self.moments.resize((self.index.size, self.moments.shape[1]), refcheck=False)

    def _encode(self, users: Any) -> Any:
        found = self.index.encode(users)
        capacity, width = self.moments.shape
        if self.index.size > capacity:
            check_memory(self.index.size, self.dim, self.max_memory)
            self.moments.resize((max(self.index.size, 3 * capacity // 2), width), refcheck=False)
        return found


def check_memory(users: int, dim: int, max_memory: float) -> None:
    """Raise a ParameterError if the moments of users take more than ``max_memory`` GiB."""
    needed = users * ((dim + 2) * (dim + 3) // 2) * 8 / GIB
    if needed > max_memory:
        raise ParameterError(
            "max_memory",
            f" must be at least {needed:.3g} (GiB) for {users:,} users and {dim} features so far, not "
            f"{max_memory:g}; fewer features (--feature) need less memory",
        )

"""Sums of each user's rows of a log, computed in one pass over batches of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError
from locb.kernels.groups.moments import add_rows, convert_moments
from locb.logs.groups.row_source import DEFAULT_BATCH, RowSource
from locb.policies.base.reward_scale import HIGHEST, LOWEST, MIN_SIZE

GIB = 2**30
FIRST_CAPACITY = 1024  # users
UNIT_NORM = 1.0 + 1e-6  # features of at most this squared norm are used as they are


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


@dataclass
class UserSums:
    """Sums of n users, for a linear model with D features of norm about 1 and rewards of about 0 to 1.

    Attributes
    ----------
    ids : polars.Series
        Id of each user.
    counts : (n,) floats
        Number of rows of each user.
    rows : (n, ≥ D + D(D + 1)/2) floats
        The first columns are (b, G packed), see ``block`` and ``locb.kernels``.
    squares : (n,) floats
        Sum of the squared mapped rewards of each user.
    rewards : (n,) floats
        Sum of the rewards of each user, in the units of the log.
    names : list of str
        Name of each feature.
    effects : (D,) floats
        Factor by which an entry of a parameter vector is multiplied to give the effect of a feature on the reward, in
        the units of the log: of one unit of the feature, or, if features were standardized, of one standard deviation.
    offset : float
        Number that is added to each effect: the reward that is mapped to 0, if each feature is one arm; otherwise 0.
    is_standardized : bool
        Whether the features were standardized, and a constant was added.
    sigma : float
        Half of the range of the mapped rewards. Noise around any mean is sub-Gaussian with this scale.
    """

    ids: Any
    counts: Floats
    rows: Floats
    squares: Floats
    rewards: Floats
    names: list[str]
    effects: Floats
    offset: float
    is_standardized: bool
    sigma: float

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def dim(self) -> int:
        """Number of features D."""
        return len(self.names)

    def block(self, users: slice | Ints) -> Floats:
        """Return the rows (b, G) of some users as a contiguous array."""
        width = self.dim + self.dim * (self.dim + 1) // 2
        return np.ascontiguousarray(self.rows[users, :width])


def sum_by_user(
    source: RowSource,
    *,
    batch_rows: int = DEFAULT_BATCH,
    max_memory: float = 4.0,
    progress: Callable[[int], None] | None = None,
) -> UserSums:
    """Return the sums of the rows of each user, from one pass over a source.

    Rows are added in the order of the source. The result does not depend on ``batch_rows``.

    Parameters
    ----------
    source : RowSource
        Rows of the log.
    batch_rows : int
        Approximate number of rows in memory at the same time.
    max_memory : float
        Largest size of the sums in GiB.
    progress : callable, optional
        Function that is called with the number of rows that were read.
    """
    dim = len(source.names)
    width = (dim + 2) * (dim + 3) // 2
    index = UserIndex()
    moments = np.zeros((FIRST_CAPACITY, width))
    extremes = np.array([0.0, math.inf, -math.inf])
    shift = None
    done = 0
    for batch in source.batches(batch_rows):
        if not len(batch.rewards):
            continue
        users = index.encode(batch.users)
        if index.size > len(moments):
            needed = index.size * width * 8 / GIB
            if needed > max_memory:
                raise ParameterError(
                    "max_memory",
                    f" must be at least {needed:.3g} (GiB) for {index.size:,} users and {dim} features so far, not "
                    f"{max_memory:g}; fewer features (--feature) need less memory",
                )
            moments.resize((max(index.size, 3 * len(moments) // 2), width), refcheck=False)
        if shift is None:  # from the first row, because the result must not depend on the size of batches
            first = np.append(batch.features[0], batch.rewards[0])
            shift = np.where(np.abs(first) > 1.0, first, 0.0)
        features, rewards = np.ascontiguousarray(batch.features), batch.rewards
        if shift.any():
            features, rewards = features - shift[:-1], rewards - shift[-1]
        add_rows(moments, users, features, np.ascontiguousarray(rewards), extremes)
        done += len(rewards)
        if progress is not None:
            progress(done)
    if shift is None:
        reasons = "; ".join(str(rows) for rows in source.skipped) or "the source has no rows"
        raise ValueError(f"the log has no usable row: {reasons}")
    moments.resize((index.size, width), refcheck=False)
    return _convert(index.ids, moments, source, shift, extremes)


def _convert(ids: Any, moments: Floats, source: RowSource, shift: Floats, extremes: Floats) -> UserSums:
    """Map the features to a norm of about 1 and the rewards to about 0 to 1, in place."""
    names: Sequence[str] = source.names
    dim = len(names)
    counts = moments[:, -3].copy()  # the last moments are those of constant · constant, constant · reward and reward²
    rewards = moments[:, -2] + shift[-1] * counts
    low, high = float(extremes[1] + shift[-1]), float(extremes[2] + shift[-1])
    is_plain = low >= LOWEST and MIN_SIZE <= high <= HIGHEST
    offset, scale = (0.0, 1.0) if is_plain else (low, (high - low) or 1.0)
    reward_row = np.zeros(dim + 2)
    reward_row[dim:] = (shift[-1] - offset) / scale, 1.0 / scale
    is_standardized = bool(extremes[0] > UNIT_NORM or shift[:-1].any())
    if is_standardized:
        rows, kept, deviations = _standardize(moments.sum(axis=0), dim)
        names = [*(names[feature] for feature in kept), "constant"]
        effects = np.append(np.full(len(kept), 1.0 / math.sqrt(2.0 * max(len(kept), 1))), math.sqrt(0.5))
        names = [
            f"{name} (+{deviation:.3g})" if deviation else name
            for name, deviation in zip(names, [*deviations, 0.0], strict=True)
        ]
    else:
        rows, effects = np.eye(dim, dim + 2), np.ones(dim)
    squares = np.empty(len(moments))
    convert_moments(moments, np.vstack([rows, reward_row]), squares)
    return UserSums(
        ids=ids,
        counts=counts,
        rows=moments,
        squares=squares,
        rewards=rewards,
        names=list(names),
        effects=effects * scale,
        offset=offset if source.is_one_hot and not is_standardized else 0.0,
        is_standardized=is_standardized,
        sigma=max(0.5 * (high - low) / scale, 1e-3),
    )


def _standardize(totals: Floats, dim: int) -> tuple[Floats, list[int], list[float]]:
    """Return the linear map to standardized features and a constant, the features that vary, and their deviations."""
    full = np.zeros((dim + 2, dim + 2))
    full[np.triu_indices(dim + 2)] = totals
    count = full[dim, dim]
    means = full[:dim, dim] / count
    variances = np.diag(full)[:dim] / count - means**2
    kept = np.flatnonzero(variances > 1e-12 * (1.0 + means**2)).tolist()
    rows = np.zeros((len(kept) + 1, dim + 2))
    for row, feature in enumerate(kept):
        factor = 1.0 / math.sqrt(variances[feature] * 2.0 * len(kept))
        rows[row, feature], rows[row, dim] = factor, -factor * means[feature]
    rows[-1, dim] = math.sqrt(0.5)
    return rows, kept, np.sqrt(variances[kept]).tolist()

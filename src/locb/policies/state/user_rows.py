"""Arrays with one row per user: initial rows, additional rows for new users, and copies for saving."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats
from locb.kernels.common.linear_algebra import packed_identity, unpack_symmetric

_skip_initialization = ContextVar("_skip_initialization", default=False)


@contextlib.contextmanager
def skip_row_initialization() -> Iterator[None]:
    """Context manager in which ``initial_estimates`` returns zeros, which take no memory until they are written to.

    Used while a policy is loaded, because the rows of the file replace the initial estimates.
    """
    token = _skip_initialization.set(True)
    try:
        yield
    finally:
        _skip_initialization.reset(token)


def initial_estimates(count: int, dim: int, dtype: str = "float64") -> Floats:
    """Return ``count`` estimates (θ̂, A⁻¹) of users without rounds: θ̂ = 0 and A⁻¹ = I, packed (see ``locb.kernels``)."""
    row = np.concatenate([np.zeros(dim), packed_identity(dim)]).astype(dtype)
    return np.zeros((count, len(row)), dtype) if _skip_initialization.get() else np.tile(row, (count, 1))


def grown_capacity(rows: int, needed: int, maximum: int | None = None) -> int:
    """Return the new number of rows of arrays with too few ``rows``: at least ``needed``, and at most ``maximum``.

    The number of rows at least doubles, so that adding users one by one takes amortized constant time per user.
    """
    doubled = 2 * rows if maximum is None else min(2 * rows, maximum)
    return max(needed, doubled)


def grow_rows(
    state: Any, names: tuple[str, ...], rows: int, initial_values: Mapping[str, Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Return copies of the arrays ``names`` of a state, extended to ``rows`` rows.

    New rows are 0, or the value in ``initial_values`` for arrays that it contains. ``grown_capacity`` returns ``rows``.
    """
    grown = {}
    for name in names:
        old: NDArray[Any] = getattr(state, name)
        grown[name] = np.zeros((rows, *old.shape[1:]), old.dtype)
        grown[name][: len(old)] = old
        if initial_values is not None and name in initial_values:
            grown[name][len(old) :] = initial_values[name]
    return grown


def keep_first_rows(array: NDArray[Any], count: int) -> NDArray[Any]:
    """Return a copy of ``array`` in which all rows after the first ``count`` are zero.

    Zero rows take no memory until they are written to.
    """
    kept = np.zeros(array.shape, array.dtype)
    kept[:count] = array[:count]
    return kept


def own_estimates(sums: Floats, dim: int) -> Floats:
    """Return the ridge estimate and the packed inverse of I + G from each row (b, G): (u, d + p)."""
    inverse = np.linalg.inv(np.eye(dim) + unpack_symmetric(sums[:, dim:], dim))
    theta = np.einsum("uab,ub->ua", inverse, sums[:, :dim])
    rows, columns = np.triu_indices(dim)
    return np.concatenate([theta, inverse[:, rows, columns]], axis=1)

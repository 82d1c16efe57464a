"""Rows of users who are new, and room for users to come."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats
from locb.kernels.common.linear_algebra import packed_identity

_replaced = ContextVar("_replaced", default=False)


@contextlib.contextmanager
def skip_row_initialization() -> Iterator[None]:
    """While a policy is made that then takes over the rows of a file: blank rows are not written, so take no memory."""
    token = _replaced.set(True)
    try:
        yield
    finally:
        _replaced.reset(token)


def initial_estimates(count: int, dim: int, dtype: str = "float64") -> Floats:
    """``count`` rows (θ̂, A⁻¹) before any observation: zero and the identity."""
    row = np.concatenate([np.zeros(dim), packed_identity(dim)]).astype(dtype)
    return np.zeros((count, len(row)), dtype) if _replaced.get() else np.tile(row, (count, 1))


def grow_rows(
    state: Any, names: tuple[str, ...], rows: int, blanks: Mapping[str, Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Those arrays of a state that have a row a user, made ``rows`` long; the new rows are 0 where no blank is given.

    A policy whose rows are used up asks for twice as many: users who come one by one then cost a constant each.
    """
    grown = {}
    for name in names:
        old: NDArray[Any] = getattr(state, name)
        grown[name] = np.zeros((rows, *old.shape[1:]), old.dtype)
        grown[name][: len(old)] = old
        if blanks is not None and name in blanks:
            grown[name][len(old) :] = blanks[name]
    return grown


def keep_first_rows(array: NDArray[Any], count: int) -> NDArray[Any]:
    """A copy of the first rows and zeros for the others, which take no memory until they are written to."""
    kept = np.zeros(array.shape, array.dtype)
    kept[:count] = array[:count]
    return kept

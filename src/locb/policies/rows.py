"""Rows (θ̂, A⁻¹) of users who are new."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import numpy as np

from locb.arrays import Floats
from locb.kernels.linear import packed_identity

_replaced = ContextVar("_replaced", default=False)


@contextlib.contextmanager
def rows_to_be_replaced() -> Iterator[None]:
    """While a policy is made that then takes over the rows of a file: blank rows are not written, so take no memory."""
    token = _replaced.set(True)
    try:
        yield
    finally:
        _replaced.reset(token)


def blank_estimates(count: int, dim: int, dtype: str = "float64") -> Floats:
    """``count`` rows (θ̂, A⁻¹) before any observation: zero and the identity."""
    row = np.concatenate([np.zeros(dim), packed_identity(dim)]).astype(dtype)
    return np.zeros((count, len(row)), dtype) if _replaced.get() else np.tile(row, (count, 1))

"""A reward that turns out to have been another: sums are additive, so what was learned of it can be replaced."""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Floats
from locb.kernels.common.linear_algebra import unpack_symmetric


def shift_estimate(rows: Floats, row: int, change: Floats) -> Floats:
    """Add ``change`` to the b behind a row (θ̂, A⁻¹), so that θ̂ moves by A⁻¹ · change; by how much it did: (d,)."""
    dim = len(change)
    before = rows[row, :dim].astype(np.float64)
    rows[row, :dim] += unpack_symmetric(rows[row, dim:], dim).astype(np.float64) @ change
    moved: Floats = rows[row, :dim] - before  # as it is kept, in whatever number type
    return moved

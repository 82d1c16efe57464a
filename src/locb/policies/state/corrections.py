"""Corrections of rewards: sums are additive, so the contribution of a wrong reward can be replaced."""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Floats
from locb.kernels.common.linear_algebra import unpack_symmetric


def shift_estimate(rows: Floats, row: int, change: Floats) -> Floats:
    """Add ``change`` to the b of an estimate (θ̂, A⁻¹): θ̂ moves by A⁻¹ · change. Return the change of θ̂: (d,)."""
    dim = len(change)
    before = rows[row, :dim].astype(np.float64)
    rows[row, :dim] += unpack_symmetric(rows[row, dim:], dim).astype(np.float64) @ change
    theta_change: Floats = rows[row, :dim] - before  # the stored change, rounded to the dtype of the rows
    return theta_change

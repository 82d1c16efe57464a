"""Correction of an estimate after a learned reward was replaced. The symbols are defined in ``locb.kernels``."""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Floats
from locb.kernels.common.linear_algebra import unpack_symmetric


def shift_estimate(rows: Floats, row: int, change: Floats) -> Floats:
    """Change the estimate (θ̂, A⁻¹) in row ``row`` of ``rows`` as if ``change`` (d,) were added to b.

    θ̂ changes by A⁻¹ · change. Returns the change of θ̂, (d,).
    """
    dim = len(change)
    before = rows[row, :dim].astype(np.float64)
    rows[row, :dim] += unpack_symmetric(rows[row, dim:], dim).astype(np.float64) @ change
    theta_change: Floats = rows[row, :dim] - before  # the stored change, rounded to the dtype of the rows
    return theta_change

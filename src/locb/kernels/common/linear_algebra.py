"""Packed symmetric matrices, distances and rank-one updates. The symbols are defined in ``locb.kernels``.

A symmetric d × d matrix is packed as its upper triangle, row by row: p = d (d + 1) / 2 numbers. An estimate is a row
(θ̂, A⁻¹ packed) of d + p numbers. Sums are a row (b, G packed) of d + p numbers. A = I + G, and θ̂ = A⁻¹ b.
"""

import math

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import inline, inline_fastmath


def packed_size(dim: int) -> int:
    """Return p = dim (dim + 1) / 2, the length of a packed dim × dim matrix."""
    return dim * (dim + 1) // 2


def packed_identity(dim: int) -> Floats:
    """Return the packed dim × dim identity matrix: (p,)."""
    rows, columns = np.triu_indices(dim)
    identity: Floats = (rows == columns).astype(np.float64)
    return identity


def unpack_symmetric(packed: Floats, dim: int) -> Floats:
    """Return the full matrices (…, d, d) of packed matrices (…, p)."""
    rows, columns = np.triu_indices(dim)
    full = np.empty((*packed.shape[:-1], dim, dim), dtype=packed.dtype)
    full[..., rows, columns] = packed
    full[..., columns, rows] = packed
    return full


def diagonal(packed: Floats) -> Floats:
    """Return the diagonals (…, d) of packed matrices (…, p).

    Examples
    --------
    >>> diagonal(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).tolist()
    [1.0, 4.0, 6.0]
    """
    dim = int(math.sqrt(2 * packed.shape[-1]))
    lengths = np.arange(dim, 0, -1)  # of the rows of the upper triangle
    return packed[..., np.cumsum(lengths) - lengths]


@inline
def packed_trace(rows: Floats, i: int, d: int) -> float:
    """Return the trace of the packed matrix M in row i of ``rows``, a row (v, M) with a vector v of d numbers."""
    total = 0.0
    q = d
    for a in range(d):
        total += rows[i, q]
        q += d - a
    return total


@inline_fastmath
def squared_distance(rows: Floats, i: int, others: Floats, j: int, stop: int) -> float:
    """Return the squared distance of row i of ``rows`` and row j of ``others``, over the columns before ``stop``."""
    total = 0.0
    for q in range(stop):
        total += (rows[i, q] - others[j, q]) * (rows[i, q] - others[j, q])
    return total


@inline
def multiply_packed(rows: Floats, i: int, x: Floats, product: Floats) -> None:
    """Write M x to ``product`` (d,), with the packed matrix M in row i of ``rows``, a row (v, M)."""
    d = x.size
    for a in range(d):
        product[a] = 0.0
    q = d
    for a in range(d):
        product[a] += rows[i, q] * x[a]
        q += 1
        for b in range(a + 1, d):
            product[a] += rows[i, q] * x[b]
            product[b] += rows[i, q] * x[a]
            q += 1


@inline
def rank_one_update(estimates: Floats, i: int, x: Floats, reward: float, step: Floats) -> float:
    """Update row i of ``estimates`` (θ̂, A⁻¹) with one observation: A ← A + x xᵀ, b ← b + r x, θ̂ ← A⁻¹ b.

    Uses the Sherman–Morrison formula, in O(d²). Writes the change of the row to ``step`` (d + p,). Returns the factor
    by which det A grows.
    """
    d = x.size
    multiply_packed(estimates, i, x, step)  # temporarily step[:d] = A⁻¹ x
    det_ratio = 1.0
    residual = reward
    for a in range(d):
        det_ratio += step[a] * x[a]
        residual -= estimates[i, a] * x[a]
    scale = -1.0 / det_ratio
    q = d
    for a in range(d):
        scaled = scale * step[a]
        for b in range(a, d):
            step[q] = scaled * step[b]
            q += 1
    for a in range(d):
        step[a] *= residual / det_ratio
    for q in range(step.size):
        estimates[i, q] += step[q]
    return det_ratio


@inline
def add_observation(sums: Floats, i: int, x: Floats, reward: float) -> None:
    """Add one observation to row i of ``sums`` (b, G): b ← b + r x, G ← G + x xᵀ."""
    d = x.size
    q = d
    for a in range(d):
        sums[i, a] += reward * x[a]
        for b in range(a, d):
            sums[i, q] += x[a] * x[b]
            q += 1

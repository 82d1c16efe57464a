"""Linear algebra in O(d³): packed matrices, rank-one updates, ridge estimates, linear systems, products.

The symbols are defined in ``locb.kernels``.

A symmetric d × d matrix is packed as its upper triangle, row by row: p = d (d + 1) / 2 numbers. An estimate is a row
(θ̂, A⁻¹ packed) of d + p numbers. Sums are a row (b, G packed) of d + p numbers. A = I + G, and θ̂ = A⁻¹ b.
"""

import math

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import inline, inline_fastmath, no_alloc

# A linear system M y = v is stored as a row (v, M packed). Decomposition, substitution and inversion are separate
# functions, because not every caller needs all three. Inner loops are scalar: for small d, vector instructions do not
# save time. Indices are unsigned, so that Numba emits no test for negative indices.
_ONE = np.uintp(1)


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


@no_alloc
def count_used(sums: Floats, i: int, d: int) -> int:
    """Return the number of positive diagonal elements of G in row i (b, G) of ``sums``; d if there are none.

    These are the used features: those that were not 0 in all contexts x of G = Σ x xᵀ.
    """
    used = 0
    q = d
    for a in range(d):
        used += sums[i, q] > 0.0
        q += d - a
    return used if used > 0 else d


@no_alloc
def mean_diagonal(rows: Floats, i: int, sums: Floats, j: int, d: int) -> float:
    """Return the mean of the diagonal of M in row i (v, M) of ``rows`` over the used features of row j of ``sums``.

    A feature that was 0 in all contexts has no influence on the rewards, so its variance is not used.
    """
    total, used = 0.0, 0
    q = d
    for a in range(d):
        if sums[j, q] > 0.0:
            total += rows[i, q]
            used += 1
        q += d - a
    return total / used if used > 0 else packed_trace(rows, i, d) / d


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


@no_alloc
def solve_ridge(sums: Floats, source: int, estimates: Floats, row: int, workspace: Floats) -> None:
    """Write the ridge estimate ((I + G)⁻¹ b, (I + G)⁻¹) of row ``source`` (b, G) of ``sums`` to a row of ``estimates``.

    Uses the Cholesky decomposition. ``workspace`` has shape (2d, d).
    """
    d = workspace.shape[1]
    root = workspace[:d]  # upper triangular R with RᵀR = I + G
    inverse_root = workspace[d:]  # R⁻¹, upper triangular
    q = d
    for i in range(d):
        for j in range(i, d):
            total = sums[source, q] + (1.0 if i == j else 0.0)
            for h in range(i):
                total -= root[h, i] * root[h, j]
            root[i, j] = math.sqrt(total) if i == j else total / root[i, i]
            q += 1
    for j in range(d):
        inverse_root[j, j] = 1.0 / root[j, j]
        for i in range(j - 1, -1, -1):
            total = 0.0
            for h in range(i + 1, j + 1):
                total -= root[i, h] * inverse_root[h, j]
            inverse_root[i, j] = total / root[i, i]
    for i in range(d):
        estimates[row, i] = 0.0
    q = d
    for i in range(d):
        for j in range(i, d):
            total = 0.0
            for h in range(j, d):
                total += inverse_root[i, h] * inverse_root[j, h]
            estimates[row, q] = total
            estimates[row, i] += total * sums[source, j]
            if j > i:
                estimates[row, j] += total * sums[source, i]
            q += 1


@no_alloc
def decompose(rows: Floats, row: int, workspace: Floats) -> float:
    """Decompose the positive definite matrix M = L D Lᵀ of a row (v, M) and return log det M.

    L is unit lower triangular and D is diagonal. Writes L⁻¹ and D⁻¹ to ``workspace`` (d, 2d + 1): workspace[b, d + a] =
    L⁻¹[b, a] for a < b, and workspace[a, 2d] = 1 / D[a]. D[a] is at least 1e-15 · M[a, a], even after cancellation.
    """
    i, d = np.uintp(row), np.uintp(workspace.shape[0])
    product = 1.0
    log_det = 0.0
    scale = 0.0
    q = d
    for a in range(d):  # temporarily workspace[b, a] = L[b, a] and workspace[b, d + a] = L[b, a] D[a]
        for b in range(a, d):
            total = rows[i, q]
            for h in range(a):
                total -= workspace[a, h] * workspace[b, d + h]
            if a == b:
                total = max(total, 1e-15 * rows[i, q])
                product *= total
                scale = 1.0 / total
                workspace[a, d + d] = scale
            else:
                workspace[b, d + a] = total
                workspace[b, a] = total * scale
            q += _ONE
        if not 1e-100 < product < 1e100:
            log_det += math.log(product)
            product = 1.0
    for b in range(_ONE, d):
        for a in range(b):
            total = workspace[b, a]
            for h in range(a + _ONE, b):
                total += workspace[b, h] * workspace[h, d + a]
            workspace[b, d + a] = -total
    return log_det + math.log(product)


@inline
def substitute(rows: Floats, row: int, answers: Floats, to: int, workspace: Floats) -> None:
    """Write M⁻¹ v of a row (v, M) to the first d columns of row ``to`` of ``answers``, after ``decompose``."""
    i, j, d = np.uintp(row), np.uintp(to), np.uintp(workspace.shape[0])
    for b in range(d):
        total = rows[i, b]
        for a in range(b):
            total += workspace[b, d + a] * rows[i, a]
        workspace[b, b] = total * workspace[b, d + d]  # a free entry, because the unit diagonal of L is not stored
    for a in range(d):
        total = workspace[a, a]
        for b in range(a + _ONE, d):
            total += workspace[b, d + a] * workspace[b, b]
        answers[j, a] = total


@no_alloc
def solve(rows: Floats, row: int, answers: Floats, to: int, workspace: Floats) -> float:
    """Write (M⁻¹ v, M⁻¹) of a row (v, M) to row ``to`` of ``answers``; return log det M. M is positive definite."""
    log_det = decompose(rows, row, workspace)
    substitute(rows, row, answers, to, workspace)
    j, d = np.uintp(to), np.uintp(workspace.shape[0])
    q = d
    for a in range(d):
        for b in range(a, d):
            total = workspace[b, d + d]
            if b > a:
                total *= workspace[b, d + a]
            for h in range(b + _ONE, d):
                total += workspace[h, d + a] * workspace[h, d + b] * workspace[h, d + d]
            answers[j, q] = total
            q += _ONE
    return log_det


@no_alloc
def add_product(
    rows: Floats, i: int, outer: Floats, f: int, inner: Floats, s: int, factor: float, square: Floats
) -> None:
    """Add ``factor`` · V C V to the packed matrix in row i of ``rows``.

    V is in row f of ``outer``, and C in row s of ``inner``. ``square`` has shape (2d + 1, d).
    """
    d = square.shape[1]
    q = d
    for a in range(d):
        for b in range(a, d):
            square[a, b] = outer[f, q]
            square[b, a] = outer[f, q]
            square[d + a, b] = inner[s, q]
            square[d + b, a] = inner[s, q]
            q += 1
    q = d
    for a in range(d):
        for h in range(d):
            square[2 * d, h] = 0.0
        for b in range(d):  # a row of V C
            for h in range(d):
                square[2 * d, h] += square[a, b] * square[d + b, h]
        for b in range(a, d):
            total = 0.0
            for h in range(d):
                total += square[2 * d, h] * square[b, h]
            rows[i, q] += factor * total
            q += 1

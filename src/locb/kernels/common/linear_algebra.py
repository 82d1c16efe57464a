"""Linear algebra in O(d³): packed matrices, rank-one updates, ridge estimates, linear systems, the largest eigenvalue.

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


@inline
def tridiagonalize(a: Floats, off: Floats, v: Floats, w: Floats, d: int) -> None:
    """Reduce the symmetric matrix ``a`` (d, d) to tridiagonal form by Householder reflections.

    The diagonal is written to ``a``, and the element in row i and column i − 1 to off[i]. ``v`` (d,) and ``w`` (d,) are
    work arrays.
    """
    for c in range(d - 2):
        norm = 0.0
        for i in range(c + 1, d):
            norm += a[i, c] * a[i, c]
        norm = math.sqrt(norm)
        off[c + 1] = norm
        if norm < 1e-100:  # norm² would underflow; relative to the diagonal of A⁻¹, which is ≥ 1 / (1 + m), it is 0
            off[c + 1] = 0.0
            continue
        alpha = -norm if a[c + 1, c] > 0.0 else norm
        squared_length = 0.0
        for i in range(c + 1, d):
            v[i] = a[i, c]
            if i == c + 1:
                v[i] -= alpha
            squared_length += v[i] * v[i]
        # With u = v / ‖v‖: a ← (I − 2uuᵀ) a (I − 2uuᵀ) on the trailing block.
        cross = 0.0
        for i in range(c + 1, d):
            w[i] = 0.0
            for j in range(c + 1, d):
                w[i] += a[i, j] * v[j]
            w[i] *= 2.0 / squared_length
            cross += w[i] * v[i]
        cross /= squared_length
        for i in range(c + 1, d):
            w[i] -= cross * v[i]
        for i in range(c + 1, d):
            for j in range(c + 1, d):
                a[i, j] -= v[i] * w[j] + w[i] * v[j]
    if d > 1:
        off[d - 1] = a[d - 1, d - 2]


@no_alloc
def largest_eigenvalue(estimates: Floats, row: int, workspace: Floats) -> float:
    """Return the largest eigenvalue of A⁻¹ in a row (θ̂, A⁻¹) of ``estimates``; ``workspace`` has shape (d + 3, d).

    The matrix is reduced to tridiagonal form. Bisection with a Sturm sequence then finds the eigenvalue. Unlike a power
    iteration, bisection always converges.
    """
    d = workspace.shape[1]
    a = workspace
    off = workspace[d]
    q = d
    for i in range(d):
        off[i] = 0.0
        for j in range(i, d):
            a[i, j] = estimates[row, q]
            a[j, i] = estimates[row, q]
            q += 1
    tridiagonalize(a, off, workspace[d + 1], workspace[d + 2], d)
    low: float = a[0, 0]
    high: float = a[0, 0]
    for i in range(d):
        below = abs(off[i])
        above = abs(off[i + 1]) if i + 1 < d else 0.0
        low = max(low, a[i, i])  # a diagonal element is a Rayleigh quotient: a lower bound
        high = max(high, a[i, i] + below + above)  # Gershgorin's upper bound
    while high - low > 4e-16 * high:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        # All pivots of the tridiagonal matrix minus middle · I are negative if and only if all eigenvalues are below
        # middle.
        pivot = a[0, 0] - middle
        all_negative = pivot < 0.0
        i = 1
        while all_negative and i < d:
            pivot = a[i, i] - middle - off[i] * off[i] / pivot
            all_negative = pivot < 0.0
            i += 1
        if all_negative:
            high = middle
        else:
            low = middle
    return high

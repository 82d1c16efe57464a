"""The largest eigenvalue of a packed symmetric matrix, by reduction to tridiagonal form.

The symbols are defined in ``locb.kernels``, and packed matrices in ``locb.kernels.common.linear_algebra``.
"""

import math

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc


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

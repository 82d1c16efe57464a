"""Solving for an estimate or a centre, and the largest eigenvalue: what takes d³ steps."""

import math

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc

# Equations M y = v are kept as rows (v, M packed), and solved in parts, since not all need all of it. Every inner loop
# is a sum, which stays a plain loop: at this size the compiler's vector code would cost more than it saves. Indices are
# unsigned: no test for a negative one stands in the loops.
_ONE = np.uintp(1)


@no_alloc
def solve_ridge(sums: Floats, source: int, estimates: Floats, row: int, room: Floats) -> None:
    """Turn sums (b, G packed) into an estimate ((I + G)⁻¹ b, (I + G)⁻¹), by Cholesky; ``room`` is (2d, d)."""
    d = room.shape[1]
    root = room[:d]  # upper R with RᵀR = I + G
    back = room[d:]  # R⁻¹, upper
    q = d
    for i in range(d):
        for j in range(i, d):
            total = sums[source, q] + (1.0 if i == j else 0.0)
            for h in range(i):
                total -= root[h, i] * root[h, j]
            root[i, j] = math.sqrt(total) if i == j else total / root[i, i]
            q += 1
    for j in range(d):
        back[j, j] = 1.0 / root[j, j]
        for i in range(j - 1, -1, -1):
            total = 0.0
            for h in range(i + 1, j + 1):
                total -= root[i, h] * back[h, j]
            back[i, j] = total / root[i, i]
    for i in range(d):
        estimates[row, i] = 0.0
    q = d
    for i in range(d):
        for j in range(i, d):
            total = 0.0
            for h in range(j, d):
                total += back[i, h] * back[j, h]
            estimates[row, q] = total
            estimates[row, i] += total * sums[source, j]
            if j > i:
                estimates[row, j] += total * sums[source, i]
            q += 1


@no_alloc
def decompose(rows: Floats, row: int, room: Floats) -> float:
    """From the row (v, M packed), M = L D Lᵀ positive definite, to L⁻¹ and D⁻¹ in ``room`` (d, 2d + 1); log det M.

    L has ones on its diagonal. room[b, d + a] = L⁻¹[b, a] below it, room[a, 2d] = 1 / D[a]. A pivot that rounding has
    eaten up is held at 1e-15 of its diagonal element.
    """
    i, d = np.uintp(row), np.uintp(room.shape[0])
    product = 1.0
    log_det = 0.0
    scale = 0.0
    q = d
    for a in range(d):  # for now room[b, a] = L[b, a] and room[b, d + a] = L[b, a] D[a]
        for b in range(a, d):
            total = rows[i, q]
            for h in range(a):
                total -= room[a, h] * room[b, d + h]
            if a == b:
                total = max(total, 1e-15 * rows[i, q])
                product *= total
                scale = 1.0 / total
                room[a, d + d] = scale
            else:
                room[b, d + a] = total
                room[b, a] = total * scale
            q += _ONE
        if not 1e-100 < product < 1e100:
            log_det += math.log(product)
            product = 1.0
    for b in range(_ONE, d):
        for a in range(b):
            total = room[b, a]
            for h in range(a + _ONE, b):
                total += room[b, h] * room[h, d + a]
            room[b, d + a] = -total
    return log_det + math.log(product)


@inline
def substitute(rows: Floats, row: int, answers: Floats, to: int, room: Floats) -> None:
    """M⁻¹ v of a row that was decomposed, into the first d places of another row."""
    i, j, d = np.uintp(row), np.uintp(to), np.uintp(room.shape[0])
    for b in range(d):
        total = rows[i, b]
        for a in range(b):
            total += room[b, d + a] * rows[i, a]
        room[b, b] = total * room[b, d + d]  # the diagonal of L is not kept, so it is free
    for a in range(d):
        total = room[a, a]
        for b in range(a + _ONE, d):
            total += room[b, d + a] * room[b, b]
        answers[j, a] = total


@inline
def inverse_trace(room: Floats) -> float:
    """The trace of M⁻¹ of a row that was decomposed."""
    d = np.uintp(room.shape[0])
    trace = 0.0
    for b in range(d):
        total = 1.0
        for a in range(b):
            total += room[b, d + a] * room[b, d + a]
        trace += total * room[b, d + d]
    return trace


@no_alloc
def solve(rows: Floats, row: int, answers: Floats, to: int, room: Floats) -> float:
    """From a row (v, M packed), M positive definite, to a row (M⁻¹ v, M⁻¹ packed); log det M."""
    log_det = decompose(rows, row, room)
    substitute(rows, row, answers, to, room)
    j, d = np.uintp(to), np.uintp(room.shape[0])
    q = d
    for a in range(d):
        for b in range(a, d):
            total = room[b, d + d]
            if b > a:
                total *= room[b, d + a]
            for h in range(b + _ONE, d):
                total += room[h, d + a] * room[h, d + b] * room[h, d + d]
            answers[j, q] = total
            q += _ONE
    return log_det


@no_alloc
def largest_eigenvalue(estimates: Floats, row: int, room: Floats) -> float:
    """Largest eigenvalue of the packed A⁻¹ in a row (θ̂, A⁻¹); ``room`` is (d + 3, d) for the work.

    Householder reduction to tridiagonal form, then bisection by Sturm counts: no step can fail to converge.
    """
    d = room.shape[1]
    a = room
    off = room[d]  # off[i] couples i - 1 and i
    v = room[d + 1]
    w = room[d + 2]
    q = d
    for i in range(d):
        off[i] = 0.0
        for j in range(i, d):
            a[i, j] = estimates[row, q]
            a[j, i] = estimates[row, q]
            q += 1
    for c in range(d - 2):
        norm = 0.0
        for i in range(c + 1, d):
            norm += a[i, c] * a[i, c]
        norm = math.sqrt(norm)
        off[c + 1] = norm
        if norm < 1e-100:  # its square would underflow; beside a diagonal of 1 / (1 + m) it is nothing
            off[c + 1] = 0.0
            continue
        alpha = -norm if a[c + 1, c] > 0.0 else norm
        length = 0.0
        for i in range(c + 1, d):
            v[i] = a[i, c]
            if i == c + 1:
                v[i] -= alpha
            length += v[i] * v[i]
        # With u = v / ‖v‖: a ← (I − 2uuᵀ) a (I − 2uuᵀ) on the trailing block.
        cross = 0.0
        for i in range(c + 1, d):
            w[i] = 0.0
            for j in range(c + 1, d):
                w[i] += a[i, j] * v[j]
            w[i] *= 2.0 / length
            cross += w[i] * v[i]
        cross /= length
        for i in range(c + 1, d):
            w[i] -= cross * v[i]
        for i in range(c + 1, d):
            for j in range(c + 1, d):
                a[i, j] -= v[i] * w[j] + w[i] * v[j]
    if d > 1:
        off[d - 1] = a[d - 1, d - 2]
    low: float = a[0, 0]
    high: float = a[0, 0]
    for i in range(d):
        below = abs(off[i])
        above = abs(off[i + 1]) if i + 1 < d else 0.0
        low = max(low, a[i, i])  # a diagonal element is a Rayleigh quotient
        high = max(high, a[i, i] + below + above)  # Gershgorin
    while high - low > 4e-16 * high:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        # The leading minors of (T − middle) all have negative ratios exactly when every eigenvalue is below middle.
        pivot = a[0, 0] - middle
        below_all = pivot < 0.0
        i = 1
        while below_all and i < d:
            pivot = a[i, i] - middle - off[i] * off[i] / pivot
            below_all = pivot < 0.0
            i += 1
        if below_all:
            high = middle
        else:
            low = middle
    return high

"""Linear algebra of one round: packed symmetric matrices, rank-one learning, the choice of an arm.

A symmetric d × d matrix is kept as its upper triangle, row by row: p = d (d + 1) / 2 numbers.
"""

import math

import numpy as np

from locb.arrays import Floats, Words
from locb.jit import borrowing, inlined, summing
from locb.rounds import LARGEST_CONTEXT

TIE = 1e-9  # arms within this of the highest score are tied
FIRST, RANDOM = 0, 1  # tie rules


def packed_size(dim: int) -> int:
    """How many numbers a packed dim × dim matrix takes."""
    return dim * (dim + 1) // 2


def packed_identity(dim: int) -> Floats:
    """The identity matrix, packed: (p,)."""
    rows, columns = np.triu_indices(dim)
    identity: Floats = (rows == columns).astype(np.float64)
    return identity


def unpack(packed: Floats, dim: int) -> Floats:
    """Full matrices (…, d, d) from packed ones (…, p)."""
    rows, columns = np.triu_indices(dim)
    full = np.empty((*packed.shape[:-1], dim, dim), dtype=packed.dtype)
    full[..., rows, columns] = packed
    full[..., columns, rows] = packed
    return full


@inlined
def expand(contexts: Floats, arms: Floats) -> None:
    """From contexts (k, d) to rows (x, x xᵀ packed with its off-diagonal terms doubled): (k, d + p).

    Against a row (θ̂, A⁻¹) the first d products add up to θ̂ᵀx and the others to xᵀA⁻¹x.
    """
    d = contexts.shape[1]
    for a in range(contexts.shape[0]):
        for i in range(d):
            arms[a, i] = contexts[a, i]
        q = d
        for i in range(d):
            arms[a, q] = contexts[a, i] * contexts[a, i]
            q += 1
            for j in range(i + 1, d):
                arms[a, q] = 2.0 * contexts[a, i] * contexts[a, j]
                q += 1


@summing
def dot(rows: Floats, i: int, others: Floats, j: int, start: int, stop: int) -> float:
    """Inner product of two rows between two columns. Takes matrices, not rows: a view would cost more than the sum."""
    total = 0.0
    for q in range(np.uintp(start), np.uintp(stop)):
        total += rows[i, q] * others[j, q]
    return total


@summing
def squared_distance(rows: Floats, i: int, others: Floats, j: int, stop: int) -> float:
    """Squared distance of two rows over their first columns."""
    total = 0.0
    for q in range(stop):
        total += (rows[i, q] - others[j, q]) * (rows[i, q] - others[j, q])
    return total


@inlined
def score_arms(arms: Floats, estimates: Floats, i: int, d: int, alpha: float, factor: float, scores: Floats) -> None:
    """θ̂ᵀx + α √(xᵀA⁻¹x · factor) of every arm, from row i of the estimates."""
    for a in range(scores.size):
        spread = dot(arms, a, estimates, i, d, arms.shape[1])
        scores[a] = dot(arms, a, estimates, i, 0, d) + alpha * math.sqrt(max(spread, 0.0) * factor)


@inlined
def learn(estimates: Floats, i: int, x: Floats, reward: float, step: Floats) -> float:
    """Take one observation into the estimate (θ̂, A⁻¹) of row i: A ← A + x xᵀ, b ← b + r x, θ̂ ← A⁻¹ b.

    The change of the row is left in ``step`` (d + p,). Returns det A_new / det A_old.
    """
    d = x.size
    for a in range(d):
        step[a] = 0.0
    q = d
    for a in range(d):  # step = A⁻¹ x, for now
        step[a] += estimates[i, q] * x[a]
        q += 1
        for b in range(a + 1, d):
            step[a] += estimates[i, q] * x[b]
            step[b] += estimates[i, q] * x[a]
            q += 1
    growth = 1.0
    surprise = reward
    for a in range(d):
        growth += step[a] * x[a]
        surprise -= estimates[i, a] * x[a]
    scale = -1.0 / growth
    q = d
    for a in range(d):
        row = scale * step[a]
        for b in range(a, d):
            step[q] = row * step[b]
            q += 1
    for a in range(d):
        step[a] *= surprise / growth
    for q in range(step.size):
        estimates[i, q] += step[q]
    return growth


@inlined
def add_observation(sums: Floats, i: int, x: Floats, reward: float) -> None:
    """Add one observation to the sums (b, G packed) in row i."""
    d = x.size
    q = d
    for a in range(d):
        sums[i, a] += reward * x[a]
        for b in range(a, d):
            sums[i, q] += x[a] * x[b]
            q += 1


@borrowing
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


# Equations M y = v are kept as rows (v, M packed), and solved in parts, since not all need all of it. Every inner loop
# is a sum, which stays a plain loop: at this size the compiler's vector code would cost more than it saves. Indices are
# unsigned: no test for a negative one stands in the loops.
_ONE = np.uintp(1)


@borrowing
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


@inlined
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


@inlined
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


@borrowing
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


@borrowing
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


@inlined
def next_random(generator: Words) -> np.uint64:
    """Advance a xorshift generator (Marsaglia, 2003) and return its 64 bits."""
    word: np.uint64 = generator[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    generator[0] = word
    return word


@inlined
def pick(scores: Floats, ties: int, generator: Words) -> int:
    """The arm of the highest score; among arms tied with it the first, or a random one."""
    highest = -np.inf
    for a in range(scores.size):
        highest = max(highest, scores[a])
    first = -1
    tied = 0
    for a in range(scores.size):
        if scores[a] >= highest - TIE:
            tied += 1
            if first < 0:
                first = a
    if ties == FIRST or tied == 1:
        return first
    # The upper 31 bits, scaled to 0 … tied − 1.
    skip = np.int64(((next_random(generator) >> np.uint64(33)) * np.uint64(tied)) >> np.uint64(31))
    for a in range(first, scores.size):
        if scores[a] >= highest - TIE:
            if skip == 0:
                return a
            skip -= 1
    return first


@inlined
def usable(values: Floats) -> bool:
    """Whether every number is finite and at most LARGEST_CONTEXT in size."""
    for q in range(values.size):
        if not abs(values[q]) <= LARGEST_CONTEXT:
            return False
    return True

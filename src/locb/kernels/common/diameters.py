"""Diameters of sets of users: the largest distance between two estimates, with their confidence radii."""

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point

MAX_PLAIN = 1_000  # the diameter of at most this many users is computed with NumPy, without compiled code
TILE = 128  # users whose distances from one user are computed together
FAR_STEPS = 4  # steps from a user to the farthest other user, which give a large first value


def diameter(theta: Floats, radius: Floats) -> float:
    """Return the largest ‖θ̂_i − θ̂_j‖ + B_i + B_j over all pairs of users i and j; 0 for fewer than two users.

    The rows of ``theta`` (n, d) are the estimates θ̂_i, and ``radius`` (n,) has their confidence radii B_i ≥ 0. If every
    true θ_i is within B_i of θ̂_i, the distance between any two users is at most the result.

    The *reach* of user i is ‖θ̂_i − c‖ + B_i, where c is the mean of all θ̂_i. By the triangle inequality, the value of a
    pair is at most the sum of its reaches. Of more than MAX_PLAIN users, only pairs are compared for which this sum is
    above the largest value so far. The memory is proportional to n.
    """
    if len(theta) <= MAX_PLAIN:
        largest = 0.0
        for i in range(len(theta) - 1):
            largest = max(largest, float((gaps(theta[i + 1 :], theta[i]) + radius[i + 1 :]).max() + radius[i]))
        return largest
    reach = gaps(theta, theta.mean(axis=0)) + radius
    best, i = 0.0, int(reach.argmax())
    for _ in range(FAR_STEPS):
        values = gaps(theta, theta[i]) + radius + radius[i]
        values[i] = 0.0
        i = int(values.argmax())
        best = max(best, float(values[i]))
    order: Ints = np.argsort(-reach, kind="stable")
    order = order[: np.count_nonzero(reach + reach[order[0]] > best)]
    columns = np.ascontiguousarray(theta[order].T)
    return float(largest_value(columns, radius[order], reach[order], best))


def gaps(theta: Floats, point: Floats) -> Floats:
    """Return the distances of all rows of ``theta`` from a point."""
    distances: Floats = np.linalg.norm(theta - point, axis=1)
    return distances


@entry_point
def largest_value(columns: Floats, radius: Floats, reach: Floats, best: float) -> float:
    """Return the largest value of a pair, or ``best`` if no value is larger.

    ``columns`` (d, n) has the estimates. The users are in descending order of ``reach`` (n,).
    """
    d, n = columns.shape
    squares = np.empty(TILE)
    for i in range(n - 1):
        if reach[i] + reach[i + 1] <= best:
            break
        for start in range(i + 1, n, TILE):
            if reach[i] + reach[start] <= best:
                break
            count = min(TILE, n - start)
            for j in range(count):
                squares[j] = 0.0
            for q in range(d):
                x = columns[q, i]
                for j in range(count):
                    squares[j] += (columns[q, start + j] - x) * (columns[q, start + j] - x)
            n_larger = 0  # a count, because the compiler can vectorize this loop
            for j in range(count):
                excess = max(best - radius[i] - radius[start + j], 0.0)
                n_larger += squares[j] >= excess * excess
            if n_larger > 0:
                for j in range(count):
                    best = max(best, np.sqrt(squares[j]) + radius[i] + radius[start + j])
    return best


def diameter_bound(theta: Floats, radius: Floats) -> float:
    """Return an upper bound on ``diameter`` in time O(n): the sum of the two largest reaches."""
    if len(theta) < 2:
        return 0.0
    reach = gaps(theta, theta.mean(axis=0)) + radius
    return float(np.partition(reach, -2)[-2:].sum())

"""Groups of users whose confidence regions overlap: connected components of a graph of balls."""

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point


@entry_point
def connected_components(theta: Floats, radii: Floats, labels: Ints) -> int:
    """Label the components of the graph in which users are joined if their balls overlap; return their number.

    Users i and j are joined if ‖θ_i − θ_j‖ ≤ B_i + B_j, with rows θ_i of ``theta`` and entries B_i of ``radii``. The
    search visits users in order and compares each with the users that have no component yet.
    """
    count, d = theta.shape
    rest, queue = np.arange(count), np.empty(count, np.int64)
    remaining, found = count, 0
    while remaining > 0:
        queue[0] = rest[0]
        remaining -= 1
        rest[0] = rest[remaining]
        labels[queue[0]] = found
        head, tail = 0, 1
        while head < tail and remaining > 0:
            i = queue[head]
            head += 1
            position = 0
            while position < remaining:
                j = rest[position]
                reach = radii[i] + radii[j]
                limit = reach * reach
                total = 0.0
                for a in range(d):
                    total += (theta[i, a] - theta[j, a]) * (theta[i, a] - theta[j, a])
                if total <= limit:
                    labels[j] = found
                    queue[tail] = j
                    tail += 1
                    remaining -= 1
                    rest[position] = rest[remaining]
                else:
                    position += 1
        found += 1
    return found

"""Second moments of each user's rows of a log, and their conversion to the sums (b, G) of a linear model.

A row of the log is the vector z = (x, 1, r): d features, a constant and the reward. The moments of a user are the upper
triangle of Σ z zᵀ, packed row by row. They contain the number of rows, Σ r x, Σ x xᵀ and Σ r². A linear map of the
features or of the reward, such as standardization, is a linear map of z, so it can follow the pass over the log.
"""

import numpy as np

from locb.common.arrays import Floats, IndexArray
from locb.common.jit import entry_point


@entry_point
def add_rows(moments: Floats, users: IndexArray, features: Floats, rewards: Floats, extremes: Floats) -> None:
    """Add rows to the moments of their users, one after the other, so that the result does not depend on batches.

    Parameters
    ----------
    moments : (users, (d + 2)(d + 3) / 2) floats
        Moments, which are changed.
    users : (n,) ints
        User of each row.
    features : (n, d) floats
        Features of each row.
    rewards : (n,) floats
        Reward of each row.
    extremes : (3,) floats
        Largest squared norm of the features, lowest and highest reward so far. They are changed.
    """
    count, d = features.shape
    z = np.empty(d + 2)
    z[d] = 1.0
    for row in range(count):
        norm = 0.0
        for a in range(d):
            z[a] = features[row, a]
            norm += z[a] * z[a]
        z[d + 1] = rewards[row]
        extremes[0] = max(extremes[0], norm)
        extremes[1] = min(extremes[1], rewards[row])
        extremes[2] = max(extremes[2], rewards[row])
        sums = moments[users[row]]
        q = 0
        for a in range(d + 2):
            value = z[a]
            for b in range(a, d + 2):
                sums[q] += value * z[b]
                q += 1


@entry_point
def convert_moments(moments: Floats, transform: Floats, squares: Floats) -> None:
    """Replace each row of moments by the sums (b, G) of the variables ``transform`` z; fill ``squares`` with Σ r².

    Parameters
    ----------
    moments : (users, (m + 1) m / 2) floats
        Moments of z, of length m. The first D + D(D + 1)/2 columns become (b, G packed).
    transform : (D + 1, m) floats
        Linear map of z to D features and the reward.
    squares : (users,) floats
        Sum of the squared transformed rewards of each user.
    """
    size, m = transform.shape
    full, half, out = np.empty((m, m)), np.empty((size, m)), np.empty((size, size))
    for user in range(moments.shape[0]):
        q = 0
        for a in range(m):
            for b in range(a, m):
                full[a, b] = moments[user, q]
                full[b, a] = moments[user, q]
                q += 1
        for i in range(size):
            for b in range(m):
                half[i, b] = 0.0
            for a in range(m):
                factor = transform[i, a]
                if factor != 0.0:
                    for b in range(m):
                        half[i, b] += factor * full[a, b]
        for i in range(size):
            for j in range(i, size):
                total = 0.0
                for b in range(m):
                    total += half[i, b] * transform[j, b]
                out[i, j] = total
        q = size - 1
        for i in range(size - 1):
            moments[user, i] = out[i, size - 1]
            for j in range(i, size - 1):
                moments[user, q] = out[i, j]
                q += 1
        squares[user] = out[size - 1, size - 1]

"""LOCB as one would first compile it: every round visits all members of all sets that hold the user.

Kept as the yardstick for the kernel of the package, and checked against it for the same choices.
"""

import math

import numpy as np
from numba import njit

from locb.common.arrays import Floats, Ints


def play(n: int, seeds: Ints, limit: float, alpha: float, users: Ints, contexts: Floats, rewards: Floats) -> Ints:
    """The arms that LOCB chooses with the regret radius, the mean bonus and a return limit of γτ/8."""
    chosen: Ints = _play(n, seeds, limit, alpha, users, contexts, rewards)
    return chosen


@njit(cache=True)
def _play(n: int, seeds: Ints, limit: float, alpha: float, users: Ints, contexts: Floats, rewards: Floats) -> Ints:
    rounds, n_arms, d = contexts.shape
    inverse = np.zeros((n, d, d))
    for i in range(n):
        for a in range(d):
            inverse[i, a, a] = 1.0
    theta = np.zeros((n, d))
    served = np.zeros(n, np.int64)
    width = np.ones(n)
    member = np.ones((seeds.size, n), np.bool_)
    active = np.ones(seeds.size, np.bool_)
    chosen = np.empty(rounds, np.int64)
    scores = np.empty(n_arms)
    for t in range(rounds):
        i = users[t]
        for a in range(n_arms):
            x = contexts[t, a]
            scores[a] = -np.inf
            for s in range(seeds.size):
                if not member[s, i]:
                    continue
                mean, bonus, size = 0.0, 0.0, 0
                for j in range(n):
                    if member[s, j]:
                        spread = 0.0
                        for b in range(d):
                            mean += theta[j, b] * x[b]
                            row = 0.0
                            for c in range(d):
                                row += inverse[j, b, c] * x[c]
                            spread += x[b] * row
                        bonus += math.sqrt(spread)
                        size += 1
                scores[a] = max(scores[a], (mean + alpha * bonus) / size)
            if scores[a] == -np.inf:
                spread, mean = 0.0, 0.0
                for b in range(d):
                    mean += theta[i, b] * x[b]
                    for c in range(d):
                        spread += x[b] * inverse[i, b, c] * x[c]
                scores[a] = mean + alpha * math.sqrt(spread)
        arm = 0
        while scores[arm] < scores.max() - 1e-9:
            arm += 1
        chosen[t] = arm
        x = contexts[t, arm]
        v = np.zeros(d)
        growth, surprise = 1.0, rewards[t, arm]
        for b in range(d):
            for c in range(d):
                v[b] += inverse[i, b, c] * x[c]
            growth += v[b] * x[b]
            surprise -= theta[i, b] * x[b]
        for b in range(d):
            theta[i, b] += v[b] * surprise / growth
            for c in range(d):
                inverse[i, b, c] -= v[b] * v[c] / growth
        served[i] += 1
        width[i] = math.sqrt((1.0 + math.log(1.0 + served[i])) / (1.0 + served[i]))
        for s in range(seeds.size):
            if not active[s]:
                continue
            distance = 0.0
            for b in range(d):
                distance += (theta[i, b] - theta[seeds[s], b]) ** 2
            member[s, i] = math.sqrt(distance) <= width[i] + width[seeds[s]]
            done = True
            for j in range(n):
                if member[s, j] and (served[j] == 0 or not width[j] < limit):
                    done = False
            if done:
                for j in range(n):
                    if member[s, j] and j != seeds[s]:
                        distance = 0.0
                        for b in range(d):
                            distance += (theta[j, b] - theta[seeds[s], b]) ** 2
                        member[s, j] = math.sqrt(distance) <= width[j] + width[seeds[s]]
                active[s] = False
    return chosen

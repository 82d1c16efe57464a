"""Brute-force implementation of LOCB, compiled, in which every round visits all members of all clusters of the user.

``play.py`` compares the speed of this implementation with the kernel of the package, and checks that both choose the
same arms. Symbols: n users, d features; A⁻¹ is the inverse of I + Σ x xᵀ over the observed feature vectors x
of a user, and θ̂ is the ridge estimate of the user.
"""

import math

import numpy as np
from numba import njit

from locb.common.arrays import Bools, Floats, Ints


def play(n: int, seeds: Ints, limit: float, alpha: float, users: Ints, contexts: Floats, rewards: Floats) -> Ints:
    """Return the arms that LOCB chooses with the regret radius and the mean bonus.

    Parameters
    ----------
    n : int
        Number of users.
    seeds : (s,) ints
        Seed users.
    limit : float
        A cluster is final when the radii of all its members are below this limit, gamma · tau / 8.
    alpha : float
        Weight of the exploration bonus.
    users, contexts, rewards : arrays
        Users (rounds,), feature vectors (rounds, arms, d) and rewards (rounds, arms) of the rounds.
    """
    chosen: Ints = _play(n, seeds, limit, alpha, users, contexts, rewards)
    return chosen


@njit(cache=True)
def _update(inverse: Floats, theta: Floats, i: int, x: Floats, reward: float) -> None:
    """Update A⁻¹ and θ̂ of user i with one observation."""
    d = x.size
    v = np.zeros(d)
    det_ratio, residual = 1.0, reward
    for b in range(d):
        for c in range(d):
            v[b] += inverse[i, b, c] * x[c]
        det_ratio += v[b] * x[b]
        residual -= theta[i, b] * x[b]
    for b in range(d):
        theta[i, b] += v[b] * residual / det_ratio
        for c in range(d):
            inverse[i, b, c] -= v[b] * v[c] / det_ratio


@njit(cache=True)
def _score(inverse: Floats, theta: Floats, member: Bools, i: int, x: Floats, alpha: float) -> float:
    """Return the highest score of the arm x over the clusters of user i.

    If user i is in no cluster, return the score of the arm with the estimate of user i alone.
    """
    n, d = theta.shape
    score = -np.inf
    for s in range(member.shape[0]):
        if not member[s, i]:
            continue
        mean, bonus, size = 0.0, 0.0, 0
        for j in range(n):
            if member[s, j]:
                variance = 0.0
                for b in range(d):
                    mean += theta[j, b] * x[b]
                    row = 0.0
                    for c in range(d):
                        row += inverse[j, b, c] * x[c]
                    variance += x[b] * row
                bonus += math.sqrt(variance)
                size += 1
        score = max(score, (mean + alpha * bonus) / size)
    if score == -np.inf:
        variance, mean = 0.0, 0.0
        for b in range(d):
            mean += theta[i, b] * x[b]
            for c in range(d):
                variance += x[b] * inverse[i, b, c] * x[c]
        score = mean + alpha * math.sqrt(variance)
    return score


@njit(cache=True)
def _is_near(theta: Floats, width: Floats, i: int, j: int) -> bool:
    """Return whether the distance between the estimates of users i and j is at most the sum of their radii."""
    distance = 0.0
    for b in range(theta.shape[1]):
        distance += (theta[i, b] - theta[j, b]) ** 2
    near: bool = math.sqrt(distance) <= width[i] + width[j]
    return near


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
            scores[a] = _score(inverse, theta, member, i, contexts[t, a], alpha)
        arm = 0
        while scores[arm] < scores.max() - 1e-9:
            arm += 1
        chosen[t] = arm
        _update(inverse, theta, i, contexts[t, arm], rewards[t, arm])
        served[i] += 1
        width[i] = math.sqrt((1.0 + math.log(1.0 + served[i])) / (1.0 + served[i]))
        for s in range(seeds.size):
            if not active[s]:
                continue
            member[s, i] = _is_near(theta, width, i, seeds[s])
            is_done = True
            for j in range(n):
                if member[s, j] and (served[j] == 0 or not width[j] < limit):
                    is_done = False
            if is_done:
                for j in range(n):
                    if member[s, j] and j != seeds[s]:
                        member[s, j] = _is_near(theta, width, j, seeds[s])
                active[s] = False
    return chosen

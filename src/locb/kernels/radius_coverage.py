"""Are the radii true? Learn again what a policy saw, and compare every error with every radius."""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point
from locb.evaluation.confidence import CLUSTERING, ELLIPSOID, REGRET, THEORY, radius_scale, radius_width
from locb.kernels.common.cholesky import largest_eigenvalue
from locb.kernels.common.linear_algebra import rank_one_update


@entry_point
def measure_coverage(
    estimates: Floats,
    log_det: Floats,
    served: Ints,
    theta: Floats,
    first: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    sigmas: Floats,
    delta: float,
    min_eigenvalue: float,
    worst: Floats,
) -> None:
    """Learn rounds first + 1, …, of which the chosen arms are given, and keep the largest ‖θ̂_i − θ_i‖ / B(i, t).

    ``estimates`` (n, d + p), ``log_det`` and ``served`` go on from block to block. ``sigmas`` and ``worst``
    (4,) have one place a kind of radius. The served user is the only one to look at: the others' errors stay, and their
    radii never shrink.
    """
    n_users, d = theta.shape
    step = np.empty(estimates.shape[1])
    room = np.empty((d + 3, d))
    for t in range(users.size):
        i = users[t]
        log_det[i] += math.log(rank_one_update(estimates, i, contexts[t], rewards[t], step))
        served[i] += 1
        error = 0.0
        for q in range(d):
            error += (estimates[i, q] - theta[i, q]) * (estimates[i, q] - theta[i, q])
        error = math.sqrt(error)
        now = first + t + 1
        for kind in (REGRET, CLUSTERING, THEORY):
            if kind != THEORY or min_eigenvalue > 0.0:
                own = radius_width(kind, served[i], n_users, d, sigmas[kind], delta, min_eigenvalue, 0.0, 0.0)
                ball = radius_scale(kind, now, n_users, d, sigmas[kind], delta)
                worst[kind] = max(worst[kind], error / (ball * own))
        # The largest eigenvalue of A⁻¹ is at least each diagonal element: most rounds are settled without it.
        least = 0.0
        q = d
        for row in range(d, 0, -1):
            least = max(least, estimates[i, q])
            q += row
        sigma = sigmas[ELLIPSOID]
        if error / radius_width(ELLIPSOID, 0, n_users, d, sigma, delta, 0.0, log_det[i], least) > worst[ELLIPSOID]:
            largest = largest_eigenvalue(estimates, i, room)
            own = radius_width(ELLIPSOID, 0, n_users, d, sigma, delta, 0.0, log_det[i], largest)
            worst[ELLIPSOID] = max(worst[ELLIPSOID], error / own)

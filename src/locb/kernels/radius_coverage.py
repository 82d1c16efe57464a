"""Coverage of the confidence radii: the largest ratio of an estimation error to its radius in a run."""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point
from locb.kernels.common.linear_algebra import largest_eigenvalue, rank_one_update
from locb.kernels.confidence_radii import CLUSTERING, ELLIPSOID, REGRET, THEORY, radius_scale, radius_width


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
    """Learn a block of rounds and update ``worst``, the largest ‖θ̂_i − θ_i‖ / B(i, t) so far of each kind of radius.

    The rounds have the numbers first + 1, first + 2, …, and ``contexts`` (T, d) and ``rewards`` (T,) are those of the
    chosen arms. The true parameters are ``theta`` (n, d). ``estimates`` (n, d + p), ``log_det`` (n,) and ``served``
    (n,) keep their values between blocks. ``sigmas`` (4,) and ``worst`` (4,) have one entry per kind of radius. Only
    the served user of a round is tested: the errors of all other users do not change, and their radii never shrink.
    The symbols are defined in ``locb.kernels``.
    """
    n_users, d = theta.shape
    step = np.empty(estimates.shape[1])
    workspace = np.empty((d + 3, d))
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
                width = radius_width(kind, served[i], n_users, d, sigmas[kind], delta, min_eigenvalue, 0.0, 0.0)
                scale = radius_scale(kind, now, n_users, d, sigmas[kind], delta)
                worst[kind] = max(worst[kind], error / (scale * width))
        # The largest diagonal element of A⁻¹ is a lower bound of its largest eigenvalue. In most rounds this bound
        # suffices to exclude a new maximum, and the eigenvalue is not computed.
        lower_bound = 0.0
        q = d
        for row in range(d, 0, -1):
            lower_bound = max(lower_bound, estimates[i, q])
            q += row
        sigma = sigmas[ELLIPSOID]
        if (
            error / radius_width(ELLIPSOID, 0, n_users, d, sigma, delta, 0.0, log_det[i], lower_bound)
            > worst[ELLIPSOID]
        ):
            largest = largest_eigenvalue(estimates, i, workspace)
            width = radius_width(ELLIPSOID, 0, n_users, d, sigma, delta, 0.0, log_det[i], largest)
            worst[ELLIPSOID] = max(worst[ELLIPSOID], error / width)

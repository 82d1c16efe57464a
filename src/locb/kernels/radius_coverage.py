"""Coverage of confidence radii and reward intervals: the largest ratio of an error to its bound in a run."""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline
from locb.kernels.common.eigenvalues import largest_eigenvalue
from locb.kernels.common.linear_algebra import rank_one_update
from locb.kernels.confidence_radii import CLUSTERING, ELLIPSOID, REGRET, THEORY, radius_scale, radius_width

REWARD_INTERVAL = 4  # entry of ``sigmas`` and ``worst`` after those of the radii


@inline
def largest_reward_error(estimates: Floats, noise_sums: Floats, theta: Floats, i: int) -> float:
    """Return the largest |θ̂_iᵀx − θ_iᵀx| / √(xᵀA_i⁻¹x) over all contexts x, for user i."""
    d = theta.shape[1]
    total = 0.0
    q = d
    for a in range(d):
        left = noise_sums[i, a] - theta[i, a]
        total += left * left * estimates[i, q]
        for b in range(a + 1, d):
            q += 1
            total += 2.0 * left * (noise_sums[i, b] - theta[i, b]) * estimates[i, q]
        q += 1
    return math.sqrt(max(total, 0.0))


@inline
def largest_diagonal(estimates: Floats, i: int, d: int) -> float:
    """Return the largest diagonal element of A⁻¹ of user i."""
    largest = 0.0
    q = d
    for row in range(d, 0, -1):
        largest = max(largest, estimates[i, q])
        q += row
    return largest


@entry_point
def measure_coverage(
    estimates: Floats,
    log_det: Floats,
    noise_sums: Floats,
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
    """Learn a block of rounds and update ``worst``, the largest ratios of an error to its bound so far.

    The rounds have the numbers first + 1, first + 2, …, and ``contexts`` (T, d) and ``rewards`` (T,) are those of the
    chosen arms. The true parameters are ``theta`` (n, d). ``estimates`` (n, d + p), ``log_det`` (n,), ``noise_sums``
    (n, d) and ``served`` (n,) keep their values between blocks. ``sigmas`` (5,) and ``worst`` (5,) have one entry per
    kind of radius, for ‖θ̂_i − θ_i‖ / B(i, t), and an entry REWARD_INTERVAL: the largest
    |θ̂_iᵀx − θ_iᵀx| / (β_i √(xᵀA_i⁻¹x)) over all contexts x, with β_i = σ √(log det A_i + 2 log(n/δ)) + 1. This maximum
    is √((s − θ_i)ᵀ A_i⁻¹ (s − θ_i)) / β_i. The vector s = Σ x (r − xᵀθ_i) is stored in ``noise_sums``. Only the served
    user of a round is tested: the errors of all other users do not change, and their bounds never shrink. The symbols
    are defined in ``locb.kernels``.
    """
    n_users, d = theta.shape
    step = np.empty(estimates.shape[1])
    workspace = np.empty((d + 3, d))
    for t in range(users.size):
        i = users[t]
        log_det[i] += math.log(rank_one_update(estimates, i, contexts[t], rewards[t], step))
        served[i] += 1
        noise = rewards[t]
        error = 0.0
        for q in range(d):
            noise -= contexts[t, q] * theta[i, q]
            error += (estimates[i, q] - theta[i, q]) * (estimates[i, q] - theta[i, q])
        error = math.sqrt(error)
        for q in range(d):
            noise_sums[i, q] += contexts[t, q] * noise
        width = sigmas[REWARD_INTERVAL] * math.sqrt(log_det[i] + 2.0 * math.log(n_users / delta)) + 1.0
        worst[REWARD_INTERVAL] = max(
            worst[REWARD_INTERVAL], largest_reward_error(estimates, noise_sums, theta, i) / width
        )
        now = first + t + 1
        for kind in (REGRET, CLUSTERING, THEORY):
            if kind != THEORY or min_eigenvalue > 0.0:
                width = radius_width(kind, served[i], n_users, d, sigmas[kind], delta, min_eigenvalue, 0.0, 0.0)
                scale = radius_scale(kind, now, n_users, d, sigmas[kind], delta)
                worst[kind] = max(worst[kind], error / (scale * width))
        # The largest diagonal element of A⁻¹ is a lower bound of its largest eigenvalue. In most rounds this bound
        # suffices to exclude a new maximum, and the eigenvalue is not computed.
        lower_bound = largest_diagonal(estimates, i, d)
        sigma = sigmas[ELLIPSOID]
        least = radius_width(ELLIPSOID, 0, n_users, d, sigma, delta, 0.0, log_det[i], lower_bound)
        if error / least > worst[ELLIPSOID]:
            largest = largest_eigenvalue(estimates, i, workspace)
            width = radius_width(ELLIPSOID, 0, n_users, d, sigma, delta, 0.0, log_det[i], largest)
            worst[ELLIPSOID] = max(worst[ELLIPSOID], error / width)

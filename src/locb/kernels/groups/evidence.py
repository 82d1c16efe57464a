"""Evidence of groups: how well a centre explains the sums (b, G) of a user.

The parameter vector of a user of a group with the centre μ is N(μ, w I), and the noise has the variance σ². With
M = σ² I + w G, the log evidence of the rows of the user is, up to a term that does not depend on the prior,

    c + hᵀμ − ½ μᵀHμ,    h = M⁻¹ b,    H = (I − σ² M⁻¹) / w,    c = ½ (w / σ²) bᵀh − ½ log det(M / σ²).

The quadratic form is linear in the products of the entries of μ. The evidence of all groups for many users is therefore
one matrix product with the rows (h, H packed). Further symbols are defined in ``locb.kernels``.
"""

import math

import numpy as np

from locb.common.arrays import Floats
from locb.common.jit import entry_point
from locb.kernels.common.eigenvalues import largest_eigenvalue
from locb.kernels.common.linear_algebra import decompose, packed_trace, solve, solve_ridge
from locb.kernels.confidence_radii import ELLIPSOID, radius_width


@entry_point
def own_estimates(
    sums: Floats, n_users: int, sigma: float, delta: float, norm_bound: float, theta: Floats, radii: Floats
) -> None:
    """Fill the ridge estimate and the ``ellipsoid`` radius of each user, from the rows of that user alone.

    Parameters
    ----------
    sums : (u, d + p) floats
        Rows (b, G).
    n_users : int
        Number of users over which ``delta`` is divided.
    sigma, delta, norm_bound : float
        Scale of the noise, probability that a radius is too small, and largest norm of a parameter vector.
    theta : (u, d) floats
        Estimates.
    radii : (u,) floats
        Radii.
    """
    d = theta.shape[1]
    row, estimate = np.empty((1, sums.shape[1])), np.empty((1, sums.shape[1]))
    ridge_workspace, eigen_workspace = np.empty((2 * d, d)), np.empty((d + 3, d))
    log_det_workspace = np.empty((d, 2 * d + 1))
    for user in range(sums.shape[0]):
        for q in range(sums.shape[1]):
            row[0, q] = sums[user, q]
        solve_ridge(row, 0, estimate, 0, ridge_workspace)
        top = largest_eigenvalue(estimate, 0, eigen_workspace)
        q = d
        for a in range(d):
            row[0, q] += 1.0
            q += d - a
        log_det = decompose(row, 0, log_det_workspace)
        width = radius_width(ELLIPSOID, 0, n_users, d, sigma, delta, 0.0, log_det, top)
        radii[user] = width + (norm_bound - 1.0) * math.sqrt(top)
        for a in range(d):
            theta[user, a] = estimate[0, a]


@entry_point
def evidence_forms(sums: Floats, noise: float, variance: float, forms: Floats, constants: Floats) -> None:
    """Fill the rows (h, H) and the constants c of the log evidence of each user; see the docstring of this module.

    ``noise`` is σ², ``variance`` is w, ``sums`` and ``forms`` are (u, d + p), ``constants`` is (u,).
    """
    d = int((math.sqrt(9.0 + 8.0 * sums.shape[1]) - 3.0) / 2.0 + 0.5)
    row, answer, workspace = np.empty((1, sums.shape[1])), np.empty((1, sums.shape[1])), np.empty((d, 2 * d + 1))
    for user in range(sums.shape[0]):
        for a in range(d):
            row[0, a] = sums[user, a]
        for q in range(d, sums.shape[1]):
            row[0, q] = variance * sums[user, q]
        q = d
        for a in range(d):
            row[0, q] += noise
            q += d - a
        log_det = solve(row, 0, answer, 0, workspace)
        product = 0.0
        for a in range(d):
            forms[user, a] = answer[0, a]
            product += sums[user, a] * answer[0, a]
        q = d
        for a in range(d):
            for b in range(a, d):
                forms[user, q] = ((1.0 if a == b else 0.0) - noise * answer[0, q]) / variance
                q += 1
        constants[user] = 0.5 * variance / noise * product - 0.5 * (log_det - d * math.log(noise))


@entry_point
def population_terms(
    sums: Floats, noise: float, prior: Floats, prior_log_det: float, means: Floats, evidence: Floats, second: Floats
) -> None:
    """Fill the posterior mean and the log evidence of each user under the prior N(μ_0, Σ_0) of all users.

    Parameters
    ----------
    sums : (u, d + p) floats
        Rows (b, G).
    noise : float
        σ².
    prior : (2, d + p) floats
        Rows (Σ_0⁻¹ μ_0, Σ_0⁻¹) and (μ_0, unused).
    prior_log_det : float
        log det Σ_0⁻¹.
    means : (u, d) floats
        Posterior means.
    evidence : (u,) floats
        Log evidence, up to the same term as that of ``evidence_forms``.
    second : (p,) floats
        Sum of V + (m − μ_0)(m − μ_0)ᵀ over the users; V is the posterior covariance and m the posterior mean. Packed.
    """
    d = means.shape[1]
    row, answer, workspace = np.empty((1, sums.shape[1])), np.empty((1, sums.shape[1])), np.empty((d, 2 * d + 1))
    offset = 0.0
    for a in range(d):
        offset += prior[0, a] * prior[1, a]
    second[:] = 0.0
    for user in range(sums.shape[0]):
        for q in range(sums.shape[1]):
            row[0, q] = sums[user, q] / noise + prior[0, q]
        log_det = solve(row, 0, answer, 0, workspace)
        product = 0.0
        for a in range(d):
            means[user, a] = answer[0, a]
            product += row[0, a] * answer[0, a]
        evidence[user] = 0.5 * (product - offset + prior_log_det - log_det)
        q = d
        for a in range(d):
            for b in range(a, d):
                deviations = (answer[0, a] - prior[1, a]) * (answer[0, b] - prior[1, b])
                second[q - d] += answer[0, q] + deviations
                q += 1


@entry_point
def residual_sums(sums: Floats, squares: Floats, counts: Floats, dim: int) -> tuple[float, float]:
    """Return the sum of squared residuals of each user's own least squares, and its degrees of freedom, over all users.

    Users with fewer than 2d rows are omitted.
    """
    row, answer = np.empty((1, sums.shape[1])), np.empty((1, sums.shape[1]))
    workspace = np.empty((dim, 2 * dim + 1))
    total, freedom = 0.0, 0.0
    for user in range(sums.shape[0]):
        if counts[user] < 2 * dim:
            continue
        for q in range(sums.shape[1]):
            row[0, q] = sums[user, q]
        ridge = 1e-9 * packed_trace(row, 0, dim) + 1e-12
        q = dim
        for a in range(dim):
            row[0, q] += ridge
            q += dim - a
        solve(row, 0, answer, 0, workspace)
        explained = 0.0
        for a in range(dim):
            explained += row[0, a] * answer[0, a]
        total += max(squares[user] - explained, 0.0)
        freedom += counts[user] - dim
    return total, freedom

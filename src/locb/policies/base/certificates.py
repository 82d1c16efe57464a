"""Certificates: upper bounds on the distance between the parameter vectors of any two users of a cluster.

The bounds hold with a given probability, see ``CertificateMixin.certificate``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import check_float
from locb.evaluation.clusters import sorted_members
from locb.kernels.common.diameters import diameter, diameter_bound
from locb.kernels.common.linear_algebra import unpack_symmetric
from locb.kernels.confidence_radii import ELLIPSOID, radius_width
from locb.policies.base.reward_scale import RewardScale


class CertificateMixin:
    """Certificates for a policy whose ``_state.estimates`` has one row (θ̂, A⁻¹) per user (see ``locb.kernels``)."""

    _state: Any
    _n_users: int
    _dim: int
    _parameters: dict[str, Any]
    _reward_scale: RewardScale

    def certificate(self, cluster: Any, *, sigma: float | None = None, delta: float | None = None) -> float:
        """Return an upper bound, valid with high probability, on the distance between any two users of a cluster.

        The distance between two users is that between their parameter vectors θ.

        With probability at least 1 − delta, the bounds of all clusters hold at the same time, however the clusters were
        found. The bound uses the ``ellipsoid`` radius. It assumes that θ of each user has norm at most 1,
        and that the noise is sub-Gaussian with scale ``sigma``. The bound of a cluster of one user is 0. With
        ``reward_range``, the assumptions apply to mapped rewards, and the bound is in the original units.

        Parameters
        ----------
        cluster : Cluster or array of int
            The users of the cluster, at least one.
        sigma, delta : float, optional
            Scale of the noise, and largest probability that a bound is too small. By default, the parameters of the
            policy, or 0.5 and 0.1 if the policy does not have them.

        Raises
        ------
        UnavailableError
            If the policy cannot compute certificates with its current parameters.
        ValueError
            If the cluster is empty or has an unknown user, or if ``sigma`` or ``delta`` is out of range.
        """
        return self.certifier(cluster, sigma=sigma, delta=delta)(True)

    def certifier(
        self, cluster: Any, *, sigma: float | None = None, delta: float | None = None
    ) -> Callable[[bool], float]:
        """Return a function that computes the certificate from a copy of the estimates, so that any thread can call it.

        With the argument True, the function returns the exact maximum over all pairs of users, as ``certificate`` does.
        With False, it uses the distances from the mean estimate: this takes linear time, and the bound is at least as
        large. The parameters are those of ``certificate``.
        """
        compute = self.certified_estimates(cluster, sigma=sigma, delta=delta)
        return lambda all_pairs: certify(*compute(), all_pairs)

    def certified_estimates(
        self, cluster: Any, *, sigma: float | None = None, delta: float | None = None
    ) -> Callable[[], tuple[Floats, Floats]]:
        """Return a function that computes the estimates and radii of users from copies, so that any thread can call it.

        Each estimate uses only the rounds of that user. ``certify`` computes a certificate from the estimates and
        radii. The users can be passed in several parts, so that each part takes a short time. The parameters are those
        of ``certificate``.
        """
        sigma = check_float("sigma", self._parameters.get("sigma", 0.5) if sigma is None else sigma, 0.0)
        delta = self._parameters.get("delta", 0.1) if delta is None else delta
        delta = check_float("delta", delta, 0.0, 1.0, open_ends=True)
        members = sorted_members(cluster)
        if members.size == 0:
            raise ValueError("cluster must contain at least one user, not 0")
        if not 0 <= members[0] <= members[-1] < self._n_users:
            low, high = members[[0, -1]].tolist()
            raise ValueError(f"cluster must contain users from 0 to {self._n_users - 1}, not {low} to {high}")
        own_estimates = self._own_estimates(members)
        n, dim, unmap = self._n_users, self._dim, self._reward_scale.unmap_difference

        def compute() -> tuple[Floats, Floats]:
            estimates = own_estimates().astype(np.float64)
            spectrum = np.linalg.eigvalsh(unpack_symmetric(estimates[:, dim:], dim))  # of A⁻¹, ascending
            log_det = -np.log(spectrum).sum(axis=1)
            radii = [
                radius_width(ELLIPSOID, 0, n, dim, sigma, delta, 0.0, entropy, top)
                for entropy, top in zip(log_det.tolist(), spectrum[:, -1].tolist(), strict=True)
            ]
            return unmap(np.ascontiguousarray(estimates[:, :dim])), unmap(np.array(radii))

        return compute

    def _own_estimates(self, users: Ints) -> Callable[[], Floats]:
        """Return a function that computes one row (θ̂, A⁻¹) per user, from the rounds of that user alone.

        The function uses copies, so that any thread can call it.
        """
        rows: Floats = self._state.estimates[users]
        return lambda: rows


def certify(theta: Floats, radii: Floats, all_pairs: bool) -> float:
    """Return the certificate of users with these estimates and radii; see ``CertificateMixin.certifier``."""
    return diameter(theta, radii) if all_pairs else diameter_bound(theta, radii)

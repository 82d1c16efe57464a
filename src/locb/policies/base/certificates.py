"""Certificates: bounds on the distance between any two users of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import check_float
from locb.evaluation.clusters import diameter, diameter_bound, sorted_members
from locb.kernels.common.linear_algebra import unpack_symmetric
from locb.kernels.confidence_radii import ELLIPSOID, radius_width


class CertificateMixin:
    """Certificates of a policy whose state has rows (θ̂, A⁻¹) in ``estimates``."""

    _state: Any
    _n_users: int
    _dim: int
    _parameters: dict[str, Any]

    def certificate(self, cluster: Any, *, sigma: float | None = None, delta: float | None = None) -> float:
        """Return an upper bound on the distance between any two users of a cluster.

        The bound holds for all clusters at once with probability 1 − delta, however the cluster was found. It uses the
        ``ellipsoid`` radius, which assumes ‖θ‖ ≤ 1 and sub-Gaussian noise of scale ``sigma``. A cluster of one user
        gives 0.

        Parameters
        ----------
        cluster : Cluster or array of int
            The users.
        sigma, delta : float, optional
            Noise scale and failure probability. By default those of the policy, or 0.5 and 0.1 if it has none.

        Raises
        ------
        UnavailableError
            If the policy gives no certificates with its current parameters.
        """
        return self.certifier(cluster, sigma=sigma, delta=delta)(True)

    def certifier(
        self, cluster: Any, *, sigma: float | None = None, delta: float | None = None
    ) -> Callable[[bool], float]:
        """Return a function that computes the certificate from copies, so that another thread may call it later.

        With argument True the function compares all pairs of users, as ``certificate`` does. With False it measures
        distances from the centre, which takes linear time and gives a bound that is at least as large.
        """
        sigma = check_float("sigma", self._parameters.get("sigma", 0.5) if sigma is None else sigma, 0.0)
        delta = self._parameters.get("delta", 0.1) if delta is None else delta
        delta = check_float("delta", delta, 0.0, 1.0, open_ends=True)
        members = sorted_members(cluster)
        if members.size == 0:
            raise ValueError("cluster must contain at least one user")
        if not 0 <= members[0] <= members[-1] < self._n_users:
            raise ValueError(f"cluster must contain users below {self._n_users}, not {members[[0, -1]].tolist()}")
        estimates = self._own_estimates(members).astype(np.float64)
        n, dim = self._n_users, self._dim

        def certify(all_pairs: bool) -> float:
            spectrum = np.linalg.eigvalsh(unpack_symmetric(estimates[:, dim:], dim))  # of A⁻¹, ascending
            log_det = -np.log(spectrum).sum(axis=1)
            radii = np.array(
                [
                    radius_width(ELLIPSOID, 0, n, dim, sigma, delta, 0.0, float(entropy), float(top))
                    for entropy, top in zip(log_det, spectrum[:, -1], strict=True)
                ]
            )
            return diameter(estimates[:, :dim], radii) if all_pairs else diameter_bound(estimates[:, :dim], radii)

        return certify

    def _own_estimates(self, users: Ints) -> Floats:
        """Return rows (θ̂, A⁻¹) of users, computed from the rounds of each user alone."""
        rows: Floats = self._state.estimates[users]
        return rows

"""What the compiled policies tell of their users and groups: estimates, who is alike, certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Bools, Floats, Ints
from locb.evaluation.clusters import SimilarUser, diameter, diameter_bound, sorted_members
from locb.evaluation.confidence import ELLIPSOID, radius_width, shrinkage
from locb.kernels.common.linear_algebra import diagonal, unpack_symmetric
from locb.policies.base.explanations import Estimate
from locb.policies.base.policy import Policy
from locb.policies.base.user_batch import BatchMembership, OverlappingGroups, UserBatch
from locb.policies.base.validation import check_float, check_int

AT_ONCE = 8_192  # users whose distances are worked out together: as many as stay in the cache
LARGEST_DEVIATION = 0.5  # of rewards in [0, 1]


class InspectablePolicy(Policy):
    """A policy with a state of plain arrays: rows (θ̂, A⁻¹) in ``estimates``, and the counts m in ``served``.

    All that is told is copied or read-only: nothing here changes what the policy has learned.
    """

    user_batch_size: ClassVar[int] = 4_096

    _state: Any
    _parameters: dict[str, Any]

    @property
    def theta(self) -> Floats:
        """The users' estimates: (n, d). Read-only."""
        return _read_only(self._state.estimates[: self._n_users, : self._dim])

    @property
    def served(self) -> Ints:
        """How many rounds each user was served: (n,). Read-only."""
        return _read_only(self._state.served[: self._n_users])

    @property
    def radii(self) -> Floats:
        """The radius of each user's estimate that this policy goes by: (n,)."""
        return self._radii_of(np.arange(self._n_users))

    def _radii_of(self, users: Ints) -> Floats:
        return np.array([shrinkage(m) for m in self.served[users].tolist()])

    def estimate(self, user: int) -> Estimate:
        """What is known of this user: θ̂, its radius, the rounds that it rests on, and the deviation of its entries.

        That is ½ √(A⁻¹)_jj: rewards in [0, 1] have a standard deviation of at most ½.
        """
        user = self.check_user(user)
        radius = float(self._radii_of(np.array([user]))[0])
        return Estimate(self.theta[user], radius, int(self.served[user]), self._deviation(user))

    def _deviation(self, user: int) -> Floats:
        return LARGEST_DEVIATION * np.sqrt(diagonal(self._state.estimates[user, self._dim :].astype(np.float64)))

    def user_batch(self, users: Ints) -> UserBatch:
        """What is known of these users and which groups hold them, copied: what the policy learns next changes none."""
        return UserBatch(self.theta[users].astype(np.float64), self.served[users], self._batch_membership(users))

    def _batch_membership(self, users: Ints) -> BatchMembership:
        """Which groups hold these users; none where a policy has no groups."""
        return OverlappingGroups.of(np.zeros((len(users), 0), bool))

    def similar_users(self, user: int, limit: int = 10) -> list[SimilarUser]:
        """Users who share a group with this one, nearest estimate first; none where a policy has no groups."""
        user = self.check_user(user)
        limit = check_int("limit", limit, 0)
        together = self._companions(user)
        together[user] = False
        others = np.flatnonzero(together)
        distance = self._distances(user, others)
        nearest = nearest_first(distance, limit)
        radii = self._radii_of(others[nearest])
        return [
            SimilarUser(int(others[j]), float(distance[j]), float(radius))
            for j, radius in zip(nearest, radii, strict=True)
        ]

    def _companions(self, user: int) -> Bools:
        """Who shares a group with this user: (n,)."""
        together = np.zeros(self._n_users, bool)
        for cluster in self.clusters_of(user):
            together[cluster.members] = True
        return together

    def _distances(self, user: int, others: Ints) -> Floats:
        """How far the estimates of others are from that of this user."""
        theta, distances = self.theta, np.empty(len(others))
        for start in range(0, len(others), AT_ONCE):
            gaps = theta[others[start : start + AT_ONCE]] - theta[user]
            distances[start : start + AT_ONCE] = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
        return distances

    def certificate(self, cluster: Any, *, sigma: float | None = None, delta: float | None = None) -> float:
        """How far apart two users of this group can be, at most; with probability 1 − delta for all groups at once.

        It rests on the ``ellipsoid`` radius, which needs ‖θ‖ ≤ 1 and noise no wider than ``sigma`` (½ for rewards in
        [0, 1]), and on nothing about how the group was found. A group of one gives 0. Where they are not given, sigma
        and delta are the policy's own, or ½ and 0.1 if it has none.
        """
        return self.certifier(cluster, sigma=sigma, delta=delta)(True)

    def certifier(
        self, cluster: Any, *, sigma: float | None = None, delta: float | None = None
    ) -> Callable[[bool], float]:
        """What gives the certificate of a group as it is now, from copies: another thread may call it, later.

        Called with True it looks at all pairs, as ``certificate`` does; with False it goes by way of the middle, which
        gives at least as much in a time that grows with the users alone.
        """
        sigma = check_float("sigma", self._parameters.get("sigma", 0.5) if sigma is None else sigma, 0.0)
        delta = self._parameters.get("delta", 0.1) if delta is None else delta
        delta = check_float("delta", delta, 0.0, 1.0, open_ends=True)
        members = sorted_members(cluster)
        if members.size == 0:
            raise ValueError("cluster must hold at least one user")
        if not 0 <= members[0] <= members[-1] < self._n_users:
            raise ValueError(f"cluster must hold users from 0 to {self._n_users - 1}, not {members[[0, -1]].tolist()}")
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
        """Rows (θ̂, A⁻¹) that rest on each user's own rounds alone."""
        rows: Floats = self._state.estimates[users]
        return rows


def nearest_first(distance: Floats, limit: int) -> Ints:
    """Where the smallest are, in order; of equal ones the first. Of many only so many are put in order.

    Examples
    --------
    >>> nearest_first(np.array([3.0, 1.0, 2.0, 1.0]), 3).tolist()
    [1, 3, 2]
    """
    if not 0 < limit < len(distance):
        return np.argsort(distance, kind="stable")[:limit]
    near = np.flatnonzero(distance <= np.partition(distance, limit - 1)[limit - 1])
    return near[np.argsort(distance[near], kind="stable")[:limit]]


def _read_only(view: NDArray[Any]) -> NDArray[Any]:
    view = view.view()
    view.flags.writeable = False
    return view

"""Base class with read access to the users of a policy: estimates, radii and similar users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.frames import make_frame, rows_to_columns
from locb.common.validation import check_int
from locb.evaluation.clusters import SimilarUser
from locb.evaluation.policy_view import user_ids
from locb.kernels.common.linear_algebra import diagonal
from locb.kernels.confidence_radii import shrinkage
from locb.policies.base.certificates import CertificateMixin
from locb.policies.base.explanations import Estimate
from locb.policies.base.nearest_users import NearestUsers
from locb.policies.base.policy import Policy
from locb.policies.base.reward_scale import RewardScale
from locb.policies.base.user_batch import BatchMembership, OverlappingGroups, UserBatch

MAX_DEVIATION = 0.5  # largest possible standard deviation of rewards in [0, 1]


class InspectablePolicy(CertificateMixin, Policy):
    """Base class of policies that give read access to the estimate of each user.

    The state of a subclass has one row (θ̂, A⁻¹) per user in ``estimates`` (see ``locb.kernels``), and the number of
    rounds per user in ``served``. All results are copies or read-only views.
    """

    user_batch_size: ClassVar[int] = 4_096

    _state: Any

    def __init__(
        self, *, n_users: int, dim: int, reward_range: tuple[float, float] | None = None, learns_scale: bool = False
    ) -> None:
        """Initialize the policy. With ``learns_scale``, the policy accepts rewards of any scale without a warning."""
        super().__init__(n_users=n_users, dim=dim)
        self._reward_scale = RewardScale(reward_range, is_checked=not learns_scale)

    @property
    def reward_scale_problem(self) -> str | None:
        """Why rewards are not on a scale of about 0 to 1; None without such rewards, or with a ``reward_range``."""
        return self._reward_scale.problem

    @property
    def theta(self) -> Floats:
        """Estimate of each user's parameter vector, (n, d). Read-only."""
        return _read_only(self._reward_scale.unmap_difference(self._theta))

    @property
    def _theta(self) -> Floats:
        """Estimates of all users on the scale of the kernel, (n, d)."""
        theta: Floats = self._state.estimates[: self._n_users, : self._dim]
        return theta

    def _theta_of(self, users: Ints) -> Floats:
        """Return the estimates of these users on the scale of the kernel, (u, d)."""
        return self._theta[users]

    @property
    def served(self) -> Ints:
        """Number of rounds of each user, (n,). Read-only."""
        return _read_only(self._state.served[: self._n_users])

    @property
    def radii(self) -> Floats:
        """Confidence radius of the estimate of each user, (n,). ELOC, MixedEffects: expected error of the estimate."""
        return self._reward_scale.unmap_difference(self._user_radii(np.arange(self._n_users)))

    def _user_radii(self, users: Ints) -> Floats:
        """Return the radius of each of these users on the scale of the kernel."""
        counts, rows = np.unique(self.served[users], return_inverse=True)  # few distinct counts: a short loop
        radii: Floats = np.array([shrinkage(m) for m in counts.tolist()])[rows]
        return radii

    def estimate(self, user: int) -> Estimate:
        """Return the estimate of a user.

        The deviation of entry j is ½ √((A⁻¹)_jj), because rewards in [0, 1] have a standard deviation of at most ½. A
        is I plus the sum of x xᵀ over the contexts x from which the estimate was learned.
        """
        user = self.check_user(user)
        unmap = self._reward_scale.unmap_difference
        radius = unmap(float(self._user_radii(np.array([user]))[0]))
        theta = _read_only(unmap(self._theta_of(np.array([user]))[0]))
        return Estimate(theta, radius, int(self.served[user]), unmap(self._deviation(user)))

    def _deviation(self, user: int) -> Floats:
        return MAX_DEVIATION * np.sqrt(diagonal(self._state.estimates[user, self._dim :].astype(np.float64)))

    def user_batch(self, users: Ints) -> UserBatch:
        """Return copies of the estimates and memberships of several users."""
        unmap, membership = self._reward_scale.unmap_difference, self._batch_membership(users)
        theta = unmap(self._theta_of(users).astype(np.float64))
        return UserBatch(theta, unmap(self._user_radii(users)), self.served[users], membership)

    def _batch_membership(self, users: Ints) -> BatchMembership:
        """Return the memberships of several users. Without an override, the policy has no clusters."""
        return OverlappingGroups.from_matrix(np.zeros((len(users), 0), bool))

    def similar_users(self, user: int, limit: int = 10) -> list[SimilarUser]:
        """Return users who share a cluster with a user, nearest estimate first; [] for a policy without clusters.

        Parameters
        ----------
        user : int
            The user, from 0 to ``n_users`` − 1.
        limit : int, default=10
            Maximum number of users to return.

        Returns
        -------
        list of SimilarUser
            The similar users, with their distances and radii.
        """
        user = self.check_user(user)
        limit = check_int("limit", limit, 0)
        nearest = NearestUsers(user, limit)
        if self.memberships(user):
            for start in range(0, self._n_users, self.user_batch_size):
                users = np.arange(start, min(start + self.user_batch_size, self._n_users))
                nearest.add(users, self.user_batch(np.append(users, user)))
        return nearest.found()

    def similar_users_frame(
        self, user: int, limit: int = 10, ids: Sequence[Any] | None = None, library: str = "polars"
    ) -> Any:
        """Return ``similar_users`` as a data frame: user, distance and radius.

        ``ids`` has your own id of each user, which the column ``user`` shows. ``library`` is "polars" or "pandas".
        """
        names = user_ids(ids, self._n_users)
        rows = [{**similar._asdict(), "user": names[similar.user]} for similar in self.similar_users(user, limit)]
        return make_frame(rows_to_columns(rows, SimilarUser._fields), library)


def _read_only(view: NDArray[Any]) -> NDArray[Any]:
    view = view.view()
    view.flags.writeable = False
    return view

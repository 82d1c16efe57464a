"""DynUCB: a fixed number of clusters, between which users move (Nguyen and Lauw, 2014)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import check_int
from locb.evaluation.clusters import Cluster, Membership, group_by_label
from locb.kernels.dynucb import loop as kernel
from locb.kernels.dynucb.state import N_USERS, TIES, DynUCBState, T
from locb.policies.base.compiled import ScoringRowPolicy, ScoringRows, new_generator
from locb.policies.base.correction import CorrectionMixin
from locb.policies.base.explanations import EvidenceSource
from locb.policies.base.user_batch import BatchMembership, GroupSummary, Partition, summarize_open_groups
from locb.policies.parameters import (
    TIE_RULES,
    Alpha,
    Dim,
    Dtype,
    NUsers,
    Parameter,
    RewardRange,
    Seed,
    Ties,
    validate_parameters,
)
from locb.policies.state.corrections import shift_estimate
from locb.policies.state.user_rows import grow_rows, grown_capacity, initial_estimates

NClusters = Annotated[int, Parameter("Number of clusters. Clusters can be empty.", minimum=1, maximum=10_000)]


class DynUCB(CorrectionMixin, ScoringRowPolicy):
    """DynUCB policy: users start in random clusters. After each round, the served user moves to the nearest cluster.

    The users of a cluster C share a ridge estimate θ_C. In round t, the score of an arm with context x is
    θ_Cᵀx + α √(xᵀA_C⁻¹x · log(t + 1)). C is the cluster of the user, A_C is I plus the sum of x xᵀ over the rounds of
    the users of C, and α is ``alpha``. The distance of a user from a cluster is that of their estimates.

    Examples
    --------
    >>> policy = DynUCB(n_users=9, dim=2, n_clusters=2)
    >>> sum(len(cluster) for cluster in policy.clusters())
    9
    """

    _kernel: ClassVar[Any] = kernel
    _user_rows: ClassVar[tuple[str, ...]] = ("estimates", "sums", "served", "cluster")
    _settings: ClassVar[dict[str, slice]] = {"int_params": slice(TIES, None), "float_params": slice(None)}

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        alpha: Alpha = 1.0,
        n_clusters: NClusters = 5,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim, reward_range=reward_range)
        estimates, cluster_estimates = initial_estimates(n_users, dim, dtype), initial_estimates(n_clusters, dim)
        self._state = DynUCBState(
            estimates=estimates,
            sums=np.zeros_like(estimates),
            served=np.zeros(n_users, np.int64),
            cluster=np.zeros(n_users, np.int64),
            cluster_estimates=cluster_estimates,
            cluster_sums=np.zeros_like(cluster_estimates),
            sizes=np.zeros(n_clusters, np.int64),
            cluster_served=np.zeros(n_clusters, np.int64),
            int_params=np.array([0, n_users, TIE_RULES[ties]]),
            float_params=np.array([alpha]),
            generator=new_generator(np.random.default_rng(seed)),
        )
        kernel.assign_clusters(self._state, 0, n_users)

    def clusters(self) -> list[Cluster]:
        """Return the clusters that are not empty, in the order of their numbers."""
        return [Cluster(None, members) for members in group_by_label(self._state.cluster[: self._n_users])]

    def memberships(self, user: int) -> Sequence[Membership]:
        """Return a list with the cluster of a user, described without its members."""
        return [Membership(None, int(self._state.sizes[self._state.cluster[self.check_user(user)]]))]

    def group_summary(self) -> GroupSummary:
        """Return a summary of the clusters, in the order of ``clusters``. Clusters are never final."""
        return summarize_open_groups(np.flatnonzero(self._state.sizes > 0))

    def _batch_membership(self, users: Ints) -> BatchMembership:
        return Partition(self._state.cluster[users])

    def cluster_sizes(self) -> Ints:
        """Return the number of users per cluster, in the order of ``clusters``."""
        sizes: Ints = self._state.sizes[self._state.sizes > 0]
        return sizes

    def add_users(self, count: int) -> None:
        """Add ``count`` users, each in a random cluster."""
        old, new = self._n_users, self._n_users + check_int("count", count, 0)
        state = self._state
        if new > len(state.served):
            blanks = {"estimates": initial_estimates(1, self._dim)}
            self._state = state._replace(
                **grow_rows(state, self._user_rows, grown_capacity(len(state.served), new), blanks)
            )
        kernel.assign_clusters(self._state, old, new)
        self._n_users = self._parameters["n_users"] = self._state.int_params[N_USERS] = new

    def _scoring_rows(self, users: Ints) -> ScoringRows:
        state = self._state
        clusters = state.cluster[users].astype(np.int64)
        sizes, served = state.sizes[clusters].tolist(), state.cluster_served[clusters].tolist()
        log_round = math.log(state.int_params[T] + 2.0)  # the same expression as in the kernel
        sources = [(EvidenceSource("cluster", None, 1.0, *counts),) for counts in zip(sizes, served, strict=True)]
        alphas = np.full(len(users), self._parameters["alpha"])
        memberships = [[Membership(None, size)] for size in sizes]
        return ScoringRows(state.cluster_estimates, clusters, alphas, log_round, sources, memberships)

    def _shift_sums(self, user: int, change: Floats) -> None:
        state = self._state
        cluster = int(state.cluster[user])
        for estimates, sums, row in (
            (state.estimates, state.sums, user),
            (state.cluster_estimates, state.cluster_sums, cluster),
        ):
            shift_estimate(estimates, row, change)
            sums[row, : self._dim] += change

    def _rebuild_derived(self) -> None:
        self._state.int_params[N_USERS] = self._n_users

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        return {"cluster": (0, self._parameters["n_clusters"])}

    def _consistency(self, state: Any) -> dict[str, bool]:
        served = np.zeros_like(state.cluster_served)
        np.add.at(served, state.cluster, state.served)
        return super()._consistency(state) | {
            "sizes": np.array_equal(np.bincount(state.cluster, minlength=len(state.sizes)), state.sizes),
            "cluster_served": np.array_equal(served, state.cluster_served),
        }

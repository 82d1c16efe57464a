"""Copy of the state of all users and clusters, from which the views of the dashboard are computed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.policies.base.user_batch import BatchMembership, GroupSummary, UserBatch, membership_probabilities
from locb.service.core.service import Service
from locb.service.dashboard.map import sample_users

SLICE_SECONDS = 0.001  # target duration of one slice of the capture, during which requests wait
SUMMED_AT_ONCE = 4_096  # users whose sums per cluster a thread computes at once
MIN_SLICE = 16  # minimum number of users per slice
SURE = 0.9  # minimum probability of a sure member of a cluster


@dataclass(frozen=True, slots=True, eq=False)
class StateView:
    """State of all u users, of their K clusters, and of a sample of s users. An estimate has d features.

    Attributes
    ----------
    user_indices, served : (u,) ints
        Index of each user, and the number of rewards that the policy learned from the user. Indices that no user has
        are omitted.
    memberships : BatchMembership
        Which users are in which clusters.
    cluster_ids : (K,) ints
        Id of each cluster in ``memberships``.
    representatives : (K,) ints
        Index of the user after whom each cluster is named: its seed or, if the policy has no seeds, its first member;
        −1 if there is none.
    returned, progress : (K,) bools, (K,) floats
        Whether each cluster is final, and its progress towards becoming final, from 0 to 1; NaN if the policy does not
        report the progress.
    sizes : (K,) ints
        Number of users in each cluster.
    reward_totals : (K, 2) floats
        Number of rewards of the users of each cluster, and the sum of these rewards.
    mean_theta : (K, d) floats
        Mean estimate of the users of each cluster who have rewards; 0 if there are none.
    same_as : (K,) ints
        Position of the cluster of which each cluster is a duplicate, or its own position.
    sure_members : (K,) ints or None
        Number of members of each cluster who belong to it with a probability of at least ``SURE``; 0 for
        "everyone", the cluster without a seed. None if the policy has no probabilities.
    sure_users : int or None
        Number of users who belong to a cluster other than "everyone" with a probability of at least ``SURE``; None if
        the policy has no probabilities.
    n_estimates : int
        Number of users with an estimate.
    sample, sample_theta : (s,) ints, (s, d) floats
        Random sample of the users with an estimate, as positions in ``user_indices``, and their estimates.
    """

    user_indices: Ints
    served: Ints
    memberships: BatchMembership
    cluster_ids: Ints
    representatives: Ints
    returned: NDArray[np.bool_]
    progress: Floats
    sizes: Ints
    reward_totals: Floats
    mean_theta: Floats
    same_as: Ints
    sure_members: Ints | None
    sure_users: int | None
    n_estimates: int
    sample: Ints
    sample_theta: Floats

    def members(self, cluster: int) -> Ints:
        """Return the user indices of the members of a cluster, which is given by its position in ``cluster_ids``."""
        blocks = self.memberships.blocks(self.cluster_ids[[cluster]])
        rows = [np.flatnonzero(block[:, 0]) + block_rows.start for block_rows, block in blocks]
        return self.user_indices[np.concatenate(rows)] if rows else self.user_indices[:0]


async def capture(service: Service) -> StateView:
    """Capture the current state.

    The users are read in slices, between which requests are served. The slices can therefore show the policy at
    different times.
    """
    indices = service.engine.users.assigned()
    group_summary = await summarize_groups(service)
    sums = _ClusterSums(group_summary)
    waiting = []
    async for part, batch in user_slices(service, indices):
        waiting.append((batch, service.event_stats.rewards_by_user(part)))
        if len(waiting) * len(part) >= SUMMED_AT_ONCE:
            await asyncio.to_thread(sums.add, waiting)
            waiting = []
    await asyncio.to_thread(sums.add, waiting)
    users = await asyncio.to_thread(UserBatch.concatenate, sums.users)
    sample = await asyncio.to_thread(sample_users, users.served, indices)
    theta = [batch.theta async for _, batch in user_slices(service, indices[sample])]
    has_seeds = service.policy_spec.has_seeds
    return await asyncio.to_thread(_assemble, indices, users, group_summary, sums, sample, theta, has_seeds)


def _assemble(
    indices: Ints,
    users: UserBatch,
    group_summary: GroupSummary,
    cluster_sums: _ClusterSums,
    sample: Ints,
    sample_theta: list[Floats],
    has_seeds: bool,
) -> StateView:
    """Return the state that was captured. Runs in a thread, on copies."""
    theta = np.concatenate(sample_theta)
    has_estimate = np.isfinite(theta).all(axis=1)  # a custom policy can have none
    n_estimates = int(np.count_nonzero(users.served > 0)) if has_estimate.all() else int(has_estimate.sum())
    representatives = group_summary.seeds
    if not has_seeds:
        first = users.groups.first(group_summary.names)
        representatives = np.where((representatives < 0) & (first >= 0), np.append(indices, -1)[first], representatives)
    # Omit empty clusters, and clusters whose seed is an unassigned index.
    sums = cluster_sums.total
    kept = (sums[:, 0] > 0.0) & ((group_summary.seeds < 0) | np.isin(group_summary.seeds, indices))
    positions, same_as = np.cumsum(kept) - 1, group_summary.same_as
    originals = np.arange(len(kept)) if same_as is None else np.where(kept[same_as], same_as, np.arange(len(kept)))
    theta_sums = sums[:, 4:] if group_summary.theta is None else group_summary.theta
    return StateView(
        user_indices=indices,
        served=users.served,
        memberships=users.groups,
        cluster_ids=group_summary.names[kept],
        representatives=representatives[kept],
        returned=group_summary.returned[kept],
        progress=group_summary.progress[kept],
        sizes=sums[kept, 0].astype(np.int64),
        reward_totals=sums[kept, 2:4],
        mean_theta=theta_sums[kept] / np.maximum(sums[kept, 1:2], 1.0),
        same_as=positions[originals[kept]],
        sure_members=None if cluster_sums.sure_members is None else cluster_sums.sure_members[kept],
        sure_users=cluster_sums.sure_users,
        n_estimates=n_estimates,
        sample=sample[has_estimate],
        sample_theta=theta[has_estimate],
    )


async def summarize_groups(service: Service) -> GroupSummary:
    """Return the summary of the clusters. It is computed in short steps, between which requests are served."""
    steps = service.policy.group_summary_steps()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            summary: GroupSummary = end.value
            return summary
        await asyncio.sleep(0)


async def user_slices(
    service: Service, indices: Ints, also: int | None = None
) -> AsyncIterator[tuple[Ints, UserBatch]]:
    """Yield the state of users in slices of about ``SLICE_SECONDS``, between which requests are served.

    The policy does not change within a slice. Without users there is one empty slice.

    Parameters
    ----------
    service : Service
        The service.
    indices : (u,) ints
        Indices of the users.
    also : int or None, default None
        Index of a user who is added as the last row of every slice.

    Yields
    ------
    (ints, UserBatch)
        Indices of a slice, and the state of these users and of ``also``.
    """
    start, size = 0, service.policy.user_batch_size
    while start < len(indices) or start == 0:
        begin = time.perf_counter()
        part = indices[start : start + size]
        batch = service.policy.user_batch(part if also is None else np.append(part, also))
        elapsed = max(time.perf_counter() - begin, 1e-6)
        yield part, batch
        start += size
        size = min(service.policy.user_batch_size, max(MIN_SLICE, int(size * min(2.0, SLICE_SECONDS / elapsed))))
        await asyncio.sleep(0)


class _ClusterSums:
    """Sums over the users of each cluster.

    ``total`` has one row per cluster. Its columns are: number of users, number of users with rewards, number of
    rewards, sum of rewards and, unless the group summary already has it, the sum of the estimates of the users with
    rewards. ``users`` is a list of batches that together contain all users. To save memory, the batches have neither
    estimates nor radii nor weights. ``sure_members`` and ``sure_users`` are as in ``StateView``.
    """

    def __init__(self, group_summary: GroupSummary) -> None:
        self._summary = group_summary
        self.users: list[UserBatch] = []
        self.total: Floats = np.zeros(0)
        self.sure_members: Ints | None = None
        self.sure_users: int | None = None

    def add(self, batches: list[tuple[UserBatch, Floats]]) -> None:
        """Add batches of users. Each batch comes with an array: number of rewards, and their sum, per user.

        The method runs in a thread.
        """
        if not batches:
            return
        users = UserBatch.concatenate([batch for batch, _ in batches])
        self._count_sure(users)
        self.users.append(users._replace(theta=users.theta[:0], radii=users.radii[:0], weights=None))
        has_rewards = (users.served > 0).astype(np.float64)[:, None]
        columns = [np.ones_like(has_rewards), has_rewards, np.concatenate([rewards for _, rewards in batches])]
        if self._summary.theta is None:
            columns.append(np.where(has_rewards > 0.0, users.theta, 0.0))
        sums = users.groups.sums(self._summary.names, np.concatenate(columns, axis=1))
        self.total = self.total + sums if self.total.size else sums

    def _count_sure(self, users: UserBatch) -> None:
        probabilities = membership_probabilities(self._summary, users)
        if probabilities is None:
            return
        names = self._summary.names
        sure = (probabilities >= SURE) & (users.served > 0)[:, None] & (self._summary.seeds >= 0)
        for rows, inside in users.groups.blocks(names):
            found = (sure[rows] & inside).sum(axis=0)
            self.sure_members = found if self.sure_members is None else self.sure_members + found
        self.sure_users = (self.sure_users or 0) + int(sure.any(axis=1).sum())

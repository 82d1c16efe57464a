"""All users and groups at one moment, copied between requests, so that views can be worked out beside them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.policies.base.user_batch import BatchMembership, GroupSummary, UserBatch
from locb.policies.state.locb_state import random_hash_keys
from locb.service.config import SEEDED
from locb.service.core.service import Service

MOST_SHOWN = 3_000  # users on a map: what a browser draws fluently
SLICE = 0.002  # seconds that requests may wait for a part of a picture
SMALLEST = 16  # users of a slice


@dataclass(frozen=True, slots=True, eq=False)
class StateView:
    """Users, a row each, and the groups that hold any of them.

    Attributes
    ----------
    places, served : (u,) ints
        Of the users, and the rounds that what is known of them rests on. Places that nobody has are not among them.
    groups : Belonging
        Who is in which group.
    names : (K,) ints
        What ``groups`` calls each group.
    heads : (K,) ints
        The place of the user after whom each group is named; −1 for none.
    returned, progress : (K,) bools, (K,) floats
        Whether each is complete, and how near it is to that.
    sizes : (K,) ints
        Users of each.
    rewards : (K, 2) floats
        How many rewards its users have, and their sum.
    likes : (K, d) floats
        The mean estimate of those of its users who were served.
    known : int
        Users who have an estimate.
    shown, theta : (s,) ints, (s, d) floats
        Rows of some of these, drawn by lot, and their estimates.
    """

    places: Ints
    served: Ints
    groups: BatchMembership
    names: Ints
    heads: Ints
    returned: NDArray[np.bool_]
    progress: Floats
    sizes: Ints
    rewards: Floats
    likes: Floats
    known: int
    shown: Ints
    theta: Floats

    def members(self, group: int) -> Ints:
        """The places of the users of a group."""
        blocks = self.groups.blocks(self.names[[group]])
        inside = [np.flatnonzero(block[:, 0]) + rows.start for rows, block in blocks]
        return self.places[np.concatenate(inside)] if inside else self.places[:0]


async def capture(service: Service) -> StateView:
    """A picture of the policy as it is; requests are served meanwhile."""
    places = service.engine.user_index.taken()
    group_summary = service.policy.group_summary()
    sums: Floats | float = 0.0
    parts = []
    async for start, part in _slices(service, places):
        rewards = service.event_stats.at(places[start : start + len(part.served)])
        sums += await asyncio.to_thread(_add_up, part, group_summary, rewards)
        parts.append(part._replace(theta=part.theta[:0]))  # all of them are much to keep
    user_batch = UserBatch.joined(parts)
    shown = _drawn(np.flatnonzero(user_batch.served > 0), places)
    theta = np.concatenate([part.theta async for _, part in _slices(service, places[shown])])
    told = np.isfinite(theta).all(axis=1)  # a policy of somebody's own may tell none
    known = int(np.count_nonzero(user_batch.served > 0)) if told.all() else int(told.sum())
    heads = group_summary.seeds
    if service.model.policy not in SEEDED:  # groups without seeds are named after their first members
        first = user_batch.groups.first(group_summary.names)
        heads = np.where((heads < 0) & (first >= 0), np.append(places, -1)[first], heads)
    # Nobody is in some groups, and some seeds are places that nobody has.
    sums = np.asarray(sums)
    kept = (sums[:, 0] > 0.0) & ((group_summary.seeds < 0) | np.isin(group_summary.seeds, places))
    likes = sums[:, 4:] if group_summary.theta is None else group_summary.theta
    return StateView(
        places=places,
        served=user_batch.served,
        groups=user_batch.groups,
        names=group_summary.names[kept],
        heads=heads[kept],
        returned=group_summary.returned[kept],
        progress=group_summary.progress[kept],
        sizes=sums[kept, 0].astype(np.int64),
        rewards=sums[kept, 2:4],
        likes=likes[kept] / np.maximum(sums[kept, 1:2], 1.0),
        known=known,
        shown=shown[told],
        theta=theta[told],
    )


async def _slices(service: Service, places: Ints) -> AsyncIterator[tuple[int, UserBatch]]:
    """What is known of these users, in slices that keep nobody waiting. The policy stands still within each."""
    start, size = 0, service.policy.user_batch_size
    while start < len(places) or start == 0:
        begun = time.perf_counter()
        part = service.policy.user_batch(places[start : start + size])
        took = max(time.perf_counter() - begun, 1e-6)
        yield start, part
        start += size
        size = min(service.policy.user_batch_size, max(SMALLEST, int(size * min(2.0, SLICE / took))))
        await asyncio.sleep(0)


def _add_up(user_batch: UserBatch, group_summary: GroupSummary, rewards: Floats) -> Floats:
    """Of some users, a row a group: how many, how many served, rewards and their sum; θ̂ too if it is not told."""
    known = (user_batch.served > 0).astype(np.float64)[:, None]
    columns = [np.ones_like(known), known, rewards]
    if group_summary.theta is None:
        columns.append(np.where(known > 0.0, user_batch.theta, 0.0))
    return user_batch.groups.sums(group_summary.names, np.concatenate(columns, axis=1))


def _drawn(rows: Ints, places: Ints) -> Ints:
    """Some of the rows, by lot; a place that is drawn stays drawn as others come, but for the few that move ahead."""
    if len(rows) <= MOST_SHOWN:
        return rows
    lots = random_hash_keys(int(places[rows[-1]]) + 1)[places[rows]]
    return np.sort(rows[np.argpartition(lots, MOST_SHOWN)[:MOST_SHOWN]])

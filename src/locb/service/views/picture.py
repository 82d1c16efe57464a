"""All users and groups at one moment, copied between requests, so that views can be worked out beside them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import numpy as np

from locb.arrays import Floats, Ints
from locb.policies.crowds import Belonging, Crowd, Outline
from locb.service.options import SEEDED
from locb.service.service import Service

SLICE = 0.002  # seconds that requests may wait for a part of it


@dataclass(frozen=True, slots=True)
class Picture:
    """Users, a row each, and groups that hold any of them.

    Attributes
    ----------
    places : (u,) ints
        Of the users; places that nobody has are not among them.
    theta, served : (u, d) floats, (u,) ints
        What is known of them.
    groups : Belonging
        Who is in which group.
    rewards : (u, 2) floats
        How many rewards each user has, and their sum.
    outline : Outline
        The groups.
    heads : (K,) ints
        The place of the user after whom each group is named; −1 for none.
    sums : (K, d + 4) floats
        Over the users of each: one; served or not; their rewards, and the sum of these; θ̂ of those who were served.
    """

    places: Ints
    theta: Floats
    served: Ints
    groups: Belonging
    rewards: Floats
    outline: Outline
    heads: Ints
    sums: Floats

    @property
    def sizes(self) -> Ints:
        """How many users each group holds."""
        return self.sums[:, 0].astype(np.int64)

    def members(self, group: int) -> Ints:
        """The places of the users of a group."""
        name = self.outline.names[[group]]
        inside = [np.flatnonzero(block[:, 0]) + rows.start for rows, block in self.groups.blocks(name)]
        return self.places[np.concatenate(inside)] if inside else self.places[:0]


async def take_picture(service: Service) -> Picture:
    """A picture of the policy as it is; requests are served meanwhile."""
    places = service.engine.directory.taken()
    crowd = await _crowd(service, places)
    policy = service.policy
    outline, rewards = policy.outline(), service.tally.by_place(policy.n_users)[places]
    return await asyncio.to_thread(_develop, places, crowd, outline, rewards, service.model.policy in SEEDED)


async def _crowd(service: Service, places: Ints) -> Crowd:
    """What is known of all users, in slices that keep nobody waiting. The policy stands still within each."""
    parts: list[Crowd] = []
    start, size = 0, service.policy.crowd_size
    while start < len(places) or not parts:
        begun = time.perf_counter()
        parts.append(service.policy.crowd(places[start : start + size]))
        start += size
        size = max(16, int(size * min(2.0, SLICE / max(time.perf_counter() - begun, 1e-6))))
        await asyncio.sleep(0)
    return Crowd.joined(parts)


def _develop(places: Ints, crowd: Crowd, outline: Outline, rewards: Floats, seeded: bool) -> Picture:
    """Add up what is known of the groups, and leave those out that hold nobody or whose seed nobody is."""
    known = (crowd.served > 0).astype(np.float64)
    theta = np.where(known[:, None] > 0.0, crowd.theta, 0.0)
    table = np.concatenate([np.ones((len(places), 1)), known[:, None], rewards, theta], axis=1)
    sums = crowd.groups.sums(outline.names, table)
    heads = outline.seeds
    if not seeded:  # groups without seeds are named after their first members
        first = crowd.groups.first(outline.names)
        heads = np.where((heads < 0) & (first >= 0), np.append(places, -1)[first], heads)
    kept = (sums[:, 0] > 0.0) & ((outline.seeds < 0) | np.isin(outline.seeds, places))
    told = outline.some(kept)
    return Picture(places, crowd.theta, crowd.served, crowd.groups, rewards, told, heads[kept], sums[kept])

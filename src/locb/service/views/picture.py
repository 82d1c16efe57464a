"""All users and groups at one moment, copied between requests, so that views can be worked out beside them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np

from locb.arrays import Floats, Ints
from locb.policies.crowds import Belonging, Crowd, Outline
from locb.policies.locb_state import random_words
from locb.service.options import SEEDED
from locb.service.service import Service

MOST_SHOWN = 3_000  # users on a map: what a browser draws fluently
SLICE = 0.002  # seconds that requests may wait for a part of a picture
SMALLEST = 16  # users of a slice


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Users, a row each, and the groups that hold any of them.

    Attributes
    ----------
    places, served : (u,) ints
        Of the users, and the rounds that what is known of them rests on. Places that nobody has are not among them.
    groups : Belonging
        Who is in which group.
    outline : Outline
        The groups.
    heads : (K,) ints
        The place of the user after whom each group is named; −1 for none.
    sums : (K, d + 4) floats
        Over the users of each: one; served or not; their rewards, and the sum of these; θ̂ of those who were served.
    known : int
        Users who have an estimate.
    shown, theta : (s,) ints, (s, d) floats
        Rows of some of these, drawn by lot, and their estimates.
    """

    places: Ints
    served: Ints
    groups: Belonging
    outline: Outline
    heads: Ints
    sums: Floats
    known: int
    shown: Ints
    theta: Floats

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
    outline = service.policy.outline()
    sums = np.zeros((len(outline.names), 4 + service.model.dim))
    parts = []
    async for start, part in _slices(service, places):
        rewards = service.tally.at(places[start : start + len(part.served)])
        sums += await asyncio.to_thread(_add_up, part, outline, rewards)
        parts.append(part._replace(theta=part.theta[:0]))  # all of them are much to keep
    crowd = Crowd.joined(parts)
    shown = _drawn(np.flatnonzero(crowd.served > 0), places)
    theta = np.concatenate([part.theta async for _, part in _slices(service, places[shown])])
    told = np.isfinite(theta).all(axis=1)  # a policy of somebody's own may tell none
    known = int(np.count_nonzero(crowd.served > 0)) if told.all() else int(told.sum())
    heads = outline.seeds
    if service.model.policy not in SEEDED:  # groups without seeds are named after their first members
        first = crowd.groups.first(outline.names)
        heads = np.where((heads < 0) & (first >= 0), np.append(places, -1)[first], heads)
    # Nobody is in some groups, and some seeds are places that nobody has.
    kept = (sums[:, 0] > 0.0) & ((outline.seeds < 0) | np.isin(outline.seeds, places))
    return Picture(
        places=places,
        served=crowd.served,
        groups=crowd.groups,
        outline=outline.some(kept),
        heads=heads[kept],
        sums=sums[kept],
        known=known,
        shown=shown[told],
        theta=theta[told],
    )


async def _slices(service: Service, places: Ints) -> AsyncIterator[tuple[int, Crowd]]:
    """What is known of these users, in slices that keep nobody waiting. The policy stands still within each."""
    start, size = 0, service.policy.crowd_size
    while start < len(places) or start == 0:
        begun = time.perf_counter()
        part = service.policy.crowd(places[start : start + size])
        took = max(time.perf_counter() - begun, 1e-6)
        yield start, part
        start += size
        size = min(service.policy.crowd_size, max(SMALLEST, int(size * min(2.0, SLICE / took))))
        await asyncio.sleep(0)


def _add_up(crowd: Crowd, outline: Outline, rewards: Floats) -> Floats:
    """What the picture tells of the groups, of some of the users."""
    known = (crowd.served > 0).astype(np.float64)[:, None]
    theta = np.where(known > 0.0, crowd.theta, 0.0)
    table = np.concatenate([np.ones_like(known), known, rewards, theta], axis=1)
    return crowd.groups.sums(outline.names, table)


def _drawn(rows: Ints, places: Ints) -> Ints:
    """Some of the rows, by lot; a place that is drawn stays drawn as others come, but for the few that move ahead."""
    if len(rows) <= MOST_SHOWN:
        return rows
    lots = random_words(int(places[rows[-1]]) + 1)[places[rows]]
    return np.sort(rows[np.argpartition(lots, MOST_SHOWN)[:MOST_SHOWN]])

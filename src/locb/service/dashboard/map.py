"""Users' estimates on a plane that stays as it is while data arrive."""

from __future__ import annotations

import asyncio
import secrets
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.service.core.user_index import UserIndex
from locb.service.dashboard.schemas import Map, MapCluster, MapPoints
from locb.service.dashboard.state_view import StateView

MOST_GROUPS = 7  # colours that can be told from each other
MOST_BASES = 8  # planes that are kept
ENOUGH, OUTGROWN = 100, 4  # a plane laid through fewer users is laid anew when there are so many times as many
NEW = "new"  # instead of the name of a plane
NOBODY, OTHERS = -1, -2  # instead of a group: in none, in ones that are not listed


class Basis(NamedTuple):
    """A plane through the estimates: where it begins, and its two directions."""

    name: str
    centre: Floats  # (d,)
    axes: Floats  # (2, d)
    users: int  # it was laid through

    def fits(self, users: int) -> bool:
        """Whether it will do for so many users."""
        return self.users >= ENOUGH or users < OUTGROWN * self.users


class Drawn(NamedTuple):
    """A map before users have names: a row for each of those shown."""

    basis: Basis | None
    variance: float | None
    points: Floats  # (s, 2)
    groups: Ints  # up to 7 groups of the picture
    shown: Ints  # their users among those shown
    group: Ints  # (s,) index into these
    sets: Ints  # (s,) how many groups hold each


class Maps:
    """Draws maps, and keeps the last planes, until somebody is erased whom they may rest on."""

    def __init__(self) -> None:
        self._bases: dict[str, Basis] = {}
        self._age = 0

    async def draw(self, picture: StateView, basis: str | None, age: int) -> Drawn:
        """The map on the plane of that name, or on a new one; on the last one if that is not known or none is named."""
        if age != self._age:
            self._bases.clear()
            self._age = age
        last = next(reversed(self._bases.values()), None)
        wanted = None if basis == NEW else self._bases.get(basis or "", last)
        drawn = await asyncio.to_thread(draw, picture, wanted, last)
        made = drawn.basis
        if made is not None and made is not wanted and age == self._age:
            self._bases[made.name] = made
            while len(self._bases) > MOST_BASES:
                self._bases.pop(next(iter(self._bases)))
        return drawn


def draw(picture: StateView, basis: Basis | None, last: Basis | None) -> Drawn:
    """Lay the users on a plane, on a new one if none is given or it no longer fits."""
    rows, theta = picture.shown, picture.theta
    if len(rows) and (basis is None or not basis.fits(len(rows))):
        basis = _lay(theta, last)
    points = np.zeros((len(rows), 2)) if basis is None else (theta - basis.centre) @ basis.axes.T
    spread = float(theta.var(axis=0).sum()) if len(rows) else 0.0
    variance = min(1.0, float(points.var(axis=0).sum()) / spread) if spread > 0.0 else None
    chosen, shown, group = _colours(picture)
    sets = picture.groups.at(rows).counts(picture.names)
    return Drawn(basis, variance, points, chosen, shown, group, sets)


def _lay(theta: Floats, last: Basis | None) -> Basis:
    """A plane along the two directions in which estimates differ most, seen from the same side as the last one."""
    centre = theta.mean(axis=0)
    dim = theta.shape[1]
    _, directions = np.linalg.eigh((theta - centre).T @ (theta - centre))  # ascending
    axes = np.zeros((2, dim))
    axes[: min(2, dim)] = directions.T[::-1][:2]
    side = axes.sum(axis=1) if last is None else (axes * last.axes).sum(axis=1)
    return Basis(secrets.token_hex(4), centre, np.where(side[:, None] < 0.0, -axes, axes), len(theta))


def _colours(picture: StateView) -> tuple[Ints, Ints, Ints]:
    """The groups to list, their users among those shown, and the one that gives each user its colour.

    The largest first, then always the one with most users who are in none before: many sets are nearly the same. A user
    has the colour of the smallest of them; one that is nobody's smallest is left out.
    """
    names, count, rows = picture.names, len(picture.names), picture.shown
    sample = picture.groups.at(rows)
    free = np.ones(len(rows))
    chosen: list[int] = []
    columns = np.zeros((len(rows), 0), bool)
    while len(chosen) < min(MOST_GROUPS, count):
        gains = sample.sums(names, free[:, None])[:, 0]
        best = int(np.lexsort((-picture.sizes, -gains))[0])
        if gains[best] < 1.0:
            break
        chosen.append(best)
        inside = np.concatenate([block for _, block in sample.blocks(names[[best]])])
        columns = np.concatenate([columns, inside], axis=1)
        free[inside[:, 0]] = 0.0
    listed = np.array(chosen, np.int64)
    sizes = np.where(columns, picture.sizes[listed], np.iinfo(np.int64).max)
    smallest = sizes.argmin(axis=1) if len(listed) else np.zeros(len(rows), np.int64)
    elsewhere = np.where(sample.counts(names) > 0, OTHERS, NOBODY)
    held = np.asarray(columns.any(axis=1))
    used = np.unique(smallest[held])
    group = np.where(held, np.searchsorted(used, smallest), elsewhere)
    return listed[used], columns[:, used].sum(axis=0), group


def tell(drawn: Drawn, picture: StateView, user_index: UserIndex) -> Map:
    """A map with names, as they are now."""
    named = [user_index.name(place) for place in picture.places[picture.shown].tolist()]
    here = [row for row, name in enumerate(named) if name is not None]
    heads, sizes, returned = picture.heads[drawn.groups], picture.sizes[drawn.groups], picture.returned
    groups = [
        MapCluster(None if head < 0 else user_index.name(head), size, bool(returned[group]), shown)
        for head, size, group, shown in zip(
            heads.tolist(), sizes.tolist(), drawn.groups.tolist(), drawn.shown.tolist(), strict=True
        )
    ]
    x, y = drawn.points[here].round(5).T.tolist()
    points = MapPoints(
        [named[row] or "" for row in here],
        x,
        y,
        picture.served[picture.shown][here].tolist(),
        drawn.group[here].tolist(),
        drawn.sets[here].tolist(),
    )
    how = f"{len(here):,} of {picture.known:,} users, drawn by chance once and kept"
    if len(here) >= picture.known:
        how = "One user" if picture.known == 1 else f"All {picture.known:,} users" if picture.known else "No users yet"
    name = None if drawn.basis is None else drawn.basis.name
    return Map(name, drawn.variance, picture.known, len(here), how, groups, points)

"""The table of sets: how large, how near to complete, what they earn and like, how they overlap."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.service.core.service import Service
from locb.service.core.user_index import UserIndex
from locb.service.dashboard.certificates import Certificates
from locb.service.dashboard.feature_names import Names
from locb.service.dashboard.schemas import ClusterOverlap, ClusterRow, ClusterTable
from locb.service.dashboard.state_view import StateView

SORTS = ("size", "reward", "progress", "seed")
MOST_LISTED = 200
MOST_COMPARED = 12


class Wanted(NamedTuple):
    """What part of the table is asked for."""

    sort: str
    limit: int
    offset: int
    search: str


async def groups(
    service: Service, picture: StateView, names: Names, certificates: Certificates, wanted: Wanted
) -> ClusterTable:
    """The part of the table that is wanted."""
    found = await asyncio.to_thread(_select, picture, service.engine.user_index, wanted)
    order = found.groups[wanted.offset : wanted.offset + wanted.limit]
    shares = await asyncio.to_thread(_shares, picture, order[:MOST_COMPARED])
    rows = []
    for k, certificate in zip(order.tolist(), await certificates.of(service, picture, order.tolist()), strict=True):
        progress, (rewards, total) = float(picture.progress[k]), picture.rewards[k].tolist()
        rows.append(
            ClusterRow(
                found.heads[k],
                int(picture.sizes[k]),
                bool(picture.returned[k]),
                None if np.isnan(progress) else progress,
                certificate.width,
                certificate.exact,
                int(rewards),
                total / rewards if rewards else None,
                names.likes(picture.likes[k]),
            )
        )
    overlap = ClusterOverlap([row.seed for row in rows[:MOST_COMPARED]], shares.round(4).tolist())
    return ClusterTable(len(found.groups), found.returned, found.forming, rows, overlap)


class Found(NamedTuple):
    """Groups that were searched for, in the order asked for, names of all, and how many there are."""

    groups: Ints
    heads: list[str | None]
    returned: int
    forming: int


def _select(picture: StateView, user_index: UserIndex, wanted: Wanted) -> Found:
    """Search and sort. Names of thousands of groups take a while, so this is for a thread: none is changed by it."""
    places = picture.heads.tolist()
    heads = [None if place < 0 else user_index.name(place) for place in places]
    # Who was erased meanwhile takes a set along that is named after them.
    there = [k for k, (place, head) in enumerate(zip(places, heads, strict=True)) if place < 0 or head is not None]
    returned = int(picture.returned[there].sum())
    sought = wanted.search.casefold()
    found = [k for k in there if sought in (heads[k] or "").casefold()] if sought else there
    return Found(_order(picture, found, heads, wanted.sort), heads, returned, len(there) - returned)


def _order(picture: StateView, found: list[int], heads: list[str | None], sort: str) -> Ints:
    """The groups in the order asked for; of equal ones the larger first."""
    if sort == "seed":
        return np.array(sorted(found, key=lambda k: (heads[k] is None, heads[k])), np.int64)
    groups = np.array(found, np.int64)
    sizes = picture.sizes[groups]
    key: Floats | Ints = sizes
    if sort == "progress":
        key = np.nan_to_num(picture.progress[groups], nan=-1.0)
    elif sort == "reward":
        count, total = picture.rewards[groups].T
        key = np.divide(total, count, np.full(len(groups), -np.inf), where=count > 0)
    order: Ints = groups[np.lexsort((-sizes, -key))]
    return order


def _shares(picture: StateView, order: Ints) -> Floats:
    """|i ∩ j| / |i| of these groups."""
    common = np.zeros((len(order), len(order)))
    for _, inside in picture.groups.blocks(picture.names[order]):
        dense = inside.astype(np.float64)
        common += dense.T @ dense
    shares: Floats = common / np.maximum(common.diagonal()[:, None], 1.0)
    return shares

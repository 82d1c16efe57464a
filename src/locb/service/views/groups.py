"""The table of sets: how large, how near to complete, what they earn and like, how they overlap."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locb.arrays import Floats, Ints
from locb.service.service import Service
from locb.service.views.certificates import Certificates
from locb.service.views.messages import GroupRow, GroupTable, Overlap
from locb.service.views.names import Names
from locb.service.views.picture import Picture

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
    service: Service, picture: Picture, names: Names, certificates: Certificates, wanted: Wanted
) -> GroupTable:
    """The part of the table that is wanted."""
    directory = service.engine.directory
    heads = [None if head < 0 else directory.name(head) for head in picture.heads.tolist()]
    # Who was erased meanwhile takes a set along that is named after them.
    there = [k for k, head in enumerate(picture.heads.tolist()) if head < 0 or heads[k] is not None]
    found = np.array([k for k in there if wanted.search.casefold() in (heads[k] or "").casefold()], np.int64)
    order = _order(picture, found, heads, wanted.sort)[wanted.offset : wanted.offset + wanted.limit]
    compared = order[:MOST_COMPARED]
    shares = await asyncio.to_thread(_shares, picture, compared)
    certified = await certificates.of(service, picture, order.tolist())
    rows = []
    for k, theta, certificate in zip(order.tolist(), _mean_theta(picture, order), certified, strict=True):
        progress, (rewards, total) = float(picture.outline.progress[k]), picture.sums[k, 2:4].tolist()
        rows.append(
            GroupRow(
                heads[k],
                int(picture.sizes[k]),
                bool(picture.outline.returned[k]),
                None if np.isnan(progress) else progress,
                certificate.width,
                certificate.exact,
                int(rewards),
                total / rewards if rewards else None,
                names.likes(theta),
            )
        )
    returned = int(picture.outline.returned[there].sum())
    overlap = Overlap([heads[k] for k in compared.tolist()], shares.round(4).tolist())
    return GroupTable(len(found), returned, len(there) - returned, rows, overlap)


def _order(picture: Picture, found: Ints, heads: list[str | None], sort: str) -> Ints:
    """The groups in the order asked for; of equal ones the larger first."""
    if sort == "seed":
        return np.array(sorted(found.tolist(), key=lambda k: (heads[k] is None, heads[k])), np.int64)
    key: Floats | NDArray[np.int64] = picture.sizes
    if sort == "progress":
        key = np.nan_to_num(picture.outline.progress, nan=-1.0)
    elif sort == "reward":
        key = np.divide(
            picture.sums[:, 3], picture.sums[:, 2], np.full(len(key), -np.inf), where=picture.sums[:, 2] > 0
        )
    order: Ints = found[np.lexsort((-picture.sizes[found], -key[found]))]
    return order


def _mean_theta(picture: Picture, order: Ints) -> Floats:
    """The mean estimate of the users of each group who were served."""
    means: Floats = picture.sums[order, 4:] / np.maximum(picture.sums[order, 1:2], 1.0)
    return means


def _shares(picture: Picture, order: Ints) -> Floats:
    """|i ∩ j| / |i| of these groups."""
    common = np.zeros((len(order), len(order)))
    for _, inside in picture.groups.blocks(picture.outline.names[order]):
        dense = inside.astype(np.float64)
        common += dense.T @ dense
    shares: Floats = common / np.maximum(common.diagonal()[:, None], 1.0)
    return shares

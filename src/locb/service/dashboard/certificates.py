"""Certificates of the sets that are listed, worked out bit by bit: for large sets they take a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import NamedTuple

from locb.service.core.service import Service
from locb.service.dashboard.state_view import StateView

MOST_CERTIFIED, MAX_PAIRED = 5_000, 300  # members of a set that is certified here, and over all of whose pairs
FIRST_SECONDS, MORE_SECONDS = 0.5, 0.02  # for sets without one, and then for those whose certificate is old
OLD = 30.0  # seconds
MOST_KEPT = 2_000


class Certificate(NamedTuple):
    """How far apart two members can be, whether that was looked at for all pairs, and when."""

    width: float | None
    exact: bool
    time: float


UNKNOWN = Certificate(None, False, 0.0)


class Certificates:
    """Keeps certificates by the places of those after whom sets are named."""

    def __init__(self) -> None:
        self._kept: dict[int, Certificate] = {}
        self._busy = asyncio.Lock()

    def forget(self) -> None:
        """Somebody was erased on whom they may rest."""
        self._kept.clear()

    async def of(self, service: Service, picture: StateView, groups: Iterable[int]) -> list[Certificate]:
        """Those of some groups of a picture; unknown for large sets, and where there was no time for them yet."""
        groups, sizes, heads = list(groups), picture.sizes, picture.heads.tolist()
        small = [group for group in groups if sizes[group] <= MOST_CERTIFIED]
        async with self._busy:
            start = time.monotonic()
            for group in sorted(small, key=lambda group: self._kept.get(heads[group], UNKNOWN).time):
                known = self._kept.get(heads[group])
                taken, limit = time.monotonic() - start, FIRST_SECONDS if known is None else MORE_SECONDS
                if taken > limit or (known is not None and time.monotonic() - known.time < OLD):
                    break
                await self._renew(service, picture, group, heads[group])
            while len(self._kept) > MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
        certified = set(small)
        return [self._kept.get(heads[group], UNKNOWN) if group in certified else UNKNOWN for group in groups]

    async def _renew(self, service: Service, picture: StateView, group: int, head: int) -> None:
        members = await asyncio.to_thread(picture.members, group)
        told = await service.certificate_of(members, len(members) <= MAX_PAIRED)
        self._kept.pop(head, None)
        self._kept[head] = Certificate(*told, time.monotonic())

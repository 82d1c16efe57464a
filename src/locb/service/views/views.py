"""All views of a service, each kept for a while as the bytes that are sent."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import msgspec

from locb.service.service import Service
from locb.service.views.cached import Cached
from locb.service.views.groups import Wanted, groups
from locb.service.views.history import history
from locb.service.views.map import Maps, tell
from locb.service.views.names import REQUESTS, Names
from locb.service.views.now import now, store_size
from locb.service.views.picture import Picture, take_picture

# Seconds for which each is kept at least.
NOW, HISTORY, PICTURE, TABLE, NAMES, SIZE = 1.0, 2.0, 1.0, 1.0, 10.0, 10.0

_encode = msgspec.json.Encoder().encode


class Views:
    """What is looked at. After somebody was erased nothing that was kept is told any more.

    Parameters
    ----------
    service : Service
        That is looked at.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._maps = Maps()
        self._version = version("locb")
        self._now = Cached(NOW, self._make_now)
        self._history = Cached(HISTORY, self._make_history)
        self._map = Cached(TABLE, self._make_map)
        self._groups = Cached(TABLE, self._make_groups)
        self._picture = Cached(PICTURE, self._take_picture)
        self._names = Cached(NAMES, self._read_names)
        self._size = Cached(SIZE, self._measure)

    @property
    def _age(self) -> int:
        """Stands in every question: what was kept before an erasure is not found after it."""
        return self._service.erasures

    async def now(self) -> bytes:
        """How the service does."""
        return await self._now.get(self._age)

    async def history(self, span: str, baseline: tuple[float, float] | None) -> bytes:
        """Decisions and rewards over time."""
        return await self._history.get(self._age, span, baseline)

    async def map(self, basis: str | None) -> bytes:
        """Users' estimates on a plane."""
        return await self._map.get(self._age, basis)

    async def groups(self, wanted: Wanted) -> bytes:
        """The table of sets."""
        return await self._groups.get(self._age, wanted)

    # How each is made

    async def _make_now(self, age: int) -> bytes:
        picture, size = await self._picture.get(age), await self._size.get(age)
        return _encode(now(self._service, picture, size, self._version))

    async def _make_history(self, _: int, span: str, baseline: tuple[float, float] | None) -> bytes:
        return _encode(await history(self._service, span, baseline))

    async def _make_map(self, age: int, basis: str | None) -> bytes:
        picture = await self._picture.get(age)
        drawn = await self._maps.draw(picture, basis, age)
        return _encode(tell(drawn, picture, self._service.engine.directory))

    async def _make_groups(self, age: int, wanted: Wanted) -> bytes:
        picture, names = await self._picture.get(age), await self._names.get(age)
        return _encode(await groups(self._service, picture, names, wanted))

    async def _take_picture(self, _: int) -> Picture:
        return await take_picture(self._service)

    async def _read_names(self, _: int) -> Names:
        requests = await asyncio.to_thread(self._service.log.last_requests, REQUESTS)
        return await asyncio.to_thread(Names.read, requests, self._service.model.dim)

    async def _measure(self, _: int) -> int | None:
        return await asyncio.to_thread(store_size, self._service)

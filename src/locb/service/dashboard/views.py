"""All views of a service, each kept for a while as the bytes that are sent."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import msgspec

from locb.service.core.service import Service
from locb.service.dashboard.cache import Cached
from locb.service.dashboard.certificates import Certificates
from locb.service.dashboard.feature_names import REQUESTS, Names
from locb.service.dashboard.groups import Wanted, groups
from locb.service.dashboard.history import Baseline, history
from locb.service.dashboard.map import Maps, tell
from locb.service.dashboard.state_view import StateView, capture
from locb.service.dashboard.status import status, store_size
from locb.service.store.database import StoreError

# Seconds for which each is kept.
NOW, HISTORY, PICTURE, NAMES, SIZE = 1.0, 2.0, 2.0, 10.0, 10.0
REST = 300.0  # what rests on all users is kept so many times as long as it took: a third of a percent of the time each
PATIENCE = 0.3  # seconds that the first of all figures wait for a picture

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
        self._certificates = Certificates()
        self._certified_at = 0  # the age of these
        self._version = version("locb")
        self._status = Cached(self._make_status, NOW)
        self._history = Cached(self._make_history, HISTORY)
        self._map = Cached(self._make_map, PICTURE, REST)
        self._groups = Cached(self._make_groups, PICTURE, REST)
        self._picture = Cached(self._take_picture, PICTURE, REST)
        self._names = Cached(self._read_names, NAMES, REST)
        self._size = Cached(self._measure, SIZE)

    @property
    def _age(self) -> int:
        """Stands in every question: what was kept before an erasure is not found after it."""
        return self._service.erasures

    async def status(self) -> bytes:
        """How the service does."""
        return await self._status.get(self._age)

    async def history(self, span: str, baseline: Baseline | None) -> bytes:
        """Decisions and rewards over time."""
        return await self._history.get((self._age, span, baseline), span, baseline)

    async def map(self, basis: str | None) -> bytes:
        """Users' estimates on a plane."""
        picture = await self._picture.get(self._age)
        return await self._map.get((self._age, basis), picture, basis)

    async def groups(self, wanted: Wanted) -> bytes:
        """The table of sets."""
        picture, names = await self._picture.get(self._age), await self.names()
        return await self._groups.get((self._age, wanted), picture, names, wanted)

    async def names(self) -> Names:
        """Of features, as recent requests gave them."""
        return await self._names.get(self._age)

    # How each is made

    async def _make_status(self) -> bytes:
        picture = await self._picture.soon(self._age, PATIENCE)
        size = await self._size.get(self._age)
        return _encode(status(self._service, picture, size, self._version))

    async def _make_history(self, span: str, baseline: Baseline | None) -> bytes:
        return _encode(await history(self._service, span, baseline))

    async def _make_map(self, picture: StateView, basis: str | None) -> bytes:
        drawn = await self._maps.draw(picture, basis, self._age)
        return _encode(tell(drawn, picture, self._service.engine.user_index))

    async def _make_groups(self, picture: StateView, names: Names, wanted: Wanted) -> bytes:
        if self._certified_at != self._age:
            self._certificates.forget()
            self._certified_at = self._age
        return _encode(await groups(self._service, picture, names, self._certificates, wanted))

    async def _take_picture(self) -> StateView:
        return await capture(self._service)

    async def _read_names(self) -> Names:
        try:
            requests = await asyncio.to_thread(self._service.log.last_requests, REQUESTS)
        except StoreError:
            return Names({})  # until the store answers again, features are told by their places
        return await asyncio.to_thread(Names.read, requests, self._service.model.dim)

    async def _measure(self) -> int | None:
        return await asyncio.to_thread(store_size, self._service)
